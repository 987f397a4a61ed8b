/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_run_kept.c - kept and prepared jars on this very host, on every rung it has
 *
 * The jars are real. Started as root the table is gone through once as root and once as an ordinary user. A jar that
 * cannot be made here is a skip, with a reason, and never a success.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "plan/plan.h"
#include "policy/policy_build.h"
#include "run/kept.h"
#include "run/run.h"
#include "sys/calls.h"
#include "test.h"

#define ORDINARY_ID 47123
#define PATIENCE_NS 20000000000ULL
#define RUNS_MAX 64

static const enum rung rungs[] = {RUNG_NAMESPACE, RUNG_LANDLOCK};

struct scene {
	struct loop *loop;
	struct policy policy;
	struct host host;
	struct plan plan;
	struct jar_family family;
	struct kept_jar *jar;
	struct error error;
	bool is_ready, is_gone;
};

struct one {
	struct scene *stage;
	struct policy policy;
	struct string_list argv;
	struct plan plan;
	struct run *run;
	struct error error;
	bool has_started, is_done;
	char output[2][4096];
	size_t len[2];
};

static char home[] = "/tmp/belljar-kept-XXXXXX";
static char home_variable[64];
static const struct policy_context context = {.current_directory = "/", .home = home};
static char *const environment[] = {(char *)"PATH=/usr/local/bin:/usr/bin:/bin", home_variable, NULL};

/* --- the loop ----------------------------------------------------------------------------------------------- */

static void on_wake(struct loop_timer *timer)
{
	(void)timer;
}

static bool wait_for(struct scene *stage, const bool *flag)
{
	struct loop_timer wake = {0};
	uint64_t end = sys_monotonic_ns() + PATIENCE_NS;

	while (!*flag && sys_monotonic_ns() < end) {
		loop_arm(stage->loop, &wake, sys_monotonic_ns() + 50000000, on_wake, NULL);
		loop_turn(stage->loop);
		loop_disarm(&wake);
	}
	return *flag;
}

static void pass_time(struct scene *stage, uint64_t ns)
{
	struct loop_timer wake = {0};
	uint64_t end = sys_monotonic_ns() + ns;

	while (sys_monotonic_ns() < end) {
		loop_arm(stage->loop, &wake, end, on_wake, NULL);
		loop_turn(stage->loop);
		loop_disarm(&wake);
	}
}

/* --- jars --------------------------------------------------------------------------------------------------- */

static void on_ready(void *owner, struct kept_jar *jar)
{
	(void)jar;
	((struct scene *)owner)->is_ready = true;
}

static void on_gone(void *owner, struct kept_jar *jar)
{
	(void)jar;
	((struct scene *)owner)->is_gone = true;
}

static void set_flags(struct policy *policy, const char *const *flags)
{
	struct error error = {0};

	for (; flags && flags[0]; flags += 2)
		if (policy_set_flag(policy, policy_key_by_flag(flags[0]), flags[1], false, &context, &error) < 0) {
			printf("flag --%s %s: %s\n", flags[0], flags[1], error.message);
			test_failed_checks++;
		}
}

static int begin_jar(struct scene *stage)
{
	static const struct jar_area no_area;
	struct kept_request request = {.plan = &stage->plan,
				       .area = &no_area,
				       .family = &stage->family,
				       .listener = {stage, on_ready, on_gone}};

	return kept_open(stage->loop, &request, &stage->jar, &stage->error);
}

/* False: this rung is not to be had here. */
static bool open_jar(struct scene *stage, enum rung rung, enum plan_kind kind, const char *const *flags)
{
	static const char *const standard[] = {"workdir", "none", NULL};
	int rc;

	*stage = (struct scene){.loop = loop_new()};
	CHECK_INT(policy_init(&stage->policy, &context, &stage->error), 0);
	set_flags(&stage->policy, standard);
	set_flags(&stage->policy, flags);
	rc = host_probe(&stage->host, environment, &stage->error);
	if (rung == RUNG_LANDLOCK)
		stage->host.has_user_namespaces = false;
	if (rc == 0)
		rc = host_survey(&stage->host, &stage->policy, NULL, &stage->error);
	if (rc == 0)
		rc = plan_compile_jar(&stage->plan, kind, &stage->policy, &stage->host, NULL, &stage->error);
	if (rc == 0 && stage->plan.rung != rung)
		rc = -EOPNOTSUPP;
	if (rc == 0)
		rc = begin_jar(stage);
	if (rc < 0) {
		printf("no jar: %s\n", stage->error.message);
		test_failed_checks++;
		return false;
	}
	return true;
}

