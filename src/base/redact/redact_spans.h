/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact_spans.h - the parts of a stream's window that are secret: sorted, disjoint, never touching
 *
 * The room is fixed when the stream is made, from the least length a secret can have, so that noting a secret cannot
 * fail while output is flowing.
 */
#ifndef BELLJAR_BASE_REDACT_REDACT_SPANS_H
#define BELLJAR_BASE_REDACT_REDACT_SPANS_H

#include <assert.h>

#include "base/base.h"

struct redact_span {
	size_t from, to; /* offsets in the window, @to not included */
};

struct redact_spans {
	struct redact_span *items;
	size_t first; /* those before it have left the window's undecided part */
	size_t count;
	size_t capacity;
};

/* Ends come in rising order; beginnings may reach back over spans noted before, which are then merged. */
static inline void redact_spans_add(struct redact_spans *spans, size_t from, size_t to)
{
	while (spans->count > 0 && spans->items[spans->count - 1].to >= from) {
		spans->count--;
		from = MIN_OF(from, spans->items[spans->count].from);
	}
	spans->first = MIN_OF(spans->first, spans->count);
	assert(spans->count < spans->capacity);
	spans->items[spans->count++] = (struct redact_span){from, to};
}

#endif
