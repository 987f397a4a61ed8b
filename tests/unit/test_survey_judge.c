/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_survey_judge.c - which changed paths are a risk
 */
#include "test.h"

#include <sys/stat.h>

#include "survey/survey_judge.h"
#include "survey/survey_names.h"

static const char *who;

/* "bare" and the top of "elsewhere" are repositories without a work tree. */
static bool has(void *context, const char *directory, size_t len, const char *name)
{
	static const char *const names[] = {"HEAD", "objects", "refs"};
	bool is_core = false;

	(void)context;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		is_core |= !strcmp(name, names[i]);
	if (len == 5 && !strncmp(directory, "a/low", 5))
		return !strcmp(name, "HEAD") || !strcmp(name, "commondir");
	return is_core && len == 4 && !strncmp(directory, "bare", 4);
}

static enum risk judge_with(struct risk_rules *rules, const char *path, mode_t mode, enum risk_before before)
{
	struct risk_change change = {path, mode, before};

	who = NULL;
	return survey_risk_judge(rules, &change, &who);
}

static enum risk judge(const char *path, mode_t mode)
{
	struct risk_rules rules = {.has = has};

	return judge_with(&rules, path, mode, RISK_BEFORE_UNKNOWN);
}

static enum risk judge_file(const char *path)
{
	return judge(path, S_IFREG);
}

static void test_protected_names_count_at_the_top(void)
{
	CHECK_INT(judge_file(".envrc"), RISK_PROTECTED);
	CHECK(who && strstr(who, "shell enters"));
	CHECK_INT(judge_file(".vscode/deep/tasks.json"), RISK_PROTECTED);
	CHECK_INT(judge(".vscode", S_IFDIR), RISK_PROTECTED);
	CHECK_INT(judge_file("sub/.bashrc"), RISK_NONE);
	CHECK_INT(judge_file(".envrc2"), RISK_NONE);
	CHECK_INT(judge_file("src/main.c"), RISK_NONE);
	CHECK_INT(judge_file(""), RISK_NONE);
}

static void test_protected_names_are_reported_below_the_top(void)
{
	CHECK_INT(judge_file("sub/.envrc"), RISK_REPORTED);
	CHECK_INT(judge_file("a/b/.vscode/deep/tasks.json"), RISK_REPORTED);
	CHECK_INT(judge_file("sub/.npmrc"), RISK_REPORTED);
	CHECK_INT(judge("sub/.config", S_IFLNK), RISK_REPORTED);
	CHECK_INT(judge_file("sub/.config"), RISK_NONE);
	CHECK_INT(judge_file("sub/.github/workflows/ci.yml"), RISK_NONE);
	CHECK_INT(judge_file("web/.prettierrc.js"), RISK_REPORTED);
	CHECK_INT(judge_file("web/stylelint.config.mjs"), RISK_REPORTED);
	CHECK_INT(judge_file("a/belljar.py"), RISK_REPORTED);
	CHECK_INT(judge_file("a/belljar/__init__.py"), RISK_REPORTED);
	CHECK_INT(judge_file("a/belljar/x.py"), RISK_NONE);
	CHECK_INT(judge("a/belljar", S_IFLNK), RISK_REPORTED);
	CHECK_INT(judge_file("a/node_modules/belljar/index.js"), RISK_REPORTED);
	CHECK_INT(judge_file("a/node_modules/x/index.js"), RISK_NONE);
	CHECK(survey_risk_counts_as_a_whole("a/.vscode") && survey_risk_counts_as_a_whole(".claude/hooks"));
	CHECK(!survey_risk_counts_as_a_whole("a") && !survey_risk_counts_as_a_whole(".claude") &&
	      !survey_risk_counts_as_a_whole("-a"));
}

static void test_something_else_above_a_protected_name_counts(void)
{
	CHECK_INT(judge(".claude", S_IFDIR), RISK_NONE);
	CHECK_INT(judge(".claude", S_IFLNK), RISK_PROTECTED);
	CHECK_INT(judge(".github", 0), RISK_PROTECTED);
	CHECK_INT(judge(".git/info", S_IFLNK), RISK_PROTECTED);
	CHECK_INT(judge("a/.hg", S_IFLNK), RISK_PROTECTED);
}

