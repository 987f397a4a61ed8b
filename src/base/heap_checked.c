/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/heap_checked.c - base/heap.h once more, for finding mistakes: -Dcheck_heap=true builds it in place of heap.c
 *
 * The static program has its own malloc(), so no sanitizer looks at it. Here every block is a mapping of its own:
 *
 *	| struct block ... fill | struct edge | the block | fill | guard page |
 *
 * What runs over the end touches the guard page, or changes the fill, at most 15 bytes, that aligns the block; what runs
 * over the beginning changes the edge or the fill before it. A block that was released cannot be touched, and its address
 * is not used again until many others were released. Every mistake ends the program with a message, on stderr and in
 * a file where the test runner finds it. Nothing is ever resized in place: who keeps the old address is found too.
 */
#include "base/heap.h"

#ifdef BELLJAR_CHECK_HEAP

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"

#define ALIGNMENT 16
#define PAGE_BYTES 4096
#define FILLED_MAX_BYTES (64 << 10) /* of a larger block only so much is filled */
#define FILL_NEW 0xa5               /* what nobody has written yet */
#define FILL_AROUND 0xc9
#define FILL_BEFORE_BYTES 64
#define SMALLEST_MAPPED_BYTES (2 * PAGE_BYTES)
#define QUARANTINE_COUNT 1024
#define GUARDED_MAX 5000 /* two areas of memory each: the kernel gives a process 65,530, and fork() copies them all */
#define REPORT_FOLDER "/sanitizer-logs/"

struct block_list {
	struct block *first;
};

/* At the beginning of a mapping. */
struct block {
	struct block_list *list;
	struct block *previous, *next;
	size_t mapped_bytes; /* with the guard page */
	size_t len;
	bool is_protected; /* else: the last page is filled, and looked at later */
};

/* Right before what the caller has. */
struct edge {
	struct block *block;
	uint64_t seal;
};
_Static_assert(sizeof(struct edge) == ALIGNMENT, "a block is aligned as its edge is");

struct released {
	char *mapping;
	size_t mapped_bytes;
};

static struct {
	struct block_list blocks;
	uint64_t secret; /* 0: nothing was allocated yet */
	struct released quarantine[QUARANTINE_COUNT];
	size_t released_count;
	char *spare
		[QUARANTINE_COUNT]; /* of the smallest size; to map a new one each time would take most of the time */
	size_t spare_count;
	size_t protected_count;
	const void *looked_at; /* it is said to be a block */
} heap;

/* --- reports ------------------------------------------------------------------------------------------------ */

