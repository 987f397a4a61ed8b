/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_calls.c - the plan of a jar for calls: who stands in front of the walls, and who behind them
 */
#include "test.h"

#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include "bpf_simulator.h"
#include "imagined_plan.h"
#include "base/sys/calls.h"
#include "plan/seccomp/syscall_numbers.h"

static char *no_environment[] = {NULL};
static const char *const files[] = {"/usr/bin/", "/home/u/a/b/c/", "/home/u/link -> a/b", NULL};

static void compile(struct imagined_plan *made, bool is_for_calls)
{
	made->rc = plan_compile_jar(&made->plan, is_for_calls ? PLAN_CALLS : PLAN_SESSION, &made->policy, &made->host,
				    is_for_calls ? &(struct plan_request){.argv = &made->argv} : NULL, &made->error);
}

static void make(struct imagined_plan *made, const char *const *flags)
{
	imagine(made, files, flags, no_environment, "zygote");
	compile(made, true);
}

static bool has_step(const struct plan_step_list *list, enum step_kind kind)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind == kind)
			return true;
	return false;
}

static int answer_to(const struct sock_filter *filter, size_t len, int number, uint64_t argument)
{
	static const uint32_t audit_archs[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64};
	const struct seccomp_data data = {.nr = number, .arch = audit_archs[syscall_native_arch()], .args = {argument}};

	return simulator_answer(filter, len, &data);
}

static int answer(const struct sock_filter *filter, size_t len, int number)
{
	return answer_to(filter, len, number, 0);
}

static bool asks(const struct jar_filter *filter, int number)
{
	return answer(filter->program, filter->len, number) == SIMULATOR_ASKED;
}

static const enum step_kind walls[] = {STEP_PRIVILEGES, STEP_LANDLOCK, STEP_SECCOMP};

static void test_every_fork_puts_the_walls_up_itself(void)
{
	struct imagined_plan jar;

	make(&jar, NULL);
	CHECK_INT(jar.rc, 0);
	CHECK(plan_is_for_calls(&jar.plan));
	CHECK_STRING(jar.plan.core.argv.items[0], "zygote");
	for (size_t i = 0; i < ARRAY_LEN(walls); i++) {
		CHECK(!has_step(&jar.plan.core.steps, walls[i]));
		CHECK(has_step(&jar.plan.core.entry, walls[i]));
	}
	imagined_plan_done(&jar);
}

static void test_without_a_zygote_they_are_the_jars(void)
{
	struct imagined_plan jar;

	imagine(&jar, files, NULL, no_environment, "zygote");
	compile(&jar, false);
	CHECK_INT(jar.rc, 0);
	CHECK(!plan_is_for_calls(&jar.plan));
	CHECK(!jar.plan.core.zygote.filter.program);
	for (size_t i = 0; i < ARRAY_LEN(walls); i++)
		CHECK(has_step(&jar.plan.core.steps, walls[i]));
	imagined_plan_done(&jar);
}

static void test_the_zygote_enters_namespaces_and_mounts_nothing(void)
{
	struct imagined_plan jar;

	make(&jar, NULL);
	CHECK_INT(answer(jar.plan.core.zygote.filter.program, jar.plan.core.zygote.filter.len, SYS_setns), 0);
	CHECK(asks(&jar.plan.core.zygote.filter, SYS_mount)); /* and nobody listens */
	CHECK(asks(&jar.plan.core.zygote.filter, SYS_chroot));
	CHECK(asks(&jar.plan.core.zygote.filter, SYS_bpf));
	CHECK(asks(&jar.plan.core.filter, SYS_setns));
	CHECK(asks(&jar.plan.core.filter, SYS_mount));
	imagined_plan_done(&jar);
}

static void test_a_call_has_its_jars_walls_and_no_scope_of_its_own(void)
{
	struct imagined_plan jar;
	struct plan run;

	make(&jar, NULL);
	CHECK_INT(plan_compile_run(&run, &jar.plan, &jar.policy, &jar.host,
				   &(struct plan_request){.argv = &jar.plan.core.argv}, &jar.error),
		  0);
	for (size_t i = 0; i < ARRAY_LEN(walls); i++)
		CHECK(has_step(&run.core.entry, walls[i]));
	CHECK(!has_step(&run.core.entry, STEP_SCOPE)); /* it sees nobody whom it could signal */
	plan_done(&run);
	imagined_plan_done(&jar);
}

static void test_it_needs_namespaces(void)
{
	struct imagined_plan jar;

	imagine(&jar, files, NULL, no_environment, "zygote");
	jar.host.has_user_namespaces = false;
	compile(&jar, true);
	CHECK(jar.rc < 0);
	CHECK_INT(jar.error.stage, STAGE_HOST);
	CHECK(strstr(jar.error.message, "a jar for calls"));
	CHECK(jar.error.hint[0]);
	imagined_plan_done(&jar);
}

static const struct plan_step *find(const struct plan_step_list *list, enum step_kind kind, const char *target)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind == kind && (!target || !strcmp(list->items[i].target, target)))
			return &list->items[i];
	return NULL;
}

