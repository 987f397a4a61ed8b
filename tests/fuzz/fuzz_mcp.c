/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_mcp.c - any bytes as the lines of a client of `belljar mcp`
 *
 * No jar can be opened, so every tool is refused after its arguments were read. What the server says is always lines of JSON, one
 * for each line at most.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "door/mcp/mcp_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answers(const struct text *output, size_t line_count)
{
	size_t at = 0, count = 0;

	while (at < output->len) {
		const char *end = memchr(output->data + at, '\n', output->len - at);
		struct json_input input = {.name = "answer",
					   .bytes = output->data + at,
					   .stage = STAGE_USAGE,
					   .max_bytes = (size_t)64 << 20};
		struct error error = {0};
		AUTO_JSON answer = {0};

		if (!end)
			abort();
		input.len = (size_t)(end - input.bytes);
		if (json_parse(&input, &answer, &error) < 0) {
			fprintf(stderr, "%s\n%.*s\n", error.message, (int)input.len, input.bytes);
			abort();
		}
		at += input.len + 1;
		count++;
	}
	if (count > line_count)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy policy;
	static struct policy_context context = {.current_directory = "/", .home = "/home"};
	static char *environment[] = {NULL};
	struct mcp_options options = {.policy = &policy, .context = &context, .environment = environment};
	struct mcp_server server = {.options = &options, .out_fd = -1, .jar_count = MCP_JARS_MAX};
	const char *at = (const char *)data, *end = at + size;
	struct error error = {0};
	size_t line_count = 0;

	if (!policy.cd && policy_init(&policy, &context, &error) < 0)
		abort();
	policy.cd = policy.cd ? policy.cd : strdup("/");
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = newline ? (size_t)(newline - at) : (size_t)(end - at);

		mcp_receive(&server, 0, at, len);
		at += len + (newline ? 1 : 0);
		line_count++;
	}
	check_answers(&server.output, line_count);
	text_done(&server.output);
	return 0;
}
