/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/library/test_run.c - one call, one run: what goes in, what comes back, what is refused and how it says so
 */
#include <fcntl.h>

#include "support.h"

static struct belljar_engine *engine;

static void test_a_command_runs_and_its_result_says_so(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "echo out; echo err >&2; exit 7");
	struct belljar_result *result = run(engine, &command);
	size_t len = 0;

	CHECK_INT(belljar_result_outcome(result), BELLJAR_EXITED);
	CHECK_STRING(belljar_result_outcome_name(result), "exited");
	CHECK_INT(belljar_result_exit_code(result), 7);
	CHECK_INT(belljar_result_signal(result), 0);
	CHECK_STRING(belljar_result_stdout(result, &len), "out\n");
	CHECK_INT(len, 4);
	CHECK_STRING(belljar_result_stderr(result, &len), "err\n");
	CHECK(!belljar_result_is_truncated(result));
	CHECK(belljar_result_limit(result, 0) == NULL);
	CHECK(strcmp(belljar_result_rung(result), "namespace") == 0 ||
	      strcmp(belljar_result_rung(result), "landlock") == 0);
	CHECK(belljar_result_usage(result, BELLJAR_WALL_US) > 0);
	CHECK(belljar_result_usage(result, BELLJAR_WALL_US) < UINT64_C(60000000));
	CHECK(strstr(belljar_result_json(result), "\"exit_code\":7") != NULL);
	belljar_result_free(result);
}

static void test_a_signal_is_told_by_number(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "kill -USR1 $$");
	struct belljar_result *result = run(engine, &command);

	CHECK_INT(belljar_result_outcome(result), BELLJAR_SIGNALED);
	CHECK_INT(belljar_result_signal(result), SIGUSR1);
	CHECK_INT(belljar_result_exit_code(result), -1);
	belljar_result_free(result);
}

static void test_output_is_exact_bytes(void)
{
	struct belljar_command command = COMMAND("printf", "a\\000b\\377c");
	struct belljar_result *result = run(engine, &command);
	size_t len = 0;
	const char *bytes = belljar_result_stdout(result, &len);

	CHECK_INT(len, 5);
	CHECK(memcmp(bytes, "a\0b\377c", 6) == 0);
	belljar_result_free(result);
}

static void test_arguments_need_not_be_utf8(void)
{
	struct belljar_command command = COMMAND("printf", "%s", "\x80\xff\"\\\xc3\xa9\n");
	struct belljar_result *result = run(engine, &command);

	check_stdout(result, "\x80\xff\"\\\xc3\xa9\n");
	belljar_result_free(result);
}

static void test_input_reaches_the_command(void)
{
	struct belljar_command command = COMMAND("wc", "-c");
	size_t len = 3 << 20;
	char *input = calloc(1, len);
	struct belljar_result *result;

	command.input = input;
	command.input_len = len;
	result = run(engine, &command);
	check_stdout(result, "3145728\n");
	belljar_result_free(result);

	command = COMMAND("sh", "-c", "cat; echo x >&0");
	result = run(engine, &command);
	check_stdout(result, "");
	belljar_result_free(result);
	free(input);
}

static void test_stdin_may_be_a_descriptor(void)
{
	struct belljar_command command = COMMAND("cat");
	struct belljar_result *result;
	int ends[2];

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	CHECK_INT(write(ends[1], "through", 7), 7);
	close(ends[1]);
	command.flags = BELLJAR_STDIN_FD;
	command.stdin_fd = ends[0];
	result = run(engine, &command);
	check_stdout(result, "through");
	belljar_result_free(result);
	close(ends[0]);
}

static void test_output_may_go_to_descriptors(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "echo out; echo err >&2");
	struct belljar_result *result;
	char buffer[32] = "";
	int out[2], err[2];

	CHECK_INT(pipe2(out, O_CLOEXEC), 0);
	CHECK_INT(pipe2(err, O_CLOEXEC), 0);
	command.flags = BELLJAR_OUTPUT_FDS | BELLJAR_NO_CAPTURE;
	command.stdout_fd = out[1];
	command.stderr_fd = err[1];
	result = run(engine, &command);
	close(out[1]);
	close(err[1]);
	CHECK_INT(read(out[0], buffer, sizeof(buffer) - 1), 4);
	CHECK_STRING(buffer, "out\n");
	CHECK_INT(read(err[0], buffer, sizeof(buffer) - 1), 4);
	CHECK_STRING(buffer, "err\n");
	CHECK_INT(read(out[0], buffer, 1), 0);
	check_stdout(result, "");
	belljar_result_free(result);
	close(out[0]);
	close(err[0]);
}

