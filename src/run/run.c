/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/run.c - the life of a run as a table of states and events
 *
 *   STARTING ──started──► RUNNING ──deadline, cancel──► ENDING ──grace over──► KILLING ──gone──► DRAINING ──drained──► DONE
 *       └──────────────────── a limit, a second cancel, lost output: straight to KILLING ┘
 *
 * A detached run goes from RUNNING to DRAINING at the end of its main process, and is told as done. What that process has
 * started keeps the slot, and is held to the limits, until it is gone or the jar is.
 *
 * A run knows its jar only as a slot (session/session_slot.h), whatever kind of jar that is: one of its own, one prepared
 * for it, a session. The slot says what happens to the command, and says "gone" when no process of the run is left. What
 * the pipes hold then is all that will ever come, so draining ends although somebody may hold a copy of the other end.
 */
#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "gate/gate.h"
#include "ledger/ledger.h"
#include "run/denials.h"
#include "run/failure.h"
#include "run/relay.h"
#include "run/streams.h"
#include "session/session_slot.h"
#include "sys/calls.h"

/* A jar that was ended by a limit, and a reader that takes nothing: after this long the rest is dropped. */
#define STALL_NS 1000000000ULL
/* A call with a time limit returns in bounded time also where the jar cannot be made: after the limit and this long. */
#define MAKING_NS 5000000000ULL
/* What a minder may take to kill and reap the rest: the run must be over within a second. */
#define OVERDUE_NS 700000000ULL

enum run_state { STATE_STARTING, STATE_RUNNING, STATE_ENDING, STATE_KILLING, STATE_DRAINING, STATE_DONE, STATE_COUNT };

enum run_event {
	EVENT_STARTED,
	EVENT_FAILED,   /* a step or exec failed: the command never ran */
	EVENT_EXITED,   /* the main process ended */
	EVENT_LEFT,     /* it ended, and what it has started goes on */
	EVENT_SOFT_END, /* timeout or cancel: grace */
	EVENT_HARD_END, /* another limit, a second cancel, lost output: no grace */
	EVENT_GRACE_OVER,
	EVENT_GONE,
	EVENT_DRAINED,
	EVENT_COUNT,
};

struct run {
	struct loop *loop;
	struct run_request request;
	const struct plan *plan;
	enum run_state state;
	struct slot *slot;
	struct loop_timer deadline;
	struct loop_timer grace;
	struct loop_timer overdue;
	struct loop_timer stall;
	bool is_left;       /* the command has ended, and what it has started goes on */
	enum cause starved; /* a limit was reached while the jar was being made */
	struct streams streams;
	struct gate_visit visit;
	struct ledger ledger;
	bool is_drained; /* and waits for the ledger */
	struct relay *relay;
	int relay_target_fd; /* the write end of the command's stdin, until the relay takes it over */
	int relay_peek_fd;   /* its read end, which shows what the command did not read; likewise */
	uint64_t begun_ns;
	struct observation seen;
};

typedef void transition(struct run *run);

static void run_handle(struct run *run, enum run_event event);

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

/* --- limits ------------------------------------------------------------------------------------------------- */

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

static void set_cause(struct run *run, enum cause cause)
{
	if (run->seen.cause == CAUSE_NONE && !run->seen.has_status)
		run->seen.cause = cause;
}

static void note_timeout(struct run *run, uint64_t elapsed_ns)
{
	char evidence[96];

	snprintf(evidence, sizeof(evidence), "monotonic clock: %llu ms since the run began",
		 (unsigned long long)(elapsed_ns / 1000000));
	hit_limit(run, LIMIT_TIMEOUT, run->plan->limits.timeout_ns / 1000000, elapsed_ns / 1000000, evidence);
	set_cause(run, CAUSE_TIMEOUT);
}