static bool stand(struct scene *stage)
{
	struct loop_timer wake = {0};
	uint64_t end = sys_monotonic_ns() + PATIENCE_NS;

	while (!stage->is_ready && !stage->is_gone && sys_monotonic_ns() < end) {
		loop_arm(stage->loop, &wake, sys_monotonic_ns() + 50000000, on_wake, NULL);
		loop_turn(stage->loop);
		loop_disarm(&wake);
	}
	if (!stage->is_ready) {
		printf("the jar does not stand: %s\n", kept_observation(stage->jar)->error.message);
		test_failed_checks++;
	}
	return stage->is_ready;
}

static int open_fds(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	while (directory && readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void close_jar(struct scene *stage)
{
	if (stage->jar) {
		kept_close(stage->jar);
		CHECK(wait_for(stage, &stage->is_gone));
		kept_free(stage->jar);
	}
	CHECK_INT(stage->family.count, 0);
	free(stage->family.items);
	plan_done(&stage->plan);
	host_done(&stage->host);
	policy_done(&stage->policy);
	loop_free(stage->loop);
	/* Nothing of it is our child any more, whether dead or alive. */
	CHECK_INT(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	CHECK_INT(errno, ECHILD);
}

/* --- runs --------------------------------------------------------------------------------------------------- */

static void on_started(void *owner, struct run *run)
{
	(void)run;
	((struct one *)owner)->has_started = true;
}

static bool on_output(void *owner, enum stream_index stream, const void *bytes, size_t len)
{
	struct one *one = owner;
	size_t room = sizeof(one->output[stream]) - 1 - one->len[stream];

	len = MIN_OF(len, room);
	memcpy(one->output[stream] + one->len[stream], bytes, len);
	one->len[stream] += len;
	return false;
}

static void on_done(void *owner, struct run *run)
{
	(void)run;
	((struct one *)owner)->is_done = true;
}

struct extras {
	const char *const *flags;
	const int *fds;
	size_t fd_count;
	bool is_merged, has_pty;
};

static int start_argv(struct one *one, struct scene *stage, const struct extras *extras)
{
	struct plan_request request = {.argv = &one->argv, .is_captured = true};
	struct run_request run = {.plan = &one->plan,
				  .jar = stage->jar,
				  .listener = {one, on_started, on_output, NULL, on_done},
				  .is_captured = true,
				  .stdin_fd = -1,
				  .relay_fd = -1};
	int rc;

	one->stage = stage;
	CHECK_INT(policy_copy(&stage->policy, &one->policy), 0);
	if (extras) {
		set_flags(&one->policy, extras->flags);
		run.extra_fds = extras->fds;
		run.extra_count = extras->fd_count;
		run.is_merged = extras->is_merged;
		run.has_pty = extras->has_pty;
	}
	rc = plan_compile_run(&one->plan, &stage->plan, &one->policy, &stage->host, &request, &one->error);
	return rc < 0 ? rc : run_start(stage->loop, &run, &one->run, &one->error);
}

static int start(struct one *one, struct scene *stage, const char *script, const struct extras *extras)
{
	*one = (struct one){0};
	string_list_add(&one->argv, "/bin/sh");
	string_list_add(&one->argv, "-c");
	string_list_add(&one->argv, script);
	return start_argv(one, stage, extras);
}

static void finish(struct one *one)
{
	run_free(one->run);
	plan_done(&one->plan);
	policy_done(&one->policy);
	string_list_done(&one->argv);
}

static const struct observation *ended(struct one *one)
{
	CHECK(wait_for(one->stage, &one->is_done));
	return run_observation(one->run);
}

/* What ended it; with a word about the rest where that is not what it should be. */
static void check_cause(struct one *one, enum cause cause)
{
	const struct observation *seen = ended(one);

	if (seen->cause != cause)
		printf("started %d, status %#x, peak memory %" PRIu64 " by %s, shortage %d, error '%s', stderr '%s'\n",
		       seen->has_started, (unsigned)seen->status, seen->peak_memory_bytes,
		       seen->memory_by ? seen->memory_by : "nobody", (int)seen->shortage, seen->error.message,
		       one->output[STREAM_STDERR]);
	CHECK_INT(seen->cause, cause);
}

/* A script that must exit with @status; its standard output stays in @one. */
static void run_script(struct scene *stage, struct one *one, const char *script, int status)
{
	const struct observation *seen;

	CHECK_INT(start(one, stage, script, NULL), 0);
	seen = ended(one);
	CHECK(seen->has_started);
	CHECK_STRING(seen->error.message, "");
	CHECK_INT(seen->cause, CAUSE_NONE);
	CHECK(WIFEXITED(seen->status));
	CHECK_INT(WEXITSTATUS(seen->status), status);
	if (one->len[STREAM_STDERR])
		printf("stderr: %s\n", one->output[STREAM_STDERR]);
}

#define FOR_EACH_RUNG(stage, kind, flags)                                                                              \
	for (size_t rung_index = 0; rung_index < ARRAY_LEN(rungs); rung_index++)                                       \
		if (open_jar(&(stage), rungs[rung_index], kind, flags))

/* --- tests -------------------------------------------------------------------------------------------------- */

static void test_many_runs_share_one_jar(void)
{
	struct scene stage;
	struct one one;

	FOR_EACH_RUNG(stage, PLAN_KEPT, NULL)
	{
		CHECK(stand(&stage));
		run_script(&stage, &one, "echo hello; echo kept > here; exit 3", 3);
		CHECK_STRING(one.output[STREAM_STDOUT], "hello\n");
		finish(&one);
		run_script(&stage, &one, "cat here; echo $HOME > $TMPDIR/home; pwd", 0);
		CHECK_INT(strncmp(one.output[STREAM_STDOUT], "kept\n", 5), 0);
		finish(&one);
		for (int i = 0; i < 20; i++) {
			run_script(&stage, &one, "cat here", 0);
			CHECK_STRING(one.output[STREAM_STDOUT], "kept\n");
			CHECK(run_observation(one.run)->steps_done == stage.plan.steps.count);
			CHECK(run_observation(one.run)->entry_done == one.plan.entry.count);
			finish(&one);
		}
		close_jar(&stage);
	}
}

static void test_a_run_may_come_before_the_jar_stands(void)
{
	struct scene stage;
	struct one one, two;

	FOR_EACH_RUNG(stage, PLAN_KEPT, NULL)
	{
		CHECK_INT(start(&one, &stage, "echo one", NULL), 0);
		CHECK_INT(start(&two, &stage, "echo two", NULL), 0);
		ended(&two);
		ended(&one);
		CHECK_STRING(one.output[STREAM_STDOUT], "one\n");
		CHECK_STRING(two.output[STREAM_STDOUT], "two\n");
		finish(&one);
		finish(&two);
		close_jar(&stage);
	}
}

static void test_runs_at_the_same_time_end_apart(void)
{
	struct scene stage;
	static struct one ones[RUNS_MAX];

	FOR_EACH_RUNG(stage, PLAN_KEPT, NULL)
	{
		for (int i = 0; i < RUNS_MAX; i++) {
			char script[64];

			snprintf(script, sizeof(script), "sleep 0.%d; echo %d; exit %d", i % 3, i, i);
			CHECK_INT(start(&ones[i], &stage, script, NULL), 0);
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
		close_jar(&stage);
	}
}

static void test_what_a_run_leaves_behind_dies_with_it_and_others_live(void)
{
	struct scene stage;
	struct one lasting, one;

	FOR_EACH_RUNG(stage, PLAN_KEPT, NULL)
	{
		CHECK(stand(&stage));
		CHECK_INT(start(&lasting, &stage, "trap 'echo no' TERM; sleep 60 & wait; echo survived", NULL), 0);
		CHECK(wait_for(&stage, &lasting.has_started));
		run_script(
			&stage, &one,
			"(setsid sh -c 'echo $$ > pid; exec sleep 1000' &) ; while ! [ -s pid ]; do :; done; cat pid",
			0);
		finish(&one);
		run_script(&stage, &one, "kill -0 $(cat pid) 2>/dev/null && exit 9; exit 0", 0);
		finish(&one);
		CHECK(!lasting.is_done);
		run_cancel(lasting.run, SIGKILL);
		run_cancel(lasting.run, SIGKILL);
		check_cause(&lasting, CAUSE_CANCELLED);
		finish(&lasting);
		close_jar(&stage);
	}
}

static void test_timeout_ends_one_run_only(void)
{
	static const char *const flags[] = {"timeout", "300ms", "grace", "0", NULL};
	const struct extras extras = {.flags = flags};
	struct scene stage;
	struct one one, other;

	FOR_EACH_RUNG(stage, PLAN_KEPT, NULL)
	{
		CHECK_INT(start(&other, &stage, "sleep 1; echo fine", NULL), 0);
		CHECK_INT(start(&one, &stage, "sleep 50", &extras), 0);
		check_cause(&one, CAUSE_TIMEOUT);
		check_cause(&other, CAUSE_NONE);
		CHECK_STRING(other.output[STREAM_STDOUT], "fine\n");
		finish(&one);
		finish(&other);
		close_jar(&stage);
	}
}

static void test_closing_cancels_what_runs(void)
{
	struct scene stage;
	struct one one;

	FOR_EACH_RUNG(stage, PLAN_KEPT, NULL)
	{
		CHECK_INT(start(&one, &stage, "echo up; sleep 100", NULL), 0);
		CHECK(wait_for(&stage, &one.has_started));
		kept_close(stage.jar);
		check_cause(&one, CAUSE_CANCELLED);
		CHECK(wait_for(&stage, &stage.is_gone));
		finish(&one);
		CHECK(start(&one, &stage, "true", NULL) < 0);
		finish(&one);
		close_jar(&stage);
	}
}

static void test_a_prepared_jar_takes_one_run(void)
{
	struct scene stage;
	struct one one, two;

	for (int waits = 0; waits < 2; waits++) {
		FOR_EACH_RUNG(stage, PLAN_PREPARED, NULL)
		{
			if (waits)
				CHECK(stand(&stage));
			run_script(&stage, &one, "(setsid sleep 100 &); echo once; exit 4", 4);
			CHECK_STRING(one.output[STREAM_STDOUT], "once\n");
			CHECK(start(&two, &stage, "true", NULL) < 0);
			finish(&two);
			finish(&one);
			CHECK(wait_for(&stage, &stage.is_gone));
			close_jar(&stage);
		}
	}
}

static void test_an_unused_prepared_jar_goes_without_a_trace(void)
{
	struct scene stage;

	FOR_EACH_RUNG(stage, PLAN_PREPARED, NULL)
	{
		CHECK(stand(&stage));
		close_jar(&stage);
	}
	FOR_EACH_RUNG(stage, PLAN_PREPARED, NULL)
	{
		kept_free(stage.jar);
		stage.jar = NULL;
		close_jar(&stage);
	}
}

static void test_a_command_that_is_not_there(void)
{
	struct scene stage;
	struct one one;

	for (int kind = PLAN_PREPARED; kind <= PLAN_KEPT; kind++) {
		FOR_EACH_RUNG(stage, (enum plan_kind)kind, NULL)
		{
			one = (struct one){0};
			string_list_add(&one.argv, "/no/such/program");
			CHECK_INT(start_argv(&one, &stage, NULL), 0);
			ended(&one);
			CHECK(!run_observation(one.run)->has_started);
			CHECK_INT(run_observation(one.run)->error.stage, STAGE_EXEC);
			CHECK_INT(run_observation(one.run)->error.errno_value, ENOENT);
			finish(&one);
			close_jar(&stage);
		}
	}
}

static void test_streams_merge_and_extra_descriptors(void)
{
	struct scene stage;
	struct one one;
	int fds[3], ends[2];
	char bytes[16] = {0};

	for (int kind = PLAN_PREPARED; kind <= PLAN_KEPT; kind++) {
		FOR_EACH_RUNG(stage, (enum plan_kind)kind, NULL)
		{
			struct extras extras = {.is_merged = true, .fds = fds, .fd_count = 3};

			CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
			fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
			fds[1] = open("/etc/hostname", O_RDONLY | O_CLOEXEC);
			fds[2] = ends[1];
			CHECK_INT(start(&one, &stage,
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
			close_jar(&stage);
		}
	}
}

static void test_a_terminal(void)
{
	const struct extras extras = {.has_pty = true};
	struct scene stage;
	struct one one;

	for (int kind = PLAN_PREPARED; kind <= PLAN_KEPT; kind++) {
		FOR_EACH_RUNG(stage, (enum plan_kind)kind, NULL)
		{
			CHECK_INT(start(&one, &stage, "test -t 0 && test -t 2 && echo yes", &extras), 0);
			ended(&one);
			CHECK_STRING(one.output[STREAM_STDOUT], "yes\r\n");
			finish(&one);
			close_jar(&stage);
		}
	}
}

struct answer {
	bool has_come;
	int fd, error;
};

static void on_file(void *owner, int fd, int errno_value)
{
	*(struct answer *)owner = (struct answer){true, fd, errno_value};
}

static int ask_file(struct scene *stage, const char *path, enum jar_access access, int *error)
{
	struct answer answer = {.fd = -1};

	CHECK_INT(kept_open_file(stage->jar, path, access, 0640, on_file, &answer), 0);
	CHECK(wait_for(stage, &answer.has_come));
	if (error)
		*error = answer.error;
	return answer.fd;
}

static void test_files(void)
{
	struct scene stage;
	struct one one;
	struct stat status;
	char bytes[16] = {0};
	int fd, error;

	FOR_EACH_RUNG(stage, PLAN_KEPT, NULL)
	{
		fd = ask_file(&stage, "new", JAR_WRITE, &error);
		CHECK_INT(error, 0);
		CHECK_INT(write(fd, "content", 7), 7);
		CHECK_INT(fstat(fd, &status), 0);
		CHECK_INT(status.st_mode & 07777, 0640);
		close(fd);
		run_script(&stage, &one,
			   "cat new; mkfifo fifo; ln -s /etc/passwd out; ln -s new in; mkdir d; ln -s d dd;"
			   " ln -s /proc/self/environ environ; ln -s /proc/self/fd/3 control; ln -s /nowhere/x away",
			   0);
		CHECK_STRING(one.output[STREAM_STDOUT], "content");
		finish(&one);
		fd = ask_file(&stage, "in", JAR_READ, NULL);
		CHECK_INT(read(fd, bytes, sizeof(bytes)), 7);
		CHECK_STRING(bytes, "content");
		close(fd);
		CHECK_INT(ask_file(&stage, "fifo", JAR_READ, &error), -1);
		CHECK_INT(error, EINVAL);
		CHECK_INT(ask_file(&stage, "fifo", JAR_WRITE, &error), -1);
		CHECK_INT(error, ENXIO);
		CHECK_INT(ask_file(&stage, "in", JAR_WRITE, &error), -1);
		CHECK_INT(error, ELOOP);
		CHECK_INT(ask_file(&stage, "away", JAR_WRITE, &error), -1);
		CHECK_INT(error, ELOOP);
		CHECK_INT(ask_file(&stage, "dd", JAR_LIST, &error), -1);
		CHECK(error == ENOTDIR || error == ELOOP);
		CHECK_INT(ask_file(&stage, "environ", JAR_READ, &error), -1);
		CHECK(error);
		CHECK_INT(ask_file(&stage, "control", JAR_READ, &error), -1);
		CHECK_INT(error, ELOOP);
		CHECK_INT(ask_file(&stage, "d", JAR_READ, &error), -1);
		CHECK_INT(error, EISDIR);
		CHECK_INT(ask_file(&stage, "/etc/shadow", JAR_READ, &error), -1);
		CHECK(error == ENOENT || error == EACCES);
		CHECK_INT(ask_file(&stage, "/usr/bin/belljar-was-here", JAR_WRITE, &error), -1);
		CHECK(error == EROFS || error == EACCES);
		fd = ask_file(&stage, "d", JAR_LIST, NULL);
		CHECK(fd >= 0);
		close(fd);
		CHECK_INT(stat("/usr/bin/belljar-was-here", &status), -1);
		close_jar(&stage);
	}
}

static void test_limits_above_the_jars_are_refused(void)
{
	static const char *const jar[] = {"memory", "256M", "pids", "50", NULL};
	static const char *const more[] = {"memory", "257M", NULL};
	static const char *const none[] = {"memory", "none", NULL};
	static const char *const pids[] = {"pids", "51", NULL};
	const char *const *const refused[] = {more, none, pids};
	struct scene stage;
	struct one one;

	if (!open_jar(&stage, RUNG_NAMESPACE, PLAN_KEPT, jar))
		return;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		const struct extras extras = {.flags = refused[i]};

		CHECK(start(&one, &stage, "true", &extras) < 0);
		CHECK_INT(one.error.stage, STAGE_POLICY);
		finish(&one);
	}
	close_jar(&stage);
}

/* Fills memory until it is stopped. The command is known to run before it takes more memory than the engine can look at in time. */
#define HOG "sleep 0.3; exec tail /dev/zero"

static void test_memory_of_a_run_and_of_the_jar(void)
{
	/* A meter counts the jar's own processes too, each of which takes 40 MB with the sanitizers' shadow stacks. */
	static const char *const jar[] = {"memory", "600M", NULL};
	static const char *const own[] = {"memory", "40M", NULL};
	const struct extras extras = {.flags = own};
	struct scene stage;
	struct one lasting, one;

	FOR_EACH_RUNG(stage, PLAN_KEPT, jar)
	{
		CHECK_INT(start(&lasting, &stage, "sleep 100", NULL), 0);
		CHECK_INT(start(&one, &stage, HOG, &extras), 0);
		check_cause(&one, CAUSE_MEMORY);
		CHECK_INT(run_observation(one.run)->limits[LIMIT_MEMORY].limit, 40 << 20);
		finish(&one);
		CHECK_INT(start(&one, &stage, HOG, NULL), 0);
		check_cause(&one, CAUSE_MEMORY);
		CHECK_INT(run_observation(one.run)->limits[LIMIT_MEMORY].limit, 600 << 20);
		finish(&one);
		run_script(&stage, &one, "echo well", 0);
		finish(&one);
		CHECK(!lasting.is_done);
		kept_close(stage.jar);
		check_cause(&lasting, CAUSE_CANCELLED);
		finish(&lasting);
		close_jar(&stage);
	}
}

/* Whoever was in charge of earlier runs too: what those used is not told again. */
static void test_each_run_is_told_its_own_usage(void)
{
	static const char *const jar[] = {"memory", "600M", NULL};
	const struct observation *seen;
	uint64_t used_us;
	struct scene stage;
	struct one one;

	FOR_EACH_RUNG(stage, PLAN_KEPT, jar)
	{
		run_script(&stage, &one, "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done", 0);
		seen = run_observation(one.run);
		used_us = seen->user_us + seen->system_us;
		CHECK(used_us > 0);
		finish(&one);
		/* More often than there are keepers at a time. */
		for (int i = 0; i < 12; i++) {
			run_script(&stage, &one, ":", 0);
			seen = run_observation(one.run);
			CHECK(seen->user_us + seen->system_us < used_us);
			CHECK(seen->peak_memory_bytes > 0);
			finish(&one);
		}
		close_jar(&stage);
	}
}

static void test_a_keeper_is_used_again_where_a_cgroup_counts(void)
{
	static const char *const jar[] = {"memory", "600M", NULL};
	char parents[12][16];
	struct scene stage;
	struct one one;

	FOR_EACH_RUNG(stage, PLAN_KEPT, jar)
	{
		bool is_one_twice = false;

		for (size_t i = 0; i < ARRAY_LEN(parents); i++) {
			run_script(&stage, &one, "echo $PPID", 0);
			snprintf(parents[i], sizeof(parents[i]), "%.15s", one.output[STREAM_STDOUT]);
			for (size_t j = 0; j < i; j++)
				is_one_twice |= !strcmp(parents[i], parents[j]);
			finish(&one);
		}
		CHECK_INT(is_one_twice, stage.plan.cgroup.memory != NULL);
		close_jar(&stage);
	}
}

static void test_memory_of_a_prepared_jar(void)
{
	static const char *const jar[] = {"memory", "50M", NULL};
	struct scene stage;
	struct one one;

	FOR_EACH_RUNG(stage, PLAN_PREPARED, jar)
	{
		CHECK_INT(start(&one, &stage, HOG, NULL), 0);
		check_cause(&one, CAUSE_MEMORY);
		finish(&one);
		CHECK(wait_for(&stage, &stage.is_gone));
		close_jar(&stage);
	}
}

static void test_cpu_time_of_a_run(void)
{
	static const char *const jar[] = {"cpu-time", "10s", NULL};
	static const char *const own[] = {"cpu-time", "300ms", NULL};
	const struct extras extras = {.flags = own};
	struct scene stage;
	struct one one;

	FOR_EACH_RUNG(stage, PLAN_KEPT, jar)
	{
		for (int i = 0; i < 3; i++) {
			CHECK_INT(start(&one, &stage, "while :; do :; done", &extras), 0);
			check_cause(&one, CAUSE_CPU);
			finish(&one);
		}
		run_script(&stage, &one, "echo well", 0);
		finish(&one);
		close_jar(&stage);
	}
}

/* The whole user namespace's, or the cgroup's, room for processes is used up: a new run is refused, not waited for. */
static void test_a_full_jar_refuses_runs(void)
{
	static const char *const jar[] = {"pids", "20", NULL};
	struct scene stage;
	struct one one, two;

	if (!open_jar(&stage, RUNG_NAMESPACE, PLAN_KEPT, jar))
		return;
	CHECK_INT(start(&one, &stage, "while :; do sleep 100 & done 2>/dev/null; wait", NULL), 0);
	CHECK(wait_for(&stage, &one.has_started));
	pass_time(&stage, 500000000);
	CHECK_INT(start(&two, &stage, "true", NULL), 0);
	ended(&two);
	finish(&two);
	run_cancel(one.run, SIGKILL);
	run_cancel(one.run, SIGKILL);
	ended(&one);
	finish(&one);
	run_script(&stage, &one, "true", 0);
	finish(&one);
	close_jar(&stage);
}

static void test_a_command_cannot_end_its_keeper_or_the_jar(void)
{
	static const char *const scripts[] = {
		"kill -9 -1; exit 7",
		"kill -9 $PPID; sleep 0.1; exit 7",
		"kill -STOP $PPID; kill -STOP -1; exit 7",
		"kill -9 1; exit 7",
	};
	struct scene stage;
	struct one lasting, one;

	if (!open_jar(&stage, RUNG_NAMESPACE, PLAN_KEPT, NULL))
		return;
	CHECK(stand(&stage));
	CHECK_INT(start(&lasting, &stage, "sleep 100", NULL), 0);
	CHECK(wait_for(&stage, &lasting.has_started));
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		CHECK_INT(start(&one, &stage, scripts[i], NULL), 0);
		ended(&one);
		if (stage.plan.landlock_abi >= 6) {
			CHECK_INT(run_observation(one.run)->status, 7 << 8);
			CHECK(!lasting.is_done);
		}
		finish(&one);
		CHECK(!stage.is_gone);
	}
	run_script(&stage, &one, "echo well", 0);
	finish(&one);
	kept_close(stage.jar);
	ended(&lasting);
	finish(&lasting);
	close_jar(&stage);
}

/* Without the scope for signals, as on a kernel before Landlock's ABI 6: everything dies, nothing hangs, the jar lives. */
static void test_killed_keepers_are_survived(void)
{
	static const char *const scripts[] = {
		"(setsid sleep 1000 &); kill -9 $PPID; sleep 1000",
		"(setsid sleep 1000 &); kill -STOP $PPID; exit 1",
		"kill -9 -1; sleep 1000",
	};
	struct scene stage;
	struct one one;

	if (!open_jar(&stage, RUNG_NAMESPACE, PLAN_KEPT, NULL))
		return;
	CHECK(stand(&stage));
	stage.plan.landlock_abi = 5;
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		CHECK_INT(start(&one, &stage, scripts[i], NULL), 0);
		check_cause(&one, CAUSE_NONE);
		/* A keeper may be dead before it could say that the command runs; then the run says that. */
		CHECK(run_observation(one.run)->has_started || run_observation(one.run)->error.stage == STAGE_ENGINE);
		finish(&one);
		CHECK(!stage.is_gone);
		run_script(&stage, &one, "ps -e 2>/dev/null | grep -c '[s]leep'; exit 0", 0);
		CHECK_STRING(one.output[STREAM_STDOUT], "0\n");
		finish(&one);
	}
	close_jar(&stage);
}

static void test_the_first_process_may_die(void)
{
	struct scene stage;
	struct one one;

	FOR_EACH_RUNG(stage, PLAN_KEPT, NULL)
	{
		CHECK_INT(start(&one, &stage, "(setsid sleep 1000 &); echo up; sleep 1000", NULL), 0);
		CHECK(wait_for(&stage, &one.has_started));
		CHECK_INT(stage.family.count, 1);
		CHECK_INT(kill(stage.family.items[0], SIGKILL), 0);
		ended(&one);
		CHECK_INT(run_observation(one.run)->status, SIGKILL);
		CHECK(wait_for(&stage, &stage.is_gone));
		finish(&one);
		close_jar(&stage);
	}
}

static void test_a_run_that_is_freed_is_killed(void)
{
	struct scene stage;
	struct one one, two;

	FOR_EACH_RUNG(stage, PLAN_KEPT, NULL)
	{
		CHECK_INT(start(&one, &stage, "echo $$ > pid; sleep 1000", NULL), 0);
		CHECK(wait_for(&stage, &one.has_started));
		run_script(&stage, &two, "while ! [ -s pid ]; do sleep 0.01; done", 0);
		finish(&two);
		finish(&one);
		run_script(&stage, &two, "while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done", 0);
		finish(&two);
		close_jar(&stage);
	}
}

static void test_descriptors_do_not_leak(void)
{
	struct scene stage;
	struct one one;
	int before;

	FOR_EACH_RUNG(stage, PLAN_KEPT, NULL)
	{
		run_script(&stage, &one, "true", 0);
		finish(&one);
		pass_time(&stage, 1000000000);
		before = open_fds();
		for (int i = 0; i < 30; i++) {
			run_script(&stage, &one, "true", 0);
			finish(&one);
		}
		/* Keepers that are no longer needed leave when they can. */
		for (int i = 0; i < 100 && open_fds() != before; i++)
			pass_time(&stage, 50000000);
		CHECK_INT(open_fds(), before);
		close_jar(&stage);
	}
}

/* --- the table ---------------------------------------------------------------------------------------------- */

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
	TEST(test_limits_above_the_jars_are_refused),
	TEST(test_memory_of_a_run_and_of_the_jar),
	TEST(test_each_run_is_told_its_own_usage),
	TEST(test_a_keeper_is_used_again_where_a_cgroup_counts),
	TEST(test_memory_of_a_prepared_jar),
	TEST(test_cpu_time_of_a_run),
	TEST(test_a_full_jar_refuses_runs),
	TEST(test_a_command_cannot_end_its_keeper_or_the_jar),
	TEST(test_killed_keepers_are_survived),
	TEST(test_the_first_process_may_die),
	TEST(test_a_run_that_is_freed_is_killed),
	TEST(test_descriptors_do_not_leak),
};

static int as_ordinary_user(void)
{
	static struct test renamed[ARRAY_LEN(tests)];
	static char names[ARRAY_LEN(tests)][128];

	if (setgroups(0, NULL) < 0 || setresgid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) < 0 ||
	    setresuid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_LEN(tests); i++) {
		snprintf(names[i], sizeof(names[i]), "%s_as_an_ordinary_user", tests[i].name);
		renamed[i] = (struct test){.name = names[i], .function = tests[i].function};
	}
	return test_main(renamed, ARRAY_LEN(renamed));
}

int main(void)
{
	int failed, status = 0;
	pid_t child;

	if (!mkdtemp(home))
		return 1;
	snprintf(home_variable, sizeof(home_variable), "HOME=%s", home);
	failed = test_main(tests, ARRAY_LEN(tests));
	if (geteuid() == 0 && chown(home, ORDINARY_ID, ORDINARY_ID) == 0) {
		fflush(stdout);
		child = fork();
		if (child == 0)
			exit(as_ordinary_user());
		waitpid(child, &status, 0);
	}
	rmdir(home);
	return failed || status != 0;
}
