/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_run_session_limits.c - limits of a jar and of its runs, and what each has used as reported
 */
#include "session_scene.h"

#include "base/reap/reap_children.h"
#include "engine/jar/jar_parts.h"

/* Fills memory until it is stopped. The command is known to run before it takes more memory than the engine can look at in time. */
#define HOG "sleep 0.3; exec tail /dev/zero"

static void test_memory_of_a_run_and_of_the_jar(void)
{
	/* A meter counts the jar's own processes too, each of which takes 40 MB with the sanitizers' shadow stacks. */
	static const char *const jar[] = {"memory", "600M", NULL};
	static const char *const own[] = {"memory", "40M", NULL};
	const struct extras extras = {.flags = own};
	struct scene scene;
	struct one lasting, one;

	FOR_EACH_RUNG(scene, PLAN_SESSION, jar)
	{
		CHECK_INT(start(&lasting, &scene, "sleep 100", NULL), 0);
		CHECK_INT(start(&one, &scene, HOG, &extras), 0);
		check_cause(&one, CAUSE_MEMORY);
		CHECK_INT(run_observation(one.run)->limits[LIMIT_MEMORY].limit, 40 << 20);
		finish(&one);
		CHECK_INT(start(&one, &scene, HOG, NULL), 0);
		check_cause(&one, CAUSE_MEMORY);
		CHECK_INT(run_observation(one.run)->limits[LIMIT_MEMORY].limit, 600 << 20);
		finish(&one);
		run_script(&scene, &one, "echo well", 0);
		finish(&one);
		CHECK(!lasting.is_done);
		jar_close(scene.jar);
		check_cause(&lasting, CAUSE_CANCELLED);
		finish(&lasting);
		close_jar(&scene);
	}
}

static void test_each_run_reports_its_own_usage(void)
{
	static const char *const jar[] = {"memory", "600M", NULL};
	const struct observation *seen;
	uint64_t used_us;
	struct scene scene;
	struct one one;

	FOR_EACH_RUNG(scene, PLAN_SESSION, jar)
	{
		run_script(&scene, &one, "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done", 0);
		seen = run_observation(one.run);
		used_us = seen->user_us + seen->system_us;
		CHECK(used_us > 0);
		finish(&one);
		for (int i = 0; i < 12; i++) {
			run_script(&scene, &one, ":", 0);
			seen = run_observation(one.run);
			CHECK(seen->user_us + seen->system_us < used_us);
			CHECK(seen->peak_memory_bytes > 0);
			finish(&one);
		}
		close_jar(&scene);
	}
}

/* Whoever has counted says so also when the command was killed, and could not be asked at its own end. */
static void test_a_refused_fork_of_a_killed_run_is_listed(void)
{
	static const char *const jar[] = {"pids", "64", NULL};
	static const char *const own[] = {"pids", "5", "timeout", "500ms", "grace", "0", NULL};
	const struct extras extras = {.flags = own};
	struct scene scene;
	struct one one;

	for (int kind = PLAN_PREPARED; kind <= PLAN_SESSION; kind++) {
		if (!open_jar(&scene, RUNG_NAMESPACE, (enum plan_kind)kind, kind == PLAN_SESSION ? jar : own))
			return;
		CHECK_INT(
			start(&one, &scene, "(while :; do sleep 100 & done) 2>/dev/null; while :; do :; done", &extras),
			0);
		check_cause(&one, CAUSE_TIMEOUT);
		CHECK_INT(run_observation(one.run)->limits[LIMIT_PIDS].is_hit, one.plan.cgroup.pids != NULL);
		finish(&one);
		close_jar(&scene);
	}
}

static void test_memory_of_a_prepared_jar(void)
{
	static const char *const jar[] = {"memory", "50M", NULL};
	struct scene scene;
	struct one one;

	FOR_EACH_RUNG(scene, PLAN_PREPARED, jar)
	{
		CHECK_INT(start(&one, &scene, HOG, NULL), 0);
		check_cause(&one, CAUSE_MEMORY);
		finish(&one);
		CHECK(wait_for(&scene, &scene.is_gone));
		close_jar(&scene);
	}
}

