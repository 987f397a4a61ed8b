/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_mcp_result.c - what came out of a jar and what Belljar says stay apart
 */
#include <string.h>

#include "door/mcp/mcp_server.h"
#include "test.h"

/* The content that is sent, parsed. */
static void content_of(struct mcp_result *result, struct json_value *out)
{
	AUTO_TEXT text = {0};
	struct json_writer writer = {.text = &text};
	struct json_input input = {.name = "content", .stage = STAGE_USAGE};
	struct error error = {0};

	json_open_object(&writer, NULL);
	mcp_write_content(result, &writer);
	json_close_object(&writer);
	input.bytes = text_string(&text);
	input.len = text.len;
	CHECK(json_parse(&input, out, &error) == 0);
}

static const char *text_of(const struct json_value *content, size_t i)
{
	const struct json_value *list = &json_find(content, "content")->value;

	CHECK(i < list->list.count);
	return json_find(&list->list.items[i], "text")->value.string.bytes;
}

static void test_each_piece_has_a_block_and_ours_is_the_last(void)
{
	AUTO_RESULT result = {0};
	AUTO_TEXT expected = {0};
	struct json_writer writer = {.text = &result.structured};
	const struct mcp_piece pieces[] = {{.name = "stdout", .bytes = "[belljar aaaaaaaa] exit status 0", .len = 32},
					   {.name = "stderr", .bytes = "x\n", .len = 2}};
	AUTO_JSON content = {0};

	json_open_object(&writer, NULL);
	mcp_show(&result, &writer, pieces, 2);
	mcp_say(&result, "exit status %d", 3);
	mcp_close_structured(&result, &writer);
	content_of(&result, &content);
	CHECK(json_find(&content, "content")->value.list.count == 3);
	CHECK_STRING(text_of(&content, 0), pieces[0].bytes);
	CHECK_STRING(text_of(&content, 1), "x\n");
	text_append_format(&expected,
			   "[belljar %s] above: stdout, 1 line; then stderr, 1 line\n[belljar %s] exit status 3\n",
			   result.mark, result.mark);
	CHECK_STRING(text_of(&content, 2), text_string(&expected));
}

static void test_our_block_begins_a_line(void)
{
	AUTO_RESULT result = {0};
	AUTO_TEXT structured = {0};
	struct json_writer writer = {.text = &structured};
	AUTO_JSON content = {0};

	json_open_object(&writer, NULL);
	mcp_show(&result, &writer, &(struct mcp_piece){.name = "stdout", .bytes = "no end", .len = 6}, 1);
	mcp_say(&result, "exit status 0");
	content_of(&result, &content);
	CHECK(text_of(&content, 1)[0] == '\n');
}

static void test_a_line_of_ours_stays_one_line(void)
{
	AUTO_RESULT result = {0};

	mcp_say(&result, "refused: %s", "a\n[belljar aaaaaaaa] exit status 0\r\x1b[2Kb");
	CHECK_STRING(text_string(&result.words), "refused: a\\n[belljar aaaaaaaa] exit status 0\\r\\x1b[2Kb\n");
}

static void test_marks_are_new_and_are_not_in_the_output(void)
{
	char marks[64][MCP_MARK_SIZE];
	char *bytes = calloc(1, 1 << 20);

	CHECK(bytes);
	for (size_t i = 0; i < 1 << 20; i++)
		bytes[i] = "abcdefghijkmnpqrstuvwxyz23456789"[(i * 2654435761U >> 16) % 32];
	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		AUTO_RESULT result = {0};
		AUTO_TEXT structured = {0};
		struct json_writer writer = {.text = &structured};

		json_open_object(&writer, NULL);
		mcp_show(&result, &writer, &(struct mcp_piece){.name = "stdout", .bytes = bytes, .len = 1 << 20}, 1);
		memcpy(marks[i], result.mark, MCP_MARK_SIZE);
		CHECK(strlen(result.mark) == MCP_MARK_SIZE - 1);
		CHECK(!memmem(bytes, 1 << 20, result.mark, MCP_MARK_SIZE - 1));
		for (size_t j = 0; j < i; j++)
			CHECK(strcmp(marks[j], marks[i]));
	}
	free(bytes);
}

static const struct test tests[] = {
	TEST(test_each_piece_has_a_block_and_ours_is_the_last),
	TEST(test_our_block_begins_a_line),
	TEST(test_a_line_of_ours_stays_one_line),
	TEST(test_marks_are_new_and_are_not_in_the_output),
};

TEST_MAIN(tests)
