/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_json_write.c - JSON that is valid whatever the strings hold
 */
#include "test.h"

#include "base/json_read.h"
#include "base/json_write.h"

static void check_quoted(const char *bytes, size_t len, const char *expected)
{
	AUTO_TEXT text = {0};
	struct json_writer writer = {.text = &text};

	json_write_bytes(&writer, NULL, bytes, len);
	CHECK_STRING(text_string(&text), expected);
}

#define QUOTED(bytes, expected) check_quoted(bytes, sizeof(bytes) - 1, expected)

static void test_controls_quotes_and_backslashes_are_escaped(void)
{
	QUOTED("", "\"\"");
	QUOTED("plain", "\"plain\"");
	QUOTED("\"\\/", "\"\\\"\\\\/\"");
	QUOTED("\b\t\n\f\r", "\"\\b\\t\\n\\f\\r\"");
	QUOTED("\x01\x1f\x1b", "\"\\u0001\\u001f\\u001b\"");
	QUOTED("a\0b", "\"a\\u0000b\"");
}

static void test_delete_and_c1_controls_are_escaped(void)
{
	QUOTED("\x7f", "\"\\u007f\"");
	QUOTED("\xc2\x80", "\"\\u0080\"");
	QUOTED("x\xc2\x9by", "\"x\\u009by\"");
	QUOTED("\xc2\x9f", "\"\\u009f\"");
	QUOTED("\xc2\xa0", "\"\xc2\xa0\"");
	QUOTED("\xc3\x80", "\"\xc3\x80\"");
}

static void test_valid_text_is_left_alone(void)
{
	QUOTED("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
	QUOTED("\xe2\x80\xa8\xef\xbb\xbf", "\"\xe2\x80\xa8\xef\xbb\xbf\"");
}

#define R "\xef\xbf\xbd"

/* One U+FFFD for each maximal subpart, as the Unicode standard recommends and browsers do. */
static void test_invalid_bytes_become_one_replacement_for_each_maximal_subpart(void)
{
	QUOTED("\xff", "\"" R "\"");
	QUOTED("\x80\x80", "\"" R R "\"");
	QUOTED("a\xc3", "\"a" R "\"");
	QUOTED("\xe1\x80", "\"" R "\"");
	QUOTED("\xe1\x80z", "\"" R "z\"");
	QUOTED("\xc0\x80", "\"" R R "\"");
	QUOTED("\xed\xa0\x80", "\"" R R R "\"");
	QUOTED("\xf4\x90\x80\x80", "\"" R R R R "\"");
	/* table 3-8 of the standard */
	QUOTED("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "\"" R R R R "A\"");
	QUOTED("\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64", "\"" R R R "b" R "c" R R "d\"");
	QUOTED("\xff\"\xff", "\"" R "\\\"" R "\"");
}

/* Whatever the bytes: the result is one JSON string that our own strict reader takes. */
static void test_any_two_bytes_give_a_readable_document(void)
{
	for (unsigned pair = 0; pair < 0x10000; pair++) {
		char bytes[3] = {(char)(pair >> 8), (char)pair, 'x'};
		AUTO_TEXT text = {0};
		struct json_writer writer = {.text = &text};
		struct json_input input = {.name = "bytes", .stage = STAGE_USAGE};
		struct error error = {0};
		AUTO_JSON value = {0};

		if (!bytes[0] || !bytes[1])
			continue; /* the reader refuses NUL in strings */
		json_write_bytes(&writer, NULL, bytes, sizeof(bytes));
		input.bytes = text.data;
		input.len = text.len;
		if (json_parse(&input, &value, &error) < 0) {
			printf("%04x: %s\n", pair, error.message);
			CHECK(false);
			return;
		}
		CHECK(value.type == JSON_STRING && value.string.bytes[value.string.len - 1] == 'x');
	}
}

static void test_members_and_items_have_their_commas(void)
{
	AUTO_TEXT text = {0};
	struct json_writer writer = {.text = &text};

	json_open_object(&writer, NULL);
	json_write_string(&writer, "s", "v");
	json_write_string(&writer, "n", NULL);
	json_open_array(&writer, "a");
	json_write_integer(&writer, NULL, -1);
	json_write_unsigned(&writer, NULL, UINT64_MAX);
	json_open_object(&writer, NULL);
	json_close_object(&writer);
	json_close_array(&writer);
	json_open_array(&writer, "e");
	json_close_array(&writer);
	json_write_bool(&writer, "t", true);
	json_write_bool(&writer, "f", false);
	json_write_raw(&writer, "r", "[1]", 3);
	json_write_integer(&writer, "k\n", INT64_MIN);
	json_close_object(&writer);
	CHECK_STRING(text_string(&text),
		     "{\"s\":\"v\",\"n\":null,\"a\":[-1,18446744073709551615,{}],\"e\":[],\"t\":true,"
		     "\"f\":false,\"r\":[1],\"k\\n\":-9223372036854775808}");
}

static void test_indented_members_stand_on_lines_of_their_own(void)
{
	AUTO_TEXT text = {0};
	struct json_writer writer = {.text = &text, .indent = 2};

	json_open_object(&writer, NULL);
	json_open_array(&writer, "a");
	json_write_integer(&writer, NULL, 1);
	json_write_integer(&writer, NULL, 2);
	json_close_array(&writer);
	json_open_object(&writer, "o");
	json_close_object(&writer);
	json_close_object(&writer);
	CHECK_STRING(text_string(&text), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"o\": {}\n}");
}

static void check_milliseconds(uint64_t microseconds, const char *expected)
{
	AUTO_TEXT text = {0};
	struct json_writer writer = {.text = &text};

	json_write_milliseconds(&writer, NULL, microseconds);
	CHECK_STRING(text_string(&text), expected);
}

static void test_milliseconds_have_at_least_one_and_at_most_three_decimals(void)
{
	check_milliseconds(0, "0.0");
	check_milliseconds(1, "0.001");
	check_milliseconds(10, "0.01");
	check_milliseconds(100, "0.1");
	check_milliseconds(3100, "3.1");
	check_milliseconds(3010, "3.01");
	check_milliseconds(3001, "3.001");
	check_milliseconds(1000, "1.0");
	check_milliseconds(999999, "999.999");
	check_milliseconds(UINT64_MAX, "18446744073709551.615");
}

static const struct test tests[] = {
	TEST(test_controls_quotes_and_backslashes_are_escaped),
	TEST(test_delete_and_c1_controls_are_escaped),
	TEST(test_valid_text_is_left_alone),
	TEST(test_invalid_bytes_become_one_replacement_for_each_maximal_subpart),
	TEST(test_any_two_bytes_give_a_readable_document),
	TEST(test_members_and_items_have_their_commas),
	TEST(test_indented_members_stand_on_lines_of_their_own),
	TEST(test_milliseconds_have_at_least_one_and_at_most_three_decimals),
};

TEST_MAIN(tests)
