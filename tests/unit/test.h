/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test.h - the least a unit test needs: named tests, checks that say what differed, a count at the end
 *
 * Each test program lists its tests in a table and calls test_main(). A failed check is reported and the test goes on,
 * so that one run shows everything that is wrong. Output is one "ok NAME" or "FAIL NAME" line per test, which the runner
 * counts.
 */
#ifndef BELLJAR_TESTS_UNIT_TEST_H
#define BELLJAR_TESTS_UNIT_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct test {
	const char *name;
	void (*function)(void);
};

static int test_failed_checks;

#define TEST(test_function)                                                                                            \
	{                                                                                                              \
		.name = #test_function, .function = (test_function)                                                    \
	}

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                               \
			test_failed_checks++;                                                                          \
		}                                                                                                      \
	} while (0)

#define CHECK_INT(actual, expected)                                                                                    \
	do {                                                                                                           \
		long long actual_value = (long long)(actual), expected_value = (long long)(expected);                  \
		if (actual_value != expected_value) {                                                                  \
			printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual, actual_value,             \
			       expected_value);                                                                        \
			test_failed_checks++;                                                                          \
		}                                                                                                      \
	} while (0)

#define CHECK_STRING(actual, expected)                                                                                 \
	do {                                                                                                           \
		const char *actual_string = (actual), *expected_string = (expected);                                   \
		if (!actual_string || strcmp(actual_string, expected_string) != 0) {                                   \
			printf("%s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #actual,                       \
			       actual_string ? actual_string : "(null)", expected_string);                             \
			test_failed_checks++;                                                                          \
		}                                                                                                      \
	} while (0)

static inline int test_main(const struct test *tests, size_t count)
{
	int failed = 0;

	for (size_t i = 0; i < count; i++) {
		test_failed_checks = 0;
		tests[i].function();
		printf("%s %s\n", test_failed_checks ? "FAIL" : "ok", tests[i].name);
		failed += test_failed_checks != 0;
		fflush(stdout);
	}
	return failed != 0;
}

#define TEST_MAIN(tests)                                                                                               \
	int main(void)                                                                                                 \
	{                                                                                                              \
		return test_main(tests, sizeof(tests) / sizeof((tests)[0]));                                           \
	}

#endif
