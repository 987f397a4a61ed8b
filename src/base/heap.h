/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/heap.h - the memory of a program that lives for milliseconds
 *
 * musl's allocator asks the kernel for a mapping per size class and gives it back when the class is empty: fifty system
 * calls for one start of Belljar. This one takes memory in chunks and keeps it. In the static program it stands behind
 * malloc(); elsewhere only its test calls it. One thread at a time. heap_checked.c is a second, slow one that finds
 * mistakes of its callers.
 *
 * After fork() every page that either side writes to is copied first: a fault of a microsecond or two, a hundred of them
 * for each jar that an engine makes. So what a child reads is made in a pool of its own, and all the rest is hidden
 * while that child is made: it does not have it, and nothing is copied.
 */
#ifndef BELLJAR_BASE_HEAP_H
#define BELLJAR_BASE_HEAP_H

#include <stddef.h>

/* Aligned for any type; NULL: none is left. */
void *heap_allocate(size_t len);
void *heap_allocate_zeroed(size_t len);
void *heap_resize(void *block, size_t len);
/* Ends the program if @block was not allocated here, or was released before. */
void heap_release(void *block);
/*
 * The program is about to end: nothing is taken back any more. To touch what lies in every page once more, only to put it
 * on a list, costs as many page faults after a fork.
 */
void heap_end(void);
/* What a block can hold. */
size_t heap_size(const void *block);

/* The list of what was relocated at the start is read once, and stays in memory: 50 KiB that nobody needs. */
void heap_drop_relocations(void);

/* Memory of what is made together, read by a child, and released together. Other children do not have it. */
struct heap_pool;
/* NULL: none is left. */
struct heap_pool *heap_open_pool(void);
/* Allocate from @pool from here on; NULL: from no pool. Returns what was in use before. */
struct heap_pool *heap_use_pool(struct heap_pool *pool);
/* All its blocks are gone, but for large ones, which are released one by one as ever. Accepts NULL. */
void heap_close_pool(struct heap_pool *pool);

/* A child that is made from here on has what is in @pool and nothing else from here; until that is shown again. Both accept NULL. */
void heap_hide_all_but(struct heap_pool *pool);
void heap_show(struct heap_pool *pool);
/* In a child that was made meanwhile, before it allocates anything. */
void heap_begin_anew(void);

#endif
