/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_signals.c - every signal has a name, and every name its signal
 */
#include "base/signals.h"

#include <signal.h>

#include "test.h"

static void test_names_and_numbers_agree(void)
{
	for (int number = 1; number <= 64; number++)
		CHECK_INT(signal_number(signal_name(number)), number);
	CHECK_STRING(signal_name(SIGKILL), "SIGKILL");
	CHECK_STRING(signal_name(34), "SIGRTMIN+0");
	CHECK_STRING(signal_name(64), "SIGRTMIN+30");
	CHECK_STRING(signal_name(32), "SIG32");
}

static void test_others_have_none(void)
{
	CHECK_STRING(signal_name(0), "no signal");
	CHECK_STRING(signal_name(65), "no signal");
	CHECK_INT(signal_number("SIGNONE"), 0);
}

static const struct test tests[] = {
	TEST(test_names_and_numbers_agree),
	TEST(test_others_have_none),
};

TEST_MAIN(tests)
