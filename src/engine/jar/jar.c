/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar.c - a jar from its first process to surely gone, whatever kind of jar it is
 *
 * There is one kind of record for all jars. A one-shot jar and a prepared one have a single slot, whose minder is the
 * first process itself; a session has a slot for each run and each spare minder. This file receives the first
 * process's messages and passes those for a run to its slot, so that a run need not know the kind of its jar.
 *
 * The jar is gone when the pidfd reports the end of its first process. With a pid namespace every process in it
 * is dead and reaped by then; without one the first process has reaped its last descendant. Every run in the
 * jar is then over, with or without a report of its minder.
 */
#include "engine/jar/jar.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "inside/init/init_session.h"
#include "engine/jar/jar_parts.h"
#include "base/sys/calls.h"

/* The time for the jar's first process to kill and reap the rest. */
#define OVERDUE_NS 400000000ULL
#define SECOND_CHANCE_NS 3000000000ULL
/* A jar that cannot be made in this time never will be. The run of a one-shot jar has a deadline of its own. */
#define MAKING_NS 30000000000ULL
/* Looks over a limit of the jar before the engine ends a run that it could not measure. */
#define OVER_LOOKS_MAX 4

bool jar_is_ready(const struct session *jar)
{
	return jar->seen.has_started && !jar->is_gone;
}

const struct observation *jar_observation(const struct session *jar)
{
	return &jar->seen;
}

unsigned jar_run_count(const struct session *jar)
{
	unsigned count = 0;

	for (const struct slot *slot = jar->slots; slot; slot = slot->next)
		count += jar_slot_has_run(slot);
	return count;
}

void jar_usage(const struct session *jar, struct limiter_usage *out, unsigned *run_count_out)
{
	limiter_usage(&jar->limiter, out);
	*run_count_out = jar_run_count(jar);
}

/* --- limits of the whole jar -------------------------------------------------------------------------------- */

void jar_note_written(struct session *jar)
{
	uint64_t sum = jar->first_written_bytes;

	for (const struct slot *slot = jar->slots; slot; slot = slot->next)
		sum += slot->written_bytes;
	limiter_written(&jar->limiter, sum);
}

/* Whether a look at the run is still due. A run without a known start was not measured yet. */
static bool is_unseen(const struct slot *slot)
{
	const struct limiter *limiter = &slot->limiter;

	return limiter->is_looking || (jar_slot_has_run(slot) && limiter->metered != limiter->plan->metered);
}

/*
 * Look at each run. True: a run is being ended for a limit, or may be over its own limit, and that comes first.
 * A run that blocks the looker delays this for OVER_LOOKS_MAX looks only.
 */
static bool look_at_runs(struct session *jar)
{
	bool is_first = jar->over_looks++ == 0, is_one_ending = false, is_one_unseen = false;

	for (struct slot *slot = jar->slots; slot; slot = slot->next) {
		if (is_first && jar_slot_has_run(slot)) {
			/* The news that the command has started, and with it the limiter, may be unread. */
			jar_slot_poll(slot);
			limiter_look(&slot->limiter);
		}
		is_one_unseen |= is_unseen(slot);
		/* The kernel frees its resources only when it is gone. */
		is_one_ending |= slot->limiter.is_over && slot->state != SLOT_GONE;
	}
	/* When that one is gone, the others are asked anew. */
	if (is_one_ending)
		jar->over_looks = 0;
	return is_one_ending || (is_one_unseen && jar->over_looks < OVER_LOOKS_MAX);
}

/*
 * The jar is over a limit of its own. Of several runs the one that has most of it is ended; if that is not enough, the
 * next look finds the next one.
 */