static void test_cpu_time_of_a_run(void)
{
	static const char *const jar[] = {"cpu-time", "10s", NULL};
	static const char *const own[] = {"cpu-time", "300ms", NULL};
	const struct extras extras = {.flags = own};
	struct scene scene;
	struct one one;

	FOR_EACH_RUNG(scene, PLAN_SESSION, jar)
	{
		for (int i = 0; i < 3; i++) {
			CHECK_INT(start(&one, &scene, "while :; do :; done", &extras), 0);
			check_cause(&one, CAUSE_CPU);
			finish(&one);
		}
		run_script(&scene, &one, "echo well", 0);
		finish(&one);
		close_jar(&scene);
	}
}

/* The whole user namespace's, or the cgroup's, room for processes is used up: a new run is refused, not waited for. */
static void test_a_full_jar_refuses_runs(void)
{
	static const char *const jar[] = {"pids", "20", NULL};
	struct scene scene;
	struct one one, two;

	if (!open_jar(&scene, RUNG_NAMESPACE, PLAN_SESSION, jar))
		return;
	CHECK_INT(start(&one, &scene, "while :; do sleep 100 & done 2>/dev/null; wait", NULL), 0);
	CHECK(wait_for(&scene, &one.has_started));
	pass_time(&scene, 500000000);
	CHECK_INT(start(&two, &scene, "true", NULL), 0);
	ended(&two);
	finish(&two);
	run_cancel(one.run, SIGKILL);
	run_cancel(one.run, SIGKILL);
	ended(&one);
	finish(&one);
	run_script(&scene, &one, "true", 0);
	finish(&one);
	close_jar(&scene);
}

/* --- a minder that is late to say that its command has started ----------------------------------------------- */

struct held {
	pid_t first, minder;
};

static bool note_minder(void *owner, pid_t number)
{
	*(pid_t *)owner = number;
	return false;
}

/* The minder of the next run says nothing, and the first process does not wake it. The command runs without them. */
static struct held hold_minder(struct scene *scene)
{
	struct held held = {.first = scene->jar->jar.pid};
	AUTO_CLOSE int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (!scene->jar->slots || scene->jar->slots->minder != MINDER_ANSWERED)
		pass_time(scene, 1000000);
	CHECK(!scene->jar->slots->next);
	reap_each_child(proc_fd, held.first, held.first, note_minder, &held.minder);
	CHECK(held.minder > 0);
	CHECK_INT(kill(held.first, SIGSTOP), 0);
	if (held.minder > 0)
		CHECK_INT(kill(held.minder, SIGSTOP), 0);
	return held;
}

static void release_minder(struct scene *scene, const struct held *held, const struct one *one)
{
	if (held->minder > 0)
		kill(held->minder, SIGCONT);
	CHECK(wait_for(scene, &one->has_started));
	kill(held->first, SIGCONT);
}

/* The jar is found over its limit before the engine knows that the command has started: that limit has ended the run. */
static void test_a_limit_that_comes_before_the_news_of_the_start_is_named(void)
{
	static const char *const jar[] = {"memory", "300M", NULL};
	const struct observation *seen;
	struct limiter_usage usage = {0};
	unsigned run_count;
	struct scene scene;
	struct held held;
	struct one one;

	is_without_cgroups = true;
	FOR_EACH_RUNG(scene, PLAN_SESSION, jar)
	{
		CHECK(stand(&scene));
		held = hold_minder(&scene);
		CHECK_INT(start(&one, &scene, "head -c 400M /dev/zero | tail -c 400M | sleep 100", NULL), 0);
		for (int i = 0; i < 4000 && usage.memory_bytes <= 300 << 20; i++) {
			pass_time(&scene, 5000000);
			jar_usage(scene.jar, &usage, &run_count);
		}
		pass_time(&scene, 100000000);
		CHECK(!one.has_started);
		release_minder(&scene, &held, &one);
		check_cause(&one, CAUSE_MEMORY);
		seen = run_observation(one.run);
		CHECK(seen->limits[LIMIT_MEMORY].is_hit);
		CHECK_INT(seen->limits[LIMIT_MEMORY].limit, 300 << 20);
		CHECK(seen->metered >> GUARANTEE_MEMORY & 1);
		finish(&one);
		usage.memory_bytes = 0;
		close_jar(&scene);
	}
	is_without_cgroups = false;
}

