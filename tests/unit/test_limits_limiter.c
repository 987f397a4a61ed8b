/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_limits_limiter.c - which limit the limiter takes for reached, by what a cgroup's files say
 *
 * The files of both versions stand in ordinary directories. And who looks where the host has no process to give.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/limits/limiter.h"
#include "test.h"

#define MIB (1ULL << 20)

static char directory[64];

struct told {
	int count;
	enum limit_name name;
	enum cause cause;
	struct limit_hit hit;
};

static void note(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause)
{
	struct told *told = owner;

	told->count++;
	told->name = name;
	told->cause = cause;
	told->hit = *hit;
}

static void put(const char *name, const char *content)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	CHECK(file != NULL);
	if (!file)
		return;
	fputs(content, file);
	fclose(file);
}

static void clear(void)
{
	static const char *const names[] = {"memory.max_usage_in_bytes",
					    "memory.oom_control",
					    "memory.peak",
					    "memory.events",
					    "pids.peak",
					    "pids.events",
					    "cpuacct.usage",
					    "cpuacct.usage_user",
					    "cpuacct.usage_sys",
					    "cpu.stat"};
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
}

/* What is told for the files that are there, with limits of 64 MiB and 10 processes. */
static struct told check(int version)
{
	static const struct plan plan = {.limits = {.memory_bytes = 64 * MIB, .pids = 10, .cpu_time_ns = 1000000000}};
	struct told told = {0};
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct limiter limiter = {
		.plan = &plan,
		.function = note,
		.owner = &told,
		.cgroup = {.version = version, .fds = {fd, fd, fd}, .notice_fd = -1},
	};

	limiter_check(&limiter, false);
	close(fd);
	return told;
}

static struct cgroup_reading reading_of(int version)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct cgroup cgroup = {.version = version, .fds = {fd, fd, fd}, .notice_fd = -1};
	struct cgroup_reading reading;

	limits_cgroup_read(&cgroup, &reading);
	close(fd);
	return reading;
}

static void test_a_kill_at_our_limit_in_version_1(void)
{
	struct told told;

	put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
	put("memory.max_usage_in_bytes", "67108864\n");
	told = check(1);
	CHECK_INT(told.count, 1);
	CHECK_INT(told.name, LIMIT_MEMORY);
	CHECK_INT(told.cause, CAUSE_MEMORY);
	CHECK_INT(told.hit.peak, 64 * MIB);
	CHECK_STRING(told.hit.enforced_by, "cgroup1");
	CHECK_STRING(told.hit.evidence, "memory.oom_control: oom_kill 1; memory.max_usage_in_bytes: 67108864");
	clear();
}

/* Between the notice and the end the kernel counts on: the account has one peak. */
static void test_the_peak_of_a_limit_is_that_of_the_run(void)
{
	static const struct plan plan = {.limits = {.memory_bytes = 64 * MIB, .pids = 10, .cpu_time_ns = LIMIT_NONE}};
	struct observation seen = {.limits[LIMIT_MEMORY] = {.is_hit = true, .has_peak = true, .peak = 60 * MIB}};
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct limiter limiter = {.plan = &plan,
				  .cgroup = {.version = 2, .fds = {fd, -1, -1}, .notice_fd = -1},
				  .meter = {.proc_fd = -1, .clock_fd = -1}};

	put("memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n");
	put("memory.peak", "67108864\n");
	limiter_finish(&limiter, &(struct rusage){0}, &seen);
	CHECK_INT(seen.limits[LIMIT_MEMORY].peak, 64 * MIB);
	CHECK_INT(seen.peak_memory_bytes, 64 * MIB);
	close(fd);
	clear();
}

/* The host, or a cgroup above, ran out of memory, and the kernel took one of ours. */
static void test_a_kill_that_was_not_for_our_limit(void)
{
	put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
	put("memory.max_usage_in_bytes", "33554432\n");
	CHECK_INT(check(1).count, 0);
	clear();
	put("memory.events", "low 0\nhigh 0\nmax 12\noom 0\noom_kill 1\noom_group_kill 0\n");
	put("memory.peak", "33554432\n");
	CHECK_INT(check(2).count, 0);
	clear();
}

static void test_a_limit_that_was_reached_without_a_kill(void)
{
	put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
	put("memory.max_usage_in_bytes", "67108864\n");
	CHECK_INT(check(1).count, 0);
	clear();
	put("memory.events", "low 0\nhigh 0\nmax 99\noom 3\noom_kill 0\n");
	CHECK_INT(check(2).count, 0);
	clear();
}

static void test_a_kill_at_our_limit_in_version_2(void)
{
	struct told told;

	put("memory.events", "low 0\nhigh 0\nmax 99\noom 1\noom_kill 2\noom_group_kill 1\n");
	put("memory.peak", "67108864\n");
	told = check(2);
	CHECK_INT(told.count, 1);
	CHECK_INT(told.cause, CAUSE_MEMORY);
	CHECK_STRING(told.hit.evidence, "memory.events: oom 1, oom_kill 2");
	clear();
}

