/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_cli_help.c - help, completions and schema say what the tables say, no more and no less
 */
#include "base/json_read.h"
#include "door/cli/completion.h"
#include "door/cli/help.h"
#include "test.h"
#include "test_flags.h"

static bool help_has(const char *text, const struct option_row *row)
{
	return text_has_flag(text, "--", row->flag);
}

static void test_help_lists_the_options_of_its_command_and_no_other(void)
{
	for (size_t i = 0; i < cli_command_count; i++) {
		AUTO_TEXT help = {0};
		struct option_cursor cursor = {0};
		struct option_row row;
		const char *options, *examples;

		cli_help_print_command(cli_commands[i].command, &help);
		CHECK_INT(count_unknown_flags(text_string(&help), "--", NULL, cli_commands[i].name), 0);
		options = strchr(text_string(&help), ':');
		examples = strstr(text_string(&help), "\nExamples:");
		CHECK(options && examples);
		while (cli_options_next(&cursor, &row)) {
			if ((row.commands & cli_commands[i].command) && !help_has(text_string(&help), &row)) {
				printf("%s: --%s is not in the help\n", cli_commands[i].name, row.flag);
				CHECK(!"every option is in the help");
			}
		}
	}
}

static void test_help_does_not_list_what_its_command_refuses(void)
{
	AUTO_TEXT shell = {0};
	AUTO_TEXT doctor = {0};

	cli_help_print_command(COMMAND_SHELL, &shell);
	cli_help_print_command(COMMAND_DOCTOR, &doctor);
	CHECK(!text_has_flag(text_string(&shell), "      --", "events"));
	CHECK(!text_has_flag(text_string(&doctor), "      --", "net"));
}

static void test_help_says_meaning_and_default(void)
{
	AUTO_TEXT help = {0};

	cli_help_print_command(COMMAND_RUN, &help);
	CHECK(strstr(text_string(&help), "  -C, --workdir DIR|none"));
	CHECK(strstr(text_string(&help), "(default: current directory)"));
	CHECK(strstr(text_string(&help), "--color[=auto|always|never]"));
	CHECK(strstr(text_string(&help), "--no-redact-secrets"));
}

static void test_no_line_of_help_is_too_long(void)
{
	AUTO_TEXT help = {0};

	cli_help_print_overview(&help);
	for (size_t i = 0; i < cli_command_count; i++)
		cli_help_print_command(cli_commands[i].command, &help);
	for (const char *line = text_string(&help); *line;) {
		size_t len = strcspn(line, "\n");

		if (len > HELP_COLUMNS) {
			printf("%zu columns: %.*s\n", len, (int)len, line);
			CHECK(!"every line fits");
		}
		CHECK(len == 0 || line[len - 1] != ' ');
		line += len + (line[len] == '\n');
	}
}

static void test_headings_stand_once_and_are_not_empty(void)
{
	static const char *const headings[] = {
		"Files",   "Network and environment", "Limits", "Output", "Isolation", "Policy", "Command", "Result",
		"Messages"};
	AUTO_TEXT help = {0};

	cli_help_print_command(COMMAND_RUN, &help);
	for (size_t i = 0; i < ARRAY_LEN(headings); i++) {
		char line[64];
		const char *at;

		snprintf(line, sizeof(line), "\n%s:\n  ", headings[i]);
		at = strstr(text_string(&help), line);
		CHECK(at != NULL);
		CHECK(!at || !strstr(at + 1, line));
	}
}

static void test_overview_names_every_command_for_people(void)
{
	AUTO_TEXT help = {0};

	cli_help_print_overview(&help);
	for (size_t i = 0; i < cli_command_count; i++) {
		char line[64];

		snprintf(line, sizeof(line), "\n  %s ", cli_commands[i].name);
		CHECK(!strstr(text_string(&help), line) == cli_commands[i].is_for_programs);
		CHECK(!strstr(text_string(&help), cli_commands[i].summary) == cli_commands[i].is_for_programs);
	}
	CHECK_INT(count_unknown_flags(text_string(&help), "--", NULL, "overview"), 0);
}

static void test_version_is_one_line(void)
{
	AUTO_TEXT version = {0};

	cli_help_print_version(&version);
	CHECK(strncmp(text_string(&version), "belljar ", 8) == 0);
	CHECK(version.len > 9 && strchr(version.data, '\n') == version.data + version.len - 1);
}

