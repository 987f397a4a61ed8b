/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/run.c - the life of a run as a table of states and events
 *
 *   STARTING ──started──► RUNNING ──deadline, cancel──► ENDING ──grace over──► KILLING ──gone──► DRAINING ──drained──► DONE
 *       └──────────────────── a limit, a second cancel, lost output: straight to KILLING ┘
 *
 * A detached run goes from RUNNING to DRAINING at the end of its main process, and its door hears done(). The
 * other processes keep the slot, under the same limits, until they or the jar are gone.
 *
 * A run knows its jar only as a slot (engine/jar/jar_slot.h), whatever kind of jar that is: one of its own, one prepared
 * for it, a session. The slot reports the command's events, and "gone" when no process of the run is left. Only
 * what the pipes hold then counts, so draining ends although another process may hold a copy of the other end.
 *
 * Events come from run_news.c, which hears from the slot, from run_limits.c, which knows what limits were reached, and from
 * doors. run_start.c makes a run and frees it.
 */
#include "engine/run/run_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>

#include "engine/run/denials.h"
#include "base/sys/calls.h"

/* A jar that was ended by a limit, and a reader that takes nothing: after this long the rest is dropped. */
#define STALL_NS 1000000000ULL
/* The time for a minder to kill and reap the rest: the run must be over within a second. */
#define OVERDUE_NS 700000000ULL

typedef void transition(struct run *run);

const struct observation *run_observation(const struct run *run)
{
	return &run->seen;
}

struct error *run_error(struct run *run)
{
	return &run->seen.error;
}

const struct capture *run_capture(const struct run *run)
{
	return run->streams.capture;
}

uint64_t run_elapsed_ns(const struct run *run)
{
	return sys_monotonic_ns() - run->begun_ns;
}

bool run_is_left(const struct run *run)
{
	return run->is_left;
}

/* --- starting ----------------------------------------------------------------------------------------------- */

static void open_relay(struct run *run)
{
	int target = take_fd(&run->relay_target_fd);

	if (run->request.relay_fd < 0 || target < 0)
		return;
	run->relay = calloc(1, sizeof(*run->relay));
	if (!run->relay) {
		close(target);
		return;
	}
	fcntl(target, F_SETFL, O_NONBLOCK);
	run_relay_open(run->relay, run->loop, run->request.relay_fd, run->request.is_relay_terminal, target,
		       take_fd(&run->relay_peek_fd), run->request.has_pty);
}

static void note_started(struct run *run)
{
	run->seen.has_started = true;
	if (run->request.listener.started)
		run->request.listener.started(run->request.listener.owner, run);
	engine_gate_begin_answering(&run->visit);
	run_streams_read(&run->streams);
}

/* The news that it had started came after the decision to end it. */
static void note_late_start(struct run *run)
{
	note_started(run);
	/* Start the meter as for any run, so that the result says so, if it still can. */
	if (run_tell_early(run))
		jar_slot_limiter_start(run->slot);
}

static void hold_to_limits(struct run *run)
{
	run_arm_deadline(run, 0);
	if (!jar_slot_limiter_start(run->slot)) {
		run->seen.metered = 0;
		error_set(&run->seen.error, STAGE_LIMITS, ENOENT,
			  "cannot hold the run to its limits: its processes cannot be read in /proc");
		run_set_cause(run, CAUSE_UNHELD);
		run_handle(run, EVENT_HARD_END);
	}
}

static void start_running(struct run *run)
{
	run->state = STATE_RUNNING;
	open_relay(run);
	run->seen.metered = run->plan->metered;
	note_started(run);
	if (run->request.is_held)
		loop_disarm(&run->deadline);
	else
		hold_to_limits(run);
}

/* --- ending ------------------------------------------------------------------------------------------------- */

static void on_overdue(struct loop_timer *timer)
{
	struct run *run = timer->owner;

	loop_arm(run->loop, timer, sys_monotonic_ns() + jar_slot_overdue(run->slot), on_overdue, run);
}

