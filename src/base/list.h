/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/list.h - growable arrays of any item type
 */
#ifndef BELLJAR_BASE_LIST_H
#define BELLJAR_BASE_LIST_H

#include <string.h>

#include "base/base.h"

#define LIST_TYPE(type, tag)                                                                                           \
	struct tag {                                                                                                   \
		type *items;                                                                                           \
		size_t count;                                                                                          \
		size_t capacity;                                                                                       \
	}

static inline void *list_extend(void **items, size_t *count, size_t *capacity, size_t item_size)
{
	char *item;

	if (*count == *capacity) {
		size_t grown_capacity = *capacity ? *capacity * 2 : 16;
		void *grown = reallocarray(*items, grown_capacity, item_size);

		if (!grown)
			return NULL;
		*items = grown;
		*capacity = grown_capacity;
	}
	item = (char *)*items + (*count)++ * item_size;
	memset(item, 0, item_size);
	return item;
}

/* Append a zeroed item and return it; NULL: out of memory. This invalidates earlier pointers into the list. */
#define list_add(list)                                                                                                 \
	((__typeof__((list)->items))list_extend((void **)&(list)->items, &(list)->count, &(list)->capacity,            \
						sizeof(*(list)->items)))

#endif
