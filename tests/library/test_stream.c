/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/library/test_stream.c - handles: output as it comes, one descriptor to poll, cancelling, many at once
 */
#include <fcntl.h>
#include <pthread.h>

#include "support.h"

static struct belljar_engine *engine;

struct seen {
	struct belljar_handle *handle;
	char bytes[2][256];
	size_t total[2];
	size_t calls;
	size_t stop_after; /* calls */
	unsigned delay_ms;
	bool is_too_long;
};

static void sleep_ms(unsigned milliseconds)
{
	nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L}, NULL);
}

static int see(void *data, int stream, const void *bytes, size_t len)
{
	struct seen *seen = data;
	size_t *total = &seen->total[stream - 1];

	if (len == 0 || len > 64 << 10)
		seen->is_too_long = true;
	if (*total + len < sizeof(seen->bytes[0]))
		memcpy(seen->bytes[stream - 1] + *total, bytes, len);
	*total += len;
	seen->calls++;
	if (seen->delay_ms)
		sleep_ms(seen->delay_ms);
	return seen->stop_after && seen->calls >= seen->stop_after;
}

static void test_output_comes_as_it_is_written(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "echo one; read x; echo two $x >&2");
	struct seen seen = {0};
	struct belljar_handle *handle;
	struct belljar_result *result;
	int ends[2];

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	command.flags = BELLJAR_STDIN_FD;
	command.stdin_fd = ends[0];
	command.on_output = see;
	command.data = &seen;
	handle = start(engine, &command);
	close(ends[0]);
	/* The command waits for what is written only after its first line was seen. */
	while (seen.total[0] < 4) {
		struct pollfd readable = {.fd = belljar_fd(handle), .events = POLLIN};

		CHECK(poll(&readable, 1, -1) == 1);
		CHECK_INT(belljar_process(handle, NULL), 0);
	}
	CHECK(belljar_take_result(handle) == NULL);
	CHECK(belljar_started(handle) && strstr(belljar_started(handle), "\"rung\"") != NULL);
	CHECK_INT(belljar_wait(handle, 0, NULL), 0);
	CHECK_INT(write(ends[1], "go\n", 3), 3);
	result = finish(handle);
	close(ends[1]);
	CHECK_STRING(seen.bytes[0], "one\n");
	CHECK_STRING(seen.bytes[1], "two go\n");
	/* And is kept. */
	check_stdout(result, "one\n");
	CHECK_STRING(belljar_result_stderr(result, NULL), "two go\n");
	belljar_result_free(result);
}

static void test_much_output_and_a_slow_callback(void)
{
	struct belljar_command command = COMMAND("head", "-c", "8388608", "/dev/zero");
	struct seen seen = {.delay_ms = 1};
	struct belljar_result *result;

	command.on_output = see;
	command.data = &seen;
	command.flags = BELLJAR_NO_CAPTURE; /* and so without a cap */
	command.options = (const char *const[]){"workdir=none", NULL};
	result = finish(start(engine, &command));
	CHECK_INT(seen.total[0], 8388608);
	CHECK(!seen.is_too_long);
	CHECK_INT(belljar_result_exit_code(result), 0);
	check_stdout(result, "");
	belljar_result_free(result);
}

static int hear(void *data, const char *json)
{
	struct seen *seen = data;

	snprintf(seen->bytes[1], sizeof(seen->bytes[1]), "%s", json);
	seen->calls++;
	return seen->stop_after && seen->calls >= seen->stop_after;
}

static void test_a_limit_is_told_when_it_is_reached(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "echo 12345; echo; exec sleep 1000");
	struct seen seen = {.stop_after = 1};
	struct belljar_result *result;

	command.on_event = hear;
	command.data = &seen;
	command.options = (const char *const[]){"workdir=none", "output=3", "timeout=none", NULL};
	/* The callback ends the run. */
	result = run(engine, &command);
	CHECK_INT(seen.calls, 1);
	CHECK(strstr(seen.bytes[1], "{\"event\":\"limit\",\"limit\":{\"name\":\"output\",\"limit\":3,") ==
	      seen.bytes[1]);
	CHECK_INT(belljar_result_outcome(result), BELLJAR_CANCELLED);
	belljar_result_free(result);
}

