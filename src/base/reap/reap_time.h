/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/reap/reap_time.h - the time that a command has, kept by the process in charge of it
 *
 * The engine ends a command whose time is over. But the engine may be stopped, get no processor, or wake after a
 * suspend. So the process in charge keeps the time too: it ends the command a little later, with the same grace.
 */
#ifndef BELLJAR_BASE_REAP_REAP_TIME_H
#define BELLJAR_BASE_REAP_REAP_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct reap_time {
	uint64_t limit_ns; /* from the command's start on; 0: none */
	uint64_t grace_ns; /* then between SIGTERM and SIGKILL; 0: none, or SIGTERM was sent */
	bool is_continued; /* SIGCONT is due: a stopped process takes no SIGTERM before that */
};

/*
 * Return the signal that is due now, once, for a command that started at @begun_ns; 0: none. *left_out: how long to
 * wait for the next; its seconds are negative if none will follow.
 */
int reap_time_look(struct reap_time *time, uint64_t begun_ns, struct timespec *left_out);
/* Note a signal that the engine sent. If it ends a command, the grace begins with it. */
void reap_time_note_signal(struct reap_time *time, uint64_t begun_ns, int number);

#endif
