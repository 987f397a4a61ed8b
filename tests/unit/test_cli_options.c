/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_cli_options.c - how a command line is read: where options end, values, mistakes, own options
 */
#include <fcntl.h>
#include <unistd.h>

#include "test_options.h"

/* Two commands with one bit would take each other's options. */
static void test_every_command_has_a_bit_of_its_own(void)
{
	unsigned seen = 0;

	for (size_t i = 0; i < cli_command_count; i++) {
		unsigned bit = cli_commands[i].command;

		CHECK(bit && !(bit & (bit - 1)));
		CHECK(!(seen & bit));
		seen |= bit;
	}
	/* And none is without a command. */
	CHECK(!(seen & (seen + 1)));
}

/* Where options end. */

static void test_command_begins_at_the_first_word(void)
{
	PARSE(COMMAND_RUN, "--pty", "ls", "--json", "-l");
	CHECK_PARSED();
	CHECK(parsed.options.has_pty);
	CHECK(!parsed.options.has_json);
	CHECK_INT(parsed.options.command_count, 3);
	CHECK_STRING(parsed.options.command[0], "ls");
	CHECK_STRING(parsed.options.command[2], "-l");
	CHECK(parsed.options.command[3] == NULL);
}

static void test_two_dashes_end_the_options(void)
{
	PARSE(COMMAND_RUN, "--json", "--", "--pty", "--");
	CHECK_PARSED();
	CHECK(parsed.options.has_json);
	CHECK(!parsed.options.has_pty);
	CHECK_INT(parsed.options.command_count, 2);
	CHECK_STRING(parsed.options.command[0], "--pty");
	CHECK_STRING(parsed.options.command[1], "--");
}

static void test_one_dash_is_a_word(void)
{
	PARSE(COMMAND_RUN, "-");
	CHECK_PARSED();
	CHECK_STRING(parsed.options.command[0], "-");
}

static void test_empty_command_goes_through(void)
{
	PARSE(COMMAND_RUN, "--", "");
	CHECK_PARSED();
	CHECK_INT(parsed.options.command_count, 1);
	CHECK_STRING(parsed.options.command[0], "");
}

static void test_no_words_at_all_is_safe(void)
{
	struct error error = {0};
	struct run_options options;

	CHECK(cli_options_parse(COMMAND_RUN, 0, NULL, &test_context, &options, &error) < 0);
	CHECK_INT(error.stage, STAGE_USAGE);
	CHECK_INT(options.status_fd, -1);
	cli_options_done(&options);
	CHECK(cli_options_parse(COMMAND_RUN, 0, NULL, &test_context, &options, NULL) < 0);
	cli_options_done(&options);
	CHECK_INT(cli_options_parse(COMMAND_SHELL, 0, NULL, &test_context, &options, NULL), 0);
	cli_options_done(&options);
	cli_options_done(&options);
	cli_options_done(NULL);
}

static void test_missing_command_is_refused(void)
{
	PARSE(COMMAND_RUN, "--json", "--");
	CHECK_REFUSED(STAGE_USAGE, "'belljar run' needs a command to run", "usage: belljar run");
	CHECK(parsed.options.has_json);
}

/* How values are written. */

static void test_value_in_the_next_word_or_after_equals(void)
{
	PARSE(COMMAND_RUN, "--timeout", "5s", "--memory=1M", "true");
	CHECK_PARSED();
	CHECK_INT(parsed.options.policy.limits.timeout_ns, 5000000000);
	CHECK_INT(parsed.options.policy.limits.memory_bytes, 1 << 20);
}

static void test_value_keeps_its_own_equals_signs(void)
{
	PARSE(COMMAND_RUN, "--env=A=b=c", "true");
	CHECK_PARSED();
	CHECK_INT(parsed.options.policy.env.count, 1);
	CHECK_STRING(parsed.options.policy.env.items[0].value, "b=c");
}

static void test_workdir_by_letter_apart_and_joined(void)
{
	{
		PARSE(COMMAND_RUN, "-C", "/a", "true");
		CHECK_PARSED();
		CHECK_STRING(parsed.options.policy.workdir, "/a");
	}
	{
		PARSE(COMMAND_RUN, "-C/b", "true");
		CHECK_PARSED();
		CHECK_STRING(parsed.options.policy.workdir, "/b");
	}
	{
		PARSE(COMMAND_RUN, "-C", "none", "true");
		CHECK_PARSED();
		CHECK_INT(parsed.options.policy.workdir_choice, WORKDIR_PRIVATE);
	}
}

