/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_helper_meter.c - what the meter makes of the kernel's texts, and of processes that are there
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/meter_process.h"
#include "base/reap/reap_children.h"
#include "test.h"

#define REST " 20 0 3 0 777 10000000 25 18446744073709551615 1 1 0"

static void test_a_line_of_stat(void)
{
	struct meter_process process = {.pid = 42, .is_new = true};
	long tick_ns = 1000000000L / sysconf(_SC_CLK_TCK);

	CHECK(helper_meter_parse_stat(&process, "42 (cat) S 7 42 42 0 -1 4194304 100 0 0 0 1 2 3 4" REST));
	CHECK_INT(process.parent, 7);
	CHECK_INT(process.threads, 3);
	CHECK_INT(process.start_time, 777);
	CHECK_INT(process.resident_bytes, 25 * sysconf(_SC_PAGESIZE));
	CHECK_INT(process.cpu_ns.now, 10 * tick_ns);
}

static void test_a_name_may_hold_anything(void)
{
	struct meter_process process = {.pid = 42, .is_new = true};

	CHECK(helper_meter_parse_stat(&process, "42 (a) R 1 1 (b) S) S 9 42 42 0 -1 4194304 100 0 0 0 1 2 3 4" REST));
	CHECK_INT(process.parent, 9);
	CHECK(helper_meter_parse_stat(&process, "42 (\n) 1) S 8 42 42 0 -1 4194304 100 0 0 0 1 2 3 4" REST));
	CHECK_INT(process.parent, 8);
}

static void test_lines_that_are_none(void)
{
	static const char *const lines[] = {"",
					    "42",
					    "42 (cat",
					    "42 (cat)",
					    "42 (cat) ",
					    "42 (cat) S",
					    "42 (cat) S ",
					    "42 (cat) S 7 x",
					    "42 (cat) S 7 42 42 0 -1"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct meter_process process = {.pid = 42, .is_new = true};

		CHECK(!helper_meter_parse_stat(&process, lines[i]));
	}
}

static void test_another_process_with_the_number(void)
{
	struct meter_process process = {.pid = 42, .start_time = 776};

	CHECK(!helper_meter_parse_stat(&process, "42 (cat) S 7 42 42 0 -1 4194304 100 0 0 0 1 2 3 4" REST));
	process.start_time = 777;
	CHECK(helper_meter_parse_stat(&process, "42 (cat) S 7 42 42 0 -1 4194304 100 0 0 0 1 2 3 4" REST));
}

static void test_shared_memory(void)
{
	const char *head =
		"       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid   "
		"   atime      dtime      ctime                   rss                  swap\n";
	char list[1024];

	CHECK_INT(helper_meter_parse_list(0, ""), 0);
	CHECK_INT(helper_meter_parse_list(0, head), 0);
	snprintf(
		list, sizeof(list), "%s%s%s", head,
		"         0          1   600              1048576   100   101      1  1000  1000  1000  1000 1700000000 "
		"         0 1700000000                  8192                  4096\n",
		"         0          2   600              4194304   100   101      1  1000  1000  1000  1000 1700000000 "
		"         0 1700000000               4194304                     0\n");
	CHECK_INT(helper_meter_parse_list(0, list), 8192 + 4096 + 4194304 + 2 * 1024);
	/* The kernel hands a long list out in pieces; only the first begins with the names of columns. */
	CHECK_INT(helper_meter_parse_list(0, strchr(list, '\n') + 1), 8192 + 4096 + 4194304 + 2 * 1024);
	/* A list that was cut in the middle of a line. */
	list[strlen(list) - 60] = '\0';
	CHECK(helper_meter_parse_list(0, list) >= 8192);
}

static void test_queues_and_semaphores(void)
{
	CHECK_INT(helper_meter_parse_list(1, "       key      msqid perms      cbytes       qnum lspid lrpid\n"
					     "         0          0   600       16384          4  1234     0\n"
					     "        -1          1   600           0         10  1234     0\n"),
		  2 * 256 + 16384 + 4 * 64 + 10 * 64);
	CHECK_INT(helper_meter_parse_list(2, "       key      semid perms      nsems   uid   gid\n"
					     "         0          0   600      10000  1000  1000\n"),
		  512 + 10000 * 128);
}

