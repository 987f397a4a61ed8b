/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_survey_globs.c - patterns of paths: which texts are patterns, what they match, and which files hold secrets
 */
#include "test.h"

#include "survey/survey_globs.h"
#include "policy/policy_patterns.h"
#include "policy/secret_files.h"

static bool matches(const char *pattern, const char *name)
{
	return policy_pattern_matches(pattern, strlen(pattern), name);
}

static void test_a_text_with_a_character_that_means_others_is_a_pattern(void)
{
	CHECK(policy_pattern_is("*") && policy_pattern_is("a?b") && policy_pattern_is("a/[bc]/d") &&
	      policy_pattern_is("**/x") && policy_pattern_is("\\\\*"));
	CHECK(!policy_pattern_is("") && !policy_pattern_is("a/b") && !policy_pattern_is("a\\*b") &&
	      !policy_pattern_is("a[b") && !policy_pattern_is("\\[b]"));
	CHECK(!policy_pattern_is("a\\b"));
}

static void test_names_match_by_star_question_mark_and_class(void)
{
	CHECK(matches("*", "x") && matches("*", ".env") && matches("*.pem", "a.pem") && matches("a*b*c", "aXbYbZc"));
	CHECK(!matches("*.pem", "a.pem.txt") && !matches("a*b", "aXc") && !matches("", "x"));
	CHECK(matches("a?c", "abc") && !matches("a?c", "ac") && matches("[a-c]x", "bx") && !matches("[a-c]x", "dx"));
	CHECK(matches("[!a]", "b") && !matches("[!a]", "a") && matches("[^a]", "b") && matches("[]x]", "]"));
	CHECK(matches("[a\\]]", "]") && matches("\\*x", "*x") && !matches("\\*x", "ax") && matches("a[b", "a[b"));
	CHECK(!matches("a\\", "a") && matches("a\\", "a\\"));
}

/* Files of web projects have such names; the one that was written is meant as well. */
static void test_a_name_that_is_the_text_of_the_pattern_matches(void)
{
	CHECK(matches("[id].tsx", "[id].tsx") && matches("[id].tsx", "i.tsx") && !matches("[id].tsx", "x.tsx"));
}

static void test_a_quoted_path_means_itself(void)
{
	static const char *const paths[] = {"/a*b", "/[x]", "/back\\slash", "/a?", "/plain", "/two\\\\"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		AUTO_TEXT quoted = {0};

		policy_pattern_quote(&quoted, paths[i]);
		CHECK(!policy_pattern_is(text_string(&quoted)));
		policy_pattern_unquote(quoted.data);
		CHECK_STRING(quoted.data, paths[i]);
	}
}

static void test_the_prefix_ends_before_the_first_name_that_means_others(void)
{
	CHECK_INT(policy_pattern_prefix("/a/b/*.c"), 4);
	CHECK_INT(policy_pattern_prefix("**/x"), 0);
	CHECK_INT(policy_pattern_prefix("a/b*/c"), 1);
	CHECK_INT(policy_pattern_prefix("/*"), 0);
}

static void test_paths_match_patterns_of_any_depth(void)
{
	CHECK(survey_glob_matches("**/.env", "/w", "/w/.env") && survey_glob_matches("**/.env", "/w", "/w/a/b/.env"));
	CHECK(!survey_glob_matches("**/.env", "/w", "/x/.env") && !survey_glob_matches("**/.env", "/w", "/w/.envs"));
	CHECK(survey_glob_matches("**/.env", "", "a/.env"));
	CHECK(survey_glob_matches("a/**/b", "/w", "/w/a/b") && survey_glob_matches("a/**/b", "/w", "/w/a/x/y/b"));
	CHECK(survey_glob_matches("a/**", "/w", "/w/a/x") && !survey_glob_matches("a/**", "/w", "/w/a"));
	CHECK(survey_glob_matches("/etc/*.conf", "/w", "/etc/x.conf") &&
	      !survey_glob_matches("/etc/*.conf", "/w", "/etc/a/x.conf"));
	CHECK(survey_glob_matches("*.d", "/w", "/w/x.d/inside"));
	/* A directory of the way may have characters that would mean others. */
	CHECK(survey_glob_matches("*.c", "/w*", "/w*/x.c") && !survey_glob_matches("*.c", "/w*", "/wx/x.c"));
}

static bool is_secret(const char *name)
{
	const char *glob = NULL;

	return policy_secret_file_of(name, &glob) != SECRET_NONE;
}

static void test_secrets_are_told_from_their_examples(void)
{
	const char *glob = NULL;

	CHECK(is_secret(".env") && is_secret(".env.local") && is_secret("server.pem") && is_secret("credentials.json"));
	CHECK(is_secret("terraform.tfstate") && is_secret("store.kdbx") && is_secret(".netrc") && is_secret(".pypirc"));
	CHECK(!is_secret(".env.example") && !is_secret(".env.sample") && !is_secret(".env.template"));
	CHECK(!is_secret("id_rsa.pub") && !is_secret("environment") && !is_secret("main.c") && !is_secret(""));
	CHECK_INT(policy_secret_file_of("id_rsa", &glob), SECRET_BY_CONTENT);
	CHECK(policy_secret_file_has(glob, "-----BEGIN OPENSSH PRIVATE KEY-----", 35) &&
	      !policy_secret_file_has(glob, "import os", 9));
	CHECK_INT(policy_secret_file_of(".npmrc", &glob), SECRET_BY_CONTENT);
	CHECK(policy_secret_file_has(glob, "//r/:_authToken=x", 17) &&
	      !policy_secret_file_has(glob, "save-exact=true", 15));
	CHECK(policy_secret_file_is_tools("node_modules") && !policy_secret_file_is_tools("src"));
}

static const struct test tests[] = {
	TEST(test_a_text_with_a_character_that_means_others_is_a_pattern),
	TEST(test_names_match_by_star_question_mark_and_class),
	TEST(test_a_name_that_is_the_text_of_the_pattern_matches),
	TEST(test_a_quoted_path_means_itself),
	TEST(test_the_prefix_ends_before_the_first_name_that_means_others),
	TEST(test_paths_match_patterns_of_any_depth),
	TEST(test_secrets_are_told_from_their_examples),
};

int main(void)
{
	return test_main(tests, sizeof(tests) / sizeof(tests[0]));
}