static void test_value_may_begin_with_one_dash(void)
{
	PARSE(COMMAND_RUN, "--redact", "-secret", "true");
	CHECK_PARSED();
	CHECK_STRING(parsed.options.policy.redact.items[0], "-secret");
}

static void test_forgotten_value_does_not_eat_an_option(void)
{
	{
		PARSE(COMMAND_RUN, "--timeout", "--json", "--", "true");
		CHECK_REFUSED(STAGE_USAGE, "--timeout needs a value", "--timeout=VALUE");
		CHECK(parsed.options.has_json);
	}
	{
		PARSE(COMMAND_RUN, "--timeout", "--", "true");
		CHECK_REFUSED(STAGE_USAGE, "--timeout needs a value (D)", "");
	}
	{
		PARSE(COMMAND_RUN, "--stdin");
		CHECK_REFUSED(STAGE_USAGE, "--stdin needs a value", "");
	}
	{
		PARSE(COMMAND_RUN, "-C");
		CHECK_REFUSED(STAGE_USAGE, "--workdir needs a value", "");
	}
	{
		PARSE(COMMAND_RUN, "--policy=", "true");
		CHECK_REFUSED(STAGE_USAGE, "--policy needs a value", "");
	}
}

static void test_redacted_text_with_dashes_after_equals(void)
{
	PARSE(COMMAND_RUN, "--redact=--secret", "true");
	CHECK_PARSED();
	CHECK_STRING(parsed.options.policy.redact.items[0], "--secret");
}

static void test_switches_take_no_value(void)
{
	{
		PARSE(COMMAND_RUN, "--json=yes", "true");
		CHECK_REFUSED(STAGE_USAGE, "--json takes no value", "");
		CHECK(parsed.options.has_json);
	}
	{
		PARSE(COMMAND_RUN, "--redact-secrets=false", "true");
		CHECK_REFUSED(STAGE_USAGE, "--redact-secrets takes no value", "--no-redact-secrets");
	}
	{
		PARSE(COMMAND_RUN, "--no-redact-secrets=1", "true");
		CHECK_REFUSED(STAGE_USAGE, "--no-redact-secrets takes no value", "");
	}
}

static void test_bools_have_a_no_form_and_the_last_wins(void)
{
	{
		PARSE(COMMAND_RUN, "--redact-secrets", "--no-toolchains", "true");
		CHECK_PARSED();
		CHECK(parsed.options.policy.has_redact_secrets);
		CHECK(!parsed.options.policy.has_toolchains);
	}
	{
		PARSE(COMMAND_RUN, "--redact-secrets", "--no-redact-secrets", "true");
		CHECK_PARSED();
		CHECK(!parsed.options.policy.has_redact_secrets);
	}
	{
		PARSE(COMMAND_RUN, "--no-timeout", "true");
		CHECK_REFUSED(STAGE_USAGE, "unknown option '--no-timeout'", "");
	}
}

/* Unknown and foreign options. */

static void test_unknown_option_suggests_the_nearest(void)
{
	{
		PARSE(COMMAND_RUN, "--timeuot", "5", "true");
		CHECK_REFUSED(STAGE_USAGE, "unknown option '--timeuot'", "did you mean --timeout?");
	}
	{
		PARSE(COMMAND_RUN, "--cpu_time=5", "true");
		CHECK_REFUSED(STAGE_USAGE, "unknown option '--cpu_time'", "did you mean --cpu-time?");
	}
	{
		PARSE(COMMAND_RUN, "--no-toolchain", "true");
		CHECK_REFUSED(STAGE_USAGE, "unknown option '--no-toolchain'", "did you mean --no-toolchains?");
	}
	{
		PARSE(COMMAND_RUN, "--xyzzyxyzzyxyzzy", "true");
		CHECK_REFUSED(STAGE_USAGE, "unknown option", "belljar run --help");
	}
	{
		PARSE(COMMAND_RUN, "--=x", "true");
		CHECK_REFUSED(STAGE_USAGE, "unknown option '--'", "");
	}
	{
		PARSE(COMMAND_RUN, "-x", "true");
		CHECK_REFUSED(STAGE_USAGE, "unknown option '-x'", "");
	}
	{
		PARSE(COMMAND_RUN, "-vq", "true");
		CHECK_REFUSED(STAGE_USAGE, "unknown option '-vq'", "apart");
	}
}