static void test_repositories_count_at_any_depth(void)
{
	CHECK_INT(judge_file(".git/config"), RISK_PROTECTED);
	CHECK_INT(judge_file("a/b/.git/hooks/post-checkout"), RISK_PROTECTED);
	CHECK_INT(judge_file("a/.git"), RISK_PROTECTED);
	CHECK_INT(judge_file("a/.hg/hgrc"), RISK_PROTECTED);
	CHECK_INT(judge_file("a/.jj/repo"), RISK_PROTECTED);
	CHECK_INT(judge_file("a/.git/HEAD"), RISK_NONE);
	CHECK_INT(judge_file(".git/objects/ab/cdef"), RISK_NONE);
	CHECK_INT(judge(".git", S_IFDIR), RISK_NONE);
	CHECK_INT(judge_file(".git/rebase-merge/strategy"), RISK_REPORTED);
	CHECK_INT(judge_file(".git/refs/heads/hooks/x"), RISK_NONE);
	{
		struct risk_rules rules = {.has = has};

		CHECK_INT(judge_with(&rules, "a/.git", S_IFDIR, RISK_BEFORE_ABSENT), RISK_PROTECTED);
	}
}

static void test_links_in_a_repository_count(void)
{
	CHECK_INT(judge(".git/COMMIT_EDITMSG", S_IFLNK), RISK_PROTECTED);
	CHECK_INT(judge("a/.git/logs/refs/heads/hooks/x", S_IFLNK), RISK_PROTECTED);
	CHECK_INT(judge(".git/modules/objects/logs/HEAD", S_IFLNK), RISK_PROTECTED);
	CHECK_INT(judge("bare/packed-refs", S_IFLNK), RISK_PROTECTED);
	CHECK_INT(judge("a/link", S_IFLNK), RISK_NONE);
}

static void test_repositories_of_submodules_count_by_what_git_obeys(void)
{
	CHECK_INT(judge(".git/modules", S_IFDIR), RISK_PROTECTED);
	CHECK_INT(judge_file(".git/modules/a/config"), RISK_PROTECTED);
	CHECK_INT(judge_file(".git/modules/a/modules/b/hooks/x"), RISK_PROTECTED);
	CHECK_INT(judge_file(".git/modules/with/slash/config"), RISK_PROTECTED);
	CHECK_INT(judge_file(".git/worktrees/a/config.worktree"), RISK_PROTECTED);
	CHECK_INT(judge_file(".git/modules/a/objects/ab/cdef"), RISK_NONE);
	CHECK_INT(judge_file(".git/worktrees/a/index"), RISK_NONE);
}

static void test_repositories_without_a_work_tree_count(void)
{
	CHECK_INT(judge_file("bare/config"), RISK_PROTECTED);
	CHECK_INT(judge_file("bare/hooks/pre-receive"), RISK_PROTECTED);
	CHECK_INT(judge_file("bare/HEAD"), RISK_REPORTED);
	CHECK_INT(judge_file("a/low/commondir"), RISK_PROTECTED);
	CHECK_INT(judge_file("bare/refs/heads/main"), RISK_NONE);
	CHECK_INT(judge_file("other/config"), RISK_NONE);
	CHECK_INT(judge_file("HEAD"), RISK_NONE);
	{
		struct risk_rules rules = {.has = has};

		CHECK_INT(judge_with(&rules, "bare/HEAD", S_IFREG, RISK_BEFORE_THERE), RISK_NONE);
	}
}

static void test_instructions_count_at_any_depth(void)
{
	CHECK_INT(judge_file("AGENTS.md"), RISK_REPORTED);
	CHECK_INT(judge_file("a/b/CLAUDE.md"), RISK_REPORTED);
	CHECK_INT(judge_file("a/CLAUDE.md.txt"), RISK_NONE);
}

