/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_run_session_limits.c - limits of a jar and of its runs, and what each has used as reported
 */
#include "session_scene.h"

static void test_limits_above_the_jars_are_refused(void)
{
	static const char *const jar[] = {"memory", "256M", "pids", "50", NULL};
	static const char *const more[] = {"memory", "257M", NULL};
	static const char *const none[] = {"memory", "none", NULL};
	static const char *const pids[] = {"pids", "51", NULL};
	const char *const *const refused[] = {more, none, pids};
	struct scene scene;
	struct one one;

	if (!open_jar(&scene, RUNG_NAMESPACE, PLAN_SESSION, jar))
		return;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		const struct extras extras = {.flags = refused[i]};

		CHECK(start(&one, &scene, "true", &extras) < 0);
		CHECK_INT(one.error.stage, STAGE_POLICY);
		finish(&one);
	}
	close_jar(&scene);
}

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
		session_close(scene.jar);
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

static const struct test tests[] = {
	TEST(test_limits_above_the_jars_are_refused), TEST(test_memory_of_a_run_and_of_the_jar),
	TEST(test_each_run_reports_its_own_usage),    TEST(test_a_refused_fork_of_a_killed_run_is_listed),
	TEST(test_memory_of_a_prepared_jar),          TEST(test_cpu_time_of_a_run),
	TEST(test_a_full_jar_refuses_runs),
};

int main(void)
{
	return session_main(tests, ARRAY_LEN(tests));
}
