/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_json_read.c - documents, right and wrong, and where exactly they are wrong
 */
#include "base/json_read.h"

#include <errno.h>

#include "base/text.h"
#include "test.h"

static int parse_len(const char *document, size_t len, struct json_value *out, struct error *error)
{
	struct json_input input = {.name = "f", .bytes = document, .len = len, .stage = STAGE_POLICY};

	return json_parse(&input, out, error);
}

static int parse(const char *document, struct json_value *out, struct error *error)
{
	return parse_len(document, strlen(document), out, error);
}

static void check_refused_len(const char *document, size_t len, const char *message)
{
	AUTO_JSON value = {0};
	struct error error = {0};
	int rc = parse_len(document, len, &value, &error);

	CHECK(rc < 0);
	CHECK_INT(error.stage, STAGE_POLICY);
	CHECK_STRING(error.message, message);
}

static void check_refused(const char *document, const char *message)
{
	check_refused_len(document, strlen(document), message);
}

/* The string that a document consisting of one is. */
static void check_string(const char *document, const char *expected)
{
	AUTO_JSON value = {0};
	struct error error = {0};

	CHECK_INT(parse(document, &value, &error), 0);
	CHECK_STRING(error.message, "");
	CHECK_INT(value.type, JSON_STRING);
	if (value.type != JSON_STRING)
		return;
	CHECK_STRING(value.string.bytes, expected);
	CHECK_INT(value.string.len, strlen(expected));
}

static void test_values_of_every_type(void)
{
	AUTO_JSON value = {0};
	struct error error = {0};
	const struct json_value *items;

	CHECK_INT(parse("[null, true, false, 0, -12, 1.5, 1e3, \"x\", [], {}, {\"a\": 1}]", &value, &error), 0);
	CHECK_INT(value.type, JSON_LIST);
	CHECK_INT(value.list.count, 11);
	items = value.list.items;
	CHECK_INT(items[0].type, JSON_NULL);
	CHECK(items[1].type == JSON_BOOL && items[1].boolean);
	CHECK(items[2].type == JSON_BOOL && !items[2].boolean);
	CHECK(items[3].type == JSON_INTEGER && items[3].number.integer == 0);
	CHECK(items[4].type == JSON_INTEGER && items[4].number.integer == -12);
	CHECK(items[5].type == JSON_REAL && items[5].number.real == 1.5);
	CHECK_STRING(items[5].number.digits, "1.5");
	CHECK(items[6].type == JSON_REAL && items[6].number.real == 1000);
	CHECK_STRING(items[7].string.bytes, "x");
	CHECK(items[8].type == JSON_LIST && items[8].list.count == 0);
	CHECK(items[9].type == JSON_OBJECT && items[9].object.count == 0);
	CHECK(json_find(&items[10], "a") && json_find(&items[10], "a")->value.number.integer == 1);
	CHECK(!json_find(&items[10], "b"));
}

static void test_integers_end_where_int64_ends(void)
{
	AUTO_JSON value = {0};
	struct error error = {0};

	CHECK_INT(parse("[9223372036854775807, -9223372036854775808, 9223372036854775808, -0]", &value, &error), 0);
	CHECK(value.list.items[0].type == JSON_INTEGER && value.list.items[0].number.integer == INT64_MAX);
	CHECK(value.list.items[1].type == JSON_INTEGER && value.list.items[1].number.integer == INT64_MIN);
	CHECK(value.list.items[2].type == JSON_REAL && value.list.items[2].number.real == 9223372036854775808.0);
	CHECK_STRING(value.list.items[2].number.digits, "9223372036854775808");
	CHECK(value.list.items[3].type == JSON_INTEGER && value.list.items[3].number.integer == 0);
}

static void test_numbers_that_are_none(void)
{
	check_refused("01", "f:1:1: this is not a number as JSON writes it");
	check_refused("-", "f:1:1: this is not a number as JSON writes it");
	check_refused("-a", "f:1:1: this is not a number as JSON writes it");
	check_refused("1.", "f:1:1: this is not a number as JSON writes it");
	check_refused("1.e5", "f:1:1: this is not a number as JSON writes it");
	check_refused("1e", "f:1:1: this is not a number as JSON writes it");
	check_refused("1e+", "f:1:1: this is not a number as JSON writes it");
	check_refused(".5", "f:1:1: expected a value, not '.'");
	check_refused("+1", "f:1:1: expected a value, not '+'");
	check_refused("0x10", "f:1:2: expected the end of the document, not 'x'");
	check_refused("[1, 1e999]", "f:1:5: this number is too large");
	check_refused("NaN", "f:1:1: unknown word 'NaN'; a string is written in double quotes");
}

