/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_calls.c - the plan of a jar for calls: who stands in front of the walls, and who behind them
 */
#include "test.h"

#include <errno.h>
#include <linux/audit.h>
#include <sys/syscall.h>

#include "bpf_simulator.h"
#include "imagined_host.h"
#include "plan/plan.h"
#include "policy/policy_build.h"
#include "sys/syscall_numbers.h"

static const struct policy_context context = {.current_directory = "/home/u/p", .home = "/home/u"};
static char *no_environment[] = {NULL};

struct made {
	struct policy policy;
	struct host host;
	struct plan plan;
	struct error error;
	struct imagined_files files;
	struct string_list argv;
	int rc;
};

static void make(struct made *made, bool has_user_namespaces, bool has_zygote)
{
	*made = (struct made){0};
	imagine_file(&made->files, "/home/u/p/");
	CHECK_INT(policy_init(&made->policy, &context, &made->error), 0);
	made->host = (struct host){
		.has_user_namespaces = has_user_namespaces,
		.has_seccomp = true,
		.landlock_abi = 7,
		.uid = 1000,
		.gid = 1000,
		.home = strdup("/home/u"),
		.real_home = strdup("/home/u"),
		.run_directory = strdup("/tmp/run"),
		.environment = no_environment,
		.argument_bytes_max = 1 << 20,
		.memory_bytes = 1 << 30,
	};
	imagined_survey(&made->host, &made->files, &made->policy, "/home/u/p", NULL);
	string_list_add(&made->argv, "zygote");
	made->rc = plan_compile_jar(&made->plan, PLAN_KEPT, &made->policy, &made->host,
				    has_zygote ? &(struct plan_request){.argv = &made->argv} : NULL, &made->error);
}

static void done(struct made *made)
{
	made->host.environment = NULL;
	plan_done(&made->plan);
	host_done(&made->host);
	policy_done(&made->policy);
	string_list_done(&made->argv);
}

static bool has_step(const struct plan_step_list *list, enum step_kind kind)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind == kind)
			return true;
	return false;
}

static int answer(const struct sock_filter *filter, size_t len, int number)
{
	static const uint32_t audit_archs[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64};
	const struct seccomp_data data = {.nr = number, .arch = audit_archs[syscall_native_arch()]};

	return simulator_answer(filter, len, &data);
}

static const enum step_kind walls[] = {STEP_PRIVILEGES, STEP_LANDLOCK, STEP_SECCOMP};

static void test_every_fork_puts_the_walls_up_itself(void)
{
	struct made jar;

	make(&jar, true, true);
	CHECK_INT(jar.rc, 0);
	CHECK(jar.plan.has_zygote);
	CHECK_STRING(jar.plan.argv.items[0], "zygote");
	for (size_t i = 0; i < ARRAY_LEN(walls); i++) {
		CHECK(!has_step(&jar.plan.steps, walls[i]));
		CHECK(has_step(&jar.plan.entry, walls[i]));
	}
	done(&jar);
}

static void test_without_a_zygote_they_are_the_jars(void)
{
	struct made jar;

	make(&jar, true, false);
	CHECK_INT(jar.rc, 0);
	CHECK(!jar.plan.has_zygote);
	CHECK(!jar.plan.zygote_filter);
	for (size_t i = 0; i < ARRAY_LEN(walls); i++)
		CHECK(has_step(&jar.plan.steps, walls[i]));
	done(&jar);
}

static void test_the_zygote_enters_namespaces_and_mounts_nothing(void)
{
	struct made jar;

	make(&jar, true, true);
	CHECK_INT(answer(jar.plan.zygote_filter, jar.plan.zygote_filter_len, SYS_setns), 0);
	CHECK_INT(answer(jar.plan.zygote_filter, jar.plan.zygote_filter_len, SYS_mount), EPERM);
	CHECK_INT(answer(jar.plan.zygote_filter, jar.plan.zygote_filter_len, SYS_chroot), EPERM);
	CHECK_INT(answer(jar.plan.zygote_filter, jar.plan.zygote_filter_len, SYS_bpf), EPERM);
	CHECK_INT(answer(jar.plan.filter, jar.plan.filter_len, SYS_setns), EPERM);
	CHECK_INT(answer(jar.plan.filter, jar.plan.filter_len, SYS_mount), EPERM);
	done(&jar);
}

static void test_a_call_has_its_jars_walls_and_no_scope_of_its_own(void)
{
	struct made jar;
	struct plan run;

	make(&jar, true, true);
	CHECK_INT(plan_compile_run(&run, &jar.plan, &jar.policy, &jar.host,
				   &(struct plan_request){.argv = &jar.plan.argv}, &jar.error),
		  0);
	for (size_t i = 0; i < ARRAY_LEN(walls); i++)
		CHECK(has_step(&run.entry, walls[i]));
	CHECK(!has_step(&run.entry, STEP_SCOPE)); /* it sees nobody whom it could signal */
	plan_done(&run);
	done(&jar);
}

static void test_it_needs_namespaces(void)
{
	struct made jar;

	make(&jar, false, true);
	CHECK(jar.rc < 0);
	CHECK_INT(jar.error.stage, STAGE_HOST);
	CHECK(strstr(jar.error.message, "a jar for calls"));
	CHECK(jar.error.hint[0]);
	done(&jar);
}

static const struct test tests[] = {
	TEST(test_every_fork_puts_the_walls_up_itself),
	TEST(test_without_a_zygote_they_are_the_jars),
	TEST(test_the_zygote_enters_namespaces_and_mounts_nothing),
	TEST(test_a_call_has_its_jars_walls_and_no_scope_of_its_own),
	TEST(test_it_needs_namespaces),
};

TEST_MAIN(tests)