static void end_largest(struct session *jar, enum limit_name name, const struct limit_hit *hit, enum cause cause)
{
	struct slot *largest = NULL;

	if (look_at_runs(jar))
		return;
	for (struct slot *slot = jar->slots; slot; slot = slot->next)
		if (jar_slot_has_run(slot) &&
		    (!largest || limiter_share(&slot->limiter, name) > limiter_share(&largest->limiter, name)))
			largest = slot;
	jar->over_looks = 0;
	if (!largest)
		return;
	largest->limiter.is_over = true;
	jar_slot_on_limit(largest, name, hit, cause);
}

/*
 * The jar's cgroup reports that the kernel killed a process for memory, but not of which run. In version 2 the
 * count stays and includes kills for a run's own limit. The cgroup of that run knows, so check all. No other
 * run ends.
 */
static void ask_killed(struct session *jar)
{
	for (struct slot *slot = jar->slots; slot; slot = slot->next)
		if (jar_slot_has_run(slot))
			limiter_check(&slot->limiter, false);
}

static void session_on_limit(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause)
{
	struct session *jar = owner;

	if (cause == CAUSE_MEMORY && plan_has_minders(jar->plan) && jar->limiter.cgroup.fds[CGROUP_MEMORY] >= 0) {
		ask_killed(jar);
		return;
	}
	if (cause != CAUSE_NONE && plan_has_minders(jar->plan)) {
		end_largest(jar, name, hit, cause);
		return;
	}
	for (struct slot *slot = jar->slots; slot; slot = slot->next)
		/* The run in a single slot takes the last readings of this limiter when it is over already. */
		if (jar_slot_has_run(slot) || !plan_has_minders(jar->plan))
			jar_slot_on_limit(slot, name, hit, cause);
}

/* --- news from the first process ---------------------------------------------------------------------------- */

static void session_on_ready(struct session *jar)
{
	loop_disarm(&jar->overdue);
	jar->seen.has_started = true;
	jar->seen.metered = plan_is_for_calls(jar->plan) ? 0 : jar->plan->metered;
	/* In a jar for calls every limit is a call's own. */
	if (jar->plan->kind == PLAN_SESSION && !limiter_start(&jar->limiter, jar->jar.pid)) {
		error_set(&jar->seen.error, STAGE_LIMITS, ENOENT,
			  "cannot hold the jar to its limits: its processes cannot be read in /proc");
		jar_kill(jar);
		return;
	}
	if (!jar->slots)
		jar_slot_want_spare(jar, 0);
	if (jar->request.listener.ready)
		jar->request.listener.ready(jar->request.listener.owner, jar);
}

static void note_zygote_gone(struct session *jar, int status)
{
	if (WIFSIGNALED(status))
		error_set(&jar->seen.error, STAGE_ENGINE, 0, "the zygote was killed by signal %d", WTERMSIG(status));
	else
		error_set(&jar->seen.error, STAGE_ENGINE, 0, "the zygote has left with status %d", WEXITSTATUS(status));
}

/* Runs that come before the jar is gone hear of it then. */
static void note_failure(struct session *jar, const struct jar_message *message)
{
	jar->failure = *message;
	jar->seen.failed_step = message->step_failed.step;
	error_set(&jar->seen.error, STAGE_ISOLATE, message->step_failed.error, "cannot make the jar: %s",
		  strerror(message->step_failed.error));
}

/* Without a gate the jar would have no way out, and its policy says that it has one. */
void jar_take_socket(struct session *jar, struct gate *gate, int fd)
{
	int rc = 0;

	if (gate)
		rc = engine_gate_take(gate, fd);
	else
		close_fd(&fd);
	if (rc == 0)
		return;
	jar->failure = (struct jar_message){.kind = JAR_STEP_FAILED, .step_failed = {.step = -1, .error = -rc}};
	error_set(&jar->seen.error, STAGE_ENGINE, -rc, "cannot start the gate: %s", strerror(-rc));
	jar_kill(jar);
}

