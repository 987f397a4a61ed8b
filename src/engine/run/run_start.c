/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/run_start.c - make a run: its slot in a jar, its pipes, its way to the gate; and free it
 */
#include "engine/run/run_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "engine/run/denials.h"
#include "base/sys/calls.h"

/* A call with a time limit returns in bounded time also where the jar cannot be made: after the limit and this long. */
#define MAKING_NS 5000000000ULL
/* Longer times only the engine keeps. */
#define TIME_MAX_NS (1ULL << 60)

/* --- what the parts of the run say -------------------------------------------------------------------------- */

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

/* --- making and freeing ------------------------------------------------------------------------------------- */

/* For the process in charge of the command, which keeps its time too: the engine may be stopped, or wait for a processor. */
static struct reap_time time_inside(const struct run *run)
{
	const struct limits *limits = &run->plan->limits;

	if (limits->timeout_ns >= TIME_MAX_NS || limits->grace_ns >= TIME_MAX_NS || run->request.is_held)
		return (struct reap_time){0};
	return (struct reap_time){.limit_ns = limits->timeout_ns, .grace_ns = limits->grace_ns};
}

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
				      .stderr_fd = -1,
				      .time = time_inside(run)};
	int rc = 0;

	if (!streams.has_pty) {
		rc = run_streams_make_pipes(&run->streams, run->request.is_merged, writers, error);
		streams.stdout_fd = stdout_writer = writers[STREAM_STDOUT];
		streams.stderr_fd = stderr_writer = writers[STREAM_STDERR];
		if (run->request.is_merged)
			streams.stderr_fd = streams.stdout_fd;
	}
	if (rc == 0 && !streams.has_pty && streams.stdin_fd < 0) {
		rc = run_streams_pipe(run->plan, &stdin_reader, &run->relay_target_fd, error);
		if (rc < 0)
			return rc;
		streams.stdin_fd = stdin_reader;
		run->relay_peek_fd = fcntl(stdin_reader, F_DUPFD_CLOEXEC, 3);
	}
	if (rc < 0)
		return rc;
	rc = jar_slot_send_run(run->slot, run->plan, &streams, run->request.is_detached, error);
	return rc < 0 ? run_failure_of_sending(error, -rc, run_failure_place(run)) : 0;
}

static int take_slot(struct run *run, struct error *error)
{
	struct slot_occupant occupant = {run, run_on_message, run_on_limit, run_on_closing, run_on_gone};
	struct session_request own = {.plan = run->plan,
				      .argv_memory = run->request.argv_memory,
				      .times = run->request.times,
				      .family = run->request.family};

	if (run->request.jar)
		return jar_slot_take(run->request.jar, run->plan, &occupant, &run->slot, error);
	return jar_slot_take_once(run->loop, &own, &occupant, &run->slot, error);
}

static int enter_gate(struct run *run, struct error *error)
{
	struct gate *gate = jar_slot_gate(run->slot);

	run->visit.limits = &run->plan->limits;
	run->visit.limit = run_on_limit;
	run->visit.denied = run_on_denial;
	run->visit.owner = run;
	if (run->request.listener.question) {
		run->visit.question = run_on_question;
		run->visit.withdrawn = run_on_withdrawn;
	}
	if (gate)
		engine_gate_tell_published(gate, &run->seen.network);
	return gate && engine_gate_enter(gate, &run->visit) < 0
		       ? error_set(error, STAGE_ENGINE, ENOMEM, "out of memory")
		       : 0;
}

int run_start(struct loop *loop, const struct run_request *request, struct run **out, struct error *error)
{
	struct run *run = calloc(1, sizeof(*run));
	struct streams_listener listener = {run, run_on_output, run_on_overflow, run_on_ended, run_on_drained};
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
	rc = run_streams_init(&run->streams, loop, run->plan, request->is_captured, &listener, error);
	if (rc == 0 && request->extra_count > JAR_EXTRA_MAX)
		rc = error_set(error, STAGE_USAGE, E2BIG, "a command can be given at most %d descriptors",
			       JAR_EXTRA_MAX);
	if (rc == 0)
		rc = take_slot(run, error);
	if (rc == 0)
		rc = enter_gate(run, error);
	if (rc == 0)
		rc = start_command(run, error);
	if (rc == 0 && (rc = run_streams_watch(&run->streams)) < 0)
		error_set(error, STAGE_ENGINE, -rc, "cannot watch the jar: %s", strerror(-rc));
	if (rc < 0) {
		run_free(run);
		return rc;
	}
	/* No relay and nothing to hand over: the command's input is at its end from the start. */
	if (request->relay_fd < 0)
		close_fd(&run->relay_target_fd);
	run_arm_deadline(run, MAKING_NS);
	*out = run;
	return 0;
}

void run_free(struct run *run)
{
	if (!run)
		return;
	loop_disarm(&run->deadline);
	loop_disarm(&run->grace);
	loop_disarm(&run->overdue);
	loop_disarm(&run->stall);
	run_relay_done(run->relay);
	free(run->relay);
	close_fd(&run->relay_target_fd);
	close_fd(&run->relay_peek_fd);
	run_streams_done(&run->streams);
	engine_gate_leave(&run->visit, NULL);
	free(run->seen.network.hosts.items);
	ledger_done(&run->ledger);
	ledger_denials_done(&run->seen.denied.list);
	if (run->slot)
		jar_slot_leave(run->slot);
	free(run);
}