static void test_prefix_of_an_option_is_not_the_option(void)
{
	PARSE(COMMAND_RUN, "--time", "5", "true");
	CHECK_REFUSED(STAGE_USAGE, "unknown option '--time'", "");
}

static void test_very_long_option_is_refused_whole(void)
{
	char word[100000];

	memset(word, 'a', sizeof(word) - 1);
	memcpy(word, "--", 2);
	word[sizeof(word) - 1] = '\0';
	PARSE(COMMAND_RUN, word, "true");
	CHECK_REFUSED(STAGE_USAGE, "unknown option '--aaaa", "--help");
}

static void test_options_of_other_commands_are_named_as_such(void)
{
	{
		PARSE(COMMAND_SHELL, "--events");
		CHECK_REFUSED(STAGE_USAGE, "--events is not an option of 'belljar shell'", "belljar run");
	}
	{
		PARSE(COMMAND_DOCTOR, "--net", "host");
		CHECK_REFUSED(STAGE_USAGE, "--net is not an option of 'belljar doctor'", "belljar run");
	}
	{
		PARSE(COMMAND_RUN, "--prove", "true");
		CHECK_REFUSED(STAGE_USAGE, "--prove is not an option of 'belljar run'", "belljar doctor");
	}
}

/* The result object is owed after a usage error too. */

static void test_flags_after_a_mistake_still_count(void)
{
	{
		PARSE(COMMAND_RUN, "--bogus", "--json", "--", "true");
		CHECK_REFUSED(STAGE_USAGE, "'--bogus'", "");
		CHECK(parsed.options.has_json);
	}
	{
		PARSE(COMMAND_RUN, "--bogus", "value", "--events", "--", "true");
		CHECK_REFUSED(STAGE_USAGE, "'--bogus'", "");
		CHECK(parsed.options.has_events);
	}
	{
		PARSE(COMMAND_RUN, "--bogus", "1", "2", "3", "--json", "--", "true");
		CHECK(parsed.options.has_json);
	}
	{
		PARSE(COMMAND_RUN, "--bogus", "value", "true", "--json");
		CHECK(parsed.rc < 0);
		CHECK(!parsed.options.has_json);
	}
	{
		PARSE(COMMAND_RUN, "--bogus", "--", "true", "--json");
		CHECK(parsed.rc < 0);
		CHECK(!parsed.options.has_json);
	}
	{
		PARSE(COMMAND_RUN, "--json", "--timeout", "soon", "true");
		CHECK(parsed.rc < 0);
		CHECK(parsed.options.has_json);
	}
	{
		PARSE(COMMAND_RUN, "--policy", "nosuchpreset", "--events", "true");
		CHECK(parsed.rc < 0);
		CHECK(parsed.options.has_events);
	}
}

static void test_status_fd_after_a_mistake_still_counts(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 50);
	char number[16];

	snprintf(number, sizeof(number), "%d", fd);
	{
		PARSE(COMMAND_RUN, "--bogus", "--status-fd", number, "--", "true");
		CHECK(parsed.rc < 0);
		CHECK_INT(parsed.options.status_fd, fd);
	}
	close(fd);
}

static void test_only_the_first_mistake_is_told(void)
{
	PARSE(COMMAND_RUN, "--status-fd", "x", "--timeuot", "--shell", "a", "b");
	CHECK_REFUSED(STAGE_USAGE, "--status-fd", "3>result.json");
}

/* Options without a policy key. */

