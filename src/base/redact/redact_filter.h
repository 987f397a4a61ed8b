/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact_filter.h - skip quickly over text in which nothing of interest can begin
 *
 * The filter remembers groups of four bytes (case folded, hashed into a table) that occur near the beginning of what
 * is searched for. With a stride of S, the groups at offsets 0 to S-1 of every searched text are remembered, so only
 * every S-th place has to be looked at. It errs towards "may begin here", never the other way.
 */
#ifndef BELLJAR_BASE_REDACT_REDACT_FILTER_H
#define BELLJAR_BASE_REDACT_REDACT_FILTER_H

#include "base/base.h"

#define REDACT_FILTER_GROUP 4      /* bytes looked at together */
#define REDACT_FILTER_STRIDE_MAX 8 /* more saves little, and fills the table */
#define REDACT_FILTER_HASH_BITS 15

struct redact_filter {
	uint8_t may_begin
		[1 << REDACT_FILTER_HASH_BITS]; /* a bitmap was ruled out: picking the bit costs half the speed */
	size_t stride;                          /* 0: the filter knows nothing, every place must be looked at */
};

/* Remember the REDACT_FILTER_GROUP bytes at @group. */
void redact_filter_add(struct redact_filter *filter, const void *group);

/*
 * Return the first place from @at on where something may begin: nothing begins in [@at, result). A hit lies in
 * [result, result + stride). Near the end of the text, where groups are cut off, return the place as undecided.
 */
size_t redact_filter_skip(const struct redact_filter *filter, const unsigned char *bytes, size_t at, size_t len);

#endif
