/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/run_news.c - the events of a run's slot: messages of the minder, the closing of the jar, the end
 *
 * This file notes each message in the observation, or passes it to its receiver. If it concerns the run's
 * state, it raises an event for the table in run.c.
 */
#include "engine/run/run_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "engine/run/denials.h"
#include "base/sys/calls.h"

struct failure_place run_failure_place(const struct run *run)
{
	const struct plan *jar = run->plan->kind == PLAN_RUN ? run->plan->jar : NULL;

	return (struct failure_place){.is_given = jar, .is_for_calls = jar && plan_is_for_calls(jar)};
}

/* --- refusals, the gate, a terminal ------------------------------------------------------------------------- */

void run_on_denial(void *owner, const struct denial *denial)
{
	struct run *run = owner;

	/* The news that the command has started may still be unread. */
	if (!run->is_left && !run->seen.has_started)
		jar_slot_poll(run->slot);
	if (!run->is_left && run->seen.has_started && run->request.listener.denied) {
		struct denial shown;

		run_denials_copy(denial, &shown);
		run_denials_redact(run->streams.redactor, &shown, 1);
		run->request.listener.denied(run->request.listener.owner, &shown);
		free(shown.path);
	}
}

static void leave_gate(struct run *run)
{
	engine_gate_leave(&run->visit, &run->seen);
	ledger_close(&run->ledger);
}

static void take_pty(struct run *run, int fd)
{
	if (run_streams_take_pty(&run->streams, fd) < 0)
		run_handle(run, EVENT_HARD_END);
	if (run->request.relay_fd >= 0)
		run->relay_target_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* --- messages ----------------------------------------------------------------------------------------------- */

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
	limiter_check(jar_slot_limiter(run->slot), end->is_last);
	run_note_status(run, end->status, end->ended_ns);
}

void run_on_message(void *owner, const struct jar_message *message, int fd)
{
	struct run *run = owner;
	const struct denial *denial;

	run->seen.steps_done = message->steps_done;
	run->seen.entry_done = message->entry_done;
	switch ((enum jar_message_kind)message->kind) {
	case JAR_VIEW:
		limiter_take(jar_slot_limiter(run->slot), (enum jar_view)message->view.what, fd,
			     message->view.clock_ns);
		return;
	case JAR_WRITTEN:
		limiter_written(jar_slot_limiter(run->slot), message->written.bytes);
		return;
	case JAR_DENIED:
		denial = run_denials_note_call(&run->seen.denied, message);
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
		run_failure_of_step(&run->seen.error, message, run_failure_place(run));
		break;
	case JAR_EXEC_FAILED:
		run_failure_of_exec(&run->seen.error, message, run->plan->core.argv.items[0]);
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
			limiter_report(jar_slot_limiter(run->slot), &message->left.usage, &run->seen);
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

/* --- the end ------------------------------------------------------------------------------------------------ */

/* The processes that a detached command left are gone. The result was reported before. */
static void on_emptied(struct run *run, const struct rusage *usage)
{
	struct observation unseen = {0};

	limiter_finish(jar_slot_limiter(run->slot), usage, &unseen);
	loop_disarm(&run->overdue);
	run->is_left = false;
	if (run->state == STATE_DONE && run->request.listener.emptied)
		run->request.listener.emptied(run->request.listener.owner, run);
}

/* Nothing of the run is left. @status: how the process in charge of it ended. */
void run_on_gone(void *owner, const struct rusage *usage, int status)
{
	struct run *run = owner;

	if (run->is_left) {
		on_emptied(run, usage);
		return;
	}
	run->seen.wall_us = run_elapsed_ns(run) / 1000;
	leave_gate(run);
	limiter_finish(jar_slot_limiter(run->slot), usage, &run->seen);
	if (!run->seen.has_started && run->early.cause == CAUSE_MEMORY)
		run_failure_for_memory(&run->seen.error);
	if (!run->seen.has_started && run->seen.error.stage == STAGE_NONE && run->seen.cause == CAUSE_NONE)
		run_failure_of_jar(&run->seen.error, status, run_failure_place(run));
	/* Killed from outside, and the command with it: what ended the one ended the other. */
	if (run->seen.has_started && !run->seen.has_status)
		run_note_status(run, SIGKILL, sys_monotonic_ns());
	run_handle(run, EVENT_GONE);
}

void run_on_closing(void *owner)
{
	struct run *run = owner;

	if (run->seen.cause == CAUSE_NONE)
		run->seen.cancel_signal = SIGKILL;
	run_set_cause(run, CAUSE_CANCELLED);
}
