/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/http.h - HTTP/1.1, read strictly or not at all
 *
 * Pure and bounded. What two programs could read in two ways is refused: a server behind a gate reads it again. Whatever is passed
 * on is written anew from what was understood.
 */
#ifndef BELLJAR_BASE_HTTP_H
#define BELLJAR_BASE_HTTP_H

#include "base/text.h"

#define HTTP_HEAD_MAX (64 << 10)
#define HTTP_HEADERS_MAX 128
#define HTTP_METHOD_MAX 24
#define HTTP_TRAILERS_MAX (16 << 10)

enum http_body_kind {
	HTTP_BODY_NONE,
	HTTP_BODY_LENGTH,
	HTTP_BODY_CHUNKED,
	HTTP_BODY_REST, /* of an answer: until the connection ends */
};

enum http_upgrade { HTTP_UPGRADE_NONE, HTTP_UPGRADE_WEBSOCKET, HTTP_UPGRADE_OTHER };

/* Points into the bytes that were read. */
struct http_slice {
	const char *bytes;
	size_t len;
};

struct http_header {
	struct http_slice name, value;
};

struct http_head {
	char method[HTTP_METHOD_MAX + 1];
	struct http_slice target;
	int status;               /* of an answer */
	struct http_slice reason; /* may be empty */
	struct http_header headers[HTTP_HEADERS_MAX];
	size_t header_count;
	enum http_body_kind body_kind;
	uint64_t body_bytes;
	struct http_slice host;
	bool is_last;              /* "Connection: close" */
	enum http_upgrade upgrade; /* to which protocol */
	bool is_upgrade_meant;     /* "Connection: upgrade" */
	const char *why;           /* it is refused */
};

/* The length of the head; 0: more bytes are needed; -EINVAL: it is refused, and head->why says why. */
ssize_t http_read_request(const char *bytes, size_t len, struct http_head *head);
/* @method is what was asked for. */
ssize_t http_read_answer(const char *bytes, size_t len, const char *method, struct http_head *head);

bool http_is(struct http_slice slice, const char *word); /* whatever the case of its letters */
/* The next of the words that commas separate; false: there is none. */
bool http_next_word(struct http_slice *list, struct http_slice *word);
/* Forget what was read before. */
void http_head_clear(struct http_head *head);
/* Why this cannot be a header, a length, or a method and its target; NULL: it can. */
const char *http_header_fault(const struct http_header *header);
const char *http_length_fault(struct http_slice value, uint64_t *out);
const char *http_target_fault(const struct http_head *head);
/* False: that is no method. */
bool http_take_method(struct http_slice method, struct http_head *head);
/* Does this header concern only one connection? Such ones are not passed on. */
bool http_is_for_one_hop(const struct http_head *head, const struct http_header *header);

/* A body that arrives in pieces. */
struct http_body {
	enum http_body_kind kind;
	uint64_t left;  /* of the body, or of the chunk */
	unsigned state; /* of a chunked one */
	size_t line_len;
	bool is_done;
};

void http_body_init(struct http_body *body, enum http_body_kind kind, uint64_t bytes);
/*
 * Take from the bytes that have come: how many of them are used up, or -EINVAL. *@part is what of them belongs to the body.
 * Call again until nothing is used.
 */
ssize_t http_body_take(struct http_body *body, const char *bytes, size_t len, struct http_slice *part);
/* Write a part of a body; an empty one ends it. */
void http_body_write(enum http_body_kind kind, struct http_slice part, struct text *out);

#endif
