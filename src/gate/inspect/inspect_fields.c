/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_fields.c - one block of headers of HTTP/2, read as strictly as a head of HTTP/1.1
 */
#include "gate/inspect/inspect_fields.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define SEPARATOR ": "
#define SEPARATOR_LEN (sizeof(SEPARATOR) - 1)
/* The overhead of an entry, as HTTP/2 counts it. */
#define ENTRY_BYTES 32

void inspect_fields_clear(struct fields *fields)
{
	text_clear(&fields->bytes);
	fields->count = fields->seen_bytes = 0;
	fields->why = NULL;
}

void inspect_fields_done(struct fields *fields)
{
	text_done(&fields->bytes);
	*fields = (struct fields){0};
}

void inspect_fields_add(struct fields *fields, struct http_slice name, struct http_slice value)
{
	fields->seen_bytes += name.len + value.len + ENTRY_BYTES;
	if (fields->seen_bytes > HTTP_HEAD_MAX)
		fields->why = "a head of more than 64 KiB";
	else if (fields->count == FIELDS_MAX)
		fields->why = "too many headers";
	if (fields->why)
		return;
	fields->items[fields->count++] = (struct field){fields->bytes.len, name.len, value.len};
	text_append(&fields->bytes, name.bytes, name.len);
	text_append_string(&fields->bytes, SEPARATOR);
	text_append(&fields->bytes, value.bytes, value.len);
	if (text_failed(&fields->bytes))
		fields->why = "more than there is memory for";
}

struct http_header inspect_fields_get(const struct fields *fields, size_t index)
{
	const struct field *field = &fields->items[index];
	const char *name = fields->bytes.data + field->at;

	return (struct http_header){{name, field->name_len},
				    {name + field->name_len + SEPARATOR_LEN, field->value_len}};
}

/* --- what they say ------------------------------------------------------------------------------------------ */

enum pseudo { PSEUDO_METHOD, PSEUDO_SCHEME, PSEUDO_AUTHORITY, PSEUDO_PATH, PSEUDO_STATUS, PSEUDO_COUNT };

#define PSEUDO_OF_REQUEST (1U << PSEUDO_METHOD | 1U << PSEUDO_SCHEME | 1U << PSEUDO_AUTHORITY | 1U << PSEUDO_PATH)
#define PSEUDO_OF_ANSWER (1U << PSEUDO_STATUS)

static const char *read_status(struct http_slice value, struct http_head *head)
{
	if (value.len != 3)
		return "a status that is not a number";
	for (size_t i = 0; i < value.len; i++) {
		if (value.bytes[i] < '0' || value.bytes[i] > '9')
			return "a status that is not a number";
		head->status = head->status * 10 + value.bytes[i] - '0';
	}
	/* HTTP/2 has no change of protocols. */
	return head->status < 100 || head->status > 599 || head->status == 101 ? "a status that does not exist" : NULL;
}

static const char *read_pseudo(const struct http_header *header, unsigned allowed, unsigned *seen,
			       struct http_head *head)
{
	static const char *const names[] = {":method", ":scheme", ":authority", ":path", ":status"};
	unsigned which = 0;