static void test_a_string_for_the_shell(void)
{
	struct belljar_command command = COMMAND("echo one && echo two");
	struct belljar_result *result;

	command.flags = BELLJAR_SHELL;
	result = run(engine, &command);
	check_stdout(result, "one\ntwo\n");
	belljar_result_free(result);
}

static void test_a_terminal_has_the_size_asked_for(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "test -t 1 && stty size");
	struct belljar_result *result;

	command.flags = BELLJAR_PTY;
	command.rows = 33;
	command.columns = 111;
	result = run(engine, &command);
	CHECK(strstr(belljar_result_stdout(result, NULL), "33 111") != NULL);
	belljar_result_free(result);
}

static void test_the_environment_is_the_hosts_or_the_one_given(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "echo $LANG-$GIVEN-$SECRET");
	struct belljar_result *result;

	setenv("LANG", "C.UTF-8", 1);
	setenv("SECRET", "not for jars", 1);
	command.options = (const char *const[]){"workdir=none", "env=GIVEN=a=b", "env=GIVEN=last", NULL};
	result = run(engine, &command);
	check_stdout(result, "C.UTF-8-last-\n");
	belljar_result_free(result);

	command.environment = (const char *const[]){"PATH=/usr/bin:/bin", "LANG=C", "GIVEN=no", NULL};
	command.options = (const char *const[]){"workdir=none", "pass_env=LANG", "pass_env=GIVEN", NULL};
	result = run(engine, &command);
	check_stdout(result, "C-no-\n");
	belljar_result_free(result);
	unsetenv("SECRET");
}

static void test_the_directory_is_the_workdir(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "pwd; echo made > made; cat given");
	char folder[4096], path[5000], expected[5000];
	struct belljar_result *result;
	const char *temporary = getenv("TMPDIR");
	FILE *file;

	snprintf(folder, sizeof(folder), "%s/belljar-library-XXXXXX", temporary ? temporary : "/tmp");
	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/given", folder);
	file = fopen(path, "we");
	fputs("given\n", file);
	fclose(file);
	command.options = NULL;
	command.directory = folder;
	result = run(engine, &command);
	snprintf(expected, sizeof(expected), "%s\ngiven\n", folder);
	check_stdout(result, expected);
	belljar_result_free(result);
	unlink(path);
	snprintf(path, sizeof(path), "%s/made", folder);
	CHECK_INT(unlink(path), 0);
	CHECK_INT(rmdir(folder), 0);
}

static void test_limits_end_a_run_and_are_named(void)
{
	struct belljar_command command = COMMAND("sleep", "60");
	struct belljar_result *result;

	command.options = (const char *const[]){"workdir=none", "timeout=200ms", NULL};
	result = run(engine, &command);
	CHECK_INT(belljar_result_outcome(result), BELLJAR_TIMEOUT);
	CHECK_STRING(belljar_result_limit(result, 0), "timeout");
	CHECK(belljar_result_limit(result, 1) == NULL);
	belljar_result_free(result);

	command = COMMAND("sh", "-c", "printf 0123456789");
	command.options = (const char *const[]){"workdir=none", "output=4", NULL};
	result = run(engine, &command);
	check_stdout(result, "0123");
	CHECK(belljar_result_is_truncated(result));
	CHECK_STRING(belljar_result_limit(result, 0), "output");
	belljar_result_free(result);
}

