/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_candidates.c - where a command is looked for, and where it is not
 */
#include "plan/plan_build.h"
#include "test.h"

static struct plan plan;

static void look_for(const char *name, const char *path)
{
	struct plan_build build = {.plan = &plan};

	plan = (struct plan){0};
	string_list_add(&plan.core.argv, name);
	string_list_add(&plan.core.env, "PATHS=/nowhere");
	if (path)
		string_list_add_format(&plan.core.env, "PATH=%s", path);
	plan_candidates(&build);
	CHECK(!build.has_failed);
}

static void done(void)
{
	plan_done(&plan);
}

static void test_a_name_is_looked_for_in_path(void)
{
	look_for("tool", "/a:/b/c");
	CHECK_INT(plan.core.candidates.count, 2);
	CHECK_STRING(plan.core.candidates.items[0], "/a/tool");
	CHECK_STRING(plan.core.candidates.items[1], "/b/c/tool");
	done();
}

static void test_relative_and_empty_entries_are_not_searched(void)
{
	look_for("tool", ":.:bin:/a::./b:");
	CHECK_INT(plan.core.candidates.count, 1);
	CHECK_STRING(plan.core.candidates.items[0], "/a/tool");
	done();
	look_for("tool", "");
	CHECK_INT(plan.core.candidates.count, 0);
	done();
}

static void test_without_path_there_is_a_usual_one(void)
{
	look_for("tool", NULL);
	CHECK_INT(plan.core.candidates.count, 3);
	CHECK_STRING(plan.core.candidates.items[0], "/usr/local/bin/tool");
	CHECK_STRING(plan.core.candidates.items[2], "/bin/tool");
	done();
}

static void test_a_path_is_taken_as_it_is(void)
{
	look_for("./tool", "/a");
	CHECK_INT(plan.core.candidates.count, 1);
	CHECK_STRING(plan.core.candidates.items[0], "./tool");
	done();
}

static void test_an_empty_name_is_nothing(void)
{
	look_for("", "/a:/b");
	CHECK_INT(plan.core.candidates.count, 0);
	done();
}

static void test_what_is_too_long_for_a_path_is_left_out(void)
{
	char name[4092];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	look_for(name, "/abc:/a");
	CHECK_INT(plan.core.candidates.count, 1);
	CHECK(plan.core.candidates.count == 1 && !strncmp(plan.core.candidates.items[0], "/a/x", 4));
	done();
}

static const struct test tests[] = {
	TEST(test_a_name_is_looked_for_in_path),      TEST(test_relative_and_empty_entries_are_not_searched),
	TEST(test_without_path_there_is_a_usual_one), TEST(test_a_path_is_taken_as_it_is),
	TEST(test_an_empty_name_is_nothing),          TEST(test_what_is_too_long_for_a_path_is_left_out),
};

TEST_MAIN(tests)