/* A full private place refuses by itself and ends no run, not even one that is only just starting. */
static void test_a_full_place_ends_no_run_that_is_starting(void)
{
	static const char *const jar[] = {"disk", "4M", NULL};
	struct scene scene;
	struct held held;
	struct one one;

	if (!open_jar(&scene, RUNG_NAMESPACE, PLAN_SESSION, jar))
		return;
	if (!stand(&scene))
		return;
	held = hold_minder(&scene);
	CHECK_INT(start(&one, &scene, "cat /dev/zero >/tmp/full 2>/dev/null; sleep 0.3; echo well", NULL), 0);
	pass_time(&scene, 300000000);
	CHECK(!one.has_started);
	release_minder(&scene, &held, &one);
	check_cause(&one, CAUSE_NONE);
	CHECK_STRING(one.output[STREAM_STDOUT], "well\n");
	CHECK(run_observation(one.run)->limits[LIMIT_DISK].is_hit);
	finish(&one);
	close_jar(&scene);
}

/* All news of it is there at once: also then the result says who looked. */
static void test_a_run_that_is_over_before_it_is_heard_of_was_looked_at(void)
{
	static const char *const jar[] = {"memory", "300M", NULL};
	struct scene scene;
	struct one one;

	is_without_cgroups = true;
	FOR_EACH_RUNG(scene, PLAN_SESSION, jar)
	{
		CHECK(stand(&scene));
		pass_time(&scene, 100000000);
		CHECK_INT(start(&one, &scene, "true", NULL), 0);
		usleep(500000);
		check_cause(&one, CAUSE_NONE);
		CHECK(run_observation(one.run)->metered >> GUARANTEE_MEMORY & 1);
		finish(&one);
		close_jar(&scene);
	}
	is_without_cgroups = false;
}

static bool stop_minder(void *owner, pid_t number)
{
	(void)owner;
	CHECK_INT(kill(number, SIGSTOP), 0);
	return true;
}

/* Of a run that is only just starting nobody knows what it has: the others are not ended for it at once. */
static void test_a_jar_over_its_limit_waits_for_news_of_a_start(void)
{
	static const char *const jar[] = {"memory", "300M", NULL};
	AUTO_CLOSE int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct scene scene;
	struct one lasting, one;
	unsigned over_looks = 0;

	is_without_cgroups = true;
	if (!open_jar(&scene, RUNG_NAMESPACE, PLAN_SESSION, jar))
		return;
	CHECK_INT(start(&lasting, &scene, "sleep 100", NULL), 0);
	CHECK(wait_for(&scene, &lasting.has_started));
	pass_time(&scene, 300000000);
	CHECK_INT(kill(scene.jar->jar.pid, SIGSTOP), 0);
	reap_each_child(proc_fd, scene.jar->jar.pid, scene.jar->jar.pid, stop_minder, NULL);
	CHECK_INT(start(&one, &scene, "head -c 400M /dev/zero | tail -c 400M | sleep 100", NULL), 0);
	for (int i = 0; i < 20000 && over_looks < 3 && !run_observation(lasting.run)->cause; i++) {
		pass_time(&scene, 1000000);
		over_looks = scene.jar->over_looks;
	}
	CHECK_INT(over_looks, 3);
	CHECK(!one.has_started);
	CHECK_INT(run_observation(lasting.run)->cause, CAUSE_NONE);
	/* A signal that kills ends all of a pid namespace, also what is stopped. */
	jar_close(scene.jar);
	ended(&one);
	check_cause(&lasting, CAUSE_CANCELLED);
	finish(&one);
	finish(&lasting);
	close_jar(&scene);
	is_without_cgroups = false;
}

/* --- what cgroups of version 2 say, on hosts that have none --------------------------------------------------- */

#define NOTHING_KILLED "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"
#define ONE_KILLED "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n"

