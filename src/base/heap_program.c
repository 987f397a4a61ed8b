/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/heap_program.c - malloc() and its family on this heap, in the static program
 */
#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"

#define ALIGNMENT 16

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

	if (__builtin_mul_overflow(count, item_len, &len))
		return or_out_of_memory(NULL);
	return or_out_of_memory(heap_allocate_zeroed(len));
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