static void on_deadline(struct loop_timer *timer)
{
	struct run *run = timer->owner;

	slot_poll(run->slot); /* the command may have ended in time */
	if (run->state > STATE_RUNNING)
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

static void kill_left(struct run *run);

static void run_on_limit(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause)
{
	struct run *run = owner;

	if (run->is_left) {
		if (cause != CAUSE_NONE)
			kill_left(run);
		return;
	}
	/* The news that the command has started may still be unread. If it has not, there is no run whose limit it could be. */
	if (!run->seen.has_started)
		slot_poll(run->slot);
	if (!run->seen.has_started) {
		run->starved = cause;
		run_handle(run, EVENT_HARD_END);
		return;
	}
	note_limit(run, name, hit);
	if (cause == CAUSE_NONE)
		return;
	set_cause(run, cause);
	if (run->state <= STATE_ENDING)
		run_handle(run, EVENT_HARD_END);
}

static void run_on_denial(void *owner, const struct denial *denial)
{
	struct run *run = owner;

	/* The news that the command has started may still be unread. */
	if (!run->is_left && !run->seen.has_started)
		slot_poll(run->slot);
	if (!run->is_left && run->seen.has_started && run->request.listener.denied) {
		struct denial shown;

		denials_copy(denial, &shown);
		denials_redact(run->streams.redactor, &shown, 1);
		run->request.listener.denied(run->request.listener.owner, &shown);
		free(shown.path);
	}
}

/* All output is there. What was refused may take a moment more. */
static void on_drained(void *owner)
{
	struct run *run = owner;

	run->is_drained = true;
	if (!ledger_close(&run->ledger))
		run_handle(run, EVENT_DRAINED);
}

static void run_on_ledger_finished(void *owner)
{
	struct run *run = owner;

	if (run->is_drained)
		run_handle(run, EVENT_DRAINED);
}

static void leave_gate(struct run *run)
{
	gate_leave(&run->visit, &run->seen);
	ledger_close(&run->ledger);
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

static void arm_deadline(struct run *run, uint64_t allowance_ns)
{
	uint64_t timeout_ns = run->plan->limits.timeout_ns;

	if (timeout_ns != LIMIT_NONE)
		loop_arm(run->loop, &run->deadline, run->begun_ns + timeout_ns + allowance_ns, on_deadline, run);
}

static void on_grace_over(struct loop_timer *timer)
{
	run_handle(timer->owner, EVENT_GRACE_OVER);
}

/* --- output ------------------------------------------------------------------------------------------------- */

static bool run_on_output(void *owner, enum stream_index stream, const void *bytes, size_t len)
{
	const struct run_listener *listener = &((struct run *)owner)->request.listener;

	return listener->output && listener->output(listener->owner, stream, bytes, len);
}

static void run_on_ended(void *owner, enum stream_index stream)
{
	const struct run_listener *listener = &((struct run *)owner)->request.listener;

	if (listener->ended)
		listener->ended(listener->owner, stream);
}

static void on_overflow(void *owner, const char *what, uint64_t limit_bytes, uint64_t delivered_bytes)
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
		set_cause(run, CAUSE_OUTPUT);
		run_handle(run, EVENT_HARD_END);
	}
}

static void on_stall(struct loop_timer *timer)
{
	struct run *run = timer->owner;

	if (run->seen.cause == CAUSE_NONE)
		return;
	streams_drop(&run->streams);
	on_drained(run);
}

void run_resume(struct run *run, enum stream_index index)
{
	if (run->state == STATE_DRAINING)
		loop_arm(run->loop, &run->stall, sys_monotonic_ns() + STALL_NS, on_stall, run);
	streams_resume(&run->streams, index);
}

/* --- ending the jar ----------------------------------------------------------------------------------------- */

void run_signal(struct run *run, int signal_number)
{
	struct jar_message message = {.kind = JAR_SIGNAL, .signal = {.number = signal_number}};

	if (run->state < STATE_KILLING)
		slot_send(run->slot, &message);
}

static void on_overdue(struct loop_timer *timer)
{
	struct run *run = timer->owner;

	loop_arm(run->loop, timer, sys_monotonic_ns() + slot_overdue(run->slot), on_overdue, run);
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

	slot_send(run->slot, &message);
	on_main_gone(run);
}