static void test_a_refused_fork_goes_on(void)
{
	struct told told;

	put("pids.events", "max 3\n");
	told = check(1);
	CHECK_INT(told.count, 1);
	CHECK_INT(told.name, LIMIT_PIDS);
	CHECK_INT(told.cause, CAUSE_NONE);
	CHECK_STRING(told.hit.evidence, "pids.events: max 3");
	put("pids.events", "max 0\n");
	CHECK_INT(check(1).count, 0);
	clear();
}

static void test_files_that_are_not_there(void)
{
	struct cgroup_reading reading = reading_of(1);

	CHECK_INT(check(1).count, 0);
	CHECK_INT(check(2).count, 0);
	CHECK(!reading.has_peak_memory && !reading.has_peak_pids && !reading.has_cpu);
}

static void test_files_that_make_no_sense(void)
{
	struct cgroup_reading reading;

	put("memory.oom_control", "oom_kill\noom_kill_x 5\nxoom_kill 5\n");
	put("memory.max_usage_in_bytes", "many\n");
	put("pids.peak", "99999999999999999999999999\n");
	put("cpuacct.usage", "\n");
	reading = reading_of(1);
	CHECK_INT(reading.killed_for_memory, 0);
	CHECK(!reading.has_peak_memory && !reading.has_peak_pids && !reading.has_cpu);
	clear();
}

static void test_cpu_time(void)
{
	struct cgroup_reading reading;

	put("cpuacct.usage", "1500000000\n");
	put("cpuacct.usage_user", "1000000000\n");
	put("cpuacct.usage_sys", "500000000\n");
	reading = reading_of(1);
	CHECK(reading.has_cpu);
	CHECK_INT(reading.cpu_ns, 1500000000);
	CHECK_INT(reading.user_ns, 1000000000);
	CHECK_INT(reading.system_ns, 500000000);
	put("cpu.stat", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnr_periods 0\n");
	reading = reading_of(2);
	CHECK_INT(reading.cpu_ns, 1500000);
	CHECK_INT(reading.user_ns, 1000000);
	CHECK_INT(reading.system_ns, 500000);
	clear();
}

/* --- the meter ---------------------------------------------------------------------------------------------- */

/* From here on this process can make no other, as on a host whose user has all that he may have. */
static int use_up_processes(void)
{
	static struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
#ifdef SYS_fork
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fork, 0, 1),
#else
		BPF_STMT(BPF_JMP | BPF_JA, 1),
#endif
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	static const struct sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0 ? -errno : 0;
}

static pid_t start_crowd(void)
{
	pid_t parent = getpid(), first = fork();

	if (first == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		parent = getpid();
		for (int i = 0; i < 5; i++)
			if (fork() == 0)
				break;
		/* One that was made while its parent was killed is not told. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getpid() == parent || getppid() == parent)
			pause();
		_exit(0);
	}
	return first;
}

/* What the limiter says of six processes where two are allowed. */
static struct told hold_crowd(bool has_processes, struct reap_family *family)
{
	static const struct plan plan = {
		.rung = RUNG_LANDLOCK,
		.metered = 1U << GUARANTEE_PIDS,
		.limits = {.memory_bytes = LIMIT_NONE, .pids = 2, .cpu_time_ns = LIMIT_NONE, .disk_bytes = LIMIT_NONE}};
	struct loop *loop = loop_new();
	struct told told = {0};
	struct error error = {0};
	struct limiter limiter;
	pid_t crowd = start_crowd();

	if (limiter_open(&limiter, loop, &plan, family, note, &told, &error) < 0 || !limiter_start(&limiter, crowd))
		_exit(2);
	if (!has_processes && use_up_processes() < 0)
		_exit(3);
	while (!told.count && loop_turn(loop) == 0)
		;
	kill(crowd, SIGKILL);
	return told;
}

/* What one process does that makes none afterwards, and what another does that can. 0: the limit was held. */
static int hold_in_child(bool has_processes)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		struct reap_family family = {0};
		struct told told = hold_crowd(has_processes, &family);

		/* They were counted; whoever looks is one of the family. */
		_exit(told.name != LIMIT_PIDS || told.cause != CAUSE_PIDS || told.hit.peak <= 2 ||
		      family.count != has_processes);
	}
	waitpid(child, &status, 0);
	return status;
}

static void test_a_limit_is_held_by_a_looker_or_without_one(void)
{
	CHECK_INT(hold_in_child(true), 0);
	CHECK_INT(hold_in_child(false), 0);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(test_a_kill_at_our_limit_in_version_1),
		TEST(test_the_peak_of_a_limit_is_that_of_the_run),
		TEST(test_a_kill_that_was_not_for_our_limit),
		TEST(test_a_limit_that_was_reached_without_a_kill),
		TEST(test_a_kill_at_our_limit_in_version_2),
		TEST(test_a_refused_fork_goes_on),
		TEST(test_files_that_are_not_there),
		TEST(test_files_that_make_no_sense),
		TEST(test_cpu_time),
		TEST(test_a_limit_is_held_by_a_looker_or_without_one),
	};
	int rc;

	snprintf(directory, sizeof(directory), "/tmp/belljar-test-limiter-XXXXXX");
	if (!mkdtemp(directory))
		return 2;
	rc = test_main(tests, sizeof(tests) / sizeof(tests[0]));
	rmdir(directory);
	return rc;
}
