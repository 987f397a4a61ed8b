/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect/inspect_secrets.h - secrets: where a placeholder may stand, and what must not come back
 *
 * Pure. The value of a secret goes into one header of one host. A placeholder that stands anywhere else in the head of a request
 * is a mistake or an attempt, and the request is refused. In what comes back every value is made unreadable, with as many bytes as
 * it has, so that lengths stay as they are.
 */
#ifndef BELLJAR_INSPECT_INSPECT_SECRETS_H
#define BELLJAR_INSPECT_INSPECT_SECRETS_H

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

/* Read a list of objects with "name", "host", "header", "format" and "value". False: it is none. The JSON is wiped of values. */
bool secrets_read(struct secrets *secrets, struct json_value *list);
void secrets_done(struct secrets *secrets);
/* Why this cannot be a value; NULL: it can. */
const char *secret_value_fault(const char *value, size_t len);

bool secrets_are_for(const struct secrets *secrets, const char *host);

enum secret_use {
	SECRET_NONE,      /* no placeholder stands there */
	SECRET_PUT,       /* the value of *@out is to be put in */
	SECRET_MISPLACED, /* that of *@out may not stand there */
};

/* @header is empty for what is no header. @is_safe: the connection is encrypted, and the host is known to be the host. */
enum secret_use secrets_look(const struct secrets *secrets, const char *host, bool is_safe, struct http_slice header,
			     struct http_slice value, const struct secret **out);
void secret_write_header(const struct secret *secret, struct text *out);

/* Make every value in @bytes unreadable. */
void secrets_hide(const struct secrets *secrets, char *bytes, size_t len);

/* Bytes that come back in pieces; zeroes to begin with. */
struct secret_search {
	struct text held; /* the end of what has gone on, then what has not */
	size_t gone;      /* of these */
	size_t unneeded;  /* of these, for later pieces */
};

enum secret_search_state {
	SEARCH_MORE, /* what could be the beginning of a value waits for the next piece */
	/*
	 * The next piece does not come, and somebody may wait for the end of this one: the first few bytes of what may be a value
	 * go on, at most four and at most a quarter of it.
	 */
	SEARCH_PAUSE,
	SEARCH_END,
};

/* One more piece: what may go on now. It is good until the next call. Check @search->held for lack of memory. */
struct http_slice secrets_search(const struct secrets *secrets, struct secret_search *search, struct http_slice piece,
				 enum secret_search_state state);
bool secret_search_is_holding(const struct secret_search *search);
void secret_search_done(struct secret_search *search);

#endif
