/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_host_git_command.c - what commands in git's configuration name, and what a shell's patterns match
 */
#include "test.h"

#include <string.h>

#include "base/text.h"
#include "host/host_git_command.h"

static bool note(void *context, const struct git_named *named)
{
	text_append_format(context, "%s%s|", named->is_pattern ? "~" : "", named->path);
	return true;
}

/* Does @command name @name? With '~' in front as a pattern. */
static bool names(const char *command, const char *name)
{
	AUTO_TEXT told = {0};
	char wanted[256];

	text_append_char(&told, '|');
	CHECK(git_command_named(command, note, &told));
	snprintf(wanted, sizeof(wanted), "|%s|", name);
	return strstr(text_string(&told), wanted) != NULL;
}

static void test_words_are_those_of_a_shell(void)
{
	CHECK(names("./tool", "./tool"));
	CHECK(names("sh tool", "tool"));
	CHECK(!names("tool", "tool"));
	CHECK(names("'a b/c d'", "a b/c d"));
	CHECK(names("\"$(git rev-parse --show-toplevel)/tools/x\"", "tools/x"));
	CHECK(names("cd tools && ./x", "tools/./x"));
	CHECK(names("PATH=bin:$PATH tool", "bin/tool"));
	CHECK(names("ssh -Ftools/config", "tools/config"));
	CHECK(names("sh -c 'sh \"a b\"'", "a b"));
	CHECK(names("${x:-./tool}", "./tool"));
}

static void test_patterns_outside_of_quotes(void)
{
	CHECK(names("./tool*", "~./tool*"));
	CHECK(names("sh [t]ool", "~[t]ool"));
	CHECK(names("sh -c './t?ol'", "~./t?ol"));
	CHECK(names("echo $(./t*)", "~./t*"));
	CHECK(names("tools/$x/run", "~tools/*/run"));
	CHECK(names("./x\\*", "./x*"));
	CHECK(!names("sh './x*'", "~./x*"));
	CHECK(!names("echo \"$1\"", "~*"));
}

static void test_braces_are_alternatives(void)
{
	CHECK(names("./{a,b{c,d},e}x", "./ax"));
	CHECK(names("./{a,b{c,d},e}x", "./bcx"));
	CHECK(names("./{a,b{c,d},e}x", "./bdx"));
	CHECK(names("./{a,b{c,d},e}x", "./ex"));
	CHECK(names("./t{1..9}", "~./t*"));
	CHECK(names("./t{", "./t"));
	CHECK(names("sh HEAD@{1}/x", "HEAD@{1}/x"));
}

static void test_tools_look_for_files_of_their_own(void)
{
	CHECK(names("python3 -m a.b", "a/b.py"));
	CHECK(names("/usr/bin/python3.11 -m a.b", "a/__init__.py"));
	CHECK(names("python3 -m a", "a/__main__.py"));
	CHECK(names("python3 tools/x.py", "~tools/*.py"));
	CHECK(names("make -C tools all", "tools/Makefile"));
	CHECK(names("cd a; nice make", "a/GNUmakefile"));
	CHECK(names("make -sCtools", "tools/makefile"));
	CHECK(names("npx lint", "node_modules/.bin/lint"));
	CHECK(names("npm run x", "package.json"));
	CHECK(names("sh -c 'npm run x'", "package.json"));
	CHECK(names("node x", "x.js"));
	CHECK(names("perl -MA::B", "A/B.pm"));
	CHECK(!names("makeshift x", "Makefile"));
}

static void test_floods_have_an_end(void)
{
	AUTO_TEXT command = {0};
	AUTO_TEXT told = {0};

	for (int i = 0; i < 5; i++)
		text_append_string(&command, "{a,b,c,d,e,f}");
	CHECK(!git_command_named(text_string(&command), note, &told));
	text_clear(&command);
	for (int i = 0; i < 3000; i++)
		text_append_string(&command, "{a,");
	CHECK(!git_command_named(text_string(&command), note, &told));
	text_clear(&command);
	for (int i = 0; i < 3000; i++)
		text_append_string(&command, "$(`${");
	git_command_named(text_string(&command), note, &told);
}

static bool matches(const char *pattern, const char *name)
{
	return git_pattern_matches(pattern, strlen(pattern), name);
}

static void test_patterns_match_as_in_a_shell(void)
{
	CHECK(matches("tool*", "tool") && matches("tool*", "toolbox") && !matches("tool*", "too"));
	CHECK(matches("*a*b", "xaxbab") && !matches("*a*b", "xaxbac"));
	CHECK(matches("?", "x") && !matches("?", "") && !matches("?", "xy"));
	CHECK(matches("[t]ool", "tool") && matches("[!]a]x", "bx") && matches("[]]x", "]x") && matches("[x", "[x"));
	CHECK(matches("\\*", "*") && !matches("\\*", "x"));
	CHECK(!matches("*", ".x") && matches(".*", ".x") && matches("\\.*", ".x"));
	CHECK(matches("*a*a*a*a*a*a*a*a*", "aaaaaaaa") &&
	      !matches("*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static const struct test tests[] = {
	TEST(test_words_are_those_of_a_shell), TEST(test_patterns_outside_of_quotes),
	TEST(test_braces_are_alternatives),    TEST(test_tools_look_for_files_of_their_own),
	TEST(test_floods_have_an_end),         TEST(test_patterns_match_as_in_a_shell),
};

int main(void)
{
	return test_main(tests, ARRAY_LEN(tests));
}