static void test_defaults(void)
{
	PARSE(COMMAND_RUN, "true");
	CHECK_PARSED();
	CHECK(parsed.options.policy_name == NULL);
	CHECK(!parsed.options.is_shell_string && !parsed.options.has_pty && !parsed.options.has_json);
	CHECK(!parsed.options.has_bytes && !parsed.options.has_events && !parsed.options.has_timing);
	CHECK_INT(parsed.options.stdin_choice, STDIN_INHERIT);
	CHECK_INT(parsed.options.status_fd, -1);
	CHECK_INT(parsed.options.verbosity, 0);
	CHECK_INT(parsed.options.color, COLOR_AUTO);
	CHECK(parsed.options.policy.limits.timeout_ns == LIMIT_NONE);
	CHECK(parsed.options.policy.limits.memory_bytes == LIMIT_NONE);
	CHECK(parsed.options.policy.limits.output.total_bytes == LIMIT_NONE);
	CHECK_INT(parsed.options.policy.limits.grace_ns, 3000000000);
	CHECK_INT(parsed.options.policy.limits.pids, 1024);
}

static void test_shell_string_is_one_word(void)
{
	{
		PARSE(COMMAND_RUN, "--shell", "echo a | cat");
		CHECK_PARSED();
		CHECK(parsed.options.is_shell_string);
		CHECK_STRING(parsed.options.command[0], "echo a | cat");
	}
	{
		PARSE(COMMAND_RUN, "--shell", "--", "echo", "a");
		CHECK_REFUSED(STAGE_USAGE, "one string, but 2 words", "quote");
	}
}

static void test_stdin_choices(void)
{
	{
		PARSE(COMMAND_RUN, "--stdin", "null", "true");
		CHECK_PARSED();
		CHECK_INT(parsed.options.stdin_choice, STDIN_NULL);
	}
	{
		PARSE(COMMAND_RUN, "--stdin=./null", "true");
		CHECK_PARSED();
		CHECK_INT(parsed.options.stdin_choice, STDIN_FILE);
		CHECK_STRING(parsed.options.stdin_path, "./null");
	}
	{
		PARSE(COMMAND_RUN, "--stdin", "file", "--stdin", "inherit", "true");
		CHECK_PARSED();
		CHECK_INT(parsed.options.stdin_choice, STDIN_INHERIT);
		CHECK(parsed.options.stdin_path == NULL);
	}
}

static void test_json_and_events_exclude_each_other(void)
{
	PARSE(COMMAND_RUN, "--json", "--events", "true");
	CHECK_REFUSED(STAGE_USAGE, "--json and --events", "");
	CHECK(parsed.options.has_json && parsed.options.has_events);
}

static void test_bytes_needs_an_object(void)
{
	{
		PARSE(COMMAND_RUN, "--bytes", "true");
		CHECK_REFUSED(STAGE_USAGE, "--bytes", "--json or --events");
	}
	{
		PARSE(COMMAND_RUN, "--bytes", "--json", "true");
		CHECK_PARSED();
		CHECK(parsed.options.has_bytes);
	}
	{
		PARSE(COMMAND_RUN, "--events", "--bytes", "true");
		CHECK_PARSED();
	}
}