static void test_what_was_refused_is_told(void)
{
	struct belljar_command command = COMMAND(
		"python3", "-c", "import socket\ntry:\n socket.getaddrinfo('other.test', 80)\nexcept OSError: pass");
	struct belljar_result *result = run(engine, &command);
	bool has_gate = strcmp(belljar_result_rung(result), "namespace") == 0;

	CHECK(belljar_result_denied(result, 0, BELLJAR_DENIED_KIND) == NULL);
	CHECK_INT(belljar_result_denied_count(result, 0), 0);
	belljar_result_free(result);
	if (!has_gate)
		return;
	command.options = (const char *const[]){"workdir=none", "allow_net=good.test", NULL};
	result = run(engine, &command);
	CHECK_STRING(belljar_result_denied(result, 0, BELLJAR_DENIED_KIND), "name");
	CHECK_STRING(belljar_result_denied(result, 0, BELLJAR_DENIED_WHAT), "other.test");
	CHECK_STRING(belljar_result_denied(result, 0, BELLJAR_DENIED_ACCESS), "resolve");
	CHECK_STRING(belljar_result_denied(result, 0, BELLJAR_DENIED_WHY), "no rule of allow_net matches it");
	CHECK_STRING(belljar_result_denied(result, 0, BELLJAR_DENIED_CURE), "--allow-net other.test");
	CHECK_STRING(belljar_result_denied(result, 0, BELLJAR_DENIED_CERTAINTY), "seen");
	CHECK(strstr(belljar_result_denied(result, 0, BELLJAR_DENIED_SENTENCE),
		     "refused to look up other.test: no rule"));
	CHECK(belljar_result_denied(result, 0, BELLJAR_DENIED_PROCESS) == NULL);
	CHECK(belljar_result_denied(result, 0, BELLJAR_DENIED_WARNING) == NULL);
	CHECK(belljar_result_denied(result, 0, (enum belljar_denied)99) == NULL);
	CHECK(belljar_result_denied(result, 1, BELLJAR_DENIED_KIND) == NULL);
	CHECK_INT(belljar_result_denied_count(result, 0), 1);
	belljar_result_free(result);
}

static void test_a_policy_may_be_text(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "echo $A");
	struct belljar_result *result;

	command.options = NULL;
	command.policy = "{ // as in a file\n \"extends\": \"strict\", \"env\": {\"A\": \"from text\"}, } // the end";
	result = run(engine, &command);
	check_stdout(result, "from text\n");
	belljar_result_free(result);

	command.policy = "strict";
	command.options =
		(const char *const[]){"env=A=from option", "memory=none", "redact_env=false", "pids=60", NULL};
	result = run(engine, &command);
	check_stdout(result, "from option\n");
	belljar_result_free(result);
}

/* The call fails with @rc, and its record has the stage, and the words in message or hint. */
static void check_refused(const struct belljar_command *command, int rc, const char *stage, const char *words)
{
	struct belljar_error *error = NULL;
	struct belljar_result *result = NULL;
	const char *message, *hint;

	CHECK_INT(belljar_run(engine, command, &result, &error), rc);
	CHECK(result == NULL);
	CHECK_STRING(belljar_error_stage(error), stage);
	message = belljar_error_message(error);
	hint = belljar_error_hint(error);
	if (!strstr(message, words) && !(hint && strstr(hint, words))) {
		printf("not in '%s', hint '%s': %s\n", message, hint ? hint : "", words);
		CHECK(false);
	}
	belljar_error_free(error);
}

static void test_refusals_say_why(void)
{
	struct belljar_command command = COMMAND("true");

	command.options = (const char *const[]){"tiemout=5s", NULL};
	check_refused(&command, -EINVAL, "policy", "did you mean 'timeout'");
	command.options = (const char *const[]){"timeout=never", NULL};
	check_refused(&command, -EINVAL, "policy", "timeout");
	command.options = (const char *const[]){"timeout", NULL};
	check_refused(&command, -EINVAL, "usage", "NAME=VALUE");
	command.options = NULL;
	command.policy = "stric";
	check_refused(&command, -EINVAL, "policy", "strict");
	command.policy = "{\"memory\": }";
	check_refused(&command, -EINVAL, "policy", "policy:1:");
	/* Text that would say more than a policy, were it put into a request as it is. */
	command.policy = "{}, \"cwd\": null, \"x\": {}";
	check_refused(&command, -EINVAL, "policy", "policy:1:");
	command.policy = "{\n\"memori\": 1}";
	check_refused(&command, -EINVAL, "policy", "did you mean 'memory'");
	command.policy = "/nonexistent/policy.json";
	check_refused(&command, -ENOENT, "policy", "/nonexistent/policy.json");

	command = COMMAND("no-such-command-here");
	check_refused(&command, -ENOENT, "exec", "no-such-command-here");
	command = COMMAND("true");
	command.directory = "/nonexistent";
	command.options = (const char *const[]){"workdir=/nonexistent", NULL};
	check_refused(&command, -ENOENT, "files", "/nonexistent");
	command = COMMAND("true");
	command.argv = NULL;
	check_refused(&command, -EINVAL, "usage", "argv");
	command = COMMAND("a", "b");
	command.flags = BELLJAR_SHELL;
	check_refused(&command, -EINVAL, "usage", "one string");
	command = COMMAND("true");
	command.flags = BELLJAR_STDIN_FD;
	command.stdin_fd = 999;
	check_refused(&command, -EBADF, "usage", "999");
	command = COMMAND("true");
	command.flags = 1U << 31;
	check_refused(&command, -EINVAL, "usage", "flags");
}

