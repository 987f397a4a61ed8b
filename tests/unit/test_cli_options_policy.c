/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_cli_options_policy.c - the policy that a command line gives, and the rules of each command
 */
#include <fcntl.h>
#include <unistd.h>

#include "test_options.h"

/* A file in a directory of its own, gone at the end of the test. */
struct scratch {
	char directory[64];
	char path[96];
};

static void scratch_init(struct scratch *scratch, const char *content)
{
	int fd;

	strcpy(scratch->directory, "/tmp/test_cli_options.XXXXXX");
	CHECK(mkdtemp(scratch->directory) != NULL);
	snprintf(scratch->path, sizeof(scratch->path), "%s/policy.json", scratch->directory);
	fd = open(scratch->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content));
	close(fd);
}

static void scratch_done(struct scratch *scratch)
{
	unlink(scratch->path);
	rmdir(scratch->directory);
}

/* The order of the policy. */

static void test_preset_comes_first_wherever_it_stands(void)
{
	PARSE(COMMAND_RUN, "--timeout", "99s", "--policy", "strict", "true");
	CHECK_PARSED();
	CHECK_STRING(parsed.options.policy_name, "strict");
	CHECK_INT(parsed.options.policy.limits.timeout_ns, 99000000000);
	CHECK_INT(parsed.options.policy.limits.memory_bytes, 256 << 20);
	CHECK_INT(parsed.options.policy.rung, RUNG_NAMESPACE);
}

static void test_policy_given_twice_is_refused(void)
{
	PARSE(COMMAND_RUN, "--policy", "agent", "--policy=strict", "true");
	CHECK_REFUSED(STAGE_USAGE, "--policy is given twice", "extends");
}

static void test_unknown_preset_is_refused(void)
{
	PARSE(COMMAND_RUN, "--policy", "strickt", "true");
	CHECK(parsed.rc < 0);
	CHECK(parsed.options.policy.workdir == NULL && parsed.options.policy.mounts.count == 0);
}

static void test_flags_apply_from_left_to_right(void)
{
	PARSE(COMMAND_RUN, "--net", "host", "--ro", "/a", "--net", "none", "--rw", "/b:/c", "true");
	CHECK_PARSED();
	CHECK_INT(parsed.options.policy.net, NET_NONE);
	CHECK_INT(parsed.options.policy.mounts.count, 2);
	CHECK_STRING(parsed.options.policy.mounts.items[0].path, "/a");
	CHECK_INT(parsed.options.policy.mounts.items[0].access, MOUNT_RO);
	CHECK_STRING(parsed.options.policy.mounts.items[1].dest, "/c");
	CHECK_INT(parsed.options.policy.mounts.items[1].access, MOUNT_RW);
}

static void test_relative_paths_start_at_the_current_directory(void)
{
	PARSE(COMMAND_RUN, "--hide", "x", "--ro", "~/y", "true");
	CHECK_PARSED();
	CHECK_STRING(parsed.options.policy.hide.items[0], "/here/x");
	CHECK_STRING(parsed.options.policy.mounts.items[0].path, "/home/user/y");
}

