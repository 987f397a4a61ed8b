/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/reap/reap_time.c - see reap_time.h
 */
#include "base/reap/reap_time.h"

#include <signal.h>

#include "base/base.h"
#include "base/sys/calls.h"

#define SECOND_NS UINT64_C(1000000000)
/* How much later than the engine, which reports why it ends a command. */
#define LATE_NS (SECOND_NS / 4)

static uint64_t spent_ns(uint64_t begun_ns)
{
	return sys_monotonic_ns() - begun_ns;
}

/* Begin the grace: SIGTERM was sent @at_ns after the start, perhaps before the limit. */
static void begin_grace(struct reap_time *time, uint64_t at_ns)
{
	time->limit_ns = MAX_OF(time->limit_ns, at_ns) + time->grace_ns;
	time->grace_ns = 0;
}

int reap_time_look(struct reap_time *time, uint64_t begun_ns, struct timespec *left_out)
{
	uint64_t spent = spent_ns(begun_ns), left = time->limit_ns + LATE_NS - MIN_OF(spent, time->limit_ns + LATE_NS);
	int due = 0;

	if (!time->limit_ns || !begun_ns) {
		*left_out = (struct timespec){.tv_sec = -1};
		return 0;
	}
	if (time->is_continued) {
		time->is_continued = false;
		due = SIGCONT;
	} else if (!left && time->grace_ns) {
		begin_grace(time, spent);
		time->is_continued = true;
		due = SIGTERM;
	} else if (!left) {
		time->limit_ns = 0;
		due = SIGKILL;
	}
	if (due)
		left = 0;
	*left_out = (struct timespec){(time_t)(left / SECOND_NS), (long)(left % SECOND_NS)};
	return due;
}

void reap_time_note_signal(struct reap_time *time, uint64_t begun_ns, int number)
{
	if (time->grace_ns && (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT))
		begin_grace(time, spent_ns(begun_ns));
}
