/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_mcp_words.c - what is left out of a long text, and what is said about it
 */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "door/mcp/mcp_server.h"
#include "test.h"

static void test_a_short_text_stays_as_it_is(void)
{
	AUTO_TEXT out = {0};

	mcp_shorten(&out, "one\ntwo", 7, 7, NULL, "k7m2x9qd");
	CHECK_STRING(text_string(&out), "one\ntwo");
}

static void test_whole_lines_are_left_out(void)
{
	AUTO_TEXT long_text = {0}, out = {0};
	const char *found;

	for (int i = 0; i < 1000; i++)
		text_append_format(&long_text, "line %d\n", i);
	mcp_shorten(&out, long_text.data, long_text.len, 200, "/tmp/x", "k7m2x9qd");
	CHECK(out.len < 320);
	CHECK(!strncmp(out.data, "line 0\nline 1\n", 14));
	CHECK(strstr(out.data, "\nline 998\nline 999\n"));
	found = strstr(out.data, "\n[belljar k7m2x9qd] ");
	CHECK(found && strstr(found, " lines, "));
	CHECK(strstr(out.data, "all of it: read_file with path \"/tmp/x\"\nline "));
}

static void test_one_line_without_end_is_cut_between_characters(void)
{
	for (size_t shift = 0; shift < 4; shift++) {
		AUTO_TEXT long_text = {0}, out = {0};

		for (size_t i = 0; i < shift; i++)
			text_append_char(&long_text, 'a');
		for (int i = 0; i < 1000; i++)
			text_append_string(&long_text, "\xf0\x9f\x8d\x8e");
		mcp_shorten(&out, long_text.data, long_text.len, 100, NULL, "k7m2x9qd");
		CHECK(out.len < 250);
		CHECK(utf8_is_valid((const unsigned char *)out.data, out.len));
		CHECK(strstr(out.data, "\n[belljar k7m2x9qd] 0 lines, "));
	}
}

/* Any length, any limit: never more than a little above the limit, and never out of bounds. */
static void test_every_size(void)
{
	char bytes[600];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 17 ? 'x' : '\n';
	for (size_t len = 0; len <= sizeof(bytes); len += 7)
		for (size_t max = 8; max < 300; max += 3) {
			AUTO_TEXT out = {0};

			mcp_shorten(&out, bytes, len, max, NULL, "k7m2x9qd");
			CHECK(out.len <= max + 100);
		}
}

static const struct test tests[] = {
	TEST(test_a_short_text_stays_as_it_is),
	TEST(test_whole_lines_are_left_out),
	TEST(test_one_line_without_end_is_cut_between_characters),
	TEST(test_every_size),
};

TEST_MAIN(tests)
