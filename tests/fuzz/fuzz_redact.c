/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_redact.c - the redactor: the same output however the text is cut, and no literal left in it
 *
 * Input: one byte of flags (bit 0: with shapes; bit 1: the text many times over, which moves the window), one that seeds
 * the chunking, then texts parted by 0xff: the literals, the last one the text.
 */
#include <assert.h>
#include <string.h>

#include "base/redact/redact.h"

#define LITERAL_COUNT_MAX 16
#define REPEATED_LEN 20000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(const struct redactor *redactor, const char *bytes, size_t len, uint32_t seed, struct text *out)
{
	struct redact_stream *stream = redact_stream_new(redactor);

	assert(stream);
	for (size_t at = 0, part; at < len; at += part) {
		seed = seed * UINT32_C(1664525) + UINT32_C(1013904223);
		part = seed == 0 ? len : 1 + (seed >> 24) % 13;
		part = MIN_OF(part, len - at);
		redact_feed(stream, bytes + at, part, out);
	}
	redact_finish(stream, out);
	redact_stream_free(stream);
	assert(!text_failed(out));
}

static void feed_whole(const struct redactor *redactor, const char *bytes, size_t len, struct text *out)
{
	struct redact_stream *stream = redact_stream_new(redactor);

	assert(stream);
	redact_feed(stream, bytes, len, out);
	redact_finish(stream, out);
	redact_stream_free(stream);
}

/* A literal may be left only where it takes part in a mark, whose text is ours. */
static void check_absent(const struct text *out, const char *literal)
{
	size_t literal_len = strlen(literal), mark_len = strlen(REDACT_MARK);
	const char *from = out->data, *found;

	while (from && (found = memmem(from, out->len - (size_t)(from - out->data), literal, literal_len))) {
		size_t start = (size_t)(found - out->data), end = start + literal_len;
		size_t look = start > mark_len - 1 ? start - (mark_len - 1) : 0;
		bool has_mark = false;

		for (; look < end && look + mark_len <= out->len; look++)
			has_mark |= memcmp(out->data + look, REDACT_MARK, mark_len) == 0;
		assert(has_mark);
		from = found + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct string_list literals = {0};
	struct redactor *redactor = NULL;
	AUTO_TEXT text = {0};
	AUTO_TEXT whole = {0};
	AUTO_TEXT parts = {0};
	bool has_shapes, has_repeats;
	uint32_t seed;
	const uint8_t *end;

	if (size < 2)
		return 0;
	has_shapes = data[0] & 1;
	has_repeats = data[0] & 2;
	seed = data[1];
	data += 2;
	size -= 2;
	while (literals.count < LITERAL_COUNT_MAX && (end = memchr(data, 0xff, size))) {
		char literal[256];
		size_t len = MIN_OF((size_t)(end - data), sizeof(literal) - 1);

		memcpy(literal, data, len);
		literal[len] = '\0';
		if (strlen(literal) >= 4)
			string_list_add(&literals, literal);
		size -= (size_t)(end - data) + 1;
		data = end + 1;
	}
	do {
		text_append(&text, data, size);
	} while (has_repeats && size > 0 && text.len < REPEATED_LEN);
	if (redactor_new(&literals, has_shapes, &redactor, NULL) == 0 && redactor) {
		feed_whole(redactor, text.data, text.len, &whole);
		feed(redactor, text.data, text.len, seed, &parts);
		assert(whole.len == parts.len);
		assert(whole.len == 0 || memcmp(whole.data, parts.data, whole.len) == 0);
		for (size_t i = 0; i < literals.count; i++)
			check_absent(&whole, literals.items[i]);
	}
	redactor_free(redactor);
	string_list_done(&literals);
	return 0;
}
