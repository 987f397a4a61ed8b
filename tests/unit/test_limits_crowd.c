/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_limits_crowd.c - which processes are a crowd, and on which processors they may run then
 *
 * Each test has a first process, another one in its session as a minder is, and below that a command with children.
 */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "limits/crowd.h"
#include "test.h"

#define CHILDREN_MAX 24
#define TRIES_MAX 100

/* All of them, in the order in which they were made. */
struct family {
	pid_t first, minder, command, children[CHILDREN_MAX];
	int count;
};

static struct processors all, fewer;

static void tell_and_stay(int fd)
{
	pid_t pid = getpid();

	if (write(fd, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	for (;;)
		pause();
}

static void be_command(int fd, int count)
{
	pid_t pid = getpid();

	setsid();
	if (write(fd, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	for (int i = 0; i < count; i++)
		if (fork() == 0)
			tell_and_stay(fd);
	for (;;)
		pause();
}

static void be_minder(int fd, int count)
{
	pid_t pid = getpid();

	if (write(fd, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	if (fork() == 0)
		be_command(fd, count);
	for (;;)
		pause();
}

static struct family make_family(int count)
{
	struct family family = {.count = count};
	pid_t pids[CHILDREN_MAX + 2];
	int ends[2];

	CHECK(pipe(ends) == 0);
	family.first = fork();
	if (family.first == 0) {
		setsid();
		if (fork() == 0)
			be_minder(ends[1], count);
		for (;;)
			pause();
	}
	for (int i = 0; i < count + 2; i++)
		CHECK_INT(read(ends[0], &pids[i], sizeof(pids[i])), sizeof(pids[i]));
	close(ends[0]);
	close(ends[1]);
	family.minder = pids[0];
	family.command = pids[1];
	memcpy(family.children, pids + 2, (size_t)count * sizeof(pids[0]));
	return family;
}

static void end_family(const struct family *family)
{
	kill(-family->command, SIGKILL);
	kill(family->minder, SIGKILL);
	kill(family->first, SIGKILL);
	CHECK_INT(waitpid(family->first, NULL, 0), family->first);
}

static bool has(pid_t pid, const struct processors *expected)
{
	struct processors now = {0};

	return syscall(SYS_sched_getaffinity, pid, sizeof(now.bits), now.bits) > 0 &&
	       !memcmp(now.bits, expected->bits, sizeof(now.bits));
}

static void check_commands(const struct family *family, const struct processors *expected)
{
	CHECK(has(family->first, &all));
	CHECK(has(family->minder, &all));
	CHECK(has(family->command, expected));
	for (int i = 0; i < family->count; i++)
		CHECK(has(family->children[i], expected));
}

static void grow_older(long milliseconds)
{
	nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

static void test_all_but_the_first(void)
{
	CHECK_INT(processor_all_but_one(&all, &fewer), CPU_COUNT((cpu_set_t *)all.bits));
	CHECK_INT(CPU_COUNT((cpu_set_t *)fewer.bits), CPU_COUNT((cpu_set_t *)all.bits) - 1);
	CHECK(has(0, &all));
}

/* A crowd that is confined; before that the command, or its first child, has chosen processors. On a slow host it may grow too old before. */
static struct family confine_crowd(const struct processors *for_command, const struct processors *for_child)
{
	struct family family;

	for (int tries = 0; tries < TRIES_MAX; tries++) {
		family = make_family(CHILDREN_MAX);
		if (for_command)
			CHECK(syscall(SYS_sched_setaffinity, family.command, all.len, for_command->bits) == 0);
		if (for_child)
			CHECK(syscall(SYS_sched_setaffinity, family.children[0], all.len, for_child->bits) == 0);
		if (crowd_confine(family.first, &fewer, false))
			return family;
		end_family(&family);
	}
	CHECK(!"a crowd was seen");
	return make_family(CHILDREN_MAX);
}

static void test_many_that_are_new_are_a_crowd(void)
{
	struct family family = confine_crowd(NULL, NULL);

	check_commands(&family, &fewer);
	CHECK(crowd_release(family.first, &all, &fewer));
	check_commands(&family, &all);
	CHECK(!crowd_release(family.first, &all, &fewer));
	end_family(&family);
}

static void test_few_are_none(void)
{
	struct family family = make_family(2);

	CHECK(!crowd_confine(family.first, &fewer, false));
	check_commands(&family, &all);
	end_family(&family);
}

/* As compilers do. */
static void test_some_that_live_on_are_none(void)
{
	struct family family = make_family(8);

	grow_older(80);
	CHECK(!crowd_confine(family.first, &fewer, false));
	check_commands(&family, &all);
	end_family(&family);
}

static void test_many_that_live_on_are_none(void)
{
	struct family family = make_family(CHILDREN_MAX);

	grow_older(200);
	CHECK(!crowd_confine(family.first, &fewer, false));
	check_commands(&family, &all);
	end_family(&family);
}

static void test_what_a_process_chose_is_not_given_back(void)
{
	struct processors last = {0};
	struct family family;
	int number = -1;

	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, (cpu_set_t *)fewer.bits))
			number = i;
	CPU_SET(number, (cpu_set_t *)last.bits);
	family = confine_crowd(NULL, &last);
	CHECK(has(family.children[0], &last));
	crowd_release(family.first, &all, &fewer);
	/* With two processors nobody can tell what was chosen from what was left. */
	CHECK(has(family.children[0], CPU_COUNT((cpu_set_t *)all.bits) > 2 ? &last : &all));
	end_family(&family);
}

/* It cannot stay: there the others are to have their turn. */
static void test_who_chose_the_first_one_gets_others(void)
{
	struct processors first = all;
	struct family family;

	for (size_t i = 0; i < ARRAY_LEN(first.bits); i++)
		first.bits[i] &= ~fewer.bits[i];
	family = confine_crowd(&first, NULL);
	CHECK(has(family.command, &fewer));
	end_family(&family);
}

static void test_nobody_is_there(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK(!crowd_confine(pid, &fewer, false));
	CHECK(!crowd_release(pid, &all, &fewer));
}

int main(void)
{
	static const struct test tests[] = {
		TEST(test_all_but_the_first),
		TEST(test_nobody_is_there),
		TEST(test_many_that_are_new_are_a_crowd),
		TEST(test_few_are_none),
		TEST(test_some_that_live_on_are_none),
		TEST(test_many_that_live_on_are_none),
		TEST(test_what_a_process_chose_is_not_given_back),
		TEST(test_who_chose_the_first_one_gets_others),
	};

	/* With one processor there is nothing to take. */
	return test_main(tests, processor_all_but_one(&all, &fewer) > 1 ? ARRAY_LEN(tests) : 2);
}