static void test_each_stream_can_have_a_cap_of_its_own(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "echo 12345; echo abcde >&2");
	struct belljar_result *result;

	command.options = (const char *const[]){"workdir=none", "output=stdout=2,stderr=3", NULL};
	result = run(engine, &command);
	check_stdout(result, "12");
	CHECK_STRING(belljar_result_stderr(result, NULL), "abc");
	belljar_result_free(result);
}

static void test_a_slow_reader_slows_only_its_own_run(void)
{
	struct belljar_command endless = COMMAND("cat", "/dev/zero");
	struct belljar_command quick = COMMAND("echo", "quick");
	struct seen seen = {0};
	struct belljar_handle *handle;
	struct belljar_result *result;

	endless.on_output = see;
	endless.data = &seen;
	endless.flags = BELLJAR_NO_CAPTURE;
	endless.options = (const char *const[]){"workdir=none", "output=none", NULL};
	handle = start(engine, &endless);
	/* Nobody reads this one; others are not kept waiting, and it ends when it is told to. */
	for (int i = 0; i < 10; i++) {
		result = run(engine, &quick);
		check_stdout(result, "quick\n");
		belljar_result_free(result);
	}
	CHECK_INT(belljar_cancel(handle, 0), 0);
	result = finish(handle);
	CHECK_INT(belljar_result_outcome(result), BELLJAR_CANCELLED);
	belljar_result_free(result);
}

static void test_a_callback_can_end_the_run(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "trap '' TERM; while :; do echo again; done");
	struct seen seen = {.stop_after = 1};
	struct belljar_result *result;

	command.on_output = see;
	command.data = &seen;
	command.flags = BELLJAR_NO_CAPTURE;
	command.options = (const char *const[]){"workdir=none", "grace=1h", "timeout=1h", "output=none", NULL};
	result = finish(start(engine, &command));
	CHECK_INT(belljar_result_outcome(result), BELLJAR_CANCELLED);
	CHECK_INT(seen.calls, 1);
	belljar_result_free(result);
}

static void *cancel_later(void *data)
{
	sleep_ms(200);
	CHECK_INT(belljar_cancel(data, 0), 0);
	return NULL;
}

static void test_cancel_from_another_thread(void)
{
	struct belljar_command command = COMMAND("sleep", "1000");
	struct belljar_handle *handle;
	struct belljar_result *result;
	pthread_t thread;

	command.options = (const char *const[]){"workdir=none", "timeout=none", NULL};
	handle = start(engine, &command);
	CHECK_INT(pthread_create(&thread, NULL, cancel_later, handle), 0);
	CHECK_INT(belljar_wait(handle, -1, NULL), 1);
	pthread_join(thread, NULL);
	result = belljar_take_result(handle);
	CHECK_INT(belljar_result_outcome(result), BELLJAR_CANCELLED);
	CHECK_INT(belljar_result_signal(result), SIGTERM);
	/* After the end. */
	CHECK(belljar_take_result(handle) == NULL);
	CHECK_INT(belljar_process(handle, NULL), 1);
	CHECK_INT(belljar_cancel(handle, 0), 0);
	CHECK_INT(belljar_signal(handle, SIGUSR1), -ESRCH);
	CHECK_INT(belljar_resize(handle, 1, 1), -ESRCH);
	belljar_free(handle);
	belljar_result_free(result);
}