static void test_completions_know_every_option_and_no_other(void)
{
	static const struct {
		const char *shell;
		const char *prefix;
		const char *foreign[2];
	} rows[] = {
		{"bash", "--", {NULL}},
		{"zsh", "--", {NULL}},
		{"fish", " -l ", {NULL}},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_TEXT script = {0};
		struct option_cursor cursor = {0};
		struct option_row row;

		CHECK_INT(cli_completion_print(rows[i].shell, &script, NULL), 0);
		CHECK_INT(count_unknown_flags(text_string(&script), rows[i].prefix, rows[i].foreign, rows[i].shell), 0);
		while (cli_options_next(&cursor, &row)) {
			char negated[64];

			snprintf(negated, sizeof(negated), "no-%s", row.flag);
			if (text_has_flag(text_string(&script), rows[i].prefix, row.flag) &&
			    (!row.is_negatable || text_has_flag(text_string(&script), rows[i].prefix, negated)))
				continue;
			printf("%s: --%s is not completed\n", rows[i].shell, row.flag);
			CHECK(!"every option is completed");
		}
		for (size_t j = 0; j < cli_command_count; j++)
			CHECK(strstr(text_string(&script), cli_commands[j].name));
	}
}

static void test_completions_are_scripts_their_shells_accept(void)
{
	static const struct {
		const char *shell;
		const char *check;
	} rows[] = {
		{"bash", "if command -v bash >/dev/null; then bash -n; else cat >/dev/null; fi"},
		{"zsh", "if command -v zsh >/dev/null; then zsh -n; else cat >/dev/null; fi"},
		{"fish",
		 "if command -v fish >/dev/null; then HOME=/nonexistent fish -N --no-execute; else cat >/dev/null; fi"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_TEXT script = {0};
		FILE *pipe;

		CHECK_INT(cli_completion_print(rows[i].shell, &script, NULL), 0);
		pipe = popen(rows[i].check, "we");
		CHECK(pipe && fwrite(script.data, 1, script.len, pipe) == script.len);
		CHECK_INT(pipe ? pclose(pipe) : -1, 0);
	}
}

static void test_unknown_shell_has_no_completions(void)
{
	AUTO_TEXT script = {0};
	struct error error = {0};

	CHECK(cli_completion_print("tcsh", &script, &error) < 0);
	CHECK_INT(error.stage, STAGE_USAGE);
	CHECK_INT(script.len, 0);
}

static void test_schema_has_every_key_and_no_other(void)
{
	AUTO_TEXT schema = {0};
	AUTO_JSON document = {0};
	struct error error = {0};
	const struct json_member *properties;

	policy_print_schema(&schema);
	CHECK_INT(json_parse(&(struct json_input){.name = "schema", .bytes = schema.data, .len = schema.len}, &document,
			     &error),
		  0);
	CHECK_STRING(error.message, "");
	CHECK_INT(document.type, JSON_OBJECT);
	properties = document.type == JSON_OBJECT ? json_find(&document, "properties") : NULL;
	CHECK(properties && properties->value.type == JSON_OBJECT);
	if (!properties)
		return;
	/* And what a file says of itself: must_allow, must_deny. */
	CHECK_INT(properties->value.object.count, policy_key_count + 2);
	for (size_t i = 0; i < policy_key_count; i++)
		CHECK(json_find(&properties->value, policy_keys[i].name) != NULL);
}

static void test_flags_are_the_keys_with_dashes(void)
{
	for (size_t i = 0; i < policy_key_count; i++) {
		const char *name = policy_keys[i].name, *flag = policy_keys[i].flag;

		/* A switch for one of two words, and what goes with it. */
		if (!strcmp(name, "workspace") || !strcmp(name, "workspace_name") || !strcmp(name, "cow_dirs"))
			continue;
		/* Each says one of them. */
		if (!strcmp(name, "secrets"))
			continue;
		for (size_t j = 0; flag && (name[j] || flag[j]); j++)
			CHECK(flag[j] == (name[j] == '_' ? '-' : name[j]));
	}
}

static void test_no_two_options_of_a_command_share_a_name(void)
{
	struct option_cursor outer = {0};
	struct option_row row, other;

	while (cli_options_next(&outer, &row)) {
		struct option_cursor inner = outer;

		while (cli_options_next(&inner, &other)) {
			if (!(row.commands & other.commands))
				continue;
			CHECK(strcmp(row.flag, other.flag) != 0);
			CHECK(!row.short_flag || row.short_flag != other.short_flag);
		}
	}
}

static const struct test tests[] = {
	TEST(test_help_lists_the_options_of_its_command_and_no_other),
	TEST(test_help_does_not_list_what_its_command_refuses),
	TEST(test_help_says_meaning_and_default),
	TEST(test_no_line_of_help_is_too_long),
	TEST(test_headings_stand_once_and_are_not_empty),
	TEST(test_overview_names_every_command_for_people),
	TEST(test_version_is_one_line),
	TEST(test_completions_know_every_option_and_no_other),
	TEST(test_completions_are_scripts_their_shells_accept),
	TEST(test_unknown_shell_has_no_completions),
	TEST(test_schema_has_every_key_and_no_other),
	TEST(test_flags_are_the_keys_with_dashes),
	TEST(test_no_two_options_of_a_command_share_a_name),
};
TEST_MAIN(tests)