/* Take a message of the first process about the jar, not about the run in its only slot. */
static void session_on_message(struct session *jar, const struct jar_message *message, int fd)
{
	struct slot *slot = jar_slot_find(jar, message->kind == JAR_MINDER_GONE ? message->minder_gone.minder : 0);

	jar->seen.steps_done = message->steps_done;
	switch ((enum jar_message_kind)message->kind) {
	case JAR_VIEW:
		if (slot)
			break;
		limiter_take(&jar->limiter, (enum jar_view)message->view.what, fd, message->view.clock_ns);
		return;
	case JAR_SOCKET:
		jar_take_socket(jar, jar->gate, fd);
		return;
	case JAR_READY:
		session_on_ready(jar);
		return;
	case JAR_MINDER_GONE:
		jar->first_written_bytes = message->minder_gone.written_bytes;
		if (slot)
			jar_slot_minder_gone(slot, &message->minder_gone.usage, SIGKILL);
		jar_note_written(jar);
		jar_slot_sweep(jar);
		return;
	case JAR_STEP_FAILED:
		if (!jar->seen.has_started)
			note_failure(jar, message);
		break;
	case JAR_WRITTEN:
		limiter_written(&jar->limiter, message->written.bytes);
		break;
	case JAR_EXITED:
		if (plan_is_for_calls(jar->plan))
			note_zygote_gone(jar, message->exited.status);
		break;
	case JAR_STARTED:
		/* The first process of a one-shot jar counts what making it cost as its own. */
		if (jar->plan->kind == PLAN_ONCE)
			limiter_leave_out(&jar->limiter, &message->started.making);
		break;
	case JAR_EXEC_FAILED:
	case JAR_TERMINAL:
	case JAR_DENIED:
	case JAR_TRIED:
	case JAR_TRIED_AGAIN:
	case JAR_LEFT:
	case JAR_EMPTY:
	case JAR_SIGNAL:
	case JAR_KILL:
	case JAR_RUN:
	case JAR_MINDER:
	case JAR_TASK:
	case JAR_PROCESS:
	case JAR_TASK_DONE:
	case JAR_MESSAGE_KIND_COUNT:
		break;
	}
	if (slot)
		jar_slot_hear(slot, message, fd);
	else
		close_fd(&fd);
}

static void session_on_control(struct loop_watch *watch, uint32_t events)
{
	struct session *jar = watch->owner;
	struct jar_message message;
	int fd, rc = -EAGAIN;

	(void)events;
	while (watch->loop && (rc = control_receive(jar->jar.control_fd, &message, &fd)) > 0)
		session_on_message(jar, &message, fd);
	if (watch->loop && rc != -EAGAIN && rc != -EINTR)
		loop_remove(watch); /* the pidfd reports the rest */
}