/* The minder is leaving by itself, and takes the rest along. */
static void on_main_gone(struct run *run)
{
	run->state = STATE_KILLING;
	loop_disarm(&run->deadline);
	loop_disarm(&run->grace);
	loop_arm(run->loop, &run->overdue, sys_monotonic_ns() + OVERDUE_NS, on_overdue, run);
}

static void kill_jar(struct run *run)
{
	struct jar_message message = {.kind = JAR_KILL};

	jar_slot_send(run->slot, &message);
	on_main_gone(run);
}

void run_kill_left(struct run *run)
{
	struct jar_message message = {.kind = JAR_KILL};

	jar_slot_send(run->slot, &message);
	loop_arm(run->loop, &run->overdue, sys_monotonic_ns() + OVERDUE_NS, on_overdue, run);
}

static void on_grace_over(struct loop_timer *timer)
{
	run_handle(timer->owner, EVENT_GRACE_OVER);
}

static void begin_ending(struct run *run)
{
	int first = run->seen.cause == CAUSE_CANCELLED && run->seen.cancel_signal ? run->seen.cancel_signal : SIGTERM;

	loop_disarm(&run->deadline);
	if (!run->plan->limits.grace_ns) {
		kill_jar(run);
		return;
	}
	run_signal(run, first);
	run_signal(run, SIGCONT); /* a stopped process takes no signal but this one and SIGKILL */
	run->state = STATE_ENDING;
	loop_arm(run->loop, &run->grace, sys_monotonic_ns() + run->plan->limits.grace_ns, on_grace_over, run);
}

/* --- draining ----------------------------------------------------------------------------------------------- */

void run_on_drained(void *owner)
{
	struct run *run = owner;

	run->is_drained = true;
	if (!ledger_close(&run->ledger))
		run_handle(run, EVENT_DRAINED);
}

void run_on_ledger_finished(void *owner)
{
	struct run *run = owner;

	if (run->is_drained)
		run_handle(run, EVENT_DRAINED);
}

static void on_stall(struct loop_timer *timer)
{
	struct run *run = timer->owner;

	if (run->seen.cause == CAUSE_NONE)
		return;
	run_streams_drop(&run->streams);
	run_on_drained(run);
}

static void start_draining(struct run *run)
{
	run->state = STATE_DRAINING;
	loop_disarm(&run->overdue);
	loop_disarm(&run->deadline);
	loop_disarm(&run->grace);
	run_relay_done(run->relay);
	loop_arm(run->loop, &run->stall, sys_monotonic_ns() + STALL_NS, on_stall, run);
	/* After a limit do not keep the rest for a slow reader. */
	run_streams_drain(&run->streams, run->request.is_rest_taken && run->seen.cause == CAUSE_NONE);
}

/* Finish the run for its door. From now on read and drop what the remaining processes write. */
static void leave_others(struct run *run)
{
	run->is_left = true;
	run_streams_keep(&run->streams);
	start_draining(run);
}

static void run_finish(struct run *run)
{
	run->state = STATE_DONE;
	loop_disarm(&run->stall);
	ledger_take(&run->ledger, &run->seen.denied);
	run_denials_redact(run->streams.redactor, run->seen.denied.list.items, run->seen.denied.list.count);
	if (run->is_left)
		run_streams_discard(&run->streams);
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		run->seen.stream_bytes[i] = run->streams.items[i].bytes;
		run->seen.is_stream_cut[i] = run->streams.items[i].is_cut;
	}
	run->seen.is_truncated = run->streams.is_truncated;
	if (run->request.listener.done)
		run->request.listener.done(run->request.listener.owner, run);
}

/* --- the table ---------------------------------------------------------------------------------------------- */