/* Beside the folder of the program; see tests/runner/sanitizer_options.c. In a jar it is not there. */
static int open_report(void)
{
	char path[4096 + sizeof(REPORT_FOLDER) + 32];
	ssize_t len = readlink("/proc/self/exe", path, 4096);
	int slashes = 0;

	while (len > 0 && slashes < 2)
		slashes += path[--len] == '/';
	if (len <= 0)
		return -1;
	snprintf(path + len, sizeof(path) - (size_t)len, REPORT_FOLDER "heap.%d", (int)getpid());
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static void report(const char *what, const void *address)
{
	char text[256];
	int len = snprintf(text, sizeof(text), "belljar: heap: %s: %p\n", what, address);
	int fd = open_report();

	(void)!write(STDERR_FILENO, text, (size_t)len);
	if (fd >= 0) {
		(void)!write(fd, text, (size_t)len);
		close(fd);
	}
}

_Noreturn static void give_up(const char *what, const void *address)
{
	report(what, address);
	abort();
}

static bool is_behind(const struct block_list *list, const char *address)
{
	for (struct block *block = list->first; block; block = block->next) {
		const char *end = (char *)block + block->mapped_bytes;

		if (address < end && address >= end - PAGE_BYTES)
			return true;
	}
	return false;
}

static bool is_released(const char *address)
{
	for (size_t i = 0; i < QUARANTINE_COUNT; i++)
		if (address >= heap.quarantine[i].mapping &&
		    address < heap.quarantine[i].mapping + heap.quarantine[i].mapped_bytes)
			return true;
	return false;
}

/* The instruction is repeated then, and ends the program as it would have without us. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	const char *address = info->si_addr;

	if (heap.looked_at)
		give_up(is_released(address) ? "this block was released before" : "this is no block", heap.looked_at);
	if (is_released(address))
		report("a released block was used", address);
	else if (is_behind(&heap.blocks, address))
		report("the end of a block was overrun", address);
	else
		report("what is no block was used", address);
}

static void begin(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_RESETHAND};

	if (random)
		memcpy(&heap.secret, random, sizeof(heap.secret));
	heap.secret |= 1;
	sigaction(SIGSEGV, &action, NULL);
}

/* --- blocks ------------------------------------------------------------------------------------------------- */

static uint64_t seal_of(const struct edge *edge)
{
	return heap.secret ^ (uintptr_t)edge ^ (uintptr_t)edge->block;
}

static struct edge *edge_of(const struct block *block)
{
	size_t aligned = (block->len + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);

	return (struct edge *)((char *)block + block->mapped_bytes - PAGE_BYTES - aligned - sizeof(struct edge));
}

/* Where the fill before an edge begins. */
static char *fill_before(const struct block *block, const struct edge *edge)
{
	char *first = (char *)(block + 1);

	return (char *)edge - first > FILL_BEFORE_BYTES ? (char *)edge - FILL_BEFORE_BYTES : first;
}

static char *end_of_fill(const struct block *block)
{
	return (char *)block + block->mapped_bytes - (block->is_protected ? PAGE_BYTES : 0);
}

static bool is_fill(const char *from, const char *end)
{
	for (; from < end; from++)
		if ((unsigned char)*from != FILL_AROUND)
			return false;
	return true;
}

/* Ends the program unless @content is a block and nobody wrote around it. */
static struct block *block_of(const void *content)
{
	const struct edge *edge = (const struct edge *)content - 1;
	struct block *block;

	if ((uintptr_t)content % ALIGNMENT)
		give_up("this is not the beginning of a block", content);
	heap.looked_at = content;
	if (!heap.secret || edge->seal != seal_of(edge))
		give_up("this is no block, or its beginning was overrun", content);
	heap.looked_at = NULL;
	block = edge->block;
	if (!is_fill(fill_before(block, edge), (char *)edge))
		give_up("the beginning of a block was overrun", content);
	if (!is_fill((const char *)content + block->len, end_of_fill(block)))
		give_up("the end of a block was overrun", content);
	return block;
}

static void link_block(struct block *block, struct block_list *list)
{
	block->list = list;
	block->previous = NULL;
	block->next = list->first;
	if (list->first)
		list->first->previous = block;
	list->first = block;
}

static void unlink_block(const struct block *block)
{
	if (block->previous)
		block->previous->next = block->next;
	else if (block->list->first == block) /* else: a child that began anew */
		block->list->first = block->next;
	if (block->next)
		block->next->previous = block->previous;
}

static bool size_to_map(size_t len, size_t *mapped)
{
	if (__builtin_add_overflow(len, sizeof(struct block) + sizeof(struct edge) + ALIGNMENT - 1, mapped))
		return false;
	*mapped &= ~(size_t)(ALIGNMENT - 1);
	/* As many whole pages, and one. */
	if (__builtin_add_overflow(*mapped, 2 * PAGE_BYTES - 1, mapped))
		return false;
	*mapped &= ~(size_t)(PAGE_BYTES - 1);
	return true;
}

static void *map_pages(size_t mapped)
{
	void *pages;

	if (mapped == SMALLEST_MAPPED_BYTES && heap.spare_count)
		return heap.spare[--heap.spare_count];
	pages = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return pages == MAP_FAILED ? NULL : pages;
}

static void unmap_pages(char *pages, size_t mapped)
{
	if (mapped == SMALLEST_MAPPED_BYTES && heap.spare_count < QUARANTINE_COUNT)
		heap.spare[heap.spare_count++] = pages;
	else
		munmap(pages, mapped);
}

static struct block *map_block(size_t len)
{
	bool is_protected = heap.protected_count < GUARDED_MAX;
	struct block *block;
	size_t mapped;

	if (!size_to_map(len, &mapped))
		return NULL;
	block = map_pages(mapped);
	if (!block)
		return NULL;
	if (mprotect(block, mapped - (is_protected ? PAGE_BYTES : 0), PROT_READ | PROT_WRITE) != 0) {
		munmap(block, mapped);
		return NULL;
	}
	*block = (struct block){.mapped_bytes = mapped, .len = len, .is_protected = is_protected};
	heap.protected_count += is_protected;
	return block;
}

static struct edge *make_block(size_t len)
{
	struct block *block = map_block(len);
	struct edge *edge;
	char *before, *after;

	if (!block)
		return NULL;
	edge = edge_of(block);
	after = (char *)(edge + 1) + len;
	before = fill_before(block, edge);
	memset(before, FILL_AROUND, (size_t)((char *)edge - before));
	memset(after, FILL_AROUND, (size_t)(end_of_fill(block) - after));
	edge->block = block;
	edge->seal = seal_of(edge);
	return edge;
}

static void quarantine(struct block *block)
{
	struct released *slot = &heap.quarantine[heap.released_count++ % QUARANTINE_COUNT];
	struct released freed = {.mapping = (char *)block, .mapped_bytes = block->mapped_bytes};

	heap.protected_count -= block->is_protected;
	if (slot->mapping)
		unmap_pages(slot->mapping, slot->mapped_bytes);
	*slot = freed;
	if (freed.mapped_bytes != SMALLEST_MAPPED_BYTES)
		madvise(block, freed.mapped_bytes, MADV_DONTNEED);
	mprotect(block, freed.mapped_bytes, PROT_NONE);
}

static void *allocate(size_t len, int fill)
{
	struct edge *edge;

	if (!heap.secret)
		begin();
	edge = make_block(len);
	if (!edge)
		return NULL;
	link_block(edge->block, &heap.blocks);
	/* What was just mapped is zero; to touch all of it would cost memory that nobody asked for yet. */
	if (edge->block->mapped_bytes == SMALLEST_MAPPED_BYTES || fill)
		memset(edge + 1, fill, MIN_OF(len, (size_t)FILLED_MAX_BYTES));
	return edge + 1;
}

void *heap_allocate(size_t len)
{
	return allocate(len, FILL_NEW);
}

void *heap_allocate_zeroed(size_t len)
{
	return allocate(len, 0);
}

size_t heap_size(const void *content)
{
	return block_of(content)->len;
}

void heap_release(void *content)
{
	struct block *block;

	if (!content)
		return;
	block = block_of(content);
	unlink_block(block);
	quarantine(block);
}

void *heap_resize(void *content, size_t len)
{
	void *moved;

	if (!content)
		return heap_allocate(len);
	moved = heap_allocate(len);
	if (!moved)
		return NULL;
	memcpy(moved, content, MIN_OF(len, heap_size(content)));
	heap_release(content);
	return moved;
}

/* What is released on the way out is looked at as ever. */
void heap_end(void)
{
}

#endif
