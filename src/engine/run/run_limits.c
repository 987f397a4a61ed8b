/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/run_limits.c - which limits a run has reached, and the first thing that ended it
 *
 * This file measures time and output. The command's wait status shows the limit on file size. The limiter and the gate
 * hold the others. Each limit is reported once. The run keeps the first cause, and none after the command's own end.
 */
#include "engine/run/run_parts.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* --- telling ------------------------------------------------------------------------------------------------ */

static void note_limit(struct run *run, enum limit_name name, const struct limit_hit *hit)
{
	if (run->seen.limits[name].is_hit)
		return;
	run->seen.limits[name] = *hit;
	if (run->request.listener.limit)
		run->request.listener.limit(run->request.listener.owner, name, hit);
}

static void hit_limit(struct run *run, enum limit_name name, uint64_t limit, uint64_t peak, const char *evidence)
{
	struct limit_hit hit = {
		.is_hit = true, .limit = limit, .peak = peak, .has_peak = true, .enforced_by = "engine"};

	snprintf(hit.evidence, sizeof(hit.evidence), "%s", evidence);
	note_limit(run, name, &hit);
}

void run_set_cause(struct run *run, enum cause cause)
{
	if (run->seen.cause == CAUSE_NONE && !run->seen.has_status)
		run->seen.cause = cause;
}

/* --- time --------------------------------------------------------------------------------------------------- */

static void note_timeout(struct run *run, uint64_t elapsed_ns)
{
	char evidence[96];

	snprintf(evidence, sizeof(evidence), "monotonic clock: %llu ms since the run began",
		 (unsigned long long)(elapsed_ns / 1000000));
	hit_limit(run, LIMIT_TIMEOUT, run->plan->limits.timeout_ns / 1000000, elapsed_ns / 1000000, evidence);
	run_set_cause(run, CAUSE_TIMEOUT);
}

static void on_deadline(struct loop_timer *timer)
{
	struct run *run = timer->owner;

	jar_slot_poll(
		run->slot); /* the command may have ended in time, or begun, and then it has its time from there on */
	if (run->state > STATE_RUNNING ||
	    (run->state == STATE_RUNNING && run_elapsed_ns(run) < run->plan->limits.timeout_ns))
		return;
	note_timeout(run, run_elapsed_ns(run));
	run_handle(run, EVENT_SOFT_END);
}

/* The news that the command has ended may come before that of its deadline, which passed before. */
static void check_deadline(struct run *run, uint64_t ended_ns)
{
	uint64_t elapsed_ns = ended_ns - MIN_OF(ended_ns, run->begun_ns);

	if (run->state == STATE_RUNNING && !run->request.is_held && run->seen.cause == CAUSE_NONE &&
	    elapsed_ns > run->plan->limits.timeout_ns)
		note_timeout(run, elapsed_ns);
}

void run_arm_deadline(struct run *run, uint64_t allowance_ns)
{
	uint64_t timeout_ns = run->plan->limits.timeout_ns;

	if (timeout_ns != LIMIT_NONE)
		loop_arm(run->loop, &run->deadline, run->begun_ns + timeout_ns + allowance_ns, on_deadline, run);
}

/* --- other limits ------------------------------------------------------------------------------------------- */

/*
 * The making of the jar or the command went over the limit: on a busy host the minder reports the start late.
 * If that report still comes, it was the command. Before the start ignore a limit that does not end the run.
 */
static void end_early(struct run *run, enum limit_name name, const struct limit_hit *hit, enum cause cause)
{
	if (cause == CAUSE_NONE)
		return;
	if (run->early.cause == CAUSE_NONE) {
		run->early.name = name;
		run->early.hit = *hit;
		run->early.cause = cause;
	}
	run_handle(run, EVENT_HARD_END);
}

bool run_tell_early(struct run *run)
{
	if (run->early.cause == CAUSE_NONE)
		return false;
	note_limit(run, run->early.name, &run->early.hit);
	run_set_cause(run, run->early.cause);
	return true;
}

void run_on_limit(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause)
{
	struct run *run = owner;

	if (run->is_left) {
		if (cause != CAUSE_NONE)
			run_kill_left(run);
		return;
	}
	/* The news that the command has started may still be unread. */
	if (!run->seen.has_started)
		jar_slot_poll(run->slot);
	if (!run->seen.has_started) {
		end_early(run, name, hit, cause);
		return;
	}
	note_limit(run, name, hit);
	if (cause == CAUSE_NONE)
		return;
	run_set_cause(run, cause);
	if (run->state <= STATE_ENDING)
		run_handle(run, EVENT_HARD_END);
}

/* Left by a signal that only a limit of its own sends. */
static void check_file_size(struct run *run)
{
	uint64_t limit = run->plan->limits.file_size_bytes;
	struct limit_hit hit = {.is_hit = true, .limit = limit, .enforced_by = "rlimit"};

	if (limit == LIMIT_NONE || !WIFSIGNALED(run->seen.status) || WTERMSIG(run->seen.status) != SIGXFSZ)
		return;
	snprintf(hit.evidence, sizeof(hit.evidence), "the main process was ended by SIGXFSZ");
	note_limit(run, LIMIT_FILE_SIZE, &hit);
}

void run_note_status(struct run *run, int status, uint64_t ended_ns)
{
	check_deadline(run, ended_ns);
	run->seen.has_status = true;
	run->seen.status = status;
	check_file_size(run);
}

void run_on_overflow(void *owner, const char *what, uint64_t limit_bytes, uint64_t delivered_bytes)
{
	struct run *run = owner;
	struct limit_hit *hit = &run->seen.limits[LIMIT_OUTPUT];
	char evidence[96];

	if (!run->seen.overflowed) {
		run->seen.overflowed = what;
		snprintf(evidence, sizeof(evidence), "engine counted %llu bytes of %s after redaction",
			 (unsigned long long)delivered_bytes, what);
		hit_limit(run, LIMIT_OUTPUT, limit_bytes, delivered_bytes, evidence);
	} else if (strcmp(run->seen.overflowed, what) == 0) {
		hit->peak = delivered_bytes;
	} else if (!strstr(hit->evidence, what)) {
		snprintf(hit->evidence + strlen(hit->evidence), sizeof(hit->evidence) - strlen(hit->evidence),
			 "; and %llu of %s, more than its %llu", (unsigned long long)delivered_bytes, what,
			 (unsigned long long)limit_bytes);
	}
	if (run->plan->limits.overflow == OVERFLOW_KILL && run->state <= STATE_ENDING) {
		run_set_cause(run, CAUSE_OUTPUT);
		run_handle(run, EVENT_HARD_END);
	}
}
