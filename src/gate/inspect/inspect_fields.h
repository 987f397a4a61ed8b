/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_fields.h - one block of headers of HTTP/2, read as strictly as a head of HTTP/1.1
 *
 * Pure and bounded. The library that unpacks it checks much of this too. This file checks again, by the same rules for
 * both protocols.
 */
#ifndef BELLJAR_GATE_INSPECT_INSPECT_FIELDS_H
#define BELLJAR_GATE_INSPECT_INSPECT_FIELDS_H

#include "base/http.h"

/* With the pseudo headers. */
#define FIELDS_MAX (HTTP_HEADERS_MAX + 8)

struct field {
	size_t at, name_len, value_len;
};

struct fields {
	struct text bytes; /* "name: value" of each, one after the other */
	struct field items[FIELDS_MAX];
	size_t count;
	size_t seen_bytes; /* also of those for which there was no room */
	const char *why;   /* why it is refused */
};

void inspect_fields_clear(struct fields *fields);
void inspect_fields_done(struct fields *fields);
void inspect_fields_add(struct fields *fields, struct http_slice name, struct http_slice value);
struct http_header inspect_fields_get(const struct fields *fields, size_t index);

/* 0, or -EINVAL with the cause in head->why. The head points into @fields, and has no pseudo headers. */
int inspect_fields_read_request(const struct fields *fields, struct http_head *head);
int inspect_fields_read_answer(const struct fields *fields, struct http_head *head);
int inspect_fields_read_trailers(const struct fields *fields, struct http_head *head);

#endif
