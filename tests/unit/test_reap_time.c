/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_reap_time.c - which signal is due to a command whose engine says nothing
 */
#include "base/reap/reap_time.h"

#include <signal.h>

#include "base/base.h"
#include "base/sys/calls.h"
#include "test.h"

#define SECOND_NS UINT64_C(1000000000)
#define HOUR_NS (3600 * SECOND_NS)

/* A command that started so long ago, if need be before the machine did. */
static uint64_t begun_before(uint64_t ns)
{
	return sys_monotonic_ns() - ns;
}

static void test_without_a_limit_nothing_is_due(void)
{
	struct reap_time none = {0}, unbegun = {.limit_ns = 1};
	struct timespec left;

	CHECK_INT(reap_time_look(&none, begun_before(HOUR_NS), &left), 0);
	CHECK(left.tv_sec < 0);
	CHECK_INT(reap_time_look(&unbegun, 0, &left), 0);
	CHECK(left.tv_sec < 0);
}

static void test_before_the_limit_it_tells_how_long_to_wait(void)
{
	struct reap_time time = {.limit_ns = 2 * HOUR_NS, .grace_ns = 1};
	struct timespec left;

	CHECK_INT(reap_time_look(&time, begun_before(HOUR_NS), &left), 0);
	CHECK(left.tv_sec > 1800 && left.tv_sec <= 3600);
}

static void test_the_grace_begins_when_the_command_was_told(void)
{
	struct reap_time time = {.limit_ns = SECOND_NS, .grace_ns = HOUR_NS};
	uint64_t begun = begun_before(24 * HOUR_NS); /* the whole machine stood still */
	struct timespec left;

	CHECK_INT(reap_time_look(&time, begun, &left), SIGTERM);
	CHECK_INT(left.tv_sec, 0);
	CHECK_INT(reap_time_look(&time, begun, &left), SIGCONT);
	CHECK_INT(reap_time_look(&time, begun, &left), 0);
	CHECK(left.tv_sec > 1800 && left.tv_sec <= 3600);
	CHECK_INT(reap_time_look(&time, begun - 2 * HOUR_NS, &left), SIGKILL);
	CHECK_INT(reap_time_look(&time, begun - 2 * HOUR_NS, &left), 0);
	CHECK(left.tv_sec < 0);
}

static void test_without_a_grace_it_is_killed(void)
{
	struct reap_time time = {.limit_ns = SECOND_NS};
	struct timespec left;

	CHECK_INT(reap_time_look(&time, begun_before(HOUR_NS), &left), SIGKILL);
}

static void test_what_the_engine_has_sent_is_not_sent_again(void)
{
	static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct reap_time time = {.limit_ns = SECOND_NS, .grace_ns = 2 * HOUR_NS};
		uint64_t begun = begun_before(HOUR_NS);
		struct timespec left;

		reap_time_note_signal(&time, begun, SIGUSR1);
		CHECK_INT(time.grace_ns, 2 * HOUR_NS);
		reap_time_note_signal(&time, begun, ends[i]);
		CHECK_INT(reap_time_look(&time, begun, &left), 0);
		CHECK(left.tv_sec > 3600 && left.tv_sec <= 7200);
		CHECK_INT(reap_time_look(&time, begun - 3 * HOUR_NS, &left), SIGKILL);
	}
}

static void test_a_signal_before_the_limit_shortens_nothing(void)
{
	struct reap_time time = {.limit_ns = 2 * HOUR_NS, .grace_ns = HOUR_NS};
	uint64_t begun = begun_before(HOUR_NS);
	struct timespec left;

	reap_time_note_signal(&time, begun, SIGTERM);
	CHECK_INT(reap_time_look(&time, begun, &left), 0);
	CHECK(left.tv_sec > 3600 && left.tv_sec <= 7200);
}

static const struct test tests[] = {
	TEST(test_without_a_limit_nothing_is_due),
	TEST(test_before_the_limit_it_tells_how_long_to_wait),
	TEST(test_the_grace_begins_when_the_command_was_told),
	TEST(test_without_a_grace_it_is_killed),
	TEST(test_what_the_engine_has_sent_is_not_sent_again),
	TEST(test_a_signal_before_the_limit_shortens_nothing),
};

TEST_MAIN(tests)