static void test_bad_value_of_a_key_is_refused(void)
{
	static const char *const rows[][2] = {
		{"--timeout", "0"}, {"--memory", "lots"}, {"--net", "wifi"}, {"--redact", "abc"},
		{"--pids", "-1"},   {"--env", "=x"},      {"--rung", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		PARSE(COMMAND_RUN, rows[i][0], rows[i][1], "true");
		CHECK(parsed.rc < 0);
		CHECK_CONTAINS(parsed.error.message, rows[i][0] + 2);
	}
}

static void test_tighten_comes_last_wherever_it_stands(void)
{
	AUTO(scratch_done) struct scratch scratch;

	scratch_init(&scratch, "{\"timeout\": \"5s\"}");
	PARSE(COMMAND_RUN, "--tighten", scratch.path, "--timeout", "60s", "true");
	CHECK_PARSED();
	CHECK_INT(parsed.options.policy.limits.timeout_ns, 5000000000);
}

static void test_tighten_may_not_loosen(void)
{
	AUTO(scratch_done) struct scratch scratch;

	scratch_init(&scratch, "{\"timeout\": \"90s\"}");
	PARSE(COMMAND_RUN, "--tighten", scratch.path, "--timeout", "60s", "--json", "true");
	CHECK(parsed.rc < 0);
	CHECK_CONTAINS(parsed.error.message, "timeout");
	CHECK(parsed.options.has_json);
}

static void test_tighten_may_not_lift_the_doors_own_cap(void)
{
	AUTO(scratch_done) struct scratch scratch;

	scratch_init(&scratch, "{\"output\": \"1M\"}");
	PARSE(COMMAND_RUN, "--tighten", scratch.path, "--json", "true");
	CHECK(parsed.rc < 0);
	CHECK_CONTAINS(parsed.error.message, "output");
}

/* Output: passed through, or captured. */

static void test_captured_output_has_a_cap_by_default(void)
{
	{
		PARSE(COMMAND_RUN, "--json", "true");
		CHECK_PARSED();
		CHECK_INT(parsed.options.policy.limits.output.total_bytes, 100 * 1024);
	}
	{
		PARSE(COMMAND_RUN, "--json", "--output", "7", "true");
		CHECK_PARSED();
		CHECK_INT(parsed.options.policy.limits.output.total_bytes, 7);
	}
	{
		PARSE(COMMAND_RUN, "--json", "--output", "0", "true");
		CHECK_PARSED();
		CHECK_INT(parsed.options.policy.limits.output.total_bytes, 0);
	}
	{
		PARSE(COMMAND_RUN, "--events", "true");
		CHECK_PARSED();
		CHECK(parsed.options.policy.limits.output.total_bytes == LIMIT_NONE);
	}
}

static void test_captured_output_cannot_be_without_a_cap(void)
{
	{
		PARSE(COMMAND_RUN, "--json", "--output", "none", "true");
		CHECK_REFUSED(STAGE_USAGE, "output cannot be none", "--output 10M");
		CHECK(parsed.options.has_json);
	}
	{
		PARSE(COMMAND_RUN, "--output", "none", "true");
		CHECK_PARSED();
	}
}

static void test_keeping_the_tail_needs_captured_output(void)
{
	{
		PARSE(COMMAND_RUN, "--keep", "tail", "--output", "1K", "true");
		CHECK_REFUSED(STAGE_USAGE, "--keep tail needs captured output", "add --json");
	}
	{
		PARSE(COMMAND_RUN, "--events", "--keep", "both", "--output", "1K", "true");
		CHECK_REFUSED(STAGE_USAGE, "--keep both needs captured output", "add --json");
	}
	{
		PARSE(COMMAND_RUN, "--json", "--keep", "tail", "true");
		CHECK_PARSED();
		CHECK_INT(parsed.options.policy.limits.keep, KEEP_TAIL);
	}
	{
		PARSE(COMMAND_RUN, "--keep", "tail", "true");
		CHECK_PARSED();
	}
	{
		PARSE(COMMAND_RUN, "--keep", "head", "--output", "1K", "true");
		CHECK_PARSED();
	}
}

static void test_keep_from_a_file_means_nothing_for_output_passed_through(void)
{
	AUTO(scratch_done) struct scratch scratch;

	scratch_init(&scratch, "{\"keep\": \"both\", \"output\": \"1K\"}");
	PARSE(COMMAND_RUN, "--policy", scratch.path, "true");
	CHECK_PARSED();
	CHECK_INT(parsed.options.policy.limits.keep, KEEP_HEAD);
	CHECK_INT(parsed.options.policy.limits.output.total_bytes, 1024);
}

/* The other commands. */

static void test_shell_has_a_terminal_and_no_command(void)
{
	{
		PARSE(COMMAND_SHELL, "-C", "/a", "--memory", "1G");
		CHECK_PARSED();
		CHECK(parsed.options.has_pty);
		CHECK(parsed.options.command == NULL);
		CHECK_STRING(parsed.options.policy.workdir, "/a");
	}
	{
		PARSE(COMMAND_SHELL, "ls");
		CHECK_REFUSED(STAGE_USAGE, "does not take 'ls'", "belljar run --pty");
	}
	{
		PARSE(COMMAND_SHELL, "--");
		CHECK_PARSED();
	}
	{
		PARSE(COMMAND_SHELL, "--", "ls");
		CHECK_REFUSED(STAGE_USAGE, "does not take 'ls'", "");
	}
}

static void test_plan_as_json_captures_nothing(void)
{
	PARSE(COMMAND_PLAN, "--json", "--output", "none", "--keep", "tail", "true");
	CHECK_PARSED();
	CHECK(parsed.options.has_json);
	CHECK(parsed.options.policy.limits.output.total_bytes == LIMIT_NONE);
}

static void test_plan_writes_no_result(void)
{
	PARSE(COMMAND_PLAN, "--events", "true");
	CHECK_REFUSED(STAGE_USAGE, "--events is not an option of 'belljar plan'", "");
}

static void test_doctor(void)
{
	{
		PARSE(COMMAND_DOCTOR, "--prove", "--json");
		CHECK_PARSED();
		CHECK(parsed.options.has_prove && parsed.options.has_json);
	}
	{
		PARSE(COMMAND_DOCTOR, "now");
		CHECK_REFUSED(STAGE_USAGE, "does not take 'now'", "");
	}
}

static void test_policy_words(void)
{
	{
		PARSE(COMMAND_POLICY, "show", "strict");
		CHECK_PARSED();
		CHECK_INT(parsed.options.word_count, 2);
		CHECK_STRING(parsed.options.words[0], "show");
		CHECK_STRING(parsed.options.words[1], "strict");
	}
	{
		PARSE(COMMAND_POLICY);
		CHECK_REFUSED(STAGE_USAGE, "needs a subcommand", "show|check|schema");
	}
	{
		PARSE(COMMAND_POLICY, "chekc", "x");
		CHECK_REFUSED(STAGE_USAGE, "does not know 'chekc'", "did you mean 'check'?");
	}
	{
		PARSE(COMMAND_POLICY, "diff", "a", "b", "c");
		CHECK_REFUSED(STAGE_USAGE, "does not take 'c'", "");
	}
	{
		PARSE(COMMAND_POLICY, "check", "--", "--odd.json");
		CHECK_PARSED();
		CHECK_STRING(parsed.options.words[1], "--odd.json");
	}
}

static void test_completion_and_help_words(void)
{
	{
		PARSE(COMMAND_COMPLETION, "zsh");
		CHECK_PARSED();
	}
	{
		PARSE(COMMAND_COMPLETION, "tcsh");
		CHECK_REFUSED(STAGE_USAGE, "does not know 'tcsh'", "");
	}
	{
		PARSE(COMMAND_HELP);
		CHECK_PARSED();
		CHECK_INT(parsed.options.word_count, 0);
	}
	{
		PARSE(COMMAND_HELP, "rnu");
		CHECK_REFUSED(STAGE_USAGE, "does not know 'rnu'", "did you mean 'run'?");
	}
}

static void test_every_option_is_parsed_by_every_command_that_lists_it(void)
{
	struct option_cursor cursor = {0};
	struct option_row row;
	char word[64];

	while (cli_options_next(&cursor, &row)) {
		CHECK(row.heading != NULL);
		for (size_t i = 0; i < cli_command_count; i++) {
			if (!(row.commands & cli_commands[i].command))
				continue;
			snprintf(word, sizeof(word), "--%s%s", row.flag, row.placeholder ? "=" : "");
			PARSE(cli_commands[i].command, word, "true");
			if (parsed.rc < 0 && (strstr(parsed.error.message, "unknown") ||
					      strstr(parsed.error.message, "is not an option"))) {
				printf("%s %s: %s\n", cli_commands[i].name, word, parsed.error.message);
				CHECK(!"the option is known");
			}
		}
	}
}

static const struct test tests[] = {
	TEST(test_preset_comes_first_wherever_it_stands),
	TEST(test_policy_given_twice_is_refused),
	TEST(test_unknown_preset_is_refused),
	TEST(test_flags_apply_from_left_to_right),
	TEST(test_relative_paths_start_at_the_current_directory),
	TEST(test_bad_value_of_a_key_is_refused),
	TEST(test_tighten_comes_last_wherever_it_stands),
	TEST(test_tighten_may_not_loosen),
	TEST(test_tighten_may_not_lift_the_doors_own_cap),
	TEST(test_captured_output_has_a_cap_by_default),
	TEST(test_captured_output_cannot_be_without_a_cap),
	TEST(test_keeping_the_tail_needs_captured_output),
	TEST(test_keep_from_a_file_means_nothing_for_output_passed_through),
	TEST(test_shell_has_a_terminal_and_no_command),
	TEST(test_plan_as_json_captures_nothing),
	TEST(test_plan_writes_no_result),
	TEST(test_doctor),
	TEST(test_policy_words),
	TEST(test_completion_and_help_words),
	TEST(test_every_option_is_parsed_by_every_command_that_lists_it),
};
TEST_MAIN(tests)
