/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/library/test_host.c - hosts that are not as one would wish: forked, without streams, with odd signals, huge
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "support.h"

static struct belljar_engine *engine;

/* A run works with this engine, whatever the host is like. */
static void check_works(struct belljar_engine *of)
{
	struct belljar_command command = COMMAND("echo", "works");
	struct belljar_result *result = run(of, &command);

	check_stdout(result, "works\n");
	belljar_result_free(result);
}

static void check_works_anew(void)
{
	struct belljar_engine *own = open_engine();

	check_works(own);
	belljar_engine_close(own);
	CHECK(!has_children());
}

/* The engine is our only child. */
static pid_t engine_pid(void)
{
	char path[64], line[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	return atoi(line);
}

/* --- fork --- */

static struct belljar_handle *inherited;

static void use_inherited(void)
{
	struct belljar_command command = COMMAND("true");
	struct belljar_error *error = NULL;
	struct belljar_result *result = NULL;
	struct belljar_handle *handle = NULL;
	struct belljar_jar *jar = NULL;
	char *json = NULL;

	CHECK_INT(belljar_run(engine, &command, &result, &error), -ECHILD);
	CHECK_STRING(belljar_error_stage(error), "usage");
	CHECK(strstr(belljar_error_hint(error), "fork") != NULL);
	CHECK_INT(belljar_start(engine, &command, &handle, &error), -ECHILD);
	CHECK_INT(belljar_capabilities(engine, &json, &error), -ECHILD);
	CHECK_INT(belljar_jar_open(engine, NULL, &jar, &error), -ECHILD);
	CHECK_INT(belljar_process(inherited, &error), -ECHILD);
	CHECK_INT(belljar_wait(inherited, -1, &error), -ECHILD);
	CHECK_INT(belljar_cancel(inherited, 0), -ECHILD);
	belljar_error_free(error);
	belljar_free(inherited);
	belljar_engine_close(engine);
	check_works_anew();
}

static void test_a_forked_child_has_no_part_in_it(void)
{
	struct belljar_command command = COMMAND("cat");
	struct belljar_result *result;
	int ends[2];

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	command.flags = BELLJAR_STDIN_FD;
	command.stdin_fd = ends[0];
	inherited = start(engine, &command);
	close(ends[0]);
	in_child(use_inherited);
	/* What the child did to its copies has done nothing to the run. */
	CHECK_INT(write(ends[1], "still here", 10), 10);
	close(ends[1]);
	result = finish(inherited);
	check_stdout(result, "still here");
	belljar_result_free(result);
	check_works(engine);
}

static void test_a_copy_in_a_forked_child_keeps_nothing_alive(void)
{
	struct belljar_engine *own = open_engine();
	int ends[2];
	pid_t pid;
	char byte;

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		CHECK_INT(read(ends[0], &byte, 1), 0);
		_exit(0);
	}
	/* Would wait for ever, or until the engine is killed, were the root only closed. */
	belljar_engine_close(own);
	close(ends[1]);
	close(ends[0]);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}

/* --- descriptors --- */

static void without_streams(void)
{
	close(0);
	close(1);
	close(2);
	struct belljar_engine *own = NULL;
	struct belljar_command command = COMMAND("sh", "-c", "cat; echo fine");
	struct belljar_result *result = NULL;

	command.input = "in ";
	command.input_len = 3;
	if (belljar_engine_open(NULL, &own, NULL) < 0 || belljar_run(own, &command, &result, NULL) < 0)
		_exit(2);
	if (strcmp(belljar_result_stdout(result, NULL), "in fine\n") != 0)
		_exit(3);
	/* None of the library's descriptors may sit where the host's streams belong. */
	if (fcntl(0, F_GETFD) >= 0 || fcntl(1, F_GETFD) >= 0 || fcntl(2, F_GETFD) >= 0)
		_exit(4);
	belljar_result_free(result);
	belljar_engine_close(own);
	_exit(0);
}

static void test_a_host_without_streams(void)
{
	in_child(without_streams);
}

static void crowded(void)
{
	int fd;

	/* 3 and all that follow are taken, and not marked close-on-exec. */
	for (fd = dup(0); fd >= 0 && fd < 40; fd = dup(0))
		;
	check_works_anew();
}

static void test_a_host_that_uses_descriptor_3(void)
{
	in_child(crowded);
}

static void without_room(void)
{
	struct rlimit limit = {.rlim_cur = 5, .rlim_max = 5};
	struct belljar_engine *own = NULL;
	struct belljar_error *error = NULL;
	int rc;

	setrlimit(RLIMIT_NOFILE, &limit);
	rc = belljar_engine_open(NULL, &own, &error);
	CHECK(rc == -EMFILE || rc == -EINVAL);
	CHECK_STRING(belljar_error_stage(error), "engine");
	belljar_error_free(error);
	CHECK(!has_children());
}

static void test_too_few_descriptors_are_an_error(void)
{
	in_child(without_room);
}