static void test_private_places_are_made_anew(void)
{
	static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm", "/run", "/home/u"};
	struct imagined_plan jar;

	make(&jar, NULL);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		CHECK(find(&jar.plan.core.zygote.anew, STEP_PRIVATE, places[i]));
	CHECK(find(&jar.plan.core.zygote.anew, STEP_SCRATCH, NULL));
	CHECK(find(&jar.plan.core.zygote.anew, STEP_DEVPTS, NULL));
	CHECK(find(&jar.plan.core.zygote.anew, STEP_PROC, "/proc"));
	imagined_plan_done(&jar);
}

static void test_what_was_put_into_a_private_place_comes_along(void)
{
	struct imagined_plan jar;

	make(&jar, NULL);
	CHECK(find(&jar.plan.core.zygote.anew, STEP_BIND, "/home/u/p"));
	CHECK(find(&jar.plan.core.zygote.anew, STEP_FILE, "/home/u/.gitconfig"));
	imagined_plan_done(&jar);
}

static void test_what_lies_deep_in_a_private_place_comes_along(void)
{
	struct imagined_plan jar;

	make(&jar, (const char *const[]){"ro", "/home/u/a/b/c", NULL});
	CHECK(find(&jar.plan.core.zygote.anew, STEP_BIND, "/home/u/a/b/c"));
	imagined_plan_done(&jar);
	make(&jar, (const char *const[]){"ro", "/home/u/link", NULL});
	CHECK(find(&jar.plan.core.zygote.anew, STEP_SYMLINK, "/home/u/link"));
	imagined_plan_done(&jar);
}

static void test_proc_is_read_only_for_calls_once_it_is_there(void)
{
	const struct plan_step *proc, *lock;
	struct imagined_plan jar;

	make(&jar, NULL);
	proc = find(&jar.plan.core.zygote.anew, STEP_PROC, "/proc");
	lock = find(&jar.plan.core.zygote.anew, STEP_PROC_LOCK, "/proc");
	CHECK(proc && lock && proc < lock);
	CHECK(!has_step(&jar.plan.core.steps, STEP_PROC_LOCK));
	imagined_plan_done(&jar);
}

static void test_one_device_shows_who_is_behind_landlock(void)
{
	struct imagined_plan jar;
	size_t devices = 0, open_devices = 0;

	make(&jar, NULL);
	CHECK_STRING(jar.plan.core.zygote.landlock_probe, "/dev/full");
	for (size_t i = 0; i < jar.plan.core.landlock.count; i++) {
		const struct plan_landlock_rule *rule = &jar.plan.core.landlock.items[i];

		if (strncmp(rule->path, "/dev/", 5) != 0 || !strcmp(rule->path, "/dev/shm"))
			continue;
		devices++;
		open_devices += (rule->access & SYS_LANDLOCK_IOCTL_DEV) != 0;
		CHECK_INT((rule->access & SYS_LANDLOCK_IOCTL_DEV) == 0, !strcmp(rule->path, "/dev/full"));
	}
	CHECK(devices > 2);
	CHECK_INT(open_devices, devices - 1);
	imagined_plan_done(&jar);
}

static void test_a_call_makes_no_child_of_the_zygotes(void)
{
	struct imagined_plan jar;

	make(&jar, NULL);
	CHECK_INT(answer_to(jar.plan.core.filter.program, jar.plan.core.filter.len, SYS_clone, CLONE_PARENT | SIGCHLD),
		  EINVAL);
	CHECK_INT(answer_to(jar.plan.core.filter.program, jar.plan.core.filter.len, SYS_clone, SIGCHLD), 0);
	CHECK_INT(answer(jar.plan.core.filter.program, jar.plan.core.filter.len, SYS_clone3), ENOSYS);
	imagined_plan_done(&jar);
}

static void test_what_does_not_lie_in_a_private_place_is_not_made_anew(void)
{
	struct imagined_plan jar;

	make(&jar, NULL);
	CHECK(find(&jar.plan.core.steps, STEP_BIND, "/usr"));
	CHECK(!find(&jar.plan.core.zygote.anew, STEP_BIND, "/usr"));
	CHECK(!find(&jar.plan.core.zygote.anew, STEP_ROOT, NULL));
	CHECK(!find(&jar.plan.core.zygote.anew, STEP_SEAL, NULL));
	imagined_plan_done(&jar);
}

static void test_nothing_is_made_anew_without_calls(void)
{
	struct imagined_plan jar;

	imagine(&jar, files, NULL, no_environment, "zygote");
	compile(&jar, false);
	CHECK_INT(jar.plan.core.zygote.anew.count, 0);
	imagined_plan_done(&jar);
}

static const struct test tests[] = {
	TEST(test_every_fork_puts_the_walls_up_itself),
	TEST(test_without_a_zygote_they_are_the_jars),
	TEST(test_the_zygote_enters_namespaces_and_mounts_nothing),
	TEST(test_a_call_has_its_jars_walls_and_no_scope_of_its_own),
	TEST(test_it_needs_namespaces),
	TEST(test_private_places_are_made_anew),
	TEST(test_what_was_put_into_a_private_place_comes_along),
	TEST(test_what_lies_deep_in_a_private_place_comes_along),
	TEST(test_proc_is_read_only_for_calls_once_it_is_there),
	TEST(test_one_device_shows_who_is_behind_landlock),
	TEST(test_a_call_makes_no_child_of_the_zygotes),
	TEST(test_what_does_not_lie_in_a_private_place_is_not_made_anew),
	TEST(test_nothing_is_made_anew_without_calls),
};

TEST_MAIN(tests)
