/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_survey_git_named.c - the files that commands in git's configuration name
 */
#include "test.h"

#include <string.h>

#include "base/text.h"
#include "survey/survey_git_named.h"

static bool note(void *context, const struct git_named *named)
{
	text_append_format(context, "%s|", named->path);
	return true;
}

static bool names(const char *command, const char *name)
{
	AUTO_TEXT told = {0};
	char wanted[256];

	text_append_char(&told, '|');
	survey_git_command_named(command, note, &told);
	snprintf(wanted, sizeof(wanted), "|%s|", name);
	return strstr(text_string(&told), wanted) != NULL;
}

static void test_every_word_that_may_be_a_file_is_named(void)
{
	CHECK(names("./tool", "./tool"));
	CHECK(names("sh tool", "tool"));
	CHECK(!names("tool", "tool"));
	CHECK(!names("sh -x", "-x"));
	CHECK(names("a=b;'c/d'|(e/f)&&\"g/h\">i/j", "c/d"));
	CHECK(names("a=b;'c/d'|(e/f)&&\"g/h\">i/j", "e/f"));
	CHECK(names("a=b;'c/d'|(e/f)&&\"g/h\">i/j", "g/h"));
	CHECK(names("a=b;'c/d'|(e/f)&&\"g/h\">i/j", "i/j"));
	CHECK(names("sh -c 'sh -c \"exec a/b\"'", "a/b"));
}

static void test_what_follows_a_variable_is_a_name_too(void)
{
	CHECK(names("\"$(git rev-parse --show-toplevel)/tools/x\"", "tools/x"));
	CHECK(names("`pwd`/tools/x", "tools/x"));
	CHECK(names("sh ${PWD}/tools/x", "tools/x"));
	CHECK(names("\"$PWD\"/tools/x", "tools/x"));
	CHECK(names("$HOME/tools/x", "~/tools/x"));
	CHECK(!names("sh /tools/x", "tools/x"));
	CHECK(!names("$x /tools/x", "tools/x"));
}

static bool note_once(void *context, const struct git_named *named)
{
	return text_append_format(context, "%s|", named->path), false;
}

static void test_a_caller_that_has_heard_enough_ends_the_search(void)
{
	AUTO_TEXT told = {0};

	survey_git_command_named("a/b c/d $x/e/f", note_once, &told);
	CHECK_STRING(text_string(&told), "a/b|");
}

static const struct test tests[] = {
	TEST(test_every_word_that_may_be_a_file_is_named),
	TEST(test_what_follows_a_variable_is_a_name_too),
	TEST(test_a_caller_that_has_heard_enough_ends_the_search),
};

int main(void)
{
	return test_main(tests, ARRAY_LEN(tests));
}
