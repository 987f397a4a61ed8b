/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/http.c - HTTP/1.1, read strictly
 */
#include "base/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LENGTH_DIGITS_MAX 18
#define CHUNK_DIGITS_MAX 15
#define CHUNK_LINE_MAX 256

static ssize_t refuse(struct http_head *head, const char *why)
{
	head->why = why;
	return -EINVAL;
}

bool http_is(struct http_slice slice, const char *word)
{
	return slice.len == strlen(word) && !strncasecmp(slice.bytes, word, slice.len);
}

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct http_slice slice)
{
	for (size_t i = 0; i < slice.len; i++)
		if (!is_token_char(slice.bytes[i]))
			return false;
	return slice.len;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct http_slice trim(struct http_slice slice)
{
	while (slice.len && is_blank(slice.bytes[0])) {
		slice.bytes++;
		slice.len--;
	}
	while (slice.len && is_blank(slice.bytes[slice.len - 1]))
		slice.len--;
	return slice;
}

bool http_next_word(struct http_slice *list, struct http_slice *word)
{
	const char *comma;

	if (!list->len)
		return false;
	comma = memchr(list->bytes, ',', list->len);
	*word = (struct http_slice){list->bytes, comma ? (size_t)(comma - list->bytes) : list->len};
	list->bytes += word->len + (comma ? 1 : 0);
	list->len -= word->len + (comma ? 1 : 0);
	*word = trim(*word);
	return true;
}

/* --- lines -------------------------------------------------------------------------------------------------- */

enum line { LINE_MORE, LINE_WHOLE, LINE_BAD };

/* Read one line, which ends in CR LF and contains neither of them, nor a NUL. */
static enum line read_line(const char *bytes, size_t len, size_t *at, struct http_slice *line)
{
	const char *end = memchr(bytes + *at, '\n', len - *at);
	size_t line_len = end ? (size_t)(end - bytes) - *at : len - *at;
	const char *odd = memchr(bytes + *at, '\r', line_len);

	if (memchr(bytes + *at, '\0', line_len))
		return LINE_BAD;
	if (!end)
		return odd && odd != bytes + len - 1 ? LINE_BAD : LINE_MORE;
	if (odd != end - 1)
		return LINE_BAD;
	*line = (struct http_slice){bytes + *at, line_len - 1};
	*at += line_len + 1;
	return LINE_WHOLE;
}

static bool is_plain(struct http_slice value)
{
	for (size_t i = 0; i < value.len; i++)
		if (((unsigned char)value.bytes[i] < ' ' && value.bytes[i] != '\t') || value.bytes[i] == 0x7f)
			return false;
	return true;
}

const char *http_header_fault(const struct http_header *header)
{
	if (!is_token(header->name))
		return "a header whose name has other characters than a name may have";
	return is_plain(header->value) ? NULL : "a header with control characters";
}

static const char *read_header(struct http_slice line, struct http_head *head)
{
	const char *colon = memchr(line.bytes, ':', line.len);
	struct http_header *header = &head->headers[head->header_count];

	if (is_blank(line.bytes[0]))
		return "a header that goes on in the next line";
	if (head->header_count == HTTP_HEADERS_MAX)
		return "too many headers";
	if (!colon)
		return "a header without a colon";
	header->name = (struct http_slice){line.bytes, (size_t)(colon - line.bytes)};
	header->value = trim((struct http_slice){colon + 1, line.len - header->name.len - 1});
	head->header_count++;
	return http_header_fault(header);
}

/* --- what headers say --------------------------------------------------------------------------------------- */

const char *http_length_fault(struct http_slice value, uint64_t *out)
{
	static const char why[] = "a Content-Length that is not a single number";
	uint64_t length = 0;

	if (!value.len || value.len > LENGTH_DIGITS_MAX)
		return why;
	for (size_t i = 0; i < value.len; i++) {
		if (value.bytes[i] < '0' || value.bytes[i] > '9')
			return why;
		length = length * 10 + (uint64_t)(value.bytes[i] - '0');
	}
	*out = length;
	return NULL;
}

/* A hop removes the headers that a Connection header names. Without these two, a message would mean something else. */
static bool may_be_taken_off(struct http_slice name)
{
	return !http_is(name, "Content-Length") && !http_is(name, "Host");
}

static const char *read_meaning(struct http_head *head)
{
	bool has_length = false, has_coding = false, has_host = false;

	for (size_t i = 0; i < head->header_count; i++) {
		const struct http_header *header = &head->headers[i];
		struct http_slice list = header->value, word;

		if (http_is(header->name, "Content-Length")) {
			const char *why = http_length_fault(has_length ? (struct http_slice){"", 0} : header->value,
							    &head->body_bytes);

			if (why)
				return why;
			has_length = true;
		} else if (http_is(header->name, "Transfer-Encoding")) {
			if (has_coding || !http_is(header->value, "chunked"))
				return "a Transfer-Encoding other than chunked";
			has_coding = true;
		} else if (http_is(header->name, "Host")) {
			if (has_host)
				return "two Host headers";
			has_host = true;
			head->host = header->value;
		} else if (http_is(header->name, "Connection")) {
			while (http_next_word(&list, &word)) {
				if (!may_be_taken_off(word))
					return "a Connection header that names Host or Content-Length";
				head->is_last |= http_is(word, "close");
				head->is_upgrade_meant |= http_is(word, "upgrade");
			}
		} else if (http_is(header->name, "Upgrade")) {
			bool is_websocket = head->upgrade == HTTP_UPGRADE_NONE && http_is(header->value, "websocket");

			head->upgrade = is_websocket ? HTTP_UPGRADE_WEBSOCKET : HTTP_UPGRADE_OTHER;
		}
	}
	if (has_length && has_coding)
		return "both a Content-Length and a Transfer-Encoding";
	head->body_kind = has_coding                       ? HTTP_BODY_CHUNKED
			  : has_length && head->body_bytes ? HTTP_BODY_LENGTH
							   : HTTP_BODY_NONE;
	return NULL;
}

bool http_is_for_one_hop(const struct http_head *head, const struct http_header *header)
{
	static const char *const names[] = {
		"Connection",        "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE",
		"Transfer-Encoding", "Trailer",    "Upgrade",          "Proxy-Authenticate",  "HTTP2-Settings"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (http_is(header->name, names[i]))
			return true;
	for (size_t i = 0; i < head->header_count; i++) {
		struct http_slice list = head->headers[i].value, word;

		if (!http_is(head->headers[i].name, "Connection"))
			continue;
		while (http_next_word(&list, &word))
			if (word.len == header->name.len && !strncasecmp(word.bytes, header->name.bytes, word.len))
				return true;
	}
	return false;
}

/* --- heads -------------------------------------------------------------------------------------------------- */

bool http_take_method(struct http_slice method, struct http_head *head)
{
	if (!is_token(method) || method.len > HTTP_METHOD_MAX)
		return false;
	memcpy(head->method, method.bytes, method.len);
	head->method[method.len] = '\0';
	return true;
}

const char *http_target_fault(const struct http_head *head)
{
	for (size_t i = 0; i < head->target.len; i++)
		if (head->target.bytes[i] <= ' ' || head->target.bytes[i] > '~' || head->target.bytes[i] == '#')
			return "a target with characters that a target cannot have";
	if (!strcmp(head->method, "CONNECT"))
		return "CONNECT, which would lead to another host";
	if (!head->target.len ||
	    (head->target.bytes[0] != '/' && !(http_is(head->target, "*") && !strcmp(head->method, "OPTIONS"))))
		return "a target that does not begin with '/'";
	return NULL;
}

static const char *read_request_line(struct http_slice line, struct http_head *head)
{
	static const char version[] = " HTTP/1.1";
	const char *space = memchr(line.bytes, ' ', line.len);
	size_t method_len = space ? (size_t)(space - line.bytes) : 0, version_len = sizeof(version) - 1;

	if (!space || !http_take_method((struct http_slice){line.bytes, method_len}, head))
		return "a first line that is not a request";
	if (line.len < method_len + 2 + version_len ||
	    memcmp(line.bytes + line.len - version_len, version, version_len) != 0)
		return "a request that is not HTTP/1.1";
	head->target = (struct http_slice){space + 1, line.len - method_len - 1 - version_len};
	return http_target_fault(head);
}

static const char *read_status_line(struct http_slice line, struct http_head *head)
{
	static const char begin[] = "HTTP/1.";
	const char *at = line.bytes + sizeof(begin) - 1;

	if (line.len < 12 || memcmp(line.bytes, begin, sizeof(begin) - 1) != 0 || (at[0] != '0' && at[0] != '1') ||
	    at[1] != ' ' || (line.len > 12 && at[5] != ' '))
		return "a first line that is not a status";
	for (int i = 2; i < 5; i++) {
		if (at[i] < '0' || at[i] > '9')
			return "a status that is not a number";
		head->status = head->status * 10 + at[i] - '0';
	}
	if (head->status < 100 || head->status > 599)
		return "a status that does not exist";
	if (line.len > 13)
		head->reason = (struct http_slice){at + 6, line.len - 13};
	head->is_last = at[0] == '0';
	return is_plain(head->reason) ? NULL : "a status with control characters";
}

void http_head_clear(struct http_head *head)
{
	memset(head, 0, offsetof(struct http_head, headers));
	memset(&head->header_count, 0, sizeof(*head) - offsetof(struct http_head, header_count));
}

static ssize_t read_head(const char *bytes, size_t len,
			 const char *(*read_first)(struct http_slice, struct http_head *), struct http_head *head)
{
	bool is_cut = len > HTTP_HEAD_MAX;
	struct http_slice line;
	const char *why;
	size_t at = 0;

	http_head_clear(head);
	len = MIN_OF(len, (size_t)HTTP_HEAD_MAX);
	for (bool is_first = true;; is_first = false) {
		switch (read_line(bytes, len, &at, &line)) {
		case LINE_MORE:
			return is_cut || len == HTTP_HEAD_MAX ? refuse(head, "a head of more than 64 KiB") : 0;
		case LINE_BAD:
			return refuse(head, "a line that does not end in CR LF, or has one of them or a NUL inside");
		case LINE_WHOLE:
			break;
		}
		if (!is_first && !line.len)
			break;
		why = is_first ? read_first(line, head) : read_header(line, head);
		if (why)
			return refuse(head, why);
	}
	why = read_meaning(head);
	return why ? refuse(head, why) : (ssize_t)at;
}

ssize_t http_read_request(const char *bytes, size_t len, struct http_head *head)
{
	ssize_t rc = read_head(bytes, len, read_request_line, head);

	return rc > 0 && !head->host.len ? refuse(head, "no Host") : rc;
}

ssize_t http_read_answer(const char *bytes, size_t len, const char *method, struct http_head *head)
{
	ssize_t rc = read_head(bytes, len, read_status_line, head);
	bool has_length = false;

	if (rc <= 0)
		return rc;
	for (size_t i = 0; i < head->header_count; i++)
		has_length |= http_is(head->headers[i].name, "Content-Length");
	if (head->status < 200 || head->status == 204 || head->status == 304 || !strcmp(method, "HEAD"))
		head->body_kind = HTTP_BODY_NONE;
	else if (head->body_kind == HTTP_BODY_NONE && !has_length)
		head->body_kind = HTTP_BODY_REST;
	return rc;
}

/* --- bodies ------------------------------------------------------------------------------------------------- */

enum chunk_state {
	CHUNK_SIZE,      /* no digit yet */
	CHUNK_DIGITS,    /* more digits, an extension, or the end of the line */
	CHUNK_EXTENSION, /* ignored */
	CHUNK_LINE_END,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER,      /* the beginning of a line */
	CHUNK_TRAILER_LINE, /* in it */
	CHUNK_TRAILER_LF,
	CHUNK_LAST_LF,
};

void http_body_init(struct http_body *body, enum http_body_kind kind, uint64_t bytes)
{
	*body = (struct http_body){.kind = kind, .left = kind == HTTP_BODY_LENGTH ? bytes : 0};
	body->is_done = kind == HTTP_BODY_NONE || (kind == HTTP_BODY_LENGTH && !bytes);
}

static bool take_digit(struct http_body *body, char c)
{
	unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);

	if (!c || !strchr("0123456789abcdefABCDEF", c) || ++body->line_len > CHUNK_DIGITS_MAX)
		return false;
	body->left = body->left << 4 | digit;
	return true;
}

/* Take one character of a chunked body that is not data. Returns false if it is invalid there. */
static bool take_char(struct http_body *body, char c)
{
	switch ((enum chunk_state)body->state) {
	case CHUNK_SIZE:
		body->state = CHUNK_DIGITS;
		body->left = body->line_len = 0;
		return take_digit(body, c);
	case CHUNK_DIGITS:
		if (c == '\r' || c == ';') {
			body->state = c == ';' ? CHUNK_EXTENSION : CHUNK_LINE_END;
			return true;
		}
		return take_digit(body, c);
	case CHUNK_EXTENSION:
		if (c == '\r')
			body->state = CHUNK_LINE_END;
		return (c >= ' ' || c == '\r') && ++body->line_len <= CHUNK_LINE_MAX;
	case CHUNK_LINE_END:
		body->state = body->left ? CHUNK_DATA : CHUNK_TRAILER;
		body->line_len = 0;
		return c == '\n';
	case CHUNK_DATA_CR:
		body->state = CHUNK_DATA_LF;
		return c == '\r';
	case CHUNK_DATA_LF:
		body->state = CHUNK_SIZE;
		return c == '\n';
	case CHUNK_TRAILER:
		body->state = c == '\r' ? CHUNK_LAST_LF : CHUNK_TRAILER_LINE;
		return (c == '\r' || is_token_char(c)) && ++body->line_len <= HTTP_TRAILERS_MAX;
	case CHUNK_TRAILER_LINE:
		if (c == '\r')
			body->state = CHUNK_TRAILER_LF;
		return c && c != '\n' && ++body->line_len <= HTTP_TRAILERS_MAX;
	case CHUNK_TRAILER_LF:
		body->state = CHUNK_TRAILER;
		return c == '\n';
	case CHUNK_LAST_LF:
		body->is_done = true;
		return c == '\n';
	case CHUNK_DATA:
		break;
	}
	return false;
}

ssize_t http_body_take(struct http_body *body, const char *bytes, size_t len, struct http_slice *part)
{
	size_t at = 0;

	*part = (struct http_slice){0};
	if (body->is_done || !len)
		return 0;
	if (body->kind == HTTP_BODY_REST) {
		*part = (struct http_slice){bytes, len};
		return (ssize_t)len;
	}
	while (body->kind == HTTP_BODY_CHUNKED && body->state != CHUNK_DATA && at < len && !body->is_done)
		if (!take_char(body, bytes[at++]))
			return -EINVAL;
	if (body->kind == HTTP_BODY_CHUNKED && body->state != CHUNK_DATA)
		return (ssize_t)at;
	*part = (struct http_slice){bytes + at, MIN_OF(len - at, body->left)};
	body->left -= part->len;
	if (!body->left && body->kind == HTTP_BODY_CHUNKED)
		body->state = CHUNK_DATA_CR;
	else if (!body->left)
		body->is_done = true;
	return (ssize_t)(at + part->len);
}

void http_body_write(enum http_body_kind kind, struct http_slice part, struct text *out)
{
	if (kind != HTTP_BODY_CHUNKED) {
		text_append(out, part.bytes, part.len);
		return;
	}
	text_append_format(out, "%zx\r\n", part.len);
	text_append(out, part.bytes, part.len);
	text_append_string(out, "\r\n");
}
