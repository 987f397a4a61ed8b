/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/http.h - HTTP/1.1, read strictly or not at all
 *
 * Pure and bounded. The parser refuses input that two programs could read differently, since the server behind the
 * gate parses it again. The gate forwards text that it wrote itself from the parsed form.
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

/* Return the length of the head, 0 if more bytes are needed, or -EINVAL if it is refused (the reason: head->why). */
ssize_t http_read_request(const char *bytes, size_t len, struct http_head *head);
/* The same for the response to a request with @method. */
ssize_t http_read_answer(const char *bytes, size_t len, const char *method, struct http_head *head);

bool http_is(struct http_slice slice, const char *word); /* ignores case */
/* Take the next word of a comma-separated list. Returns false at its end. */
bool http_next_word(struct http_slice *list, struct http_slice *word);
/* Reset @head for another read. */
void http_head_clear(struct http_head *head);
/* Return why this is not a valid header, length, or method and target; NULL: it is valid. */
const char *http_header_fault(const struct http_header *header);
const char *http_length_fault(struct http_slice value, uint64_t *out);
const char *http_target_fault(const struct http_head *head);
/* Returns false if it is not a valid method. */
bool http_take_method(struct http_slice method, struct http_head *head);
/* Does this header concern only one connection? The gate does not forward such headers. */
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
 * Consume received bytes. Returns how many were used, or -EINVAL. *@part is the part of them that belongs to the body.
 * Call again until it returns 0.
 */
ssize_t http_body_take(struct http_body *body, const char *bytes, size_t len, struct http_slice *part);
/* Write a part of a body; an empty one ends it. */
void http_body_write(enum http_body_kind kind, struct http_slice part, struct text *out);

#endif