	_Static_assert(ARRAY_LEN(names) == PSEUDO_COUNT, "every pseudo header has a name");
	while (which < PSEUDO_COUNT && (header->name.len != strlen(names[which]) ||
					memcmp(header->name.bytes, names[which], header->name.len) != 0))
		which++;
	if (which == PSEUDO_COUNT || !(allowed & 1U << which))
		return "a pseudo header that may not stand there";
	if (*seen & 1U << which)
		return "a pseudo header twice";
	*seen |= 1U << which;
	switch ((enum pseudo)which) {
	case PSEUDO_METHOD:
		return http_take_method(header->value, head) ? NULL : "an invalid method";
	case PSEUDO_SCHEME:
		return header->value.len == 5 && !memcmp(header->value.bytes, "https", 5)
			       ? NULL
			       : "a scheme that is not https";
	case PSEUDO_AUTHORITY:
		head->host = header->value;
		return NULL;
	case PSEUDO_PATH:
		head->target = header->value;
		return NULL;
	case PSEUDO_STATUS:
		return read_status(header->value, head);
	case PSEUDO_COUNT:
		break;
	}
	return "a pseudo header that may not stand there";
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static const char *regular_fault(const struct http_header *header)
{
	static const char *const of_connections[] = {"connection", "keep-alive", "proxy-connection",
						     "transfer-encoding", "upgrade"};
	struct http_slice value = header->value;

	for (size_t i = 0; i < header->name.len; i++)
		if (header->name.bytes[i] >= 'A' && header->name.bytes[i] <= 'Z')
			return "a header with capital letters";
	for (size_t i = 0; i < ARRAY_LEN(of_connections); i++)
		if (http_is(header->name, of_connections[i]))
			return "a header that only HTTP/1.1 has";
	if (http_is(header->name, "te") && !http_is(value, "trailers"))
		return "a header that only HTTP/1.1 has";
	if (value.len && (is_blank(value.bytes[0]) || is_blank(value.bytes[value.len - 1])))
		return "a header with blanks around it";
	return http_header_fault(header);
}

static const char *read_regular(const struct http_header *header, struct http_head *head, bool *has_length)
{
	const char *why = regular_fault(header);

	if (!why && http_is(header->name, "content-length")) {
		why = http_length_fault(*has_length ? (struct http_slice){"", 0} : header->value, &head->body_bytes);
		*has_length = true;
	}
	if (!why && head->header_count == HTTP_HEADERS_MAX)
		why = "too many headers";
	if (!why)
		head->headers[head->header_count++] = *header;
	return why;
}

static const char *read_all(const struct fields *fields, unsigned allowed, unsigned *seen, struct http_head *head)
{
	bool has_length = false;

	for (size_t i = 0; i < fields->count; i++) {
		struct http_header header = inspect_fields_get(fields, i);
		bool is_pseudo = header.name.len && header.name.bytes[0] == ':';
		const char *why = is_pseudo && head->header_count ? "a pseudo header behind other headers"
				  : is_pseudo                     ? read_pseudo(&header, allowed, seen, head)
								  : read_regular(&header, head, &has_length);

		if (why)
			return why;
	}
	return NULL;
}

static int finish(struct http_head *head, const char *why)
{
	head->why = why;
	return why ? -EINVAL : 0;
}

/* A Host beside the authority says the same, and is not passed on; without one it takes its place. */
static const char *settle_host(struct http_head *head)
{
	size_t kept = 0, hosts = 0;

	for (size_t i = 0; i < head->header_count; i++) {
		const struct http_header *header = &head->headers[i];

		if (!http_is(header->name, "host")) {
			head->headers[kept++] = *header;
			continue;
		}
		if (hosts++)
			return "two Host headers";
		if (!head->host.len)
			head->host = header->value;
		if (head->host.len != header->value.len ||
		    strncasecmp(head->host.bytes, header->value.bytes, header->value.len) != 0)
			return "a Host header that is not the authority";
	}
	head->header_count = kept;
	return head->host.len ? NULL : "no authority";
}

int inspect_fields_read_request(const struct fields *fields, struct http_head *head)
{
	const char *why = fields->why;
	unsigned seen = 0;

	http_head_clear(head);
	if (!why)
		why = read_all(fields, PSEUDO_OF_REQUEST, &seen, head);
	if (!why && !strcmp(head->method, "CONNECT"))
		why = "CONNECT, which would lead to another host";
	if (!why && (PSEUDO_OF_REQUEST & ~seen & ~(1U << PSEUDO_AUTHORITY)))
		why = "a request without a method, a scheme or a path";
	if (!why)
		why = http_target_fault(head);
	if (!why)
		why = settle_host(head);
	return finish(head, why);
}

int inspect_fields_read_answer(const struct fields *fields, struct http_head *head)
{
	const char *why = fields->why;
	unsigned seen = 0;

	http_head_clear(head);
	if (!why)
		why = read_all(fields, PSEUDO_OF_ANSWER, &seen, head);
	if (!why && seen != PSEUDO_OF_ANSWER)
		why = "an answer without a status";
	return finish(head, why);
}

int inspect_fields_read_trailers(const struct fields *fields, struct http_head *head)
{
	const char *why = fields->why;
	unsigned seen = 0;

	http_head_clear(head);
	if (!why)
		why = read_all(fields, 0, &seen, head);
	return finish(head, why);
}