/* What the command has left behind is held to the limits of its run, and nobody is told any more which it was. */
static void kill_left(struct run *run)
{
	struct jar_message message = {.kind = JAR_KILL};

	slot_send(run->slot, &message);
	loop_arm(run->loop, &run->overdue, sys_monotonic_ns() + OVERDUE_NS, on_overdue, run);
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

void run_cancel(struct run *run, int signal_number)
{
	/* All is over but for a reader who takes nothing: who wants it ended does not wait for that one. */
	if (run->state == STATE_DRAINING) {
		streams_drop(&run->streams);
		run_handle(run, EVENT_DRAINED);
	}
	if (run->state >= STATE_KILLING)
		return;
	if (run->state == STATE_ENDING) {
		run_handle(run, EVENT_HARD_END);
		return;
	}
	if (run->seen.cause == CAUSE_NONE)
		run->seen.cancel_signal = signal_number;
	set_cause(run, CAUSE_CANCELLED);
	run_handle(run, EVENT_SOFT_END);
}

void run_output_lost(struct run *run, int errno_value, const char *what)
{
	if (run->seen.cause == CAUSE_OUTPUT_LOST)
		return;
	if (run->seen.cause == CAUSE_NONE) {
		run->seen.cause = CAUSE_OUTPUT_LOST;
		error_set(&run->seen.error, STAGE_OUTPUT, errno_value,
			  "nobody takes the output: writing to %s failed: %s", what, strerror(errno_value));
	}
	if (run->state < STATE_KILLING)
		run_handle(run, EVENT_HARD_END);
	streams_lose(&run->streams);
}

/* --- news from the jar -------------------------------------------------------------------------------------- */

static void take_pty(struct run *run, int fd)
{
	if (streams_take_pty(&run->streams, fd) < 0)
		run_handle(run, EVENT_HARD_END);
	if (run->request.relay_fd >= 0)
		run->relay_target_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

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
	relay_open(run->relay, run->loop, run->request.relay_fd, run->request.is_relay_terminal, target,
		   take_fd(&run->relay_peek_fd), run->request.has_pty);
}

static struct failure_place place_of(const struct run *run)
{
	const struct plan *jar = run->plan->kind == PLAN_RUN ? run->plan->jar : NULL;

	return (struct failure_place){.is_given = jar, .is_for_calls = jar && plan_is_for_calls(jar)};
}

/* The host may have what the jar has not. Nothing was executed, so these are its caller's words and no command's. */
static void ask_about_command(struct run *run)
{
	const struct jar_plan *core = &run->plan->core;

	for (size_t i = 0; i < core->candidates.count; i++) {
		const char *file = core->candidates.items[i];
		AUTO_TEXT path = {0};

		if (file[0] != '/')
			text_append_format(&path, "%s/", core->workdir ? core->workdir : "");
		text_append_string(&path, file);
		ledger_ask_command(&run->ledger, text_string(&path));
	}
}

static void note_end(struct run *run, const struct jar_end *end)
{
	/* Before the command's own end: what the kernel ended came first. */
	limiter_check(slot_limiter(run->slot), end->is_last);
	check_deadline(run, end->ended_ns);
	run->seen.has_status = true;
	run->seen.status = end->status;
	check_file_size(run);
}

/* Nothing is left of what the command had left behind. The result was told before. */
static void on_emptied(struct run *run, const struct rusage *usage)
{
	struct observation unseen = {0};

	limiter_finish(slot_limiter(run->slot), usage, &unseen);
	loop_disarm(&run->overdue);
	run->is_left = false;
	if (run->state == STATE_DONE && run->request.listener.emptied)
		run->request.listener.emptied(run->request.listener.owner, run);
}

static void run_on_message(void *owner, const struct jar_message *message, int fd)
{
	struct run *run = owner;
	const struct denial *denial;

	run->seen.steps_done = message->steps_done;
	run->seen.entry_done = message->entry_done;
	switch ((enum jar_message_kind)message->kind) {
	case JAR_VIEW:
		limiter_take(slot_limiter(run->slot), (enum jar_view)message->view.what, fd, message->view.clock_ns);
		return;
	case JAR_WRITTEN:
		limiter_written(slot_limiter(run->slot), message->written.bytes);
		return;
	case JAR_DENIED:
		denial = denials_note_call(&run->seen.denied, message);
		if (denial)
			run_on_denial(run, denial);
		return;
	case JAR_TRIED:
	case JAR_TRIED_AGAIN:
		ledger_hear(&run->ledger, message);
		return;
	case JAR_TERMINAL:
		if (fd >= 0)
			take_pty(run, fd);
		return;
	case JAR_STARTED:
		/* The command's time begins when it does: a busy host that is slow to make the jar takes nothing of it. */
		run->begun_ns = message->started.begun_ns;
		if (run->request.has_pty && run->streams.pty_fd < 0) {
			error_set(&run->seen.error, STAGE_ENGINE, EMFILE, "no descriptor is left for the terminal");
			run_handle(run, EVENT_HARD_END);
			return;
		}
		run_handle(run, EVENT_STARTED);
		return;
	case JAR_STEP_FAILED:
		run->seen.failed_step = message->step_failed.step;
		run->seen.failed_in_entry = message->step_failed.is_entry;
		failure_of_step(&run->seen.error, message, place_of(run));
		break;
	case JAR_EXEC_FAILED:
		failure_of_exec(&run->seen.error, message, run->plan->core.argv.items[0]);
		ask_about_command(run);
		break;
	case JAR_EXITED:
		note_end(run, &message->exited);
		run_handle(run, EVENT_EXITED);
		return;
	case JAR_LEFT:
		note_end(run, &message->left.end);
		run->seen.wall_us = run_elapsed_ns(run) / 1000;
		leave_gate(run);
		if (run->seen.cause == CAUSE_NONE && run->state == STATE_RUNNING)
			limiter_report(slot_limiter(run->slot), &message->left.usage, &run->seen);
		run_handle(run, run->seen.cause == CAUSE_NONE ? EVENT_LEFT : EVENT_HARD_END);
		return;
	case JAR_SOCKET:
	case JAR_READY:
	case JAR_EMPTY:
	case JAR_MINDER_GONE:
	case JAR_PROCESS:
	case JAR_TASK_DONE:
	case JAR_SIGNAL:
	case JAR_KILL:
	case JAR_RUN:
	case JAR_MINDER:
	case JAR_TASK:
	case JAR_MESSAGE_KIND_COUNT:
		return;
	}
	run_handle(run, EVENT_FAILED);
}

/* Nothing of the run is left. @status: how the process in charge of it ended. */
static void run_on_gone(void *owner, const struct rusage *usage, int status)
{
	struct run *run = owner;

	if (run->is_left) {
		on_emptied(run, usage);
		return;
	}
	run->seen.wall_us = run_elapsed_ns(run) / 1000;
	leave_gate(run);
	limiter_finish(slot_limiter(run->slot), usage, &run->seen);
	if (!run->seen.has_started && run->starved == CAUSE_MEMORY)
		failure_for_memory(&run->seen.error);
	if (!run->seen.has_started && run->seen.error.stage == STAGE_NONE && run->seen.cause == CAUSE_NONE)
		failure_of_jar(&run->seen.error, status, place_of(run));
	/* Killed from outside, and the command with it: what ended the one ended the other. */
	if (run->seen.has_started && !run->seen.has_status) {
		check_deadline(run, sys_monotonic_ns());
		run->seen.has_status = true;
		run->seen.status = SIGKILL;
	}
	run_handle(run, EVENT_GONE);
}

static void run_on_closing(void *owner)
{
	struct run *run = owner;

	if (run->seen.cause == CAUSE_NONE)
		run->seen.cancel_signal = SIGKILL;
	set_cause(run, CAUSE_CANCELLED);
}

/* --- the table ---------------------------------------------------------------------------------------------- */

/* In STATE_KILLING: the news that it had started came after the decision to end it. */
static void note_started(struct run *run)
{
	run->seen.has_started = true;
	if (run->request.listener.started)
		run->request.listener.started(run->request.listener.owner, run);
	gate_begin_answering(&run->visit);
	streams_read(&run->streams);
}

static void hold_to_limits(struct run *run)
{
	arm_deadline(run, 0);
	if (!slot_limiter_start(run->slot)) {
		run->seen.metered = 0;
		error_set(&run->seen.error, STAGE_LIMITS, ENOENT,
			  "cannot hold the run to its limits: its processes cannot be read in /proc");
		set_cause(run, CAUSE_UNHELD);
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

static void start_draining(struct run *run)
{
	run->state = STATE_DRAINING;
	loop_disarm(&run->overdue);
	loop_disarm(&run->deadline);
	loop_disarm(&run->grace);
	relay_done(run->relay);
	loop_arm(run->loop, &run->stall, sys_monotonic_ns() + STALL_NS, on_stall, run);
	/* What a limit ended is not kept for a reader who may never come. */
	streams_drain(&run->streams, run->request.is_rest_taken && run->seen.cause == CAUSE_NONE);
}

/* The run is over for whoever asked for it. What others write from now on is read and dropped. */
static void leave_others(struct run *run)
{
	run->is_left = true;
	streams_keep(&run->streams);
	start_draining(run);
}

static void run_finish(struct run *run)
{
	run->state = STATE_DONE;
	loop_disarm(&run->stall);
	ledger_take(&run->ledger, &run->seen.denied);
	denials_redact(run->streams.redactor, run->seen.denied.list.items, run->seen.denied.list.count);
	if (run->is_left)
		streams_discard(&run->streams);
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		run->seen.stream_bytes[i] = run->streams.items[i].bytes;
		run->seen.is_stream_cut[i] = run->streams.items[i].is_cut;
	}
	run->seen.is_truncated = run->streams.is_truncated;
	if (run->request.listener.done)
		run->request.listener.done(run->request.listener.owner, run);
}

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
			[EVENT_STARTED] = note_started,
			[EVENT_GONE] = start_draining,
		},
	[STATE_DRAINING] =
		{
			[EVENT_DRAINED] = run_finish,
		},
};

