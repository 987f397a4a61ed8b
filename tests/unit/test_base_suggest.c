/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_suggest.c - what counts as near
 */
#include "base/suggest.h"

#include "test.h"

static const char *const words[] = {"timeout", "cpu_time", "memory", "rw", "ro", "net", "pids", "redact", NULL};

static void test_one_slip_is_near(void)
{
	CHECK_STRING(suggest_from("tiemout", words), "timeout");
	CHECK_STRING(suggest_from("timeot", words), "timeout");
	CHECK_STRING(suggest_from("timeoutt", words), "timeout");
	CHECK_STRING(suggest_from("cpu-time", words), "cpu_time");
	CHECK_STRING(suggest_from("cputime", words), "cpu_time");
	CHECK_STRING(suggest_from("TIMEOUT", words), "timeout");
	CHECK_STRING(suggest_from("ner", words), "net");
	CHECK_STRING(suggest_from("pid", words), "pids");
}

static void test_another_word_is_not_near(void)
{
	CHECK(!suggest_from("banana", words));
	CHECK(!suggest_from("x", words));
	CHECK(!suggest_from("", words));
	CHECK(!suggest_from("xy", words));
	CHECK(!suggest_from("time", words));
}

static void test_the_nearest_wins(void)
{
	static const char *const near[] = {"redacts", "redact", "react", NULL};

	CHECK_STRING(suggest_from("redact", near), "redact");
	CHECK_STRING(suggest_from("reac", near), "react");
}

static void test_long_words_are_left_alone(void)
{
	char word[5000];
	const char *list[] = {word, NULL};

	memset(word, 'a', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	CHECK(!suggest_from(word, words));
	CHECK(!suggest_from("aaaa", list));
	word[40] = '\0';
	CHECK_STRING(suggest_from(word, list), word);
}

static void test_no_candidates(void)
{
	static const char *const none[] = {NULL};

	CHECK(!suggest_from("timeout", none));
}

static const struct test tests[] = {
	TEST(test_one_slip_is_near), TEST(test_another_word_is_not_near),
	TEST(test_the_nearest_wins), TEST(test_long_words_are_left_alone),
	TEST(test_no_candidates),
};

TEST_MAIN(tests)
