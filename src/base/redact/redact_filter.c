/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact_filter.c - skip quickly over text in which nothing of interest can begin
 *
 * The places looked at do not depend on each other, so the processor overlaps the look-ups; a table of shifts in the
 * manner of Wu and Manber was ruled out, because each of its steps waits for the one before.
 */
#include "base/redact/redact_filter.h"

#include <string.h>

/* Setting this bit in every byte makes upper and lower case one; other bytes that fall together cost a false hit. */
#define CASE_FOLD UINT32_C(0x20202020)

static inline uint32_t hash_group(const unsigned char *group)
{
	uint32_t word;

	memcpy(&word, group, sizeof(word));
	return ((word | CASE_FOLD) * UINT32_C(0x9E3779B1)) >> (32 - REDACT_FILTER_HASH_BITS);
}

static inline unsigned may_hit(const struct redact_filter *filter, const unsigned char *group)
{
	return filter->may_begin[hash_group(group)];
}

void redact_filter_add(struct redact_filter *filter, const void *group)
{
	filter->may_begin[hash_group(group)] = 1;
}

size_t redact_filter_skip(const struct redact_filter *filter, const unsigned char *bytes, size_t at, size_t len)
{
	size_t stride = filter->stride;
	size_t look = at + stride - 1;
	size_t round = 3 * stride + REDACT_FILTER_GROUP;

	for (; look + round <= len; look += 4 * stride) {
		const unsigned char *group = bytes + look;

		/* One branch for four places: hits are rare, and which of the four it was is found below. */
		if (may_hit(filter, group) | may_hit(filter, group + stride) | may_hit(filter, group + 2 * stride) |
		    may_hit(filter, group + 3 * stride))
			break;
	}
	while (look + REDACT_FILTER_GROUP <= len && !may_hit(filter, bytes + look))
		look += stride;
	return look - (stride - 1);
}