/* An event that a state has no row for changes nothing. */
static void run_handle(struct run *run, enum run_event event)
{
	transition *function = transitions[run->state][event];

	if (function)
		function(run);
}

/* --- making and freeing ------------------------------------------------------------------------------------- */

/* Give the command to the slot, with pipes of ours for what it is not given. */
static int start_command(struct run *run, struct error *error)
{
	AUTO_CLOSE int stdin_reader = -1;
	AUTO_CLOSE int stdout_writer = -1;
	AUTO_CLOSE int stderr_writer = -1;
	int writers[STREAM_COUNT] = {-1, -1};
	struct jar_streams streams = {.stdin_fd = run->request.stdin_fd,
				      .has_pty = run->request.has_pty,
				      .window = run->request.window,
				      .extra_fds = run->request.extra_fds,
				      .extra_count = run->request.extra_count,
				      .stdout_fd = -1,
				      .stderr_fd = -1};
	int rc = 0;

	if (!streams.has_pty) {
		rc = streams_make_pipes(&run->streams, run->request.is_merged, writers, error);
		streams.stdout_fd = stdout_writer = writers[STREAM_STDOUT];
		streams.stderr_fd = stderr_writer = writers[STREAM_STDERR];
		if (run->request.is_merged)
			streams.stderr_fd = streams.stdout_fd;
	}
	if (rc == 0 && !streams.has_pty && streams.stdin_fd < 0) {
		rc = streams_pipe(run->plan, &stdin_reader, &run->relay_target_fd, error);
		if (rc < 0)
			return rc;
		streams.stdin_fd = stdin_reader;
		run->relay_peek_fd = fcntl(stdin_reader, F_DUPFD_CLOEXEC, 3);
	}
	if (rc < 0)
		return rc;
	rc = slot_send_run(run->slot, run->plan, &streams, run->request.is_detached, error);
	return rc < 0 ? failure_of_sending(error, -rc, place_of(run)) : 0;
}