static void test_the_hosts_descriptors_do_not_reach_the_engine(void)
{
	char byte;
	int ends[2];
	struct belljar_engine *own;

	/* Not close-on-exec: the engine would keep it open. */
	CHECK_INT(pipe(ends), 0);
	own = open_engine();
	check_works(own);
	close(ends[1]);
	CHECK_INT(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	belljar_engine_close(own);
}

static void test_no_descriptor_leaks(void)
{
	size_t before;

	check_works(engine);
	before = open_descriptors();
	for (int i = 0; i < 50; i++) {
		struct belljar_command command = COMMAND("true");

		command.input = "x";
		command.input_len = 1;
		belljar_result_free(run(engine, &command));
		belljar_free(start(engine, &command));
		command.policy = "no-such-preset";
		CHECK_INT(belljar_run(engine, &command, &(struct belljar_result *){NULL}, NULL), -EINVAL);
	}
	CHECK_INT(open_descriptors(), before);
}

/* --- signals and children --- */

static void ignoring_children(void)
{
	signal(SIGCHLD, SIG_IGN);
	check_works_anew();
}

static void test_a_host_that_ignores_sigchld(void)
{
	in_child(ignoring_children);
}

static void with_odd_signals(void)
{
	sigset_t all;

	for (int number = 1; number < NSIG; number++)
		if (number != SIGCHLD)
			signal(number, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	struct belljar_command command = COMMAND("sh", "-c", "grep -E 'Sig(Ign|Blk)' /proc/self/status");
	struct belljar_engine *own = open_engine();
	struct belljar_result *result = run(own, &command);

	check_stdout(result, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	belljar_result_free(result);
	/* And it still ends what has to be ended. */
	command = COMMAND("sleep", "1000");
	struct belljar_handle *handle = start(own, &command);
	CHECK_INT(belljar_cancel(handle, 0), 0);
	result = finish(handle);
	CHECK_INT(belljar_result_outcome(result), BELLJAR_CANCELLED);
	belljar_result_free(result);
	belljar_engine_close(own);
}

static void test_a_host_with_blocked_and_ignored_signals(void)
{
	in_child(with_odd_signals);
}

static void collecting_all(void)
{
	struct belljar_engine *own = open_engine();
	struct belljar_command command = COMMAND("true");
	struct belljar_error *error = NULL;
	struct belljar_result *result = NULL;
	pid_t pid = engine_pid();

	CHECK(pid > 0);
	kill(pid, SIGKILL);
	CHECK_INT(waitpid(-1, NULL, 0), pid);
	CHECK_INT(belljar_run(own, &command, &result, &error), -ECONNRESET);
	CHECK_STRING(belljar_error_stage(error), "engine");
	belljar_error_free(error);
	/* Does not wait for what another has collected. */
	belljar_engine_close(own);
}

static void test_a_host_that_collects_any_child(void)
{
	in_child(collecting_all);
}

/* --- the engine's end --- */

static void losing_the_engine(void)
{
	struct belljar_engine *own = open_engine();
	struct belljar_command command = COMMAND("sleep", "1000");
	struct belljar_handle *handle = start(own, &command);
	struct belljar_error *error = NULL;
	struct belljar_result *result = NULL;
	pid_t pid = engine_pid();

	kill(pid, SIGKILL);
	/* Its descriptors are closed before its end can be seen. */
	CHECK_INT(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	CHECK_INT(belljar_wait(handle, -1, &error), -ECONNRESET);
	CHECK_STRING(belljar_error_stage(error), "engine");
	CHECK(belljar_error_hint(error) != NULL);
	CHECK_INT(belljar_process(handle, NULL), -ECONNRESET);
	CHECK_INT(belljar_cancel(handle, 0), 0);
	CHECK_INT(belljar_run(own, &command, &result, &error), -ECONNRESET);
	CHECK(strstr(belljar_error_message(error), "signal 9") != NULL);
	belljar_engine_close(own);
	belljar_free(handle);
	belljar_error_free(error);
	CHECK(!has_children());
	check_works_anew();
}

static void test_an_engine_that_is_killed(void)
{
	in_child(losing_the_engine);
}

static void test_closing_the_engine_ends_what_runs(void)
{
	struct belljar_engine *own = open_engine();
	struct belljar_command command = COMMAND("sh", "-c", "trap '' TERM; sleep 1000");
	struct belljar_handle *handle;
	struct belljar_error *error = NULL;
	char byte;
	int ends[2];

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	command.fds = (const int32_t[]){ends[1]};
	command.fd_count = 1;
	handle = start(own, &command);
	close(ends[1]);
	CHECK_INT(belljar_wait(handle, 100, NULL), 0);
	belljar_engine_close(own);
	CHECK_INT(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	CHECK_INT(belljar_wait(handle, -1, &error), -ECONNRESET);
	CHECK(strstr(belljar_error_message(error), "closed") != NULL);
	belljar_error_free(error);
	belljar_free(handle);
}

/* The host is killed while a forked child of it, which has copies of everything, lives on. */
static void test_everything_dies_with_the_host(void)
{
	char line[2] = "";
	int ready[2], held[2], fork_held[2];
	pid_t pid;

	CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
	CHECK_INT(pipe2(held, O_CLOEXEC), 0);
	CHECK_INT(pipe2(fork_held, O_CLOEXEC), 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct belljar_engine *own = open_engine();
		struct belljar_command command = COMMAND("sh", "-c", "echo r >&3; trap '' TERM; sleep 1000");

		command.fds = (const int32_t[]){ready[1], held[1]};
		command.fd_count = 2;
		(void)start(own, &command);
		close(held[1]);
		if (fork() == 0) {
			close(fork_held[1]);
			/* Until the test is over. */
			(void)!read(fork_held[0], line, 1);
			_exit(0);
		}
		close(fork_held[1]);
		pause();
		_exit(1);
	}
	close(held[1]);
	CHECK_INT(read(ready[0], line, 1), 1);
	kill(pid, SIGKILL);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK_INT(read(held[0], line, 1), 0);
	close(fork_held[0]);
	close(fork_held[1]);
	close(ready[0]);
	close(ready[1]);
	close(held[0]);
}

static void test_an_engine_that_cannot_be_started(void)
{
	struct belljar_engine_options options = {.size = sizeof(options), .program = "/nonexistent/belljar"};
	struct belljar_command command = COMMAND("true");
	struct belljar_engine *own = NULL;
	struct belljar_error *error = NULL;
	struct belljar_result *result = NULL;

	CHECK_INT(belljar_engine_open(&options, &own, &error), -ENOENT);
	CHECK(own == NULL);
	CHECK_STRING(belljar_error_stage(error), "engine");
	CHECK(strstr(belljar_error_message(error), "/nonexistent/belljar") != NULL);
	CHECK(strstr(belljar_error_hint(error), "BELLJAR_BIN") != NULL);
	CHECK_INT(belljar_run(NULL, &command, &result, &error), -EINVAL);
	/* Something that is no engine. */
	options.program = "/bin/false";
	CHECK_INT(belljar_engine_open(&options, &own, &error), 0);
	CHECK_INT(belljar_run(own, &command, &result, &error), -ECONNRESET);
	belljar_engine_close(own);
	belljar_error_free(error);
	belljar_engine_close(NULL);
}

static void in_path(void)
{
	const char *program = getenv("BELLJAR_BIN");
	char folder[4096] = "", path[8192];

	snprintf(folder, sizeof(folder), "%s/belljar-library-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/belljar", folder);
	CHECK_INT(symlink(program, path), 0);
	unsetenv("BELLJAR_BIN");
	setenv("PATH", folder, 1);
	struct belljar_command command = COMMAND("/bin/echo", "works");
	struct belljar_engine *own = open_engine();
	struct belljar_result *result = run(own, &command);

	check_stdout(result, "works\n");
	belljar_result_free(result);
	belljar_engine_close(own);
	unlink(path);
	rmdir(folder);
}

static void test_the_engine_is_found_in_path(void)
{
	in_child(in_path);
}

/* --- size --- */

static double run_ms(void)
{
	struct belljar_command command = COMMAND("true");
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC, &before);
	for (int i = 0; i < 20; i++)
		belljar_result_free(run(engine, &command));
	clock_gettime(CLOCK_MONOTONIC, &after);
	return ((double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6) / 20;
}

/* Measured and shown, not judged: others use this machine too. */
static void test_a_host_with_a_large_heap(void)
{
	size_t len = (size_t)1 << 30;
	double small = run_ms(), large;
	char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return;
	madvise(memory, len, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < len; i += 4096)
		memory[i] = 1;
	large = run_ms();
	struct timespec before, after;
	clock_gettime(CLOCK_MONOTONIC, &before);
	struct belljar_engine *own = open_engine();
	clock_gettime(CLOCK_MONOTONIC, &after);
	belljar_engine_close(own);
	munmap(memory, len);
	printf("a run from a small host: %.2f ms, from one with 1 GiB: %.2f ms; opening an engine there: %.2f ms\n",
	       small, large,
	       (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6);
}

static const struct test tests[] = {
	TEST(test_a_forked_child_has_no_part_in_it),
	TEST(test_a_copy_in_a_forked_child_keeps_nothing_alive),
	TEST(test_a_host_without_streams),
	TEST(test_a_host_that_uses_descriptor_3),
	TEST(test_too_few_descriptors_are_an_error),
	TEST(test_the_hosts_descriptors_do_not_reach_the_engine),
	TEST(test_no_descriptor_leaks),
	TEST(test_a_host_that_ignores_sigchld),
	TEST(test_a_host_with_blocked_and_ignored_signals),
	TEST(test_a_host_that_collects_any_child),
	TEST(test_an_engine_that_is_killed),
	TEST(test_closing_the_engine_ends_what_runs),
	TEST(test_everything_dies_with_the_host),
	TEST(test_an_engine_that_cannot_be_started),
	TEST(test_the_engine_is_found_in_path),
	TEST(test_a_host_with_a_large_heap),
};

int main(void)
{
	return library_main(&engine, tests, sizeof(tests) / sizeof(tests[0]));
}