static void test_the_second_cancel_kills(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done");
	struct seen seen = {0};
	struct belljar_handle *handle;
	struct belljar_result *result;

	command.on_output = see;
	command.data = &seen;
	command.options = (const char *const[]){"workdir=none", "timeout=none", "grace=1h", NULL};
	handle = start(engine, &command);
	while (!seen.calls)
		CHECK_INT(belljar_wait(handle, 10, NULL), 0);
	CHECK_INT(belljar_cancel(handle, 0), 0);
	CHECK_INT(belljar_wait(handle, 200, NULL), 0);
	CHECK_INT(belljar_cancel(handle, 0), 0);
	result = finish(handle);
	CHECK_INT(belljar_result_outcome(result), BELLJAR_CANCELLED);
	CHECK_INT(belljar_result_signal(result), SIGKILL);
	belljar_result_free(result);
}

static void test_signals_reach_the_run(void)
{
	struct belljar_command command =
		COMMAND("sh", "-c", "trap 'echo caught; exit 3' USR1; echo ready; while :; do sleep 0.05; done");
	struct seen seen = {0};
	struct belljar_handle *handle;
	struct belljar_result *result;

	command.on_output = see;
	command.data = &seen;
	handle = start(engine, &command);
	while (!seen.calls)
		CHECK_INT(belljar_wait(handle, 10, NULL), 0);
	CHECK_INT(belljar_signal(handle, 0), -EINVAL);
	CHECK_INT(belljar_signal(handle, 65), -EINVAL);
	CHECK_INT(belljar_signal(handle, SIGUSR1), 0);
	result = finish(handle);
	CHECK_INT(belljar_result_exit_code(result), 3);
	check_stdout(result, "ready\ncaught\n");
	belljar_result_free(result);
}

static void test_resize_reaches_the_terminal(void)
{
	struct belljar_command command =
		COMMAND("sh", "-c", "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done");
	struct seen seen = {0};
	struct belljar_handle *handle;
	struct belljar_result *result;

	command.flags = BELLJAR_PTY;
	command.on_output = see;
	command.data = &seen;
	handle = start(engine, &command);
	while (!seen.calls)
		CHECK_INT(belljar_wait(handle, 10, NULL), 0);
	CHECK_INT(belljar_resize(handle, 50, 40000), 0);
	result = finish(handle);
	CHECK(strstr(belljar_result_stdout(result, NULL), "50 40000") != NULL);
	belljar_result_free(result);
}

static void test_what_goes_wrong_later_is_told_by_the_handle_again_and_again(void)
{
	struct belljar_command command = COMMAND("true");
	struct belljar_error *error = NULL;
	struct belljar_handle *handle;

	command.policy = "no-such-preset";
	handle = start(engine, &command);
	CHECK_INT(belljar_wait(handle, -1, &error), -EINVAL);
	CHECK_STRING(belljar_error_stage(error), "policy");
	CHECK_INT(belljar_process(handle, &error), -EINVAL);
	CHECK(strstr(belljar_error_message(error), "no-such-preset") != NULL);
	CHECK(belljar_take_result(handle) == NULL);
	belljar_free(handle);
	belljar_error_free(error);
}