static void test_kilobytes(void)
{
	const char *rollup = "00400000-7ff000 ---p 00000000 00:00 0    [rollup]\nRss:      10 kB\nPss:       7 kB\n"
			     "Pss_Anon:        5 kB\nPss_Shmem:       2 kB\n";

	CHECK_INT(helper_meter_parse_kilobytes(rollup, "\nPss_Anon:"), 5 * 1024);
	CHECK_INT(helper_meter_parse_kilobytes(rollup, "\nPss_Shmem:"), 2 * 1024);
	CHECK_INT(helper_meter_parse_kilobytes(rollup, "\nPss_File:"), 0);
	CHECK_INT(helper_meter_parse_kilobytes("", "\nPss:"), 0);
}

static void test_written_bytes(void)
{
	uint64_t bytes = 99;

	CHECK(reap_parse_written("rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 4096\n"
				 "cancelled_write_bytes: 1024\n",
				 &bytes));
	CHECK_INT(bytes, 3072);
	CHECK(reap_parse_written("x\nwrite_bytes: 1\ncancelled_write_bytes: 5\n", &bytes));
	CHECK_INT(bytes, 0);
	bytes = 99;
	CHECK(!reap_parse_written("rchar: 1\nwrite_bytes: 4096\n", &bytes));
	CHECK(!reap_parse_written("", &bytes));
	CHECK_INT(bytes, 99);
}

/* --- processes that are there ------------------------------------------------------------------------------- */

static pid_t start_child(int children)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < children; i++)
			if (fork() == 0)
				break;
		for (;;)
			pause();
	}
	return pid;
}

