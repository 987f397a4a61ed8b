/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_paths.c - what lies in a directory, by its name
 */
#include "test.h"

#include "base/paths.h"

static void test_a_directory_is_within_itself(void)
{
	CHECK(path_is_within("/a", "/a"));
	CHECK(path_is_within("/a/b", "/a/b"));
	CHECK(path_is_within("/", "/"));
}

static void test_what_is_below_a_directory_is_within_it(void)
{
	CHECK(path_is_within("/a/b", "/a"));
	CHECK(path_is_within("/a/b/c", "/a/b"));
	CHECK(path_is_within("/a/b/c", "/a"));
	CHECK(!path_is_within("/a", "/a/b"));
	CHECK(!path_is_within("/b/a", "/a"));
}

static void test_within_is_about_names_not_about_letters(void)
{
	CHECK(!path_is_within("/ab", "/a"));
	CHECK(!path_is_within("/a-b/c", "/a"));
	CHECK(!path_is_within("/a", "/ab"));
	CHECK(!path_is_within("/a.b", "/a"));
}

static void test_every_absolute_path_is_within_the_root(void)
{
	CHECK(path_is_within("/a", "/"));
	CHECK(path_is_within("/a/b", "/"));
	CHECK(!path_is_within("a", "/"));
	CHECK(!path_is_within("/", "/a"));
}

static const struct test tests[] = {
	TEST(test_a_directory_is_within_itself),
	TEST(test_what_is_below_a_directory_is_within_it),
	TEST(test_within_is_about_names_not_about_letters),
	TEST(test_every_absolute_path_is_within_the_root),
};

TEST_MAIN(tests)