static int take_slot(struct run *run, struct error *error)
{
	struct slot_occupant occupant = {run, run_on_message, run_on_limit, run_on_closing, run_on_gone};
	struct session_request own = {.plan = run->plan,
				      .argv_memory = run->request.argv_memory,
				      .times = run->request.times,
				      .family = run->request.family};

	if (run->request.jar)
		return slot_take(run->request.jar, run->plan, &occupant, &run->slot, error);
	return slot_take_once(run->loop, &own, &occupant, &run->slot, error);
}

static void run_on_question(void *owner, const struct net_question *question)
{
	const struct run *run = owner;

	run->request.listener.question(run->request.listener.owner, question);
}

static void run_on_withdrawn(void *owner, uint32_t id)
{
	const struct run *run = owner;

	run->request.listener.withdrawn(run->request.listener.owner, id);
}

void run_answer(struct run *run, uint32_t id, enum net_answer answer)
{
	gate_answer(&run->visit, id, answer);
}

void run_hold_input(struct run *run, bool is_held)
{
	if (run->relay)
		relay_hold(run->relay, is_held);
}

static int enter_gate(struct run *run, struct error *error)
{
	struct gate *gate = slot_gate(run->slot);

	run->visit.limits = &run->plan->limits;
	run->visit.limit = run_on_limit;
	run->visit.denied = run_on_denial;
	run->visit.owner = run;
	if (run->request.listener.question) {
		run->visit.question = run_on_question;
		run->visit.withdrawn = run_on_withdrawn;
	}
	if (gate)
		gate_tell_published(gate, &run->seen.network);
	return gate && gate_enter(gate, &run->visit) < 0 ? error_set(error, STAGE_ENGINE, ENOMEM, "out of memory") : 0;
}