static void test_one_record_serves_many_calls(void)
{
	struct belljar_command command = COMMAND("true");
	struct belljar_error *error = NULL;
	struct belljar_result *result = NULL;

	command.policy = "none-such";
	CHECK_INT(belljar_run(engine, &command, &result, &error), -EINVAL);
	CHECK_STRING(belljar_error_stage(error), "policy");
	command.policy = NULL;
	command.argv = NULL;
	CHECK_INT(belljar_run(engine, &command, &result, &error), -EINVAL);
	CHECK_STRING(belljar_error_stage(error), "usage");
	CHECK_STRING(belljar_error_missing(error), "[]");
	CHECK_INT(belljar_run(engine, &command, &result, NULL), -EINVAL);
	belljar_error_free(error);
}

static void test_structs_of_other_sizes(void)
{
	struct {
		struct belljar_command command;
		char unknown[64];
	} newer = {.command = COMMAND("echo", "hi")};
	struct belljar_command command = COMMAND("echo", "hi");
	struct belljar_error *error = NULL;
	struct belljar_result *result;

	/* An older host: its struct ends before `input`, and what is behind it is not the library's business. */
	command.size = offsetof(struct belljar_command, input);
	command.input_len = 1000;
	command.fd_count = 1000;
	result = run(engine, &command);
	check_stdout(result, "hi\n");
	belljar_result_free(result);

	newer.command.size = sizeof(newer);
	result = run(engine, &newer.command);
	check_stdout(result, "hi\n");
	belljar_result_free(result);
	newer.unknown[63] = 1;
	result = NULL;
	CHECK_INT(belljar_run(engine, &newer.command, &result, &error), -E2BIG);
	CHECK_STRING(belljar_error_stage(error), "usage");
	CHECK(result == NULL);

	command.size = 0;
	CHECK_INT(belljar_run(engine, &command, &result, &error), -EINVAL);
	CHECK(strstr(belljar_error_hint(error), "size") != NULL);
	CHECK_INT(belljar_run(engine, NULL, &result, &error), -EINVAL);
	belljar_error_free(error);
}

static void test_capabilities_are_json(void)
{
	struct belljar_error *error = NULL;
	char *json = NULL;

	CHECK_INT(belljar_capabilities(engine, &json, &error), 0);
	CHECK(json && json[0] == '{' && strstr(json, "\"best_rung\"") != NULL);
	free(json);
	belljar_error_free(error);
}

static void test_large_requests_arrive(void)
{
	size_t len = 120 << 10, count = 15;
	char *argument = malloc(len + 1);
	const char *argv[25] = {"sh", "-c", "printf %s \"$*\" | wc -c", "sh"};
	struct belljar_command command = COMMAND("");
	struct belljar_result *result;

	memset(argument, 'x', len);
	argument[len] = '\0';
	for (size_t i = 0; i < count; i++)
		argv[4 + i] = argument;
	command.argv = argv;
	result = run(engine, &command);
	/* With a space between each two. */
	check_stdout(result, "1843214\n");
	belljar_result_free(result);
	free(argument);
}

static const struct test tests[] = {
	TEST(test_a_command_runs_and_its_result_says_so),
	TEST(test_a_signal_is_told_by_number),
	TEST(test_output_is_exact_bytes),
	TEST(test_arguments_need_not_be_utf8),
	TEST(test_input_reaches_the_command),
	TEST(test_stdin_may_be_a_descriptor),
	TEST(test_output_may_go_to_descriptors),
	TEST(test_a_string_for_the_shell),
	TEST(test_a_terminal_has_the_size_asked_for),
	TEST(test_the_environment_is_the_hosts_or_the_one_given),
	TEST(test_the_directory_is_the_workdir),
	TEST(test_limits_end_a_run_and_are_named),
	TEST(test_what_was_refused_is_told),
	TEST(test_a_policy_may_be_text),
	TEST(test_refusals_say_why),
	TEST(test_one_record_serves_many_calls),
	TEST(test_structs_of_other_sizes),
	TEST(test_capabilities_are_json),
	TEST(test_large_requests_arrive),
};

int main(void)
{
	return library_main(&engine, tests, sizeof(tests) / sizeof(tests[0]));
}
