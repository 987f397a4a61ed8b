/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_http.c - heads and bodies of HTTP/1.1, and paths as a gate reads them
 *
 * Input: one byte that says which, then the bytes. However the bytes are cut, a head is judged the same, and a body is the same; what
 * is written anew is read as the same body.
 */
#include <assert.h>
#include <string.h>

#include "base/http.h"
#include "policy/net_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ssize_t read_head(const char *bytes, size_t len, bool is_request, struct http_head *head)
{
	return is_request ? http_read_request(bytes, len, head) : http_read_answer(bytes, len, "GET", head);
}

static void check_head(const char *bytes, size_t size, bool is_request)
{
	static struct http_head head;
	ssize_t whole = read_head(bytes, size, is_request, &head);

	assert(whole <= (ssize_t)size && (whole >= 0 || head.why));
	for (size_t i = 0; whole > 0 && i < head.header_count; i++)
		assert(head.headers[i].value.bytes + head.headers[i].value.len <= bytes + whole);
	for (size_t len = 0; len < size; len += 1 + size / 64) {
		ssize_t part = read_head(bytes, len, is_request, &head);

		assert(part == 0 || part == whole);
	}
}

/* Take a body in pieces of @step bytes. How much is used, or -1. */
static ssize_t take_body(const char *bytes, size_t size, size_t step, struct text *content, bool *is_done)
{
	struct http_body body;
	size_t used = 0, have = 0;

	http_body_init(&body, HTTP_BODY_CHUNKED, 0);
	while (have < size && !body.is_done) {
		have = MIN_OF(have + step, size);
		for (;;) {
			struct http_slice part;
			ssize_t len = http_body_take(&body, bytes + used, have - used, &part);

			if (len < 0)
				return -1;
			if (!len)
				break;
			text_append(content, part.bytes, part.len);
			used += (size_t)len;
		}
		assert(used == have || body.is_done);
	}
	*is_done = body.is_done;
	return (ssize_t)used;
}

static void check_body(const char *bytes, size_t size)
{
	AUTO_TEXT whole = {0}, pieces = {0}, written = {0}, again = {0};
	bool is_done = false, is_done_too = false;
	ssize_t used = take_body(bytes, size, size + 1, &whole, &is_done);

	assert(used == take_body(bytes, size, 3, &pieces, &is_done_too));
	if (used < 0)
		return;
	assert(is_done == is_done_too && whole.len == pieces.len &&
	       (!whole.len || !memcmp(whole.data, pieces.data, whole.len)));
	if (whole.len)
		http_body_write(HTTP_BODY_CHUNKED, (struct http_slice){whole.data, whole.len}, &written);
	http_body_write(HTTP_BODY_CHUNKED, (struct http_slice){"", 0}, &written);
	assert(take_body(written.data, written.len, 5, &again, &is_done) == (ssize_t)written.len && is_done);
	assert(again.len == whole.len && (!whole.len || !memcmp(again.data, whole.data, whole.len)));
}

/* What is clean stays as it is when it is cleaned again, unless a percent sign was in it. */
static void check_path(const char *bytes, size_t size)
{
	char once[NET_TARGET_MAX];

	if (!net_path_clean(bytes, size, once))
		return;
	assert(once[0] == '/' && !strstr(once, "//") && !strstr(once, "/../") && !strchr(once, '%'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data + 1;

	if (size < 1)
		return 0;
	if (data[0] % 4 == 0)
		check_head(bytes, size - 1, true);
	else if (data[0] % 4 == 1)
		check_head(bytes, size - 1, false);
	else if (data[0] % 4 == 2)
		check_body(bytes, size - 1);
	else
		check_path(bytes, size - 1);
	return 0;
}
