/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_run_session_death.c - commands, minders, first processes and runs that end before their time
 */
#include "session_scene.h"

static void test_a_command_cannot_end_its_minder_or_the_jar(void)
{
	static const char *const scripts[] = {
		"kill -9 -1; exit 7",
		"kill -9 $PPID; sleep 0.1; exit 7",
		"kill -STOP $PPID; kill -STOP -1; exit 7",
		"kill -9 1; exit 7",
	};
	struct scene scene;
	struct one lasting, one;

	if (!open_jar(&scene, RUNG_NAMESPACE, PLAN_SESSION, NULL))
		return;
	CHECK(stand(&scene));
	CHECK_INT(start(&lasting, &scene, "sleep 100", NULL), 0);
	CHECK(wait_for(&scene, &lasting.has_started));
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		CHECK_INT(start(&one, &scene, scripts[i], NULL), 0);
		ended(&one);
		if (scene.plan.core.landlock_abi >= 6) {
			CHECK_INT(run_observation(one.run)->status, 7 << 8);
			CHECK(!lasting.is_done);
		}
		finish(&one);
		CHECK(!scene.is_gone);
	}
	run_script(&scene, &one, "echo well", 0);
	finish(&one);
	jar_close(scene.jar);
	ended(&lasting);
	finish(&lasting);
	close_jar(&scene);
}

/* Without the scope for signals, as on a kernel before Landlock's ABI 6: everything dies, nothing hangs, the jar lives. */
static void test_killed_minders_are_survived(void)
{
	static const char *const scripts[] = {
		"(setsid sleep 1000 &); kill -9 $PPID; sleep 1000",
		"(setsid sleep 1000 &); kill -STOP $PPID; exit 1",
		"kill -9 -1; sleep 1000",
	};
	struct scene scene;
	struct one one;

	if (!open_jar(&scene, RUNG_NAMESPACE, PLAN_SESSION, NULL))
		return;
	CHECK(stand(&scene));
	scene.plan.core.landlock_abi = 5;
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		CHECK_INT(start(&one, &scene, scripts[i], NULL), 0);
		check_cause(&one, CAUSE_NONE);
		/* A minder may be dead before it could say that the command runs; then the run says that. */
		CHECK(run_observation(one.run)->has_started || run_observation(one.run)->error.stage == STAGE_ENGINE);
		finish(&one);
		CHECK(!scene.is_gone);
		run_script(&scene, &one, "ps -e 2>/dev/null | grep -c '[s]leep'; exit 0", 0);
		CHECK_STRING(one.output[STREAM_STDOUT], "0\n");
		finish(&one);
	}
	close_jar(&scene);
}

static void test_the_first_process_may_die(void)
{
	struct scene scene;
	struct one one;

	FOR_EACH_RUNG(scene, PLAN_SESSION, NULL)
	{
		CHECK_INT(start(&one, &scene, "(setsid sleep 1000 &); echo up; sleep 1000", NULL), 0);
		CHECK(wait_for(&scene, &one.has_started));
		CHECK(scene.family.count >= 1); /* who looks for the limits may be there too */
		CHECK_INT(kill(scene.family.items[0], SIGKILL), 0);
		ended(&one);
		CHECK_INT(run_observation(one.run)->status, SIGKILL);
		CHECK(wait_for(&scene, &scene.is_gone));
		finish(&one);
		close_jar(&scene);
	}
}

static void test_a_run_that_is_freed_is_killed(void)
{
	struct scene scene;
	struct one one, two;

	FOR_EACH_RUNG(scene, PLAN_SESSION, NULL)
	{
		CHECK_INT(start(&one, &scene, "echo $$ > pid; sleep 1000", NULL), 0);
		CHECK(wait_for(&scene, &one.has_started));
		run_script(&scene, &two, "while ! [ -s pid ]; do sleep 0.01; done", 0);
		finish(&two);
		finish(&one);
		run_script(&scene, &two, "while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done", 0);
		finish(&two);
		close_jar(&scene);
	}
}

static const struct test tests[] = {
	TEST(test_a_command_cannot_end_its_minder_or_the_jar),
	TEST(test_killed_minders_are_survived),
	TEST(test_the_first_process_may_die),
	TEST(test_a_run_that_is_freed_is_killed),
};

int main(void)
{
	return session_main(tests, ARRAY_LEN(tests));
}
