/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_mcp_http.c - any bytes as what a client of belljar-mcp-http sends
 *
 * Input: one byte that says how the rest is cut; where a line has "TOKEN", the token is put. Sessions have no process: what they would be
 * given is looked at instead. However the bytes are cut, the answers are the same; they are answers of HTTP; nothing passes
 * that does not show the token; and what is passed is lines, each a number and JSON.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "door/mcp/http/mcp_http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKEN "0123456789abcdef0123456789abcdef"
#define WORD "TOKEN"

static void put_token(const char *bytes, size_t len, bool *has_token, struct text *out)
{
	*has_token = false;
	while (len) {
		const char *found = memmem(bytes, len, WORD, strlen(WORD));
		size_t before = found ? (size_t)(found - bytes) : len;

		text_append(out, bytes, before);
		if (!found)
			return;
		text_append_string(out, TOKEN);
		*has_token = true;
		bytes += before + strlen(WORD);
		len -= before + strlen(WORD);
	}
}

static void check_lines(const struct text *lines)
{
	for (size_t at = 0; at < lines->len;) {
		const char *end = memchr(lines->data + at, '\n', lines->len - at);
		const char *blank = memchr(lines->data + at, ' ', lines->len - at);
		struct json_input input = {
			.name = "request", .stage = STAGE_USAGE, .max_bytes = MCP_LINE_MAX, .max_entries = 100000};
		struct error error = {0};
		AUTO_JSON document = {0};

		assert(end && blank && blank < end);
		for (const char *digit = lines->data + at; digit < blank; digit++)
			assert(*digit >= '0' && *digit <= '9');
		input.bytes = blank + 1;
		input.len = (size_t)(end - blank) - 1;
		assert(json_parse(&input, &document, &error) == 0 && document.type == JSON_OBJECT);
		at = (size_t)(end - lines->data) + 1;
	}
}

static void check_answers(const struct text *output)
{
	static struct http_head head;

	for (size_t at = 0; at < output->len;) {
		ssize_t len = http_read_answer(output->data + at, output->len - at, "POST", &head);

		assert(len > 0);
		at += (size_t)len;
		if (head.status == 100)
			continue;
		/* A stream that was opened goes on to the end. */
		if (head.body_kind == HTTP_BODY_CHUNKED)
			return;
		assert(head.body_bytes <= output->len - at);
		at += head.body_bytes;
	}
}

/* What is answered, and what sessions are given, when the bytes come in pieces of @step. */
static void serve(const struct text *bytes, size_t step, bool has_token, struct text *answers)
{
	struct mcp_http_options options = {.server = {.idle_ns = LIMIT_NONE}};
	struct mcp_http http = {.options = &options, .port = 8750, .token = TOKEN};
	struct mcp_connection *connection = mcp_http_connect(&http, -1);

	if (!connection)
		return;
	for (size_t at = 0; at < bytes->len && !connection->is_gone; at += step)
		mcp_http_take(connection, bytes->data + at, MIN_OF(step, bytes->len - at));
	text_append(answers, text_string(&connection->output), connection->output.len);
	for (struct mcp_session *session = http.sessions; session; session = session->next) {
		assert(has_token);
		check_lines(&session->output);
	}
	mcp_http_close(connection);
	mcp_http_free_gone(&http);
	for (struct mcp_session *session = http.sessions; session; session = session->next)
		mcp_end_session(session);
	mcp_free_ended(&http);
	assert(!http.connections && !http.sessions);
	for (size_t i = 0; i < ARRAY_LEN(http.session_counts); i++)
		assert(!http.session_counts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_TEXT bytes = {0}, whole = {0}, pieces = {0};
	bool has_token;

	if (size < 2)
		return 0;
	put_token((const char *)data + 1, size - 1, &has_token, &bytes);
	serve(&bytes, bytes.len, has_token, &whole);
	serve(&bytes, 1 + data[0] % 61, has_token, &pieces);
	check_answers(&whole);
	/* The id of a session is not the same twice; all else is. */
	if (!memmem(text_string(&whole), whole.len, "Mcp-Session-Id", 14))
		assert(whole.len == pieces.len && (!whole.len || !memcmp(whole.data, pieces.data, whole.len)));
	return 0;
}
