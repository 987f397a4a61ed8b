/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits/crowd.h - keep a storm of processes away from one processor
 *
 * Where processes are made faster than they get their turn, the kernel gives nobody else one: a deadline is noticed seconds late,
 * and other jars stand still (docs/design/0073). The kernel lets an ordinary user do one thing about it: say on which
 * processors a process may run. So a jar with such a crowd has all processors but the first one, which stays free for the engine, for
 * those that watch over commands, and for other jars. When it is over, the jar has them all again.
 */
#ifndef BELLJAR_LIMITS_CROWD_H
#define BELLJAR_LIMITS_CROWD_H

#include <sys/types.h>

#include "base/loop.h"
#include "base/processor.h"
#include "reap/reap.h"

/* Does anything run in the jar? */
typedef bool crowd_function(const void *owner);

struct crowd;

/* Of the jar whose first process is @root. NULL: there is one processor only, or no memory for what is only about time. */
struct crowd *crowd_new(struct loop *loop, struct reap_family *family, pid_t root, crowd_function *is_busy,
			const void *owner);
/* Look every now and then, as long as anything runs. */
void crowd_watch(struct crowd *crowd);
/* Since crowd_watch() last had to begin. Accepts NULL. */
bool crowd_was_confined(const struct crowd *crowd);
/* Accepts NULL. What is at work is ended, and reaped from the loop. */
void crowd_free(struct crowd *crowd);

/* --- crowd_walk.c: in a process made for it ---------------------------------------------------------------------- */

/* If the commands below @root are a crowd, let them run on no others than @fewer. @is_again: they were one. True: they are. */
bool crowd_confine(pid_t root, const struct processors *fewer, bool is_again);
/* Give @all to those that have @fewer. True: some had. */
bool crowd_release(pid_t root, const struct processors *all, const struct processors *fewer);

#endif
