/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_cli_message.c - Belljar's own words: one line each, and no way to steer the terminal through them
 */
#include <fcntl.h>

#include "door/cli/message.h"
#include "test.h"

static const char *escaped(const char *string)
{
	static char result[64];
	AUTO_TEXT text = {0};

	cli_message_escape(&text, string);
	snprintf(result, sizeof(result), "%s", text_string(&text));
	return result;
}

static void test_printable_characters_stay(void)
{
	CHECK_STRING(escaped("plain 'name' \\ 100%"), "plain 'name' \\ 100%");
	CHECK_STRING(escaped("gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x90\xa7"),
		     "gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x90\xa7");
	CHECK_STRING(escaped(""), "");
}

static void test_control_characters_are_escaped(void)
{
	CHECK_STRING(escaped("a\x1b[2Jb"), "a\\x1b[2Jb");
	CHECK_STRING(escaped("a\nbelljar: b\r\t\x7f\x07"), "a\\nbelljar: b\\r\\t\\x7f\\x07");
	/* U+009B is a control sequence introducer of one character; U+202E reverses what follows; U+2028 ends a line. */
	CHECK_STRING(escaped("\xc2\x9b"
			     "31m"),
		     "\\xc2\\x9b31m");
	CHECK_STRING(escaped("\xe2\x80\xae"
			     "txt.exe"),
		     "\\xe2\\x80\\xaetxt.exe");
	CHECK_STRING(escaped("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");
	CHECK_STRING(escaped("\xef\xbb\xbf"), "\\xef\\xbb\\xbf");
}

static void test_bytes_that_are_not_utf8_are_escaped(void)
{
	CHECK_STRING(escaped("\xff\xfe"), "\\xff\\xfe");
	CHECK_STRING(escaped("a\xc3"), "a\\xc3");
	CHECK_STRING(escaped("\xc0\xaf"), "\\xc0\\xaf");
	CHECK_STRING(escaped("\x9b"
			     "31m"),
		     "\\x9b31m");
}

static void test_long_names_are_cut(void)
{
	char name[MESSAGE_NAME_MAX + 100];
	AUTO_TEXT text = {0};

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cli_message_escape(&text, name);
	CHECK_INT(text.len, MESSAGE_NAME_MAX + 3);
}

/* What a messenger wrote, by way of a pipe. */
static const char *written(void (*write_messages)(const struct messenger *), int verbosity, bool has_color)
{
	static char result[4096];
	int ends[2];
	ssize_t len;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return "";
	write_messages(&(struct messenger){.fd = ends[1], .verbosity = verbosity, .has_color = has_color});
	close(ends[1]);
	len = read(ends[0], result, sizeof(result) - 1);
	close(ends[0]);
	result[len > 0 ? len : 0] = '\0';
	return result;
}

static void write_error(const struct messenger *messenger)
{
	struct error error = {0};

	cli_message_error(messenger, &error);
	cli_message_error(messenger, NULL);
	error_set(&error, STAGE_FILES, 2, "cannot open '%s'", "x\x1b[0m");
	error_hint(&error, "try another");
	cli_message_error(messenger, &error);
}

static void write_all_kinds(const struct messenger *messenger)
{
	cli_message_note(messenger, "note %d", 1);
	cli_message_hint(messenger, "do %s", "this");
	cli_message_verbose(messenger, "detail");
}

static void test_error_and_hint_are_two_lines(void)
{
	CHECK_STRING(written(write_error, 0, false), "belljar: cannot open 'x\\x1b[0m'\n  hint: try another\n");
	CHECK_STRING(written(write_error, -1, false), "belljar: cannot open 'x\\x1b[0m'\n  hint: try another\n");
}

static void test_color_is_put_around_the_label_only(void)
{
	CHECK_STRING(written(write_error, 0, true),
		     "\033[1;31mbelljar:\033[0m cannot open 'x\\x1b[0m'\n\033[33m  hint:\033[0m try another\n");
}

static void test_verbosity_chooses_what_is_said(void)
{
	CHECK_STRING(written(write_all_kinds, -1, false), "");
	CHECK_STRING(written(write_all_kinds, 0, false), "belljar: note 1\n  hint: do this\n");
	CHECK_STRING(written(write_all_kinds, 1, false), "belljar: note 1\n  hint: do this\nbelljar: detail\n");
}

static void test_color_choice(void)
{
	struct messenger messenger;

	setenv("NO_COLOR", "1", 1);
	cli_messenger_init(&messenger, COLOR_ALWAYS, 0);
	CHECK(messenger.has_color);
	cli_messenger_init(&messenger, COLOR_NEVER, 0);
	CHECK(!messenger.has_color);
	cli_messenger_init(&messenger, COLOR_AUTO, 1);
	CHECK(!messenger.has_color);
	CHECK_INT(messenger.fd, 2);
	CHECK_INT(messenger.verbosity, 1);
}

static const struct test tests[] = {
	TEST(test_printable_characters_stay),           TEST(test_control_characters_are_escaped),
	TEST(test_bytes_that_are_not_utf8_are_escaped), TEST(test_long_names_are_cut),
	TEST(test_error_and_hint_are_two_lines),        TEST(test_color_is_put_around_the_label_only),
	TEST(test_verbosity_chooses_what_is_said),      TEST(test_color_choice),
};
TEST_MAIN(tests)
