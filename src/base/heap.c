/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/heap.c - size classes, two to each power of two, with a list of free blocks each; large blocks are mappings
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
#define POOL_BYTES (96 << 10) /* what a plan needs, likewise */
#define PAGE_BYTES 4096

/* Blocks are cut from chunks; one that begins with this. */
struct chunk {
	struct chunk *next;
	size_t len;
};

/* Before every block. */
struct header {
	uint32_t class;
	uint32_t seal; /* of an allocated block; anything else: a free one, or none of ours */
	struct heap_pool *pool;
};
_Static_assert(sizeof(struct header) == ALIGNMENT, "a block is aligned as its header is");
_Static_assert(sizeof(struct chunk) % ALIGNMENT == 0, "so is the first block of a chunk");
_Static_assert(SMALLEST_BYTES % ALIGNMENT == 0, "so are all classes");

struct free_block {
	struct header header;
	struct free_block *next;
};

/* A mapping of its own. */
struct large {
	struct large *previous, *next;
	size_t mapped_bytes;
	size_t unused;
	struct header header;
};
_Static_assert(sizeof(struct large) % ALIGNMENT == 0, "a large block is aligned too");

struct heap_pool {
	struct free_block *free[CLASS_COUNT];
	char *at, *end; /* what is left of the newest chunk */
	struct chunk *chunks;
};

static struct {
	struct heap_pool own;   /* what is in no other pool */
	struct heap_pool *used; /* where blocks come from; NULL: our own */
	struct large *larges;   /* all but those of pools */
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
static bool open_chunk(struct heap_pool *pool, size_t len, int flags)
{
	struct chunk *chunk = map(len, flags);

	if (!chunk)
		return false;
	if (pool != &heap.own)
		madvise(chunk, len, MADV_DONTFORK);
	*chunk = (struct chunk){.next = pool->chunks, .len = len};
	pool->chunks = chunk;
	pool->at = (char *)(chunk + 1);
	pool->end = (char *)chunk + len;
	return true;
}

static bool grow(struct heap_pool *pool, size_t needed)
{
	/* The very first chunk is smaller than a large class. */
	bool is_first = !heap.secret && needed < FIRST_CHUNK_BYTES / 2;

	if (!heap.secret)
		draw_secret();
	return is_first ? open_chunk(pool, FIRST_CHUNK_BYTES, MAP_POPULATE) : open_chunk(pool, CHUNK_BYTES, 0);
}

static struct header *cut_from_chunk(struct heap_pool *pool, uint32_t class)
{
	size_t len = sizeof(struct header) + class_bytes(class);
	struct header *header;

	if ((size_t)(pool->end - pool->at) < len && !grow(pool, len))
		return NULL;
	header = (struct header *)pool->at;
	pool->at += len;
	return header;
}

static struct large *large_of(struct header *header)
{
	return (struct large *)((char *)header - offsetof(struct large, header));
}

/* Its neighbours, or the list, point to where it is now. */
static void link_large(struct large *large)
{
	if (large->header.pool)
		return;
	if (large->previous)
		large->previous->next = large;
	else
		heap.larges = large;
	if (large->next)
		large->next->previous = large;
}

static void unlink_large(const struct large *large)
{
	if (large->header.pool)
		return;
	if (large->previous)
		large->previous->next = large->next;
	else
		heap.larges = large->next;
	if (large->next)
		large->next->previous = large->previous;
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
	*large = (struct large){
		.next = heap.used ? NULL : heap.larges,
		.mapped_bytes = mapped,
		.header = {.class = LARGE, .pool = heap.used},
	};
	large->header.seal = seal_of(&large->header);
	link_large(large);
	return large + 1;
}

void *heap_allocate(size_t len)
{
	struct heap_pool *pool = heap.used ? heap.used : &heap.own;
	struct header *header;
	uint32_t class;

	if (len > LARGEST_BYTES)
		return allocate_large(len);
	class = class_of(len);
	header = (struct header *)pool->free[class];
	if (header)
		pool->free[class] = pool->free[class]->next;
	else
		header = cut_from_chunk(pool, class);
	if (!header)
		return NULL;
	header->class = class;
	header->pool = heap.used;
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

static void release_large(struct large *large)
{
	unlink_large(large);
	munmap(large, large->mapped_bytes);
}

void heap_release(void *block)
{
	struct header *header;
	struct heap_pool *pool;
	struct free_block *freed;

	if (!block || heap.is_over)
		return;
	header = header_of(block);
	if (header->class == LARGE) {
		release_large(large_of(header));
		return;
	}
	/* A pool that is not in use may be a child's: it goes as a whole, and nothing is written to it. */
	if (header->pool && header->pool != heap.used)
		return;
	pool = header->pool ? header->pool : &heap.own;
	header->seal = 0;
	freed = (struct free_block *)header;
	freed->next = pool->free[header->class];
	pool->free[header->class] = freed;
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
	link_large(large);
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

/* --- pools -------------------------------------------------------------------------------------------------- */

static void advise(const struct heap_pool *pool, int advice)
{
	for (struct chunk *chunk = pool ? pool->chunks : NULL; chunk; chunk = chunk->next)
		madvise(chunk, chunk->len, advice);
}

/* It stands in its own first chunk. */
struct heap_pool *heap_open_pool(void)
{
	struct heap_pool made = {0}, *pool;

	if (!open_chunk(&made, POOL_BYTES, MAP_POPULATE))
		return NULL;
	pool = (struct heap_pool *)made.at;
	*pool = made;
	pool->at += sizeof(*pool);
	return pool;
}

struct heap_pool *heap_use_pool(struct heap_pool *pool)
{
	struct heap_pool *before = heap.used;

	heap.used = pool;
	return before;
}

void heap_close_pool(struct heap_pool *pool)
{
	struct chunk *next;

	if (!pool || heap.is_over)
		return;
	for (struct chunk *chunk = pool->chunks; chunk; chunk = next) {
		next = chunk->next;
		munmap(chunk, chunk->len);
	}
}

static void advise_own(int advice)
{
	advise(&heap.own, advice);
	for (struct large *large = heap.larges; large; large = large->next)
		madvise(large, large->mapped_bytes, advice);
}

void heap_hide_all_but(struct heap_pool *pool)
{
	advise_own(MADV_DONTFORK);
	advise(pool, MADV_DOFORK);
}

void heap_show(struct heap_pool *pool)
{
	advise_own(MADV_DOFORK);
	advise(pool, MADV_DONTFORK);
}

void heap_begin_anew(void)
{
	heap.own = (struct heap_pool){0};
	heap.larges = NULL;
}

#endif
