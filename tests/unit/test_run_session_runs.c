/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_run_session_runs.c - what runs in sessions and prepared jars have and leave, one after the other and at the same time
 */
#include "session_scene.h"

static void test_many_runs_share_one_jar(void)
{
	struct scene scene;
	struct one one;

	FOR_EACH_RUNG(scene, PLAN_SESSION, NULL)
	{
		CHECK(stand(&scene));
		run_script(&scene, &one, "echo hello; echo stays > here; exit 3", 3);
		CHECK_STRING(one.output[STREAM_STDOUT], "hello\n");
		finish(&one);
		run_script(&scene, &one, "cat here; echo $HOME > $TMPDIR/home; pwd", 0);
		CHECK_INT(strncmp(one.output[STREAM_STDOUT], "stays\n", 6), 0);
		finish(&one);
		for (int i = 0; i < 20; i++) {
			run_script(&scene, &one, "cat here", 0);
			CHECK_STRING(one.output[STREAM_STDOUT], "stays\n");
			CHECK(run_observation(one.run)->steps_done == scene.plan.core.steps.count);
			CHECK(run_observation(one.run)->entry_done == one.plan.core.entry.count);
			finish(&one);
		}
		close_jar(&scene);
	}
}

static void test_a_run_may_come_before_the_jar_stands(void)
{
	struct scene scene;
	struct one one, two;

	FOR_EACH_RUNG(scene, PLAN_SESSION, NULL)
	{
		CHECK_INT(start(&one, &scene, "echo one", NULL), 0);
		CHECK_INT(start(&two, &scene, "echo two", NULL), 0);
		ended(&two);
		ended(&one);
		CHECK_STRING(one.output[STREAM_STDOUT], "one\n");
		CHECK_STRING(two.output[STREAM_STDOUT], "two\n");
		finish(&one);
		finish(&two);
		close_jar(&scene);
	}
}

static void test_runs_at_the_same_time_end_apart(void)
{
	struct scene scene;
	static struct one ones[RUNS_MAX];

	FOR_EACH_RUNG(scene, PLAN_SESSION, NULL)
	{
		for (int i = 0; i < RUNS_MAX; i++) {
			char script[64];

			snprintf(script, sizeof(script), "sleep 0.%d; echo %d; exit %d", i % 3, i, i);
			CHECK_INT(start(&ones[i], &scene, script, NULL), 0);
		}
		for (int i = 0; i < RUNS_MAX; i++) {
			char expected[16];
			const struct observation *seen = ended(&ones[i]);

			snprintf(expected, sizeof(expected), "%d\n", i);
			CHECK_STRING(ones[i].output[STREAM_STDOUT], expected);
			CHECK_INT(seen->status, i << 8);
		}
		for (int i = 0; i < RUNS_MAX; i++)
			finish(&ones[i]);
		close_jar(&scene);
	}
}

static void test_what_a_run_leaves_behind_dies_with_it_and_others_live(void)
{
	struct scene scene;
	struct one lasting, one;

	FOR_EACH_RUNG(scene, PLAN_SESSION, NULL)
	{
		CHECK(stand(&scene));
		CHECK_INT(start(&lasting, &scene, "trap 'echo no' TERM; sleep 60 & wait; echo survived", NULL), 0);
		CHECK(wait_for(&scene, &lasting.has_started));
		run_script(
			&scene, &one,
			"(setsid sh -c 'echo $$ > pid; exec sleep 1000' &) ; while ! [ -s pid ]; do :; done; cat pid",
			0);
		finish(&one);
		run_script(&scene, &one, "kill -0 $(cat pid) 2>/dev/null && exit 9; exit 0", 0);
		finish(&one);
		CHECK(!lasting.is_done);
		run_cancel(lasting.run, SIGKILL);
		run_cancel(lasting.run, SIGKILL);
		check_cause(&lasting, CAUSE_CANCELLED);
		finish(&lasting);
		close_jar(&scene);
	}
}

static void test_timeout_ends_one_run_only(void)
{
	static const char *const flags[] = {"timeout", "300ms", "grace", "0", NULL};
	const struct extras extras = {.flags = flags};
	struct scene scene;
	struct one one, other;

	FOR_EACH_RUNG(scene, PLAN_SESSION, NULL)
	{
		CHECK_INT(start(&other, &scene, "sleep 1; echo fine", NULL), 0);
		CHECK_INT(start(&one, &scene, "sleep 50", &extras), 0);
		check_cause(&one, CAUSE_TIMEOUT);
		check_cause(&other, CAUSE_NONE);
		CHECK_STRING(other.output[STREAM_STDOUT], "fine\n");
		finish(&one);
		finish(&other);
		close_jar(&scene);
	}
}

