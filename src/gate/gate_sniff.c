/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_sniff.c - which host the first bytes of a connection are for
 *
 * A ClientHello may be cut into many records, and HTTP into many packets: nothing is decided before all of the ClientHello, or
 * all headers, are there.
 */
#include "gate/gate_sniff.h"

#include <string.h>
#include <strings.h>

#define RECORD_CHANGE_CIPHER 20
#define RECORD_HANDSHAKE 22
#define RECORD_DATA 23
#define RECORD_LAST 24
#define RECORD_HEADER 5
#define RECORD_MAX 16384
#define RECORD_SEALED_MAX (RECORD_MAX + 256)
#define CLIENT_HELLO 1
#define SERVER_HELLO 2
#define HELLO_RANDOM_BYTES 34 /* with the version before it */
#define EXTENSION_SERVER_NAME 0
#define NAME_TYPE_HOST 0
/* The longest first line that is looked at, to tell HTTP from other protocols. */
#define METHOD_MAX 24

/* --- TLS ---------------------------------------------------------------------------------------------------- */

/* The bytes of one handshake message, whatever records they came in. */
struct reader {
	const uint8_t *bytes;
	size_t len, at;
};

static bool read_number(struct reader *reader, size_t size, size_t *out)
{
	size_t number = 0;

	if (reader->len - reader->at < size)
		return false;
	for (size_t i = 0; i < size; i++)
		number = number << 8 | reader->bytes[reader->at++];
	*out = number;
	return true;
}

/* What a length of @size bytes announces, as a reader of its own. */
static bool read_part(struct reader *reader, size_t size, struct reader *part)
{
	size_t len;

	if (!read_number(reader, size, &len) || reader->len - reader->at < len)
		return false;
	*part = (struct reader){reader->bytes + reader->at, len, 0};
	reader->at += len;
	return true;
}

static bool read_server_name(struct reader *extension, struct sniffed *out)
{
	struct reader list, name;
	size_t type;

	if (!read_part(extension, 2, &list) || extension->at != extension->len || !read_number(&list, 1, &type) ||
	    type != NAME_TYPE_HOST || !read_part(&list, 2, &name) || list.at != list.len)
		return false;
	return net_name_clean((const char *)name.bytes, name.len, out->name);
}

static enum sniff read_hello(struct reader hello, struct sniffed *out)
{
	struct reader part, extensions, extension;
	bool has_name = false;
	size_t type;

	if (hello.len < HELLO_RANDOM_BYTES)
		return SNIFF_BAD;
	hello.at = HELLO_RANDOM_BYTES;
	/* Session, ciphers, compression. */
	if (!read_part(&hello, 1, &part) || !read_part(&hello, 2, &part) || !read_part(&hello, 1, &part) ||
	    !read_part(&hello, 2, &extensions) || hello.at != hello.len)
		return SNIFF_BAD;
	while (extensions.at < extensions.len) {
		if (!read_number(&extensions, 2, &type) || !read_part(&extensions, 2, &extension))
			return SNIFF_BAD;
		if (type != EXTENSION_SERVER_NAME)
			continue;
		if (has_name || !read_server_name(&extension, out))
			return SNIFF_BAD;
		has_name = true;
	}
	return has_name ? SNIFF_FOUND : SNIFF_BAD;
}

static enum sniff sniff_tls(const uint8_t *bytes, size_t len, struct sniffed *out)
{
	static uint8_t message[SNIFF_BYTES_MAX];
	size_t at = 0, gathered = 0, wanted;

	while (at < len) {
		size_t record_len, end;

		if (bytes[at] != RECORD_HANDSHAKE || (at + 1 < len && bytes[at + 1] != 3))
			return SNIFF_BAD;
		if (len - at < RECORD_HEADER)
			return SNIFF_MORE;
		record_len = (size_t)bytes[at + 3] << 8 | bytes[at + 4];
		if (!record_len || record_len > RECORD_MAX)
			return SNIFF_BAD;
		at += RECORD_HEADER;
		end = at + record_len;
		record_len = MIN_OF(record_len, len - at);
		if (record_len > sizeof(message) - gathered)
			return SNIFF_BAD;
		memcpy(message + gathered, bytes + at, record_len);
		gathered += record_len;
		at += record_len;
		if (message[0] != CLIENT_HELLO && gathered)
			return SNIFF_BAD;
		if (gathered < 4)
			continue;
		wanted = (size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3];
		if (wanted > sizeof(message) - 4)
			return SNIFF_BAD;
		if (gathered < wanted + 4)
			continue;
		/* Another message behind it, in the same record, could be a second one. */
		if (gathered > wanted + 4 || end != at)
			return SNIFF_BAD;
		out->hello_len = end;
		return read_hello((struct reader){message + 4, wanted, 0}, out);
	}
	return SNIFF_MORE;
}

