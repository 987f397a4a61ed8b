/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/heap_program.c - malloc() and its family on this heap, and what the static program itself need not keep in memory
 */
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/heap.h"

#define ALIGNMENT 16
#define PAGE_BYTES 4096

/* --- the program itself ------------------------------------------------------------------------------------- */

#ifndef __GLIBC__

extern const ElfW(Dyn) _DYNAMIC[] __attribute__((weak, visibility("hidden")));
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));

/* They come back from the file, should anybody look. */
void heap_drop_relocations(void)
{
	uintptr_t begin = 0, end;
	size_t len = 0;

	if (!_DYNAMIC || !__ehdr_start)
		return;
	for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_RELA)
			begin = (uintptr_t)__ehdr_start + entry->d_un.d_ptr;
		else if (entry->d_tag == DT_RELASZ)
			len = entry->d_un.d_val;
	}
	end = (begin + len) & ~(uintptr_t)(PAGE_BYTES - 1);
	begin = (begin + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
	if (begin < end)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

#else

void heap_drop_relocations(void)
{
}

#endif

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