static void test_strings_and_their_escapes(void)
{
	check_string("\"\"", "");
	check_string("\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\"", "a\"b\\c/d\b\f\n\r\t");
	check_string("\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	check_string("\"\\u007f\\u07ff\\u0800\\uffff\\udbff\\udfff\"",
		     "\x7f\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf4\x8f\xbf\xbf");
	check_string("\"\xc3\xa9 // no comment /* */\"", "\xc3\xa9 // no comment /* */");
}

static void test_strings_that_are_none(void)
{
	check_refused("\"abc", "f:1:1: this string is not closed");
	check_refused(" \"abc\\\"", "f:1:2: this string is not closed");
	check_refused("\n\"abc\n\"", "f:2:1: this string is not closed on its line");
	check_refused("\"\xc3\xa9\\x\"", "f:1:3: unknown escape; known are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
	check_refused("\"a\\u12g4\"", "f:1:3: '\\u' needs four hexadecimal digits");
	check_refused("\"a\\u12\"", "f:1:3: '\\u' needs four hexadecimal digits");
	check_refused("\"a\\u", "f:1:3: '\\u' needs four hexadecimal digits");
	check_refused("\"a\\u001@\"", "f:1:3: '\\u' needs four hexadecimal digits");
	check_refused("\"a\\u0000\"", "f:1:3: a string may not hold a NUL");
	check_refused("\"\\ud83d\"", "f:1:2: a high surrogate without a low one after it");
	check_refused("\"\\ud83d\\u0041\"", "f:1:2: a high surrogate without a low one after it");
	check_refused("\"\\ud83d\\ud83d\"", "f:1:2: a high surrogate without a low one after it");
	check_refused("\"\\ude00\"", "f:1:2: a low surrogate without a high one before it");
	check_refused("\"a\tb\"", "f:1:3: a tab in a string is written \\t");
	check_refused("'a'", "f:1:1: a string is written in double quotes");
	check_refused("\"a\\", "f:1:3: expected an escape, not '\\'");
}

static void test_bytes_that_no_document_may_have(void)
{
	check_refused("\"\xff\"", "f:1:2: this is not UTF-8 (byte 0xff)");
	check_refused("\"\xc3\"", "f:1:2: this is not UTF-8 (byte 0xc3)");
	check_refused("// \xc0\xaf\n1", "f:1:4: this is not UTF-8 (byte 0xc0)");
	check_refused("\"\xed\xa0\x80\"", "f:1:2: this is not UTF-8 (byte 0xed)");
	check_refused("1 // \x01", "f:1:6: control character U+0001");
	check_refused("\"\x1b[31m\"", "f:1:2: control character U+001B");
	check_refused("\xef\xbb\xbf{}", "f:1:1: the document begins with a byte order mark; remove it");
	check_refused_len("\"a\0b\"", 5, "f:1:3: control character U+0000");
	check_refused_len("1\0", 2, "f:1:2: control character U+0000");
}

static void test_comments_and_trailing_commas(void)
{
	AUTO_JSON value = {0};
	struct error error = {0};

	CHECK_INT(
		parse("// first\n/* second\n * line **/ { // third\r\n\"a\": /**/ [1, 2, /* x */ ],\n\t\"b\": 3, }\n//",
		      &value, &error),
		0);
	CHECK_STRING(error.message, "");
	CHECK_INT(value.object.count, 2);
	CHECK_INT(value.object.members[0].value.list.count, 2);
	CHECK_INT(value.object.members[1].line, 5);
	CHECK_INT(value.object.members[1].column, 2);
}

static void test_where_commas_may_not_stand(void)
{
	check_refused("[,]", "f:1:2: expected a value, not ','");
	check_refused("[1,,2]", "f:1:4: expected a value, not ','");
	check_refused("{,}", "f:1:2: expected a key in double quotes, not ','");
	check_refused("{\"a\":1,,}", "f:1:8: expected a key in double quotes, not ','");
	check_refused("[1 2]", "f:1:4: expected ',' or ']', not '2'");
	check_refused("{\"a\":1 \"b\":2}", "f:1:8: expected ',' or '}', not '\"'");
	check_refused("1,", "f:1:2: expected the end of the document, not ','");
}

static void test_what_is_not_closed_is_named_by_its_start(void)
{
	check_refused(" /* x", "f:1:2: this comment is not closed");
	check_refused("/*/", "f:1:1: this comment is not closed");
	check_refused("{\n  \"a\": [1,\n", "f:2:8: this list is not closed");
	check_refused("{\"a\": 1", "f:1:1: this object is not closed");
	check_refused("{\"a\": 1,", "f:1:1: this object is not closed");
	check_refused("", "f:1:1: the document ends where a value should be");
	check_refused("  // nothing\n", "f:2:1: the document ends where a value should be");
	check_refused("{\"a\":", "f:1:6: the document ends where a value should be");
	check_refused("{\"a\"", "f:1:5: the document ends where ':' after the key should be");
	check_refused("[1}", "f:1:3: expected ',' or ']', not '}'");
	check_refused("{} x", "f:1:4: expected the end of the document, not 'x'");
	check_refused("/", "f:1:1: expected a value, not '/'");
	check_refused("{a: 1}", "f:1:2: expected a key in double quotes, not 'a'");
	check_refused("{\"a\" 1}", "f:1:6: expected ':' after the key, not '1'");
	check_refused("[\xe2\x82\xac]", "f:1:2: expected a value, not '\xe2\x82\xac'");
	check_refused("True", "f:1:1: unknown word 'True'; a string is written in double quotes");
	check_refused("nul", "f:1:1: unknown word 'nul'; a string is written in double quotes");
	check_refused("nullx", "f:1:1: unknown word 'nullx'; a string is written in double quotes");
}

static void test_columns_count_characters(void)
{
	AUTO_JSON value = {0};
	struct error error = {0};
	const struct json_member *member;

	CHECK_INT(parse("{\"\xc3\xa9\xf0\x9f\x98\x80\": \"\xe2\x82\xac\", \"b\":\t7,\r\n \"c\"\n:\n [true]}", &value,
			&error),
		  0);
	member = &value.object.members[0];
	CHECK(member->line == 1 && member->column == 2);
	CHECK(member->value.line == 1 && member->value.column == 8);
	member = &value.object.members[1];
	CHECK(member->line == 1 && member->column == 13);
	CHECK(member->value.line == 1 && member->value.column == 18);
	member = &value.object.members[2];
	CHECK(member->line == 2 && member->column == 2);
	CHECK(member->value.line == 4 && member->value.column == 2);
	CHECK(member->value.list.items[0].line == 4 && member->value.list.items[0].column == 3);
	CHECK(value.line == 1 && value.column == 1);
}

static void test_repeated_keys_are_refused_where_they_repeat(void)
{
	check_refused("{\"a\": 1,\n \"b\": 2,\n  \"a\": 3}", "f:3:3: repeated key 'a' (first on line 1)");
	check_refused("{\"a\": 1, \"\\u0061\": 3}", "f:1:10: repeated key 'a' (first on line 1)");
	check_refused("[{}, {\"x\": {\"y\": 1, \"y\": 1}}]", "f:1:21: repeated key 'y' (first on line 1)");
}

static void check_nested(size_t depth, bool is_fine)
{
	AUTO_TEXT text = {0};
	AUTO_JSON value = {0};
	struct error error = {0};

	for (size_t i = 0; i < depth; i++)
		text_append_string(&text, i % 2 ? "{\"a\":" : "[");
	text_append_string(&text, "1");
	for (size_t i = depth; i-- > 0;)
		text_append_string(&text, i % 2 ? "}" : "]");
	CHECK_INT(parse(text_string(&text), &value, &error) == 0, is_fine);
	if (!is_fine)
		CHECK_STRING(error.message, "f:1:193: nested more than 64 deep");
}

static void test_nesting_is_bounded(void)
{
	check_nested(64, true);
	check_nested(65, false);
	check_nested(1000, false);
	check_nested(100000, false);
}

static void test_lists_and_objects_are_bounded(void)
{
	for (int count = 1000; count <= 1001; count++) {
		AUTO_TEXT list = {0}, object = {0};
		AUTO_JSON from_list = {0}, from_object = {0};
		struct error list_error = {0}, object_error = {0};

		text_append_string(&list, "[");
		text_append_string(&object, "{");
		for (int i = 0; i < count; i++) {
			text_append_string(&list, "1,");
			text_append_format(&object, "\"%d\":1,", i);
		}
		text_append_string(&list, "]");
		text_append_string(&object, "}");
		CHECK_INT(parse(text_string(&list), &from_list, &list_error) == 0, count == 1000);
		CHECK_INT(parse(text_string(&object), &from_object, &object_error) == 0, count == 1000);
		CHECK_STRING(list_error.message, count == 1000 ? "" : "f:1:2002: more than 1000 entries in a list");
		CHECK_INT(strstr(object_error.message, "more than 1000 keys") != NULL, count != 1000);
	}
}

static void test_a_caller_may_set_other_bounds(void)
{
	struct json_input input = {.name = "f", .bytes = "[1,2,3]", .len = 7, .stage = STAGE_USAGE, .max_entries = 2};
	AUTO_JSON value = {0};
	struct error error = {0}, size_error = {0};

	CHECK(json_parse(&input, &value, &error) < 0);
	CHECK_INT(error.stage, STAGE_USAGE);
	input.max_entries = 3;
	input.max_bytes = 6;
	CHECK_INT(json_parse(&input, &value, &size_error), -EFBIG);
	input.max_bytes = 7;
	CHECK_INT(json_parse(&input, &value, NULL), 0);
	CHECK_INT(value.list.count, 3);
}

static void test_documents_are_bounded(void)
{
	AUTO_FREE char *spaces = malloc(JSON_MAX_BYTES + 1);
	AUTO_JSON value = {0}, refused = {0};
	struct error error = {0};

	memset(spaces, ' ', JSON_MAX_BYTES + 1);
	spaces[100] = '7';
	CHECK_INT(parse_len(spaces, JSON_MAX_BYTES, &value, &error), 0);
	CHECK_INT(value.column, 101);
	CHECK_INT(parse_len(spaces, JSON_MAX_BYTES + 1, &refused, &error), -EFBIG);
	CHECK_STRING(error.message, "'f' has 1048577 bytes; the limit is 1048576");
}

/* Many small groups, and as deep as may be: whatever fails, nothing leaks (the sanitizer looks). */
static void test_every_prefix_of_a_document_is_handled(void)
{
	static const char document[] =
		"{\"a\": [1, -2.5e1, \"x\\ud83d\\ude00\\n\", {\"b\": null}, true], // c\n /* d */ \"e\": {\"f\": "
		"\"\xc3\xa9\"},}";

	for (size_t len = 0; len < sizeof(document) - 1; len++) {
		AUTO_FREE char *exact = malloc(len ? len : 1);
		AUTO_JSON value = {0};
		struct error error = {0};

		memcpy(exact, document, len);
		CHECK(parse_len(exact, len, &value, &error) < 0);
		CHECK(strncmp(error.message, "f:", 2) == 0);
	}
}

static void test_output_is_untouched_on_failure(void)
{
	struct json_value value = {.type = JSON_BOOL, .boolean = true, .line = 77};
	struct error error = {0};

	CHECK(parse("[1, \"a\", x]", &value, &error) < 0);
	CHECK(value.type == JSON_BOOL && value.line == 77);
}

static void test_a_member_is_found_by_name_and_type(void)
{
	AUTO_JSON value = {0};
	struct error error = {0};

	CHECK_INT(parse("{\"a\": \"text\", \"b\": 7}", &value, &error), 0);
	CHECK(json_member(&value, "b", JSON_INTEGER) && json_member(&value, "b", JSON_INTEGER)->number.integer == 7);
	CHECK(json_member(&value, "b", JSON_ANY) == json_member(&value, "b", JSON_INTEGER));
	CHECK(!json_member(&value, "b", JSON_STRING) && !json_member(&value, "c", JSON_ANY));
	CHECK_STRING(json_string_of(&value, "a"), "text");
	CHECK(!json_string_of(&value, "b") && !json_string_of(NULL, "a"));
	CHECK(!json_member(json_member(&value, "a", JSON_ANY), "x", JSON_ANY));
}

static const struct test tests[] = {
	TEST(test_values_of_every_type),
	TEST(test_integers_end_where_int64_ends),
	TEST(test_numbers_that_are_none),
	TEST(test_strings_and_their_escapes),
	TEST(test_strings_that_are_none),
	TEST(test_bytes_that_no_document_may_have),
	TEST(test_comments_and_trailing_commas),
	TEST(test_where_commas_may_not_stand),
	TEST(test_what_is_not_closed_is_named_by_its_start),
	TEST(test_columns_count_characters),
	TEST(test_repeated_keys_are_refused_where_they_repeat),
	TEST(test_nesting_is_bounded),
	TEST(test_lists_and_objects_are_bounded),
	TEST(test_a_caller_may_set_other_bounds),
	TEST(test_documents_are_bounded),
	TEST(test_every_prefix_of_a_document_is_handled),
	TEST(test_output_is_untouched_on_failure),
	TEST(test_a_member_is_found_by_name_and_type),
};

TEST_MAIN(tests)