enum sniff gate_sniff_retry(const uint8_t *bytes, size_t len)
{
	/* A ServerHello whose random bytes say that it is none: RFC 8446, 4.1.3. */
	static const uint8_t random[] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
					 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
					 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};
	static const size_t random_at = RECORD_HEADER + 6;

	if ((len > 0 && bytes[0] != RECORD_HANDSHAKE) || (len > RECORD_HEADER && bytes[RECORD_HEADER] != SERVER_HELLO))
		return SNIFF_NONE;
	if (len > random_at && memcmp(bytes + random_at, random, MIN_OF(len - random_at, sizeof(random))) != 0)
		return SNIFF_NONE;
	return len < random_at + sizeof(random) ? SNIFF_MORE : SNIFF_FOUND;
}

enum sniff gate_sniff_second_hello(const uint8_t *bytes, size_t len, struct sniffed *out)
{
	size_t at = 0;
	enum sniff found;

	*out = (struct sniffed){.port = 0};
	while (at < len && (bytes[at] == RECORD_CHANGE_CIPHER || bytes[at] == RECORD_DATA)) {
		size_t record_len;

		if (len - at < RECORD_HEADER)
			break;
		record_len = (size_t)bytes[at + 3] << 8 | bytes[at + 4];
		if (bytes[at + 1] != 3 || record_len > RECORD_SEALED_MAX)
			return SNIFF_BAD;
		at += RECORD_HEADER + record_len;
	}
	found = at < len && bytes[at] == RECORD_HANDSHAKE ? sniff_tls(bytes + at, len - at, out)
		: at < len && len - at >= RECORD_HEADER   ? SNIFF_BAD
							  : SNIFF_MORE;
	out->hello_len += at;
	return found == SNIFF_MORE && len >= SNIFF_BYTES_MAX ? SNIFF_BAD : found;
}

/* --- HTTP --------------------------------------------------------------------------------------------------- */

/* HOST or HOST:PORT. False: it is written in a way that others may read otherwise. */
static bool read_authority(const char *text, size_t len, struct sniffed *out)
{
	const char *colon = len && text[0] == '[' ? memchr(text, ']', len) : text;
	size_t host_len = len;
	unsigned port = 0;

	out->port = 0;
	out->name[0] = '\0';
	colon = colon ? memchr(colon, ':', len - (size_t)(colon - text)) : NULL;
	if (colon) {
		host_len = (size_t)(colon - text);
		if (host_len + 1 == len || len - host_len > 6)
			return false;
		for (const char *at = colon + 1; at < text + len; at++) {
			if (*at < '0' || *at > '9')
				return false;
			port = port * 10 + (unsigned)(*at - '0');
		}
		if (!port || port > UINT16_MAX)
			return false;
		out->port = (uint16_t)port;
	}
	return net_name_clean(text, host_len, out->name);
}

static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* "GET /path HTTP/1.1": SNIFF_FOUND if it is such a line, with the host of an absolute target in @target. */
static enum sniff read_request_line(const char *line, size_t len, struct sniffed *target, bool *has_target,
				    bool *is_old)
{
	const char *space = memchr(line, ' ', len), *last = memrchr(line, ' ', len), *host, *end;

	if (!space || space == line || last == space || (size_t)(line + len - last) != strlen(" HTTP/1.1") ||
	    memcmp(last, " HTTP/1.", 8) != 0)
		return SNIFF_NONE;
	*is_old = last[8] == '0';
	for (const char *at = line; at < last; at++)
		if ((unsigned char)*at <= ' ' && at != space)
			return SNIFF_BAD;
	/* Who would be led on by a proxy is not at the end of this connection. */
	if (!memcmp(line, "CONNECT ", MIN_OF(len, 8)))
		return SNIFF_BAD;
	*has_target = space[1] != '/' && !(space[1] == '*' && space + 2 == last);
	if (!*has_target)
		return SNIFF_FOUND;
	if ((size_t)(last - space) < 9 || strncasecmp(space + 1, "http://", 7) != 0)
		return SNIFF_BAD;
	host = space + 8;
	for (end = host; end < last && !strchr("/?#", *end); end++)
		;
	return read_authority(host, (size_t)(end - host), target) ? SNIFF_FOUND : SNIFF_BAD;
}