static void test_letters_that_file_systems_take_for_the_same(void)
{
	CHECK_INT(judge_file(".GIT/Config"), RISK_PROTECTED);
	CHECK_INT(judge_file("a/.g\xe2\x80\x8cit/config"), RISK_PROTECTED);
	CHECK_INT(judge_file(".git/con\xef\xac\x81g"), RISK_PROTECTED);
	CHECK_INT(judge_file(".git/hoo\xe2\x84\xaas/x"), RISK_PROTECTED);
	CHECK_INT(judge_file("\xc3\xa9/bare/config"), RISK_NONE);
	CHECK_INT(judge_file("\xff\xfe/.git/config"), RISK_PROTECTED);
}

static void test_rules_add_paths_that_no_table_names(void)
{
	struct risk_rules rules = {.has = has};

	CHECK_INT(survey_risk_rules_add(&rules, "tools/hooks",
					&(struct risk_extra){.risk = RISK_PROTECTED, .who = "hooks"}),
		  0);
	CHECK_INT(survey_risk_rules_add(
			  &rules, "bin/run",
			  &(struct risk_extra){.is_only_new = true, .risk = RISK_REPORTED, .who = "git runs it"}),
		  0);
	CHECK_INT(judge_with(&rules, "tools/hooks/pre-commit", S_IFREG, RISK_BEFORE_UNKNOWN), RISK_PROTECTED);
	CHECK_STRING(who, "hooks");
	CHECK_INT(judge_with(&rules, "tools", S_IFLNK, RISK_BEFORE_UNKNOWN), RISK_PROTECTED);
	CHECK_INT(judge_with(&rules, "tools", S_IFDIR, RISK_BEFORE_UNKNOWN), RISK_NONE);
	CHECK_INT(judge_with(&rules, "tools/hooks/AGENTS.md", S_IFREG, RISK_BEFORE_UNKNOWN), RISK_PROTECTED);
	CHECK_INT(judge_with(&rules, "bin/run", S_IFREG, RISK_BEFORE_UNKNOWN), RISK_REPORTED);
	CHECK_INT(judge_with(&rules, "bin/run", S_IFREG, RISK_BEFORE_THERE), RISK_NONE);
	CHECK_INT(judge_with(&rules, "bin/run1", S_IFREG, RISK_BEFORE_UNKNOWN), RISK_NONE);
	survey_risk_rules_done(&rules);
}

/* What the quick look at a name passes over, the judge would never find. */
static void test_the_quick_look_knows_every_name_of_the_tables(void)
{
	static const struct host_name *const tables[] = {survey_protected_names, survey_instruction_names};
	struct risk_names names;
	size_t count = 0;

	survey_risk_names_init(&names);
	for (size_t i = 0; i < 2; i++)
		for (const struct host_name *row = tables[i]; row->name; row++, count++) {
			const char *last = strrchr(row->name, '/');

			last = last ? last + 1 : row->name;
			CHECK(survey_risk_is_known_name(&names, last, strlen(last)));
			CHECK_INT(judge(row->name, S_IFDIR), i ? RISK_REPORTED : RISK_PROTECTED);
		}
	CHECK(count > 100);
	CHECK(survey_risk_is_known_name(&names, ".GIT", 4) && survey_risk_is_known_name(&names, "head", 4));
	CHECK(survey_risk_is_known_name(&names, "\xc3\xa9", 2));
	CHECK(!survey_risk_is_known_name(&names, "main.c", 6) && !survey_risk_is_known_name(&names, "src", 3));
}

static const struct test tests[] = {
	TEST(test_protected_names_count_at_the_top),
	TEST(test_protected_names_are_reported_below_the_top),
	TEST(test_something_else_above_a_protected_name_counts),
	TEST(test_repositories_count_at_any_depth),
	TEST(test_links_in_a_repository_count),
	TEST(test_repositories_of_submodules_count_by_what_git_obeys),
	TEST(test_repositories_without_a_work_tree_count),
	TEST(test_instructions_count_at_any_depth),
	TEST(test_letters_that_file_systems_take_for_the_same),
	TEST(test_rules_add_paths_that_no_table_names),
	TEST(test_the_quick_look_knows_every_name_of_the_tables),
};

int main(void)
{
	return test_main(tests, sizeof(tests) / sizeof(tests[0]));
}