/* As if memory was held by a cgroup whose files are in a directory of ours. */
static void forge_cgroup(struct limiter *limiter, const char *events)
{
	char path[] = "/tmp/belljar-session-cgroup-XXXXXX";
	AUTO_CLOSE int fd = -1, file = -1;

	CHECK(mkdtemp(path) != NULL);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	file = openat(fd, "memory.events", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(write(file, events, strlen(events)), (long)strlen(events));
	limiter->metered = 0;
	limiter->reading = (struct meter_reading){0};
	limiter->cgroup.version = 2;
	limiter->cgroup.fds[CGROUP_MEMORY] = take_fd(&fd);
}

static void remove_forged(struct limiter *limiter)
{
	char link[64], path[128] = {0};

	snprintf(link, sizeof(link), "/proc/self/fd/%d", limiter->cgroup.fds[CGROUP_MEMORY]);
	CHECK(readlink(link, path, sizeof(path) - 1) > 0);
	unlinkat(limiter->cgroup.fds[CGROUP_MEMORY], "memory.events", 0);
	CHECK_INT(rmdir(path), 0);
	close_fd(&limiter->cgroup.fds[CGROUP_MEMORY]);
	limiter->cgroup.version = 0;
}

/* The jar's file counts what is below it, and comes first: the run that the kernel has hit is named, and no other, then or later. */
static void test_a_kill_in_a_cgroup_ends_the_run_that_was_hit(void)
{
	static const char *const jar[] = {"memory", "300M", NULL};
	struct one hit, other;
	struct scene scene;
	struct slot *slot;

	is_without_cgroups = true;
	if (!open_jar(&scene, RUNG_NAMESPACE, PLAN_SESSION, jar))
		return;
	CHECK_INT(start(&hit, &scene, "sleep 100", NULL), 0);
	CHECK(wait_for(&scene, &hit.has_started));
	for (slot = scene.jar->slots; slot && !jar_slot_has_run(slot);)
		slot = slot->next;
	CHECK_INT(start(&other, &scene, "sleep 100", NULL), 0);
	CHECK(wait_for(&scene, &other.has_started));
	forge_cgroup(&scene.jar->limiter, ONE_KILLED);
	for (struct slot *each = scene.jar->slots; each; each = each->next)
		if (jar_slot_has_run(each))
			forge_cgroup(&each->limiter, each == slot ? ONE_KILLED : NOTHING_KILLED);
	limiter_check(&scene.jar->limiter, false);
	CHECK_INT(run_observation(hit.run)->cause, CAUSE_MEMORY);
	check_cause(&hit, CAUSE_MEMORY);
	for (int i = 0; i < 10; i++) {
		limiter_check(&scene.jar->limiter, false);
		pass_time(&scene, 5000000);
	}
	CHECK_INT(run_observation(other.run)->cause, CAUSE_NONE);
	for (struct slot *each = scene.jar->slots; each; each = each->next)
		if (each->limiter.cgroup.version)
			remove_forged(&each->limiter);
	remove_forged(&scene.jar->limiter);
	jar_close(scene.jar);
	check_cause(&other, CAUSE_CANCELLED);
	finish(&hit);
	finish(&other);
	close_jar(&scene);
	is_without_cgroups = false;
}

static const struct test tests[] = {
	TEST(test_memory_of_a_run_and_of_the_jar),
	TEST(test_each_run_reports_its_own_usage),
	TEST(test_a_refused_fork_of_a_killed_run_is_listed),
	TEST(test_memory_of_a_prepared_jar),
	TEST(test_cpu_time_of_a_run),
	TEST(test_a_full_jar_refuses_runs),
	TEST(test_a_limit_that_comes_before_the_news_of_the_start_is_named),
	TEST(test_a_full_place_ends_no_run_that_is_starting),
	TEST(test_a_run_that_is_over_before_it_is_heard_of_was_looked_at),
	TEST(test_a_jar_over_its_limit_waits_for_news_of_a_start),
	TEST(test_a_kill_in_a_cgroup_ends_the_run_that_was_hit),
};

int main(void)
{
	return session_main(tests, ARRAY_LEN(tests));
}