static void test_letting_go_kills_the_run(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "echo ready; exec sleep 1000");
	struct seen seen = {0};
	struct belljar_handle *handle;
	char byte;
	int ends[2];

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	command.fds = (const int32_t[]){ends[1]};
	command.fd_count = 1;
	command.on_output = see;
	command.data = &seen;
	handle = start(engine, &command);
	close(ends[1]);
	while (!seen.calls)
		CHECK_INT(belljar_wait(handle, 10, NULL), 0);
	belljar_free(handle);
	/* Ends when nobody has the other end any more: the command, and the engine, which held it for a moment. */
	CHECK_INT(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

#define MANY 100

static void test_one_loop_serves_many_runs(void)
{
	struct belljar_handle *handles[MANY];
	struct pollfd readable[MANY];
	struct seen seen[MANY] = {0};
	char numbers[MANY][16];
	size_t left = MANY;

	for (size_t i = 0; i < MANY; i++) {
		struct belljar_command command = COMMAND("echo", numbers[i]);

		snprintf(numbers[i], sizeof(numbers[i]), "%zu", i);
		command.on_output = see;
		command.data = &seen[i];
		handles[i] = start(engine, &command);
		readable[i] = (struct pollfd){.fd = belljar_fd(handles[i]), .events = POLLIN};
	}
	while (left) {
		CHECK(poll(readable, MANY, -1) > 0);
		for (size_t i = 0; i < MANY; i++) {
			char expected[32];
			int rc = readable[i].revents ? belljar_process(handles[i], NULL) : 0;

			if (rc == 0)
				continue;
			CHECK_INT(rc, 1);
			snprintf(expected, sizeof(expected), "%zu\n", i);
			CHECK_STRING(seen[i].bytes[0], expected);
			belljar_free(handles[i]);
			readable[i].fd = -1;
			left--;
		}
	}
}

#define THREADS 64
#define RUNS_EACH 5

static void *run_some(void *data)
{
	size_t *good = data;

	for (int i = 0; i < RUNS_EACH; i++) {
		char text[32], expected[33];
		struct belljar_command command = COMMAND("echo", text);
		struct belljar_result *result = NULL;
		struct belljar_error *error = NULL;

		snprintf(text, sizeof(text), "%p %d", data, i);
		snprintf(expected, sizeof(expected), "%s\n", text);
		if (belljar_run(engine, &command, &result, &error) < 0)
			printf("%s\n", belljar_error_message(error));
		else if (strcmp(belljar_result_stdout(result, NULL), expected) == 0)
			(*good)++;
		belljar_result_free(result);
		belljar_error_free(error);
	}
	return NULL;
}

static void test_threads_share_an_engine(void)
{
	pthread_t threads[THREADS];
	size_t good[THREADS] = {0};

	for (size_t i = 0; i < THREADS; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, run_some, &good[i]), 0);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		CHECK_INT(good[i], RUNS_EACH);
	}
}

static int refuse_all(void *data, const char *json)
{
	char *last = data;

	snprintf(last, 512, "%s", json);
	return 7; /* whatever is not known is a denial */
}

/* Nothing leaves the host: the connection waits, and is refused. */
static void test_what_no_rule_decides_is_asked(void)
{
	struct belljar_command command =
		COMMAND("bash", "-c", "exec 3<>/dev/tcp/203.0.113.10/7 && read -t 50 x <&3; echo refused");
	struct belljar_result *result = NULL;
	struct belljar_error *error = NULL;
	char asked[512] = "";

	command.on_ask = refuse_all;
	command.data = asked;
	/* Rungs without a gate ask nothing. */
	if (belljar_run(engine, &command, &result, &error) < 0) {
		CHECK(strstr(belljar_error_message(error), "namespace"));
		belljar_error_free(error);
		return;
	}
	CHECK_STRING(belljar_result_stdout(result, NULL), "refused\n");
	CHECK(strstr(asked, "\"host\":\"203.0.113.10\",\"port\":7,\"address\":\"public\""));
	belljar_result_free(result);
}

static const struct test tests[] = {
	TEST(test_what_no_rule_decides_is_asked),
	TEST(test_output_comes_as_it_is_written),
	TEST(test_much_output_and_a_slow_callback),
	TEST(test_a_limit_is_told_when_it_is_reached),
	TEST(test_each_stream_can_have_a_cap_of_its_own),
	TEST(test_a_slow_reader_slows_only_its_own_run),
	TEST(test_a_callback_can_end_the_run),
	TEST(test_cancel_from_another_thread),
	TEST(test_the_second_cancel_kills),
	TEST(test_signals_reach_the_run),
	TEST(test_resize_reaches_the_terminal),
	TEST(test_what_goes_wrong_later_is_told_by_the_handle_again_and_again),
	TEST(test_letting_go_kills_the_run),
	TEST(test_one_loop_serves_many_runs),
	TEST(test_threads_share_an_engine),
};

int main(void)
{
	return library_main(&engine, tests, sizeof(tests) / sizeof(tests[0]));
}
