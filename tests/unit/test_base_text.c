/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_text.c - the growable text and the list of strings
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/text.h"

static void test_an_empty_text_is_an_empty_string(void)
{
	AUTO_TEXT text = {0};

	CHECK_STRING(text_string(&text), "");
	text_append(&text, "", 0);
	CHECK(text.data != NULL);
	CHECK_STRING(text_string(&text), "");
	CHECK_INT(text.len, 0);
}

static void test_appending_keeps_every_byte_and_the_final_nul(void)
{
	AUTO_TEXT text = {0};

	for (int i = 0; i < 1000; i++) {
		text_append_char(&text, (char)('a' + i % 26));
		if (text.data[text.len] != '\0') {
			CHECK(text.data[text.len] == '\0');
			return;
		}
	}
	CHECK_INT(text.len, 1000);
	CHECK(text.capacity > text.len);
	for (int i = 0; i < 1000; i++)
		if (text.data[i] != 'a' + i % 26)
			CHECK_INT(text.data[i], 'a' + i % 26);
	text_append(&text, "x\0y", 3);
	CHECK_INT(text.len, 1003);
	CHECK_INT(text.data[1001], 0);
	CHECK_INT(text.data[1002], 'y');
}

static void test_format_of_any_length(void)
{
	AUTO_TEXT text = {0};

	text_append_format(&text, "%s-%05d", "n", 42);
	CHECK_STRING(text_string(&text), "n-00042");
	text_append_format(&text, "%300s|", "wide");
	CHECK_INT(text.len, 7 + 301);
	CHECK_INT(text.data[text.len - 1], '|');
	text_append_format(&text, "%s", "");
	CHECK_INT(text.len, 7 + 301);
}

static void test_consume_takes_from_the_front(void)
{
	AUTO_TEXT text = {0};

	text_consume(&text, 0);
	text_append_string(&text, "hello world");
	text_consume(&text, 6);
	CHECK_STRING(text_string(&text), "world");
	text_consume(&text, 0);
	CHECK_STRING(text_string(&text), "world");
	text_consume(&text, 5);
	CHECK_STRING(text_string(&text), "");
	CHECK_INT(text.len, 0);
	text_append_string(&text, "again");
	CHECK_STRING(text_string(&text), "again");
}

static void test_clear_keeps_the_room(void)
{
	AUTO_TEXT text = {0};
	size_t capacity;

	text_clear(&text);
	CHECK_STRING(text_string(&text), "");
	text_append_string(&text, "something");
	capacity = text.capacity;
	text_clear(&text);
	CHECK_STRING(text_string(&text), "");
	CHECK_INT(text.capacity, capacity);
}

static void test_reserved_room_is_the_callers(void)
{
	AUTO_TEXT text = {0};
	char *room;

	text_append_string(&text, "ab");
	room = text_reserve(&text, 500);
	CHECK(room == text.data + 2);
	CHECK(text.capacity >= 503);
	CHECK_INT(text.len, 2);
	CHECK_STRING(text_string(&text), "ab");
}

static void test_what_cannot_be_had_marks_the_text_for_good(void)
{
	AUTO_TEXT text = {0};

	text_append_string(&text, "kept");
	CHECK(!text_failed(&text));
	CHECK(!text_reserve(&text, SIZE_MAX));
	CHECK(text_failed(&text));
	CHECK(!text_reserve(&text, 1));
	text_append_string(&text, " dropped");
	text_append_format(&text, "%d", 1);
	CHECK_STRING(text_string(&text), "kept");
	text_done(&text);
	CHECK(!text_failed(&text));
	text_done(NULL);
}

static void test_reserve_up_to_the_end_of_size_t_overflows_safely(void)
{
	AUTO_TEXT text = {0};

	CHECK(!text_reserve(&text, SIZE_MAX - 0)); /* len + 1 would be 0 */
	CHECK(text_failed(&text));
	CHECK(!text.data);
}

static void test_string_list_serves_as_argv(void)
{
	struct string_list list = {0}, copy = {0};

	for (int i = 0; i < 100; i++) {
		CHECK_INT(string_list_add_format(&list, "%d", i), 0);
		CHECK(!list.items[list.count]);
	}
	CHECK_INT(list.count, 100);
	CHECK_STRING(list.items[99], "99");
	CHECK_INT(string_list_copy(&copy, &list), 0);
	CHECK_INT(copy.count, 100);
	CHECK(copy.items[42] != list.items[42]);
	CHECK_STRING(copy.items[42], "42");
	string_list_clear(&list);
	CHECK_INT(list.count, 0);
	CHECK(!list.items[0]);
	CHECK_INT(string_list_add(&list, ""), 0);
	CHECK_STRING(list.items[0], "");
	string_list_done(&list);
	string_list_done(&copy);
	string_list_done(NULL);
	CHECK(!list.items && !list.count && !list.capacity);
}

static void test_a_pipe_is_read_to_its_end_and_no_further_than_allowed(void)
{
	AUTO_TEXT whole = {0};
	AUTO_TEXT cut = {0};
	int ends[2];

	for (size_t max_len = 5; max_len >= 4; max_len--) {
		struct text *text = max_len == 5 ? &whole : &cut;

		CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
		CHECK_INT(text_write_all(ends[1], "hello", 5), 0);
		close(ends[1]);
		CHECK_INT(text_read_all(text, ends[0], max_len), max_len == 5 ? 0 : -EFBIG);
		close(ends[0]);
	}
	CHECK_INT(whole.len, 5);
	CHECK(!memcmp(whole.data, "hello", 5));
	CHECK_INT(text_read_all(&whole, -1, 100), -EBADF);
	CHECK_INT(text_write_all(-1, "x", 1), -EBADF);
}

static const struct test tests[] = {
	TEST(test_an_empty_text_is_an_empty_string),
	TEST(test_appending_keeps_every_byte_and_the_final_nul),
	TEST(test_format_of_any_length),
	TEST(test_consume_takes_from_the_front),
	TEST(test_clear_keeps_the_room),
	TEST(test_reserved_room_is_the_callers),
	TEST(test_what_cannot_be_had_marks_the_text_for_good),
	TEST(test_reserve_up_to_the_end_of_size_t_overflows_safely),
	TEST(test_string_list_serves_as_argv),
	TEST(test_a_pipe_is_read_to_its_end_and_no_further_than_allowed),
};

TEST_MAIN(tests)
