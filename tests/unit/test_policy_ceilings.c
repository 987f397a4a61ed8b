/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_policy_ceilings.c - what was given for a jar is a ceiling for its runs
 */
#include "policy/policy_build.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)

static const struct policy_context context = {.current_directory = "/project", .home = "/home/user"};

#define AUTO_POLICY AUTO(policy_done) struct policy

static void load(struct policy *policy, const char *document)
{
	struct error error = {0};

	CHECK_INT(policy_init(policy, &context, &error), 0);
	CHECK_INT(policy_load_document(policy, document, strlen(document), "test", "/project", &context, &error), 0);
	CHECK_STRING(error.message, "");
}

static void test_a_run_gets_no_more_than_was_given(void)
{
	AUTO_POLICY jar = {0}, run = {0};

	load(&jar, "{\"timeout\": 1, \"memory\": \"256M\", \"pids\": 50, \"fds\": 64}");
	load(&run, "{\"timeout\": null, \"memory\": \"8G\", \"pids\": 20, \"fds\": 4096, \"grace\": \"1h\"}");
	policy_hold(&run, &jar, 0, SHARES_ALL);
	CHECK_INT(run.limits.timeout_ns, SECOND);
	CHECK_INT(run.limits.memory_bytes, 256 * MIB);
	CHECK_INT(run.limits.pids, 20);
	CHECK_INT(run.limits.fds, 64);
	/* With a timeout comes its grace. */
	CHECK_INT(run.limits.grace_ns, jar.limits.grace_ns);
}

static void test_a_default_is_no_ceiling_but_for_what_the_jar_shares(void)
{
	AUTO_POLICY jar = {0}, run = {0};

	load(&jar, "{}");
	load(&run, "{\"timeout\": 60, \"fds\": 4096, \"pids\": 4000}");
	policy_hold(&run, &jar, 0, SHARES_ALL);
	CHECK_INT(run.limits.timeout_ns, 60 * SECOND);
	CHECK_INT(run.limits.fds, 4096);
	CHECK_INT(run.limits.pids, jar.limits.pids);
	policy_done(&run);
	run = (struct policy){0};
	load(&run, "{\"pids\": 4000}");
	policy_hold(&run, &jar, 0, SHARES_NOTHING);
	CHECK_INT(run.limits.pids, 4000);
}

static const struct test tests[] = {
	TEST(test_a_run_gets_no_more_than_was_given),
	TEST(test_a_default_is_no_ceiling_but_for_what_the_jar_shares),
};

TEST_MAIN(tests)