void jar_poll(struct session *jar)
{
	if (jar->control.loop)
		session_on_control(&jar->control, EPOLLIN);
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static void session_be_gone(void *owner)
{
	struct session *jar = owner;
	const struct rusage *usage = &jar->usage;
	int status = jar->status;

	jar->is_gone = true;
	if (!jar->seen.has_started && jar->seen.error.stage == STAGE_NONE)
		error_set(&jar->seen.error, STAGE_ENGINE, 0,
			  "the jar's first process died while making the jar (status %d)", status);
	/* Elsewhere the limiter is that of the run, which takes the last readings. */
	if (plan_has_minders(jar->plan))
		limiter_finish(&jar->limiter, usage, &jar->seen);
	for (struct slot *slot = jar->slots; slot; slot = slot->next) {
		if (jar->failure.kind && jar_slot_has_run(slot))
			slot->occupant.message(slot->occupant.owner, &jar->failure, -1);
		jar_slot_minder_gone(slot, slot->number ? &(struct rusage){0} : usage, status);
	}
	limiter_stop(&jar->limiter);
	jar_slot_sweep(jar);
	jar_refuse_tasks(jar);
	if (jar->request.listener.gone)
		jar->request.listener.gone(jar->request.listener.owner, jar);
}

/* The gate has a moment to bring to its end what the jar has sent. */
static void session_on_reaped(void *owner, const struct rusage *usage, int status)
{
	struct session *jar = owner;

	jar->usage = *usage;
	jar->status = status;
	if (jar->gate)
		engine_gate_finish(jar->gate, session_be_gone, jar);
	else
		session_be_gone(jar);
}

static void begin_reaping(struct session *jar, reaper_function *function)
{
	pid_t pid = jar->jar.pid;

	jar->jar.pid = -1;
	jar->reaper = (struct reaper){
		.loop = jar->loop,
		.ends_with_first = jar->plan->rung == RUNG_NAMESPACE,
		.run_directory = jar->plan->core.run_directory,
		.family = jar->request.family,
		.pid = pid,
		.function = function,
		.owner = jar,
	};
	jar_reaper_begin(&jar->reaper);
}

static void session_on_pidfd(struct loop_watch *watch, uint32_t events)
{
	struct session *jar = watch->owner;

	(void)events;
	jar_poll(jar); /* its last words may still be unread */
	loop_remove(&jar->pidfd);
	loop_remove(&jar->control);
	loop_disarm(&jar->overdue);
	begin_reaping(jar, session_on_reaped);
}

static void session_on_not_made(struct loop_timer *timer)
{
	struct session *jar = timer->owner;

	error_set(&jar->seen.error, STAGE_ENGINE, ETIMEDOUT, "the jar could not be made in time");
	reap_signal(jar->jar.pidfd, SIGKILL);
}

/*
 * The first process does not do its part: it is stopped, or was not given the time. With a pid namespace the kernel does
 * its work when it is killed. Elsewhere it alone can end its tree at once, and knows what that has used: it is given more
 * time.
 */
static void session_on_overdue(struct loop_timer *timer)
{
	struct session *jar = timer->owner;
	bool has_chance = jar->plan->rung != RUNG_NAMESPACE && !jar->is_overdue;

	jar->is_overdue = true;
	reap_signal(jar->jar.pidfd, has_chance ? SIGCONT : SIGKILL);
	if (has_chance)
		loop_arm(jar->loop, timer, sys_monotonic_ns() + SECOND_CHANCE_NS, session_on_overdue, jar);
}

void jar_hurry(struct session *jar)
{
	if (jar->jar.pid < 0 || jar->is_overdue)
		return;
	jar->is_killed = true;
	jar->overdue.owner = jar;
	session_on_overdue(&jar->overdue);
}

void jar_kill(struct session *jar)
{
	struct jar_message message = {.kind = JAR_KILL};

	if (jar->is_gone || jar->is_killed)
		return;
	jar->is_killed = true;
	/* The kernel ends what is in the pid namespace of a process that it ends; elsewhere that one has to do it. */
	if (jar->plan->rung == RUNG_NAMESPACE || control_send(jar->jar.control_fd, &message, -1) < 0)
		reap_signal(jar->jar.pidfd, SIGKILL);
	else
		loop_arm(jar->loop, &jar->overdue, sys_monotonic_ns() + OVERDUE_NS, session_on_overdue, jar);
}

void jar_close(struct session *jar)
{
	if (jar->is_closing || jar->is_gone)
		return;
	jar->is_closing = true;
	for (struct slot *slot = jar->slots; slot; slot = slot->next)
		if (jar_slot_has_run(slot))
			slot->occupant.closing(slot->occupant.owner);
	jar_kill(jar);
}

/* --- making and freeing ------------------------------------------------------------------------------------- */

static jar_main_function *main_of(const struct session_request *request)
{
	if (request->main)
		return request->main;
	return request->plan->kind == PLAN_ONCE      ? NULL
	       : request->plan->kind == PLAN_SESSION ? init_first_main
						     : init_prepared_main;
}

int jar_start(struct session *jar, const struct jar_streams *streams, struct error *error)
{
	const struct session_request *request = &jar->request;
	int rc = jar_start_process(&jar->plan->core, main_of(request), streams, request->argv_memory, request->times,
				   &jar->jar, error);

	if (rc < 0)
		return rc;
	if (reap_family_add(request->family, jar->jar.pid) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	rc = loop_add(jar->loop, &jar->control, jar->jar.control_fd, EPOLLIN, session_on_control, jar);
	if (rc == 0)
		rc = loop_add(jar->loop, &jar->pidfd, jar->jar.pidfd, EPOLLIN, session_on_pidfd, jar);
	return rc < 0 ? error_set(error, STAGE_ENGINE, -rc, "cannot watch the jar: %s", strerror(-rc)) : 0;
}

int jar_new(struct loop *loop, const struct session_request *request, struct session **out, struct error *error)
{
	struct session *jar = calloc(1, sizeof(*jar));
	int rc;

	if (!jar)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	jar->loop = loop;
	jar->request = *request;
	jar->plan = request->plan;
	jar->jar = (struct jar){.pid = -1, .pidfd = -1, .control_fd = -1};
	jar->seen.failed_step = -1;
	rc = limiter_open(&jar->limiter, loop, jar->plan, request->family, session_on_limit, jar, error);
	if (rc == 0 && jar->plan->gate.is_wanted && !plan_is_for_calls(jar->plan)) {
		rc = engine_gate_new(loop, jar->plan, request->family, &jar->gate, error);
		if (rc == 0)
			engine_gate_tell_published(jar->gate, &jar->seen.network);
	}
	if (rc < 0) {
		jar_free(jar);
		return rc;
	}
	*out = jar;
	return 0;
}

int jar_open(struct loop *loop, const struct session_request *request, struct session **out, struct error *error)
{
	const struct jar_streams streams = {.stdin_fd = -1,
					    .stdout_fd = -1,
					    .stderr_fd = -1,
					    .extra_fds = request->zygote_fds,
					    .extra_count = request->zygote_fd_count};
	struct session *jar;
	int rc = jar_new(loop, request, &jar, error);

	if (rc < 0)
		return rc;
	rc = jar_start(jar, plan_is_for_calls(jar->plan) ? &streams : NULL, error);
	if (rc < 0) {
		jar_free(jar);
		return rc;
	}
	loop_arm(loop, &jar->overdue, sys_monotonic_ns() + MAKING_NS, session_on_not_made, jar);
	*out = jar;
	return 0;
}

static void session_on_unwatched(void *owner, const struct rusage *usage, int status)
{
	(void)owner;
	(void)usage;
	(void)status;
}

void jar_free(struct session *jar)
{
	if (!jar)
		return;
	loop_disarm(&jar->overdue);
	loop_remove(&jar->control);
	loop_remove(&jar->pidfd);
	if (jar->jar.pid > 0) {
		jar_kill(jar);
		loop_disarm(&jar->overdue);
		close_fd(&jar->jar.control_fd); /* the leash */
		begin_reaping(jar, session_on_unwatched);
	}
	jar_reaper_finish(&jar->reaper);
	jar->is_gone = true;
	loop_disarm(&jar->spare);
	close_fd(&jar->jar.pidfd);
	close_fd(&jar->jar.control_fd);
	for (struct slot *slot = jar->slots; slot; slot = slot->next) {
		slot->occupant = (struct slot_occupant){0};
		slot->state = SLOT_GONE;
	}
	jar_slot_sweep(jar);
	engine_gate_free(jar->gate);
	limiter_done(&jar->limiter); /* its cgroup can go only when nothing is in it */
	jar_refuse_tasks(jar);
	free(jar);
}

int jar_change_rules(struct session *jar, const struct net_rule *rule, void (*function)(void *owner, int rc),
		     void *owner, struct gate_change **out)
{
	return jar->gate && jar->plan->gate.leads_out ? engine_gate_change(jar->gate, rule, function, owner, out)
						      : -ENOTCONN;
}

void jar_forget_change(struct gate_change *change)
{
	engine_gate_forget_change(change);
}