static void test_status_fd_is_checked(void)
{
	static const struct {
		const char *value;
		const char *message_part;
	} rows[] = {
		{"x", "not 'x'"},
		{"3x", "not '3x'"},
		{"-1", "not '-1'"},
		{" 3", "not ' 3'"},
		{"+3", "not '+3'"},
		{"99999999999999999999", "not '9999"},
		{"4294967299", "not '429"},
		{"0", "3 or more"},
		{"2", "3 or more"},
		{"987", "987 is not open"},
		{"2147483647", "is not open"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		PARSE(COMMAND_RUN, "--status-fd", rows[i].value, "true");
		CHECK_REFUSED(STAGE_USAGE, rows[i].message_part, "");
		CHECK_INT(parsed.options.status_fd, -1);
	}
	{
		PARSE(COMMAND_RUN, "--status-fd=", "true");
		CHECK_REFUSED(STAGE_USAGE, "--status-fd needs a value (N)", "");
	}
}

static void test_status_fd_must_be_writable(void)
{
	int ends[2];
	char number[16];

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	snprintf(number, sizeof(number), "%d", ends[0]);
	{
		PARSE(COMMAND_RUN, "--status-fd", number, "true");
		CHECK_REFUSED(STAGE_USAGE, "not open for writing", "");
	}
	snprintf(number, sizeof(number), "%d", ends[1]);
	{
		PARSE(COMMAND_RUN, "--status-fd", number, "--json", "true");
		CHECK_PARSED();
		CHECK_INT(parsed.options.status_fd, ends[1]);
	}
	close(ends[0]);
	close(ends[1]);
}

static void test_of_verbose_and_quiet_the_last_wins(void)
{
	{
		PARSE(COMMAND_RUN, "-q", "-v", "true");
		CHECK_PARSED();
		CHECK_INT(parsed.options.verbosity, 1);
	}
	{
		PARSE(COMMAND_RUN, "--verbose", "--quiet", "true");
		CHECK_PARSED();
		CHECK_INT(parsed.options.verbosity, -1);
	}
}

static void test_color(void)
{
	static const struct {
		const char *words[3];
		enum color_choice color;
	} rows[] = {
		{{"--color", "true"}, COLOR_ALWAYS},        {{"--color=never", "true"}, COLOR_NEVER},
		{{"--color=auto", "true"}, COLOR_AUTO},     {{"--color", "never", "true"}, COLOR_NEVER},
		{{"--color=always", "true"}, COLOR_ALWAYS}, {{"--color", "--", "never"}, COLOR_ALWAYS},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		PARSE(COMMAND_RUN, rows[i].words[0], rows[i].words[1], rows[i].words[2]);
		CHECK_PARSED();
		CHECK_INT(parsed.options.color, rows[i].color);
		CHECK_INT(parsed.options.command_count, 1);
	}
	{
		PARSE(COMMAND_RUN, "--color=blue", "true");
		CHECK_REFUSED(STAGE_USAGE, "auto|always|never, not 'blue'", "");
	}
	{
		PARSE(COMMAND_RUN, "--color=", "true");
		CHECK_REFUSED(STAGE_USAGE, "--color needs a value", "");
	}
}

static void test_help_wins_over_what_is_missing(void)
{
	{
		PARSE(COMMAND_RUN, "--help", "--bogus");
		CHECK_PARSED();
		CHECK(parsed.options.has_help);
	}
	{
		PARSE(COMMAND_POLICY, "show", "-h");
		CHECK_PARSED();
		CHECK(parsed.options.has_help);
	}
	{
		PARSE(COMMAND_RUN, "--bogus", "--help");
		CHECK_REFUSED(STAGE_USAGE, "'--bogus'", "");
	}
	{
		PARSE(COMMAND_RUN, "ls", "--help");
		CHECK_PARSED();
		CHECK(!parsed.options.has_help);
	}
}

static const struct test tests[] = {
	TEST(test_command_begins_at_the_first_word),
	TEST(test_two_dashes_end_the_options),
	TEST(test_one_dash_is_a_word),
	TEST(test_empty_command_goes_through),
	TEST(test_every_command_has_a_bit_of_its_own),
	TEST(test_no_words_at_all_is_safe),
	TEST(test_missing_command_is_refused),
	TEST(test_value_in_the_next_word_or_after_equals),
	TEST(test_value_keeps_its_own_equals_signs),
	TEST(test_workdir_by_letter_apart_and_joined),
	TEST(test_value_may_begin_with_one_dash),
	TEST(test_forgotten_value_does_not_eat_an_option),
	TEST(test_redacted_text_with_dashes_after_equals),
	TEST(test_switches_take_no_value),
	TEST(test_bools_have_a_no_form_and_the_last_wins),
	TEST(test_unknown_option_suggests_the_nearest),
	TEST(test_prefix_of_an_option_is_not_the_option),
	TEST(test_very_long_option_is_refused_whole),
	TEST(test_options_of_other_commands_are_named_as_such),
	TEST(test_flags_after_a_mistake_still_count),
	TEST(test_status_fd_after_a_mistake_still_counts),
	TEST(test_only_the_first_mistake_is_told),
	TEST(test_defaults),
	TEST(test_shell_string_is_one_word),
	TEST(test_stdin_choices),
	TEST(test_json_and_events_exclude_each_other),
	TEST(test_bytes_needs_an_object),
	TEST(test_status_fd_is_checked),
	TEST(test_status_fd_must_be_writable),
	TEST(test_of_verbose_and_quiet_the_last_wins),
	TEST(test_color),
	TEST(test_help_wins_over_what_is_missing),
};
TEST_MAIN(tests)