static transition *const transitions[STATE_COUNT][EVENT_COUNT] = {
	[STATE_STARTING] =
		{
			[EVENT_STARTED] = start_running,
			[EVENT_FAILED] = on_main_gone,
			[EVENT_SOFT_END] = kill_jar,
			[EVENT_HARD_END] = kill_jar,
			[EVENT_GONE] = start_draining,
		},
	[STATE_RUNNING] =
		{
			[EVENT_EXITED] = on_main_gone,
			[EVENT_LEFT] = leave_others,
			[EVENT_SOFT_END] = begin_ending,
			[EVENT_HARD_END] = kill_jar,
			[EVENT_GONE] = start_draining,
		},
	[STATE_ENDING] =
		{
			[EVENT_EXITED] = on_main_gone,
			[EVENT_HARD_END] = kill_jar,
			[EVENT_GRACE_OVER] = kill_jar,
			[EVENT_GONE] = start_draining,
		},
	[STATE_KILLING] =
		{
			[EVENT_STARTED] = note_late_start,
			[EVENT_GONE] = start_draining,
		},
	[STATE_DRAINING] =
		{
			[EVENT_DRAINED] = run_finish,
		},
};

void run_handle(struct run *run, enum run_event event)
{
	transition *function = transitions[run->state][event];

	if (function)
		function(run);
}

/* --- what a door may ask for -------------------------------------------------------------------------------- */

void run_go(struct run *run)
{
	if (!run->request.is_held)
		return;
	run->request.is_held = false;
	if (run->state != STATE_RUNNING)
		return; /* it will begin as any other, or has ended */
	run->begun_ns = sys_monotonic_ns();
	hold_to_limits(run);
}

void run_signal(struct run *run, int signal_number)
{
	struct jar_message message = {.kind = JAR_SIGNAL, .signal = {.number = signal_number}};

	if (run->state < STATE_KILLING)
		jar_slot_send(run->slot, &message);
}

void run_cancel(struct run *run, int signal_number)
{
	/* Only a slow reader is left: a cancel does not wait for it. */
	if (run->state == STATE_DRAINING) {
		run_streams_drop(&run->streams);
		run_handle(run, EVENT_DRAINED);
	}
	if (run->state >= STATE_KILLING)
		return;
	if (run->state == STATE_ENDING) {
		run_handle(run, EVENT_HARD_END);
		return;
	}
	/* The news that the command has started may still be unread: then it has its grace. */
	if (run->state == STATE_STARTING)
		jar_slot_poll(run->slot);
	if (run->seen.cause == CAUSE_NONE)
		run->seen.cancel_signal = signal_number;
	run_set_cause(run, CAUSE_CANCELLED);
	run_handle(run, EVENT_SOFT_END);
}

void run_output_lost(struct run *run, int errno_value, const char *what)
{
	if (run->seen.cause == CAUSE_OUTPUT_LOST)
		return;
	if (run->seen.cause == CAUSE_NONE) {
		run->seen.cause = CAUSE_OUTPUT_LOST;
		error_set(&run->seen.error, STAGE_OUTPUT, errno_value, "cannot write output to %s: %s", what,
			  strerror(errno_value));
	}
	if (run->state < STATE_KILLING)
		run_handle(run, EVENT_HARD_END);
	run_streams_lose(&run->streams);
}

void run_breach(struct run *run, const struct error *error)
{
	run->seen.error = *error;
	run->seen.cause = CAUSE_BREACH;
	if (run->state < STATE_KILLING)
		run_handle(run, EVENT_HARD_END);
}

void run_resume(struct run *run, enum stream_index index)
{
	if (run->state == STATE_DRAINING)
		loop_arm(run->loop, &run->stall, sys_monotonic_ns() + STALL_NS, on_stall, run);
	run_streams_resume(&run->streams, index);
}

void run_resize(struct run *run, const struct winsize *window)
{
	if (run->streams.pty_fd >= 0)
		ioctl(run->streams.pty_fd, TIOCSWINSZ, window);
}

void run_answer(struct run *run, uint32_t id, enum net_answer answer)
{
	engine_gate_answer(&run->visit, id, answer);
}

void run_hold_input(struct run *run, bool is_held)
{
	if (run->relay)
		run_relay_hold(run->relay, is_held);
}