/* One header: 1 it is Host, 0 another, -1 no header. */
static int read_header(const char *line, size_t len, struct sniffed *out)
{
	const char *colon = memchr(line, ':', len), *end = line + len;

	if (!colon || colon == line)
		return -1;
	for (const char *at = line; at < colon; at++)
		if (!is_token(*at))
			return -1;
	for (const char *at = colon; at < end; at++)
		if (*at == '\0' || *at == '\r' || *at == '\n')
			return -1;
	if (colon - line != 4 || strncasecmp(line, "Host", 4) != 0)
		return 0;
	colon++;
	while (colon < end && (*colon == ' ' || *colon == '\t'))
		colon++;
	while (end > colon && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return read_authority(colon, (size_t)(end - colon), out) ? 1 : -1;
}

/* Could this still become a request of HTTP/1? */
static bool may_be_http(const char *text, size_t len)
{
	size_t method = 0;

	while (method < len && method < METHOD_MAX && text[method] >= 'A' && text[method] <= 'Z')
		method++;
	return method < METHOD_MAX && (method == len || (method && text[method] == ' '));
}

static enum sniff sniff_http(const char *text, size_t len, struct sniffed *out)
{
	const char *at = text, *end = text + len, *line_end;
	bool has_target = false, is_old = false, has_host = false;
	struct sniffed target = {.port = 0};
	enum sniff found;

	if (!may_be_http(text, len))
		return SNIFF_NONE;
	line_end = memchr(at, '\n', len);
	if (!line_end)
		return SNIFF_MORE;
	/* A bare LF ends a line for some and not for others. */
	found = read_request_line(at, (size_t)(line_end - at) - (line_end > at && line_end[-1] == '\r'), &target,
				  &has_target, &is_old);
	if (found != SNIFF_FOUND)
		return found;
	if (line_end[-1] != '\r')
		return SNIFF_BAD;
	for (at = line_end + 1; (line_end = memchr(at, '\n', (size_t)(end - at))); at = line_end + 1) {
		int kind;

		if (line_end == at || line_end[-1] != '\r')
			return SNIFF_BAD;
		if (line_end == at + 1) {
			if (has_host)
				return has_target && (strcmp(target.name, out->name) != 0 || target.port != out->port)
					       ? SNIFF_BAD
					       : SNIFF_FOUND;
			return is_old && !has_target ? SNIFF_NONE : SNIFF_BAD;
		}
		kind = read_header(at, (size_t)(line_end - at) - 1, out);
		if (kind < 0 || (kind == 1 && has_host))
			return SNIFF_BAD;
		has_host |= kind == 1;
	}
	return SNIFF_MORE;
}

/* Most servers skip empty lines before a request, and some do not: a request behind them is read in two ways. */
static enum sniff sniff_behind_empty_lines(const char *text, size_t len, struct sniffed *out)
{
	enum sniff found;

	while (len && (*text == '\r' || *text == '\n')) {
		text++;
		len--;
	}
	found = len ? sniff_http(text, len, out) : SNIFF_MORE;
	return found == SNIFF_FOUND ? SNIFF_BAD : found;
}

enum sniff gate_sniff_first_bytes(const uint8_t *bytes, size_t len, struct sniffed *out)
{
	enum sniff found;

	*out = (struct sniffed){.port = 0};
	if (!len)
		return SNIFF_MORE;
	/* Some servers skip other records before a ClientHello. */
	if (bytes[0] >= RECORD_CHANGE_CIPHER && bytes[0] <= RECORD_LAST && (len < 2 || bytes[1] == 3))
		found = bytes[0] == RECORD_HANDSHAKE ? sniff_tls(bytes, len, out) : len < 2 ? SNIFF_MORE : SNIFF_BAD;
	else if (bytes[0] == '\r' || bytes[0] == '\n')
		found = sniff_behind_empty_lines((const char *)bytes, len, out);
	else
		found = sniff_http((const char *)bytes, len, out);
	return found == SNIFF_MORE && len >= SNIFF_BYTES_MAX ? SNIFF_BAD : found;
}
