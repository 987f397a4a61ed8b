/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact_literal.h - find every occurrence of any of many exact texts, wherever the writes cut them
 */
#ifndef BELLJAR_BASE_REDACT_REDACT_LITERAL_H
#define BELLJAR_BASE_REDACT_REDACT_LITERAL_H

#include "base/error.h"
#include "base/text.h"
#include "base/redact/redact_filter.h"
#include "base/redact/redact_spans.h"

/* All texts together. Each byte costs up to 24 bytes of memory while the redactor lives. */
#define REDACT_LITERAL_TOTAL_MAX (1u << 20)

struct literal_node;

struct redact_literals {
	struct literal_node *nodes; /* NULL: there are no literals */
	uint32_t node_count;
	uint32_t root[256]; /* the root's children, by byte */
	size_t min_len, max_len;
	struct redact_filter filter;
};

/* Where the search stands in one window. */
struct literal_state {
	size_t at; /* the next byte to look at */
	uint32_t node;
};

/*
 * Compile @texts. A text of several lines is also found as terminals show it. Empty texts are ignored. Returns -E2BIG
 * if they exceed REDACT_LITERAL_TOTAL_MAX.
 */
int redact_literals_init(struct redact_literals *literals, const struct string_list *texts, struct error *error);
void redact_literals_done(struct redact_literals *literals);

/* Look at the window up to @len and note what is found. */
void redact_literals_run(const struct redact_literals *literals, struct literal_state *state,
			 const unsigned char *bytes, size_t len, struct redact_spans *spans);

/* Return the first byte that an incomplete literal may still claim. */
size_t redact_literals_hold(const struct redact_literals *literals, const struct literal_state *state);

#endif
