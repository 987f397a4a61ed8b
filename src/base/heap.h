/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/heap.h - the memory of a program that lives for milliseconds
 *
 * musl's allocator asks the kernel for a mapping per size class and gives it back when the class is empty: fifty system
 * calls for one start of Belljar. This one takes memory in chunks and keeps it. In the static program it stands behind
 * malloc(); elsewhere only its test calls it. One thread at a time. heap_checked.c is a second, slow one that finds
 * mistakes of its callers.
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

#endif
