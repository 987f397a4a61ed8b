/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/base.h - the small vocabulary every file uses: cleanup on leaving a scope, array sizes, moving ownership
 *
 * AUTO_* goes on every local that owns something; take_fd() and take_ptr() hand ownership on. Every descriptor is
 * close-on-exec from birth.
 */
#ifndef BELLJAR_BASE_BASE_H
#define BELLJAR_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define PRINTF_LIKE(format_index, first_index) __attribute__((format(printf, format_index, first_index)))

/* No limit. Zero is a real limit for some keys, so "none" needs its own value. */
#define LIMIT_NONE UINT64_MAX

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void free_pointer(void *pointer)
{
	free(*(void **)pointer);
	*(void **)pointer = NULL;
}

#define AUTO(function) __attribute__((cleanup(function)))
#define AUTO_CLOSE AUTO(close_fd)
#define AUTO_FREE AUTO(free_pointer)

#define take_ptr(pointer)                                                                                              \
	({                                                                                                             \
		__typeof__(pointer) taken_pointer = (pointer);                                                         \
		(pointer) = NULL;                                                                                      \
		taken_pointer;                                                                                         \
	})

#endif
