/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/heap.c - size classes, two to each power of two, with a list of free blocks each; large blocks are mappings
 *
 * A start of Belljar allocates a few hundred small blocks and ends some milliseconds later. So memory is taken in chunks, the first
 * with its pages at once, and never given back; a released block goes on the list of its class. Before every block stands a
 * seal made from its address and a secret of the process: a release of anything else ends the program instead of corrupting it.
 */
#include "base/heap.h"

#ifndef BELLJAR_CHECK_HEAP /* else: heap_checked.c */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/base.h"

#define ALIGNMENT 16
#define CLASS_COUNT 23
#define SMALLEST_BYTES 32
#define LARGEST_BYTES (SMALLEST_BYTES << ((CLASS_COUNT - 1) / 2)) /* 64 KiB */
#define LARGE CLASS_COUNT
#define FIRST_CHUNK_BYTES (96 << 10) /* what a start needs, with its pages, by one system call */
#define CHUNK_BYTES (256 << 10)
#define PAGE_BYTES 4096

/* Before every block. */
struct header {
	uint32_t class;
	uint32_t seal; /* of an allocated block; anything else: a free one, or none of ours */
	uint64_t unused;
};
_Static_assert(sizeof(struct header) == ALIGNMENT, "a block is aligned as its header is");
_Static_assert(SMALLEST_BYTES % ALIGNMENT == 0, "so are all classes");

struct free_block {
	struct header header;
	struct free_block *next;
};

/* A mapping of its own. */
struct large {
	size_t mapped_bytes;
	size_t unused;
	struct header header;
};
_Static_assert(sizeof(struct large) % ALIGNMENT == 0, "a large block is aligned too");

static struct {
	struct free_block *free[CLASS_COUNT];
	char *at, *end; /* what is left of the newest chunk, from which blocks are cut */
	bool is_over;
	/* Differs in each process, so that a seal cannot be forged by accident or by an overflow of text. */
	uint32_t secret;
} heap;

static size_t class_bytes(uint32_t class)
{
	size_t power = (size_t)SMALLEST_BYTES << (class / 2);

	return class % 2 ? power + power / 2 : power;
}

static uint32_t class_of(size_t len)
{
	uint32_t power;

	if (len <= SMALLEST_BYTES)
		return 0;
	/* The largest power of two below @len, as a multiple of the smallest class. */
	power = (uint32_t)(8 * sizeof(long) - 1 - (size_t)__builtin_clzl((len - 1) / SMALLEST_BYTES));
	return 2 * power + (len <= class_bytes(2 * power + 1) ? 1 : 2);
}

static uint32_t seal_of(const struct header *header)
{
	return heap.secret ^ (uint32_t)((uintptr_t)header >> 4) ^ header->class;
}

static struct header *header_of(const void *block)
{
	struct header *header = (struct header *)((char *)block - sizeof(*header));

	if (header->seal != seal_of(header))
		abort();
	return header;
}

static void *map(size_t len, int flags)
{
	void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void draw_secret(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);

	if (random)
		memcpy(&heap.secret, random, sizeof(heap.secret));
	heap.secret |= 1;
}

/* What is left of the old chunk is too small for this block; it is not missed. */
static bool grow(size_t needed)
{
	/* The very first chunk is smaller than a large class. */
	bool is_first = !heap.secret && needed < FIRST_CHUNK_BYTES / 2;
	size_t len = is_first ? FIRST_CHUNK_BYTES : CHUNK_BYTES;
	char *chunk = map(len, is_first ? MAP_POPULATE : 0);

	if (!heap.secret)
		draw_secret();
	if (!chunk)
		return false;
	heap.at = chunk;
	heap.end = chunk + len;
	return true;
}

static struct header *cut_from_chunk(uint32_t class)
{
	size_t len = sizeof(struct header) + class_bytes(class);
	struct header *header;

	if ((size_t)(heap.end - heap.at) < len && !grow(len))
		return NULL;
	header = (struct header *)heap.at;
	heap.at += len;
	return header;
}

static struct large *large_of(struct header *header)
{
	return (struct large *)((char *)header - offsetof(struct large, header));
}

static bool mapped_size(size_t len, size_t *mapped)
{
	if (__builtin_add_overflow(len, sizeof(struct large) + PAGE_BYTES - 1, mapped))
		return false;
	*mapped &= ~(size_t)(PAGE_BYTES - 1);
	return true;
}

static void *allocate_large(size_t len)
{
	struct large *large;
	size_t mapped;

	if (!mapped_size(len, &mapped))
		return NULL;
	large = map(mapped, 0);
	if (!large)
		return NULL;
	*large = (struct large){.mapped_bytes = mapped, .header = {.class = LARGE}};
	large->header.seal = seal_of(&large->header);
	return large + 1;
}

void *heap_allocate(size_t len)
{
	struct header *header;
	uint32_t class;

	if (len > LARGEST_BYTES)
		return allocate_large(len);
	class = class_of(len);
	header = (struct header *)heap.free[class];
	if (header)
		heap.free[class] = heap.free[class]->next;
	else
		header = cut_from_chunk(class);
	if (!header)
		return NULL;
	header->class = class;
	header->seal = seal_of(header);
	return header + 1;
}

void *heap_allocate_zeroed(size_t len)
{
	void *block = heap_allocate(len);

	if (block && len <= LARGEST_BYTES) /* a mapping is zero from the start */
		memset(block, 0, len);
	return block;
}

size_t heap_size(const void *block)
{
	struct header *header = header_of(block);

	return header->class == LARGE ? large_of(header)->mapped_bytes - sizeof(struct large)
				      : class_bytes(header->class);
}

void heap_release(void *block)
{
	struct header *header;
	struct free_block *freed;

	if (!block || heap.is_over)
		return;
	header = header_of(block);
	if (header->class == LARGE) {
		munmap(large_of(header), large_of(header)->mapped_bytes);
		return;
	}
	header->seal = 0;
	freed = (struct free_block *)header;
	freed->next = heap.free[header->class];
	heap.free[header->class] = freed;
}

void heap_end(void)
{
	heap.is_over = true;
}

static void *move_large(struct large *large, size_t len)
{
	size_t mapped;

	if (!mapped_size(len, &mapped))
		return NULL;
	large = mremap(large, large->mapped_bytes, mapped, MREMAP_MAYMOVE);
	if (large == MAP_FAILED)
		return NULL;
	large->mapped_bytes = mapped;
	large->header.seal = seal_of(&large->header);
	return large + 1;
}

void *heap_resize(void *block, size_t len)
{
	struct header *header;
	void *grown;

	if (!block)
		return heap_allocate(len);
	header = header_of(block);
	if (header->class == LARGE && len > LARGEST_BYTES)
		return move_large(large_of(header), len);
	if (header->class != LARGE && len <= class_bytes(header->class))
		return block;
	grown = heap_allocate(len);
	if (!grown)
		return NULL;
	memcpy(grown, block, MIN_OF(len, heap_size(block)));
	heap_release(block);
	return grown;
}

#endif
