/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_secrets.h - secrets: where a placeholder may stand, and what must not come back
 *
 * Pure. The value of a secret goes into one header of one host. A placeholder that stands anywhere else in the head of
 * a request is a mistake or an attempt, and the request is refused. In what comes back every value is made unreadable,
 * with as many bytes as it has, so that lengths stay as they are.
 */
#ifndef BELLJAR_GATE_INSPECT_INSPECT_SECRETS_H
#define BELLJAR_GATE_INSPECT_INSPECT_SECRETS_H

#include "base/http.h"
#include "base/json_read.h"
#include "policy/net_secrets.h"

struct secret {
	char name[NET_SECRET_NAME_SIZE];
	char placeholder[sizeof(NET_SECRET_PLACEHOLDER) + NET_SECRET_NAME_SIZE];
	char host[NET_NAME_SIZE];
	char header[NET_SECRET_HEADER_SIZE];
	char format[NET_SECRET_FORMAT_SIZE];
	char value[NET_SECRET_MAX + 1];
	size_t value_len;
	char written[NET_SECRET_MAX + NET_SECRET_FORMAT_SIZE]; /* the whole header, as the format has it */
};

struct secrets {
	struct secret *items; /* NET_SECRETS_MAX of them, or NULL */
	size_t count;
};

/* Read a list of objects with "name", "host", "header", "format" and "value", and wipe values. False: invalid. */
bool inspect_secrets_read(struct secrets *secrets, struct json_value *list);
void inspect_secrets_done(struct secrets *secrets);
/* Return why this cannot be a value; NULL: it can. */
const char *inspect_secret_value_fault(const char *value, size_t len);

bool inspect_secrets_are_for(const struct secrets *secrets, const char *host);

enum secret_use {
	SECRET_NONE,      /* no placeholder stands there */
	SECRET_PUT,       /* the value of *@out is to be put in */
	SECRET_MISPLACED, /* that of *@out may not stand there */
};

/* @header is empty if the text is not a header. @is_safe: an encrypted connection, and the host proved its identity. */
enum secret_use inspect_secrets_look(const struct secrets *secrets, const char *host, bool is_safe,
				     struct http_slice header, struct http_slice value, const struct secret **out);
void inspect_secret_write_header(const struct secret *secret, struct text *out);

/* Make every value in @bytes unreadable. False: no memory. */
bool inspect_secrets_hide(const struct secrets *secrets, char *bytes, size_t len);

/*
 * Bytes that come back in pieces; zeroes to begin with. How many of them wait depends on the length of the longest value, never on
 * whether they could begin one: else a jar that has a host echo its guesses would learn a value byte by byte.
 */
struct secret_search {
	struct text held; /* what went on in the last call, then what waits */
	size_t gone;      /* of these */
	size_t covered;   /* of those that wait, the first ones: the end of a value that has been found */
	struct text out;
};

/* The kind of end that the bytes so far have. */
enum secret_search_end {
	SEARCH_BODY, /* of a body: the tail waits for what follows, except after a byte that is in no value, such as a line end */
	SEARCH_MESSAGE, /* of a part of a message: the tail waits, whatever it is */
	SEARCH_END,     /* of the whole: nothing waits */
};

/* The most bytes that can wait in a search. */
size_t inspect_secrets_tail(const struct secrets *secrets);
/* Add a piece; return the bytes that may go on now, valid until the next call. */
struct http_slice inspect_secrets_search(const struct secrets *secrets, struct secret_search *search,
					 struct http_slice piece, enum secret_search_end end);
bool inspect_secret_search_failed(const struct secret_search *search);
size_t inspect_secret_search_tail(const struct secret_search *search); /* the bytes that wait now */
void inspect_secret_search_done(struct secret_search *search);

#endif