static void test_closing_cancels_what_runs(void)
{
	struct scene scene;
	struct one one;

	FOR_EACH_RUNG(scene, PLAN_SESSION, NULL)
	{
		CHECK_INT(start(&one, &scene, "echo up; sleep 100", NULL), 0);
		CHECK(wait_for(&scene, &one.has_started));
		jar_close(scene.jar);
		check_cause(&one, CAUSE_CANCELLED);
		CHECK(wait_for(&scene, &scene.is_gone));
		finish(&one);
		CHECK(start(&one, &scene, "true", NULL) < 0);
		finish(&one);
		close_jar(&scene);
	}
}

static void test_a_prepared_jar_takes_one_run(void)
{
	struct scene scene;
	struct one one, two;

	for (int waits = 0; waits < 2; waits++) {
		FOR_EACH_RUNG(scene, PLAN_PREPARED, NULL)
		{
			if (waits)
				CHECK(stand(&scene));
			run_script(&scene, &one, "(setsid sleep 100 &); echo once; exit 4", 4);
			CHECK_STRING(one.output[STREAM_STDOUT], "once\n");
			CHECK(start(&two, &scene, "true", NULL) < 0);
			finish(&two);
			finish(&one);
			CHECK(wait_for(&scene, &scene.is_gone));
			close_jar(&scene);
		}
	}
}

static void test_an_unused_prepared_jar_goes_without_a_trace(void)
{
	struct scene scene;

	FOR_EACH_RUNG(scene, PLAN_PREPARED, NULL)
	{
		CHECK(stand(&scene));
		close_jar(&scene);
	}
	FOR_EACH_RUNG(scene, PLAN_PREPARED, NULL)
	{
		jar_free(scene.jar);
		scene.jar = NULL;
		close_jar(&scene);
	}
}

static void test_a_command_that_is_not_there(void)
{
	struct scene scene;
	struct one one;

	for (int kind = PLAN_PREPARED; kind <= PLAN_SESSION; kind++) {
		FOR_EACH_RUNG(scene, (enum plan_kind)kind, NULL)
		{
			one = (struct one){0};
			string_list_add(&one.argv, "/no/such/program");
			CHECK_INT(start_argv(&one, &scene, NULL), 0);
			ended(&one);
			CHECK(!run_observation(one.run)->has_started);
			CHECK_INT(run_observation(one.run)->error.stage, STAGE_EXEC);
			CHECK_INT(run_observation(one.run)->error.errno_value, ENOENT);
			finish(&one);
			close_jar(&scene);
		}
	}
}

static void test_streams_merge_and_extra_descriptors(void)
{
	struct scene scene;
	struct one one;
	int fds[3], ends[2];
	char bytes[16] = {0};

	for (int kind = PLAN_PREPARED; kind <= PLAN_SESSION; kind++) {
		FOR_EACH_RUNG(scene, (enum plan_kind)kind, NULL)
		{
			struct extras extras = {.is_merged = true, .fds = fds, .fd_count = 3};

			CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
			fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
			fds[1] = open("/etc/hostname", O_RDONLY | O_CLOEXEC);
			fds[2] = ends[1];
			CHECK_INT(start(&one, &scene,
					"echo out; echo err >&2; echo five >&5; ls /proc/self/fd | tr '\\n' ' '",
					&extras),
				  0);
			close(fds[0]);
			close(fds[1]);
			close(fds[2]);
			ended(&one);
			CHECK_STRING(one.output[STREAM_STDOUT], "out\nerr\n0 1 2 3 4 5 6 ");
			CHECK_INT(one.len[STREAM_STDERR], 0);
			CHECK_INT(read(ends[0], bytes, sizeof(bytes)), 5);
			CHECK_STRING(bytes, "five\n");
			CHECK_INT(read(ends[0], bytes, sizeof(bytes)), 0);
			close(ends[0]);
			finish(&one);
			close_jar(&scene);
		}
	}
}

static void test_a_terminal(void)
{
	const struct extras extras = {.has_pty = true};
	struct scene scene;
	struct one one;

	for (int kind = PLAN_PREPARED; kind <= PLAN_SESSION; kind++) {
		FOR_EACH_RUNG(scene, (enum plan_kind)kind, NULL)
		{
			CHECK_INT(start(&one, &scene, "test -t 0 && test -t 2 && echo yes", &extras), 0);
			ended(&one);
			CHECK_STRING(one.output[STREAM_STDOUT], "yes\r\n");
			finish(&one);
			close_jar(&scene);
		}
	}
}

struct answer {
	bool has_come;
	int fd, error;
};

static void on_task_done(void *owner, const struct jar_message *message, int fd)
{
	*(struct answer *)owner = (struct answer){true, fd, message->task_done.error};
}