int run_start(struct loop *loop, const struct run_request *request, struct run **out, struct error *error)
{
	struct run *run = calloc(1, sizeof(*run));
	struct streams_listener listener = {run, run_on_output, on_overflow, run_on_ended, on_drained};
	int rc;

	if (!run)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	run->loop = loop;
	run->request = *request;
	run->plan = request->plan;
	run->ledger = (struct ledger){.loop = loop,
				      .plan = run->plan,
				      .family = request->family,
				      .found = run_on_denial,
				      .finished = run_on_ledger_finished,
				      .owner = run,
				      .pidfd = -1,
				      .socket_fd = -1};
	run->relay_target_fd = run->relay_peek_fd = -1;
	run->seen.failed_step = -1;
	run->begun_ns = sys_monotonic_ns();
	rc = streams_init(&run->streams, loop, run->plan, request->is_captured, &listener, error);
	if (rc == 0 && request->extra_count > JAR_EXTRA_MAX)
		rc = error_set(error, STAGE_USAGE, E2BIG, "a command can be given at most %d descriptors",
			       JAR_EXTRA_MAX);
	if (rc == 0)
		rc = take_slot(run, error);
	if (rc == 0)
		rc = enter_gate(run, error);
	if (rc == 0)
		rc = start_command(run, error);
	if (rc == 0 && (rc = streams_watch(&run->streams)) < 0)
		error_set(error, STAGE_ENGINE, -rc, "cannot watch the jar: %s", strerror(-rc));
	if (rc < 0) {
		run_free(run);
		return rc;
	}
	/* No relay and nothing to hand over: the command's input is at its end from the start. */
	if (request->relay_fd < 0)
		close_fd(&run->relay_target_fd);
	arm_deadline(run, MAKING_NS);
	*out = run;
	return 0;
}

void run_resize(struct run *run, const struct winsize *window)
{
	if (run->streams.pty_fd >= 0)
		ioctl(run->streams.pty_fd, TIOCSWINSZ, window);
}

void run_free(struct run *run)
{
	if (!run)
		return;
	loop_disarm(&run->deadline);
	loop_disarm(&run->grace);
	loop_disarm(&run->overdue);
	loop_disarm(&run->stall);
	relay_done(run->relay);
	free(run->relay);
	close_fd(&run->relay_target_fd);
	close_fd(&run->relay_peek_fd);
	streams_done(&run->streams);
	gate_leave(&run->visit, NULL);
	free(run->seen.network.hosts.items);
	ledger_done(&run->ledger);
	denials_done(&run->seen.denied.list);
	if (run->slot)
		slot_leave(run->slot);
	free(run);
}
