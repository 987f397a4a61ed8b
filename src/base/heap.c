/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/heap.c - size classes, two to each power of two, with a list of free blocks each; large blocks are mappings
 */
#include "base/heap.h"

#include <errno.h>
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
	uint32_t seal;       /* of an allocated block; anything else: a free one, or none of ours */
	size_t mapped_bytes; /* LARGE: of the mapping that begins with this header */
};
_Static_assert(sizeof(struct header) == ALIGNMENT, "a block is aligned as its header is");
_Static_assert(SMALLEST_BYTES % ALIGNMENT == 0, "so are all classes");

struct free_block {
	struct header header;
	struct free_block *next;
};

static struct {
	struct free_block *free[CLASS_COUNT];
	char *chunk, *chunk_end;
	bool is_over;
	uint32_t
		secret; /* differs in each process, so that a seal cannot be forged by accident or by an overflow of text */
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
static bool open_chunk(void)
{
	bool is_first = !heap.chunk;
	size_t len = is_first ? FIRST_CHUNK_BYTES : CHUNK_BYTES;
	char *memory = map(len, is_first ? MAP_POPULATE : 0);

	if (!memory)
		return false;
	if (is_first)
		draw_secret();
	heap.chunk = memory;
	heap.chunk_end = memory + len;
	return true;
}

static struct header *cut_from_chunk(uint32_t class)
{
	size_t len = sizeof(struct header) + class_bytes(class);
	struct header *header;

	if ((size_t)(heap.chunk_end - heap.chunk) < len && !open_chunk())
		return NULL;
	/* The very first chunk may be smaller than a large class. */
	if ((size_t)(heap.chunk_end - heap.chunk) < len && !open_chunk())
		return NULL;
	header = (struct header *)heap.chunk;
	heap.chunk += len;
	return header;
}

static void *allocate_large(size_t len)
{
	struct header *header;
	size_t mapped;

	if (__builtin_add_overflow(len, sizeof(*header) + PAGE_BYTES - 1, &mapped))
		return NULL;
	mapped &= ~(size_t)(PAGE_BYTES - 1);
	header = map(mapped, 0);
	if (!header)
		return NULL;
	*header = (struct header){.class = LARGE, .mapped_bytes = mapped};
	header->seal = seal_of(header);
	return header + 1;
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

size_t heap_size(const void *block)
{
	const struct header *header = header_of(block);

	return header->class == LARGE ? header->mapped_bytes - sizeof(*header) : class_bytes(header->class);
}

void heap_release(void *block)
{
	struct header *header;
	struct free_block *freed;

	if (!block || heap.is_over)
		return;
	header = header_of(block);
	header->seal = 0;
	if (header->class == LARGE) {
		munmap(header, header->mapped_bytes);
		return;
	}
	freed = (struct free_block *)header;
	freed->next = heap.free[header->class];
	heap.free[header->class] = freed;
}

void heap_end(void)
{
	heap.is_over = true;
}

static void *move_large(struct header *header, size_t len)
{
	size_t mapped;
	void *moved;

	if (__builtin_add_overflow(len, sizeof(*header) + PAGE_BYTES - 1, &mapped))
		return NULL;
	mapped &= ~(size_t)(PAGE_BYTES - 1);
	moved = mremap(header, header->mapped_bytes, mapped, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED)
		return NULL;
	header = moved;
	header->mapped_bytes = mapped;
	header->seal = seal_of(header);
	return header + 1;
}

void *heap_resize(void *block, size_t len)
{
	struct header *header;
	void *grown;

	if (!block)
		return heap_allocate(len);
	header = header_of(block);
	if (header->class == LARGE && len > LARGEST_BYTES)
		return move_large(header, len);
	if (header->class != LARGE && len <= class_bytes(header->class))
		return block;
	grown = heap_allocate(len);
	if (!grown)
		return NULL;
	memcpy(grown, block, MIN_OF(len, heap_size(block)));
	heap_release(block);
	return grown;
}

/* --- what the C library and everybody else calls ------------------------------------------------------------ */

#ifndef __GLIBC__

static void *or_out_of_memory(void *block)
{
	if (!block)
		errno = ENOMEM;
	return block;
}

void *malloc(size_t len)
{
	return or_out_of_memory(heap_allocate(len));
}

void free(void *block)
{
	int saved = errno;

	heap_release(block);
	errno = saved;
}

void *calloc(size_t count, size_t item_len)
{
	size_t len;
	void *block;

	if (__builtin_mul_overflow(count, item_len, &len))
		return or_out_of_memory(NULL);
	block = heap_allocate(len);
	if (block && len <= LARGEST_BYTES) /* a mapping is zero from the start */
		memset(block, 0, len);
	return or_out_of_memory(block);
}

void *realloc(void *block, size_t len)
{
	return or_out_of_memory(heap_resize(block, len));
}

/* Nothing here asks for more than the alignment of any type; whoever does must hear it. */
void *aligned_alloc(size_t alignment, size_t len)
{
	if (alignment <= ALIGNMENT)
		return malloc(len);
	errno = EINVAL;
	return NULL;
}

#endif
