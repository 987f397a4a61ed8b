/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_tools_manual.c - the man pages say what the tables say, no more and no less
 *
 * The templates are read from the source tree: $BELLJAR_SOURCE_ROOT, or the nearest directory above the program or the
 * current directory that has them.
 */
#include <limits.h>

#include "../../tools/manual_pages.h"
#include "base/redact/redact_shapes.h"
#include "test.h"
#include "test_flags.h"

/* Flags of git and of other programs that the prose mentions. */
static const char *const foreign_flags[] = {"track", "separate-git-dir", "no-same-owner", "security-opt", NULL};

static bool try_root(char *directory, const char *page, char *path, size_t path_size)
{
	for (;;) {
		char *slash;

		snprintf(path, path_size, "%s/man/%s", directory, page);
		if (access(path, R_OK) == 0)
			return true;
		slash = strrchr(directory, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
}

static bool find_page(const char *page, char *path, size_t path_size)
{
	char directory[PATH_MAX];
	const char *root = getenv("BELLJAR_SOURCE_ROOT");
	ssize_t len;

	if (root) {
		snprintf(path, path_size, "%s/man/%s", root, page);
		return access(path, R_OK) == 0;
	}
	len = readlink("/proc/self/exe", directory, sizeof(directory) - 1);
	directory[len > 0 ? len : 0] = '\0';
	if (try_root(directory, page, path, path_size))
		return true;
	return getcwd(directory, sizeof(directory)) && try_root(directory, page, path, path_size);
}

/* The page filled, and its flags written as people write them: "Fl -cpu\-time" becomes "--cpu-time". */
static void read_page(const char *page, struct text *filled, struct text *plain)
{
	AUTO_TEXT template = {0};
	char path[PATH_MAX + 64], buffer[4096];
	struct error error = {0};
	FILE *file = find_page(page, path, sizeof(path)) ? fopen(path, "re") : NULL;
	size_t len;

	if (!file) {
		printf("%s is not to be found; set BELLJAR_SOURCE_ROOT\n", page);
		CHECK(!"the page can be read");
		return;
	}
	while ((len = fread(buffer, 1, sizeof(buffer), file)) > 0)
		text_append(&template, buffer, len);
	fclose(file);
	CHECK_INT(manual_fill(text_string(&template), filled, &error), 0);
	CHECK_STRING(error.message, "");
	for (const char *at = text_string(filled); *at;) {
		if (strncmp(at, "Fl -", 4) == 0) {
			text_append_string(plain, "--");
			at += 4;
		} else if (strncmp(at, "\\-", 2) == 0) {
			text_append_char(plain, '-');
			at += 2;
		} else {
			text_append_char(plain, *at++);
		}
	}
}

static void test_page_of_run_lists_every_option(void)
{
	AUTO_TEXT filled = {0};
	AUTO_TEXT plain = {0};
	struct option_cursor cursor = {0};
	struct option_row row;

	read_page("belljar-run.1.in", &filled, &plain);
	while (cli_options_next(&cursor, &row)) {
		char item[96];

		if (!(row.commands & COMMAND_RUN))
			continue;
		if (row.short_flag)
			snprintf(item, sizeof(item), "\n.It Fl %c , --", row.short_flag);
		else
			snprintf(item, sizeof(item), "\n.It --");
		if (!text_has_flag(text_string(&plain), item, row.flag)) {
			printf("belljar-run.1 does not list --%s\n", row.flag);
			CHECK(!"every option is listed");
		}
	}
}

static void test_pages_of_other_commands_list_their_own_options(void)
{
	static const struct {
		enum cli_command command;
		const char *page;
	} rows[] = {
		{COMMAND_SHELL, "belljar-shell.1"},
		{COMMAND_PLAN, "belljar-plan.1"},
		{COMMAND_DOCTOR, "belljar-doctor.1"},
		{COMMAND_POLICY, "belljar-policy.1"},
		{COMMAND_NET, "belljar-net.1"},
		{COMMAND_TRY, "belljar-try.1"},
		{COMMAND_LEARN, "belljar-learn.1"},
		{COMMAND_DIFF, "belljar-diff.1"},
		{COMMAND_APPLY, "belljar-apply.1"},
		{COMMAND_DISCARD, "belljar-discard.1"},
		{COMMAND_WORKSPACE, "belljar-workspace.1"},
		{COMMAND_WHY, "belljar-why.1"},
		{COMMAND_MCP, "belljar-mcp.1"},
		{COMMAND_HOOK, "belljar-hook.1"},
		{COMMAND_MCP_WRAP, "belljar-mcp-wrap.1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_TEXT filled = {0};
		AUTO_TEXT plain = {0};
		struct option_cursor cursor = {0};
		struct option_row row;

		read_page(rows[i].page, &filled, &plain);
		while (cli_options_next(&cursor, &row)) {
			if (!(row.commands & rows[i].command) || row.key)
				continue;
			if (!text_has_flag(text_string(&plain), "--", row.flag)) {
				printf("%s does not list --%s\n", rows[i].page, row.flag);
				CHECK(!"every option is listed");
			}
		}
	}
}

static void test_pages_mention_no_flag_that_is_not_there(void)
{
	static const char *const pages[] = {
		"belljar.1",        "belljar-run.1.in", "belljar-shell.1",  "belljar-plan.1",
		"belljar-doctor.1", "belljar-engine.1", "belljar-policy.1", "belljar-policy.5.in",
	};

	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		AUTO_TEXT filled = {0};
		AUTO_TEXT plain = {0};

		read_page(pages[i], &filled, &plain);
		CHECK_INT(count_unknown_flags(text_string(&plain), "--", foreign_flags, pages[i]), 0);
		CHECK(!strstr(text_string(&filled), "BELLJAR: "));
	}
}

static void test_page_of_belljar_names_every_command(void)
{
	AUTO_TEXT filled = {0};
	AUTO_TEXT plain = {0};

	read_page("belljar.1", &filled, &plain);
	for (size_t i = 0; i < cli_command_count; i++) {
		char item[64];

		snprintf(item, sizeof(item), "\n.It Cm %s\n", cli_commands[i].name);
		CHECK(strstr(text_string(&filled), item));
	}
}

static void test_page_of_policies_has_every_key_and_preset(void)
{
	AUTO_TEXT filled = {0};
	AUTO_TEXT plain = {0};
	size_t item_count = 0;

	read_page("belljar-policy.5.in", &filled, &plain);
	for (size_t i = 0; i < policy_key_count; i++) {
		char item[64];

		snprintf(item, sizeof(item), "\n.It Ic %s\n", policy_keys[i].name);
		CHECK(strstr(text_string(&filled), item));
	}
	for (const char *at = strstr(text_string(&filled), "\n.It Ic "); at; at = strstr(at + 1, "\n.It Ic "))
		item_count++;
	CHECK_INT(item_count, policy_key_count);
	for (size_t i = 0; policy_preset_names[i]; i++) {
		char item[64];

		snprintf(item, sizeof(item), "\n.It Cm %s\n", policy_preset_names[i]);
		CHECK(strstr(text_string(&filled), item));
	}
	CHECK(strstr(text_string(&filled), "\n.Ev PATH ,\n"));
	CHECK(strstr(text_string(&filled), "\n.Pa /var/lib/texmf ,\n") &&
	      strstr(text_string(&filled), "\n.Pa vim ,\n"));
}

static void test_page_of_policies_has_every_secret_shape(void)
{
	AUTO_TEXT filled = {0};
	AUTO_TEXT plain = {0};

	read_page("belljar-policy.5.in", &filled, &plain);
	for (size_t i = 0; i < redact_shape_count; i++) {
		char item[96];

		snprintf(item, sizeof(item), "\n.It %s\n.Ql \"", redact_shapes[i].name);
		CHECK(strstr(text_string(&filled), item));
	}
	/* Of an example of several lines the first stands there. */
	CHECK(strstr(text_string(&plain), "PRIVATE KEY-----\"\n"));
}

static void test_unknown_marker_is_an_error(void)
{
	AUTO_TEXT out = {0};
	struct error error = {0};

	CHECK(manual_fill("a\n.\\\" BELLJAR: nothing\nb\n", &out, &error) < 0);
	CHECK(strstr(error.message, "nothing"));
	error = (struct error){0};
	CHECK(manual_fill(".\\\" BELLJAR: options nothing\n", &out, &error) < 0);
	error = (struct error){0};
	CHECK(manual_fill(".\\\" BELLJAR: ", &out, &error) < 0);
}

static void test_text_without_markers_is_copied(void)
{
	AUTO_TEXT out = {0};

	CHECK_INT(manual_fill("a\n\nb", &out, NULL), 0);
	CHECK_STRING(text_string(&out), "a\n\nb");
}

static const struct test tests[] = {
	TEST(test_page_of_run_lists_every_option),
	TEST(test_pages_of_other_commands_list_their_own_options),
	TEST(test_pages_mention_no_flag_that_is_not_there),
	TEST(test_page_of_belljar_names_every_command),
	TEST(test_page_of_policies_has_every_key_and_preset),
	TEST(test_page_of_policies_has_every_secret_shape),
	TEST(test_unknown_marker_is_an_error),
	TEST(test_text_without_markers_is_copied),
};
TEST_MAIN(tests)