static int ask_file(struct scene *scene, const char *path, enum task_operation operation, int *error)
{
	struct answer answer = {.fd = -1};
	const struct session_task_request request = {.task = {.operation = operation, .number = 0640}, .path = path};
	const struct session_task_listener listener = {.owner = &answer, .done = on_task_done};
	struct session_task *task;

	CHECK_INT(jar_begin_task(scene->jar, &request, &listener, &task), 0);
	CHECK(wait_for(scene, &answer.has_come));
	if (error)
		*error = answer.error;
	return answer.fd;
}

static void test_files(void)
{
	struct scene scene;
	struct one one;
	struct stat status;
	char bytes[16] = {0};
	int fd, error;

	FOR_EACH_RUNG(scene, PLAN_SESSION, NULL)
	{
		fd = ask_file(&scene, "new", TASK_WRITE, &error);
		CHECK_INT(error, 0);
		CHECK_INT(write(fd, "content", 7), 7);
		CHECK_INT(fstat(fd, &status), 0);
		CHECK_INT(status.st_mode & 07777, 0640);
		close(fd);
		run_script(&scene, &one,
			   "cat new; mkfifo fifo; ln -s /etc/passwd out; ln -s new in; mkdir d; ln -s d dd;"
			   " ln -s /proc/self/environ environ; ln -s /proc/self/fd/3 control; ln -s /nowhere/x away",
			   0);
		CHECK_STRING(one.output[STREAM_STDOUT], "content");
		finish(&one);
		fd = ask_file(&scene, "in", TASK_READ, NULL);
		CHECK_INT(read(fd, bytes, sizeof(bytes)), 7);
		CHECK_STRING(bytes, "content");
		close(fd);
		CHECK_INT(ask_file(&scene, "fifo", TASK_READ, &error), -1);
		CHECK_INT(error, EINVAL);
		CHECK_INT(ask_file(&scene, "fifo", TASK_WRITE, &error), -1);
		CHECK_INT(error, ENXIO);
		CHECK_INT(ask_file(&scene, "in", TASK_WRITE, &error), -1);
		CHECK_INT(error, ELOOP);
		CHECK_INT(ask_file(&scene, "away", TASK_WRITE, &error), -1);
		CHECK_INT(error, ELOOP);
		CHECK_INT(ask_file(&scene, "dd", TASK_LIST, &error), -1);
		CHECK(error == ENOTDIR || error == ELOOP);
		CHECK_INT(ask_file(&scene, "environ", TASK_READ, &error), -1);
		CHECK(error);
		CHECK_INT(ask_file(&scene, "control", TASK_READ, &error), -1);
		CHECK_INT(error, ELOOP);
		CHECK_INT(ask_file(&scene, "d", TASK_READ, &error), -1);
		CHECK_INT(error, EISDIR);
		CHECK_INT(ask_file(&scene, "/etc/shadow", TASK_READ, &error), -1);
		CHECK(error == ENOENT || error == EACCES);
		CHECK_INT(ask_file(&scene, "/usr/bin/belljar-was-here", TASK_WRITE, &error), -1);
		CHECK(error == EROFS || error == EACCES);
		fd = ask_file(&scene, "d", TASK_LIST, NULL);
		CHECK(fd >= 0);
		close(fd);
		CHECK_INT(stat("/usr/bin/belljar-was-here", &status), -1);
		close_jar(&scene);
	}
}

static void test_descriptors_do_not_leak(void)
{
	struct scene scene;
	struct one one;
	int before;

	FOR_EACH_RUNG(scene, PLAN_SESSION, NULL)
	{
		run_script(&scene, &one, "true", 0);
		finish(&one);
		pass_time(&scene, 1000000000);
		before = open_fds();
		for (int i = 0; i < 30; i++) {
			run_script(&scene, &one, "true", 0);
			finish(&one);
		}
		/* Minders that are no longer needed leave when they can. */
		for (int i = 0; i < 2000 && open_fds() > before; i++)
			pass_time(&scene, 50000000);
		CHECK(open_fds() <= before);
		close_jar(&scene);
	}
}

static const struct test tests[] = {
	TEST(test_many_runs_share_one_jar),
	TEST(test_a_run_may_come_before_the_jar_stands),
	TEST(test_runs_at_the_same_time_end_apart),
	TEST(test_what_a_run_leaves_behind_dies_with_it_and_others_live),
	TEST(test_timeout_ends_one_run_only),
	TEST(test_closing_cancels_what_runs),
	TEST(test_a_prepared_jar_takes_one_run),
	TEST(test_an_unused_prepared_jar_goes_without_a_trace),
	TEST(test_a_command_that_is_not_there),
	TEST(test_streams_merge_and_extra_descriptors),
	TEST(test_a_terminal),
	TEST(test_files),
	TEST(test_descriptors_do_not_leak),
};

int main(void)
{
	return session_main(tests, ARRAY_LEN(tests));
}