static void kill_tree(pid_t pid)
{
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Three children with two each. */
static pid_t start_tree(void)
{
	pid_t first = fork();

	if (first == 0) {
		setpgid(0, 0);
		/* The kernel counts in batches of pages: a small program may have none. */
		memset(malloc(1 << 20), 1, 1 << 20);
		for (int i = 0; i < 3; i++)
			if (start_child(2) == 0)
				break;
		for (;;)
			pause();
	}
	setpgid(first, first);
	return first;
}

static void await_tree(struct meter *meter, struct meter_reading *reading)
{
	for (int tries = 0; tries < 2000 && reading->processes != 9; tries++) {
		usleep(5000);
		CHECK_INT(helper_meter_look(meter, reading), METER_WHOLE);
	}
	CHECK_INT(reading->processes, 9);
}

static void test_a_tree_is_counted(void)
{
	static const struct plan no_plan;
	struct meter_reading reading = {0};
	struct meter meter;
	pid_t first = start_tree();

	helper_meter_init(&meter, &no_plan);
	CHECK_INT(helper_meter_follow(&meter, first), 0);
	CHECK(helper_meter_can_see(&meter));
	await_tree(&meter, &reading);
	CHECK(reading.resident_bytes > 0);
	kill_tree(first);
	CHECK(!helper_meter_can_see(&meter));
	helper_meter_done(&meter);
}

/* As on kernels without CONFIG_PROC_CHILDREN. */
static void test_a_tree_is_counted_without_lists_of_children(void)
{
	static const struct plan no_plan;
	struct meter_reading reading = {0};
	struct meter meter;
	pid_t first = start_tree(), stranger = start_child(0);

	helper_meter_init(&meter, &no_plan);
	meter.has_lists = false;
	CHECK_INT(helper_meter_follow(&meter, first), 0);
	await_tree(&meter, &reading);
	CHECK(!helper_meter_find(&meter, stranger));
	kill_tree(first);
	kill_tree(stranger);
	helper_meter_done(&meter);
}

/* --- whose they are ----------------------------------------------------------------------------------------- */

#define LARGE_BYTES (8 << 20)

/* A child that has left the session, and pauses, or executes something that sleeps; it has so many more bytes. */
static void start_apart(bool executes, size_t bytes)
{
	volatile char *memory; /* volatile: what nobody reads would not be written */

	if (fork() != 0)
		return;
	setsid();
	if (executes)
		execl("/bin/sleep", "sleep", "1000", NULL);
	memory = malloc(bytes + 1);
	for (size_t i = 0; memory && i < bytes; i++)
		memory[i] = 1;
	for (;;)
		pause();
}

/* As a kept jar: a first process; below it a spare minder with its starter, and one with a command and two orphans of it. */
static pid_t start_kept_jar(void)
{
	pid_t first = fork();

	if (first != 0)
		return first;
	setsid();
	if (fork() == 0) {
		start_apart(false, 0);
	} else if (fork() == 0) {
		start_apart(true, 0);
		start_apart(false, LARGE_BYTES);
		start_apart(false, 0);
	} else {
		/* What a minder that was killed has left. */
		start_apart(false, 0);
	}
	for (;;)
		pause();
}

/* What is not ours of them: the command, its large orphan and the one that nobody minds. An orphan as small as a starter passes. */
static void test_what_the_jar_itself_has_is_not_the_commands(void)
{
	static const struct plan plan = {.kind = PLAN_SESSION, .metered = 1U << GUARANTEE_MEMORY};
	struct meter_reading reading = {0};
	unsigned ours = 0, executed = 0;
	struct meter meter;
	pid_t first = start_kept_jar();

	helper_meter_init(&meter, &plan);
	CHECK_INT(helper_meter_follow(&meter, first), 0);
	for (int tries = 0; tries < 2000 && (ours != 5 || executed != 1 || reading.resident_bytes < LARGE_BYTES);
	     tries++) {
		usleep(5000);
		CHECK_INT(helper_meter_look(&meter, &reading), METER_WHOLE);
		ours = executed = 0;
		for (size_t i = 0; i < meter.process_count; i++) {
			ours += meter.processes[i].is_ours;
			executed += !meter.processes[i].is_fork;
			CHECK(meter.processes[i].is_fork || !meter.processes[i].is_ours);
		}
	}
	CHECK_INT(meter.process_count, 8);
	CHECK_INT(ours, 5);
	CHECK_INT(executed, 1);
	CHECK(reading.resident_bytes >= LARGE_BYTES);
	for (size_t i = 0; i < meter.process_count; i++)
		if (meter.processes[i].resident_bytes >= LARGE_BYTES)
			CHECK(!meter.processes[i].is_ours);
	for (size_t i = 0; i < meter.process_count; i++)
		kill(meter.processes[i].pid, SIGKILL);
	waitpid(first, NULL, 0);
	helper_meter_done(&meter);
}

static bool count(void *owner, pid_t number)
{
	int *found = owner;

	CHECK(number > 1);
	(*found)++;
	return true;
}

static void test_children(void)
{
	int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int found = 0;
	pid_t one = start_child(0), other = start_child(0);

	CHECK_INT(reap_each_child(proc_fd, getpid(), getpid(), count, &found), 0);
	CHECK_INT(found, 2);
	kill_tree(one);
	kill_tree(other);
	CHECK_INT(reap_each_child(proc_fd, one, one, count, &found), -ENOENT);
	close(proc_fd);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(test_a_line_of_stat),
		TEST(test_a_name_may_hold_anything),
		TEST(test_lines_that_are_none),
		TEST(test_another_process_with_the_number),
		TEST(test_shared_memory),
		TEST(test_queues_and_semaphores),
		TEST(test_kilobytes),
		TEST(test_written_bytes),
		TEST(test_a_tree_is_counted),
		TEST(test_a_tree_is_counted_without_lists_of_children),
		TEST(test_what_the_jar_itself_has_is_not_the_commands),
		TEST(test_children),
	};

	return test_main(tests, sizeof(tests) / sizeof(tests[0]));
}
