/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_slot.c - the life of a slot as a table of states and events
 *
 *   SPARE ──taken──► TAKEN ──empty──► OVER ──minder gone──► GONE
 *     │                └──overdue──► DOOMED ──empty──► OVER
 *     └──failed, cut off──► OVER; given up──► DOOMED
 *
 * A minder sends JAR_EMPTY when all it started is dead and reaped; then the run is over. The jar's first
 * process always sends JAR_MINDER_GONE when the minder itself is gone, after it has ended what a killed minder
 * left. Only then the engine can remove the run's cgroup and free the slot.
 *
 * enum slot_minder has the minder's own state: a run may take a slot, and be sent to it, before the minder
 * exists.
 */
#include "engine/jar/jar_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "engine/jar/jar_send.h"
#include "base/sys/calls.h"

#define SECOND_CHANCE_NS 2000000000ULL
/*
 * While a command runs, its caller waits for nothing of ours: that is the time to make minders ready. If no other run comes
 * soon after one, it is done without.
 */
#define SPARE_DELAY_NS 1000000ULL

enum slot_event {
	EVENT_TAKE,
	EVENT_FAIL,        /* the minder could not be made ready */
	EVENT_EMPTY,       /* all that the minder started is dead and reaped, and it leaves */
	EVENT_CUT_OFF,     /* the minder's end of the socket is closed */
	EVENT_OVERDUE,     /* the run should be over, and is not */
	EVENT_GIVE_UP,     /* the minder of a spare slot may have been killed */
	EVENT_LEAVE,       /* the run is freed */
	EVENT_MINDER_GONE, /* the first process has reaped the minder */
	EVENT_COUNT,
};

typedef void slot_transition(struct slot *slot);

static void slot_handle(struct slot *slot, enum slot_event event);

bool jar_slot_has_run(const struct slot *slot)
{
	return slot->occupant.owner && (slot->state == SLOT_TAKEN || slot->state == SLOT_DOOMED);
}

static int control_of(const struct slot *slot)
{
	return slot->number ? slot->control_fd : slot->jar->jar.control_fd;
}

static void close_control(struct slot *slot)
{
	loop_remove(&slot->watch);
	close_fd(&slot->control_fd); /* its leash */
}

/* --- the table ---------------------------------------------------------------------------------------------- */

static int send_kill(const struct slot *slot)
{
	struct jar_message message = {.kind = JAR_KILL, .kill = {.minder = slot->number}};

	return control_send(slot->jar->jar.control_fd, &message, -1);
}

static void be_taken(struct slot *slot)
{
	slot->state = SLOT_TAKEN;
}

/* A spare minder failed, or left because the zygote died. Try again only when a run needs one. */
static void lose_spare(struct slot *slot)
{
	slot->state = SLOT_OVER;
}

static void lose_minder(struct slot *slot)
{
	slot->state = SLOT_GONE;
}

static void end_run(struct slot *slot, enum slot_state state)
{
	slot->state = state;
	slot->jar->over_looks = 0; /* the others are asked anew */
	if (slot->occupant.owner)
		slot->occupant.gone(slot->occupant.owner, &slot->usage, slot->status);
	if (slot->number)
		jar_slot_want_spare(slot->jar, plan_is_for_calls(slot->jar->plan) ? 0 : SPARE_DELAY_NS);
}

static void be_over(struct slot *slot)
{
	end_run(slot, SLOT_OVER);
}

static void lose_doomed_minder(struct slot *slot)
{
	end_run(slot, SLOT_GONE);
}

/* The killer of a minder may have killed the spare ones too, and they may still seem alive: replace them. */
static void lose_minder_of_run(struct slot *slot)
{
	for (struct slot *other = slot->jar->slots; slot->number && !slot->jar->is_gone && other; other = other->next)
		slot_handle(other, EVENT_GIVE_UP);
	end_run(slot, SLOT_GONE);
}

static void give_spare_up(struct slot *slot)
{
	if (slot->minder == MINDER_WANTED)
		return; /* there is no minder yet to send to */
	send_kill(slot);
	slot->state = SLOT_DOOMED;
}

static void end_jar(struct slot *slot)
{
	jar_kill(slot->jar);
}

/* If the first process does not do its part either, the jar has to go. */
static void hurry(struct slot *slot)
{
	if (!slot->number)
		jar_hurry(slot->jar);
	else if (slot->minder == MINDER_WANTED || send_kill(slot) < 0)
		end_jar(slot);
	else
		slot->state = SLOT_DOOMED;
}

/* The run does not wait for its end. */
static void kill_run(struct slot *slot)
{
	struct jar_message message = {.kind = JAR_KILL};

	slot->state = SLOT_OVER;
	if (!slot->number) {
		end_jar(slot);
		return;
	}
	control_send(slot->control_fd, &message, -1);
	close_control(slot);
}

static slot_transition *const transitions[SLOT_STATE_COUNT][EVENT_COUNT] = {
	[SLOT_SPARE] =
		{
			[EVENT_TAKE] = be_taken,
			[EVENT_FAIL] = lose_spare,
			[EVENT_EMPTY] = lose_spare,
			[EVENT_CUT_OFF] = lose_spare,
			[EVENT_GIVE_UP] = give_spare_up,
			[EVENT_MINDER_GONE] = lose_minder,
		},
	[SLOT_TAKEN] =
		{
			[EVENT_EMPTY] = be_over,
			[EVENT_OVERDUE] = hurry,
			[EVENT_LEAVE] = kill_run,
			[EVENT_MINDER_GONE] = lose_minder_of_run,
		},
	[SLOT_DOOMED] =
		{
			[EVENT_EMPTY] = be_over,
			[EVENT_OVERDUE] = end_jar,
			[EVENT_LEAVE] = kill_run,
			[EVENT_MINDER_GONE] = lose_doomed_minder,
		},
	[SLOT_OVER] =
		{
			[EVENT_MINDER_GONE] = lose_minder,
		},
};

/* An event that a state has no row for changes nothing. */
static void slot_handle(struct slot *slot, enum slot_event event)
{
	slot_transition *function = transitions[slot->state][event];

	if (function)
		function(slot);
}

/* --- news from the minder ----------------------------------------------------------------------------------- */

/* The run of a call is over when its gate has brought to its end what was sent. */
static void slot_on_gate_gone(void *owner)
{
	struct slot *slot = owner;
	struct session *jar = slot->jar;

	slot->is_gate_ending = false;
	slot_handle(slot, EVENT_EMPTY);
	if (!slot->is_minder_gone)
		return;
	slot_handle(slot, EVENT_MINDER_GONE);
	jar_slot_sweep(jar);
}

static void slot_on_empty(struct slot *slot, const struct jar_message *message)
{
	if (message->empty.end.is_last && jar_slot_has_run(slot)) {
		struct jar_message ended = {
			.kind = JAR_EXITED,
			.steps_done = message->steps_done,
			.entry_done = message->entry_done,
			.exited = message->empty.end,
		};

		slot->occupant.message(slot->occupant.owner, &ended, -1);
	}
	slot->usage = message->empty.usage;
	slot->status = 0;
	if (slot->gate && jar_slot_has_run(slot)) {
		slot->is_gate_ending = true;
		engine_gate_finish(slot->gate, slot_on_gate_gone, slot);
	} else {
		slot_handle(slot, EVENT_EMPTY);
	}
}

void jar_slot_hear(struct slot *slot, const struct jar_message *message, int fd)
{
	bool is_for_calls = plan_is_for_calls(slot->jar->plan);

	switch (message->kind) {
	case JAR_SOCKET:
		jar_take_socket(slot->jar, slot->gate, fd);
		return;
	case JAR_READY:
		slot->pid = (pid_t)message->ready.pid;
		jar_slot_answered(slot);
		if (is_for_calls)
			jar_slot_want_spare(slot->jar, 0);
		return;
	case JAR_EMPTY:
		slot_on_empty(slot, message);
		return;
	case JAR_STEP_FAILED:
		jar_slot_answered(slot);
		slot_handle(slot, EVENT_FAIL);
		break;
	case JAR_STARTED:
		jar_slot_want_spare(slot->jar, is_for_calls ? SPARE_DELAY_NS : 0);
		break;
	case JAR_WRITTEN:
		slot->written_bytes = MAX_OF(slot->written_bytes, message->written.bytes);
		jar_note_written(slot->jar);
		break;
	}
	if (jar_slot_has_run(slot))
		slot->occupant.message(slot->occupant.owner, message, fd);
	else if (fd >= 0)
		close(fd);
}

static void slot_on_control(struct loop_watch *watch, uint32_t events)
{
	struct slot *slot = watch->owner;
	struct jar_message message;
	int fd, rc = -EAGAIN;

	(void)events;
	while (watch->loop && (rc = control_receive(slot->control_fd, &message, &fd)) > 0)
		jar_slot_hear(slot, &message, fd);
	if (!watch->loop || rc == -EAGAIN || rc == -EINTR)
		return;
	loop_remove(watch); /* the first process reports the rest */
	slot_handle(slot, EVENT_CUT_OFF);
}

void jar_slot_poll(struct slot *slot)
{
	if (!slot->number)
		jar_poll(slot->jar);
	else if (slot->watch.loop)
		slot_on_control(&slot->watch, EPOLLIN);
}

void jar_slot_minder_gone(struct slot *slot, const struct rusage *usage, int status)
{
	if (slot->number)
		jar_slot_poll(slot); /* its last words may still be unread */
	slot->written_bytes = 0;
	if (slot->is_gate_ending && !slot->jar->is_gone) {
		slot->is_minder_gone = true;
		jar_slot_answered(slot);
		return;
	}
	/* Do not wait for the gate of a jar that is gone. */
	if (slot->is_gate_ending) {
		slot->is_gate_ending = false;
		slot_handle(slot, EVENT_EMPTY);
		engine_gate_free(slot->gate);
		slot->gate = NULL;
	}
	slot->usage = *usage;
	slot->status = status;
	slot_handle(slot, EVENT_MINDER_GONE);
	jar_slot_answered(slot);
}

/* --- making and freeing ------------------------------------------------------------------------------------- */

static void slot_free(struct slot *slot)
{
	close_control(slot);
	engine_gate_free(slot->gate);
	close_fd(&slot->minder_end);
	while (slot->member_count)
		close(slot->member_fds[--slot->member_count]);
	limiter_done(&slot->limiter);
	limits_cgroup_done(&slot->cgroup, slot->jar->loop);
	free(slot);
}

/* The jar's limit on processes is that of all its runs together, whatever minders there are beside them. */
static int make_room(struct session *jar)
{
	size_t minders = 0;

	for (const struct slot *slot = jar->slots; slot; slot = slot->next)
		minders++;
	return plan_has_minders(jar->plan) && !plan_is_for_calls(jar->plan)
		       ? limits_cgroup_make_room(&jar->limiter.cgroup, &jar->plan->limits, minders)
		       : 0;
}

void jar_slot_sweep(struct session *jar)
{
	struct slot **at = &jar->slots;
	bool is_one_gone = false;

	while (*at) {
		struct slot *slot = *at;

		if (slot->state != SLOT_GONE || slot->occupant.owner) {
			at = &slot->next;
			continue;
		}
		*at = slot->next;
		slot_free(slot);
		is_one_gone = true;
	}
	if (is_one_gone && !jar->is_gone)
		make_room(jar);
}

static struct slot *slot_add(struct session *jar, enum slot_minder minder)
{
	struct slot *slot = calloc(1, sizeof(*slot));

	if (!slot)
		return NULL;
	slot->jar = jar;
	slot->minder = minder;
	slot->control_fd = slot->minder_end = -1;
	slot->next = jar->slots;
	jar->slots = slot;
	return slot;
}

int jar_slot_open(struct session *jar, struct slot **out)
{
	struct slot *slot = slot_add(jar, MINDER_WANTED);
	int rc;

	if (!slot)
		return -ENOMEM;
	slot->number = ++jar->last_number;
	rc = control_socket_pair(&slot->control_fd, &slot->minder_end);
	if (rc == 0)
		rc = loop_add(jar->loop, &slot->watch, slot->control_fd, EPOLLIN, slot_on_control, slot);
	if (rc == 0)
		rc = jar_slot_open_cgroup(slot);
	if (rc == 0)
		rc = make_room(jar);
	if (rc == 0 && jar->plan->gate.is_wanted && plan_is_for_calls(jar->plan)) {
		struct error error = {0};

		rc = engine_gate_new(jar->loop, jar->plan, jar->request.family, &slot->gate, &error);
	}
	if (rc < 0) {
		jar->slots = slot->next;
		slot_free(slot);
		return rc;
	}
	jar_slot_ask(slot);
	*out = slot;
	return 0;
}

struct slot *jar_slot_find(struct session *jar, uint32_t number)
{
	struct slot *slot = jar->slots;

	while (slot && slot->number != number)
		slot = slot->next;
	return slot;
}

static int find_place(struct session *jar, struct slot **out)
{
	if (plan_has_minders(jar->plan)) {
		/* An earlier command may have killed the spare minders, with the news still unread. */
		while ((*out = jar_slot_find_spare(jar))) {
			jar_slot_poll(*out);
			if ((*out)->state == SLOT_SPARE)
				return 0;
		}
		return jar_slot_open(jar, out);
	}
	if (jar->slots)
		return -EBUSY;
	/* The first process needs no minder: it is one. */
	*out = slot_add(jar, MINDER_ANSWERED);
	return *out ? 0 : -ENOMEM;
}

void jar_slot_on_limit(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause)
{
	struct slot *slot = owner;

	if (slot->occupant.owner)
		slot->occupant.limit(slot->occupant.owner, name, hit, cause);
}

int jar_slot_take(struct session *jar, const struct plan *plan, const struct slot_occupant *occupant, struct slot **out,
		  struct error *error)
{
	struct slot *slot;
	int rc = jar->is_closing || jar->is_gone ? -ESHUTDOWN : find_place(jar, &slot);

	if (rc < 0)
		return error_set(error, STAGE_ENGINE, -rc, "cannot start a run in the jar: %s", strerror(-rc));
	slot_handle(slot, EVENT_TAKE);
	slot->occupant = *occupant;
	if (slot->number) {
		rc = limiter_open_run(&slot->limiter, jar->loop, plan, &jar->limiter, &slot->cgroup, jar_slot_on_limit,
				      slot, error);
		slot->cgroup = (struct cgroup){0}; /* it is the limiter's now */
	}
	if (rc < 0) {
		jar_slot_leave(slot);
		return rc;
	}
	*out = slot;
	return 0;
}

int jar_slot_take_once(struct loop *loop, const struct session_request *request, const struct slot_occupant *occupant,
		       struct slot **out, struct error *error)
{
	struct session *jar;
	int rc = jar_new(loop, request, &jar, error);

	if (rc < 0)
		return rc;
	rc = jar_slot_take(jar, request->plan, occupant, out, error);
	if (rc < 0)
		jar_free(jar);
	return rc;
}

void jar_slot_leave(struct slot *slot)
{
	struct session *jar = slot->jar;

	slot->occupant = (struct slot_occupant){0};
	if (jar->plan->kind == PLAN_ONCE) {
		jar_free(jar);
		return;
	}
	limiter_stop(&slot->limiter);
	slot_handle(slot, EVENT_LEAVE);
	jar_slot_sweep(jar);
}

/* --- for the run -------------------------------------------------------------------------------------------- */

struct gate *jar_slot_gate(struct slot *slot)
{
	return slot->gate ? slot->gate : slot->jar->gate;
}

struct limiter *jar_slot_limiter(struct slot *slot)
{
	return slot->number ? &slot->limiter : &slot->jar->limiter;
}

/* Whether this process can see the run; a host may hide processes in /proc. */
static bool can_look(const struct session *jar)
{
	char path[32], content[16];

	if (jar->plan->rung == RUNG_NAMESPACE)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)jar->jar.pid);
	return sys_read_file(AT_FDCWD, path, content, sizeof(content)) > 0;
}

bool jar_slot_limiter_start(struct slot *slot)
{
	if (!slot->number)
		return limiter_start(&slot->jar->limiter, slot->jar->jar.pid);
	/* The jar's views may be unread: read them. Once it is ready, later messages come in their turn. */
	if (!jar_is_ready(slot->jar))
		jar_poll(slot->jar);
	/* The minder of a call has a /proc of its own, and has handed it over. */
	if (plan_is_for_calls(slot->jar->plan))
		return limiter_start(&slot->limiter, slot->pid);
	if (slot->limiter.plan->metered && !can_look(slot->jar))
		return false;
	return limiter_join(&slot->limiter, slot->pid) == 0 && limiter_start(&slot->limiter, slot->pid);
}

int jar_slot_send(struct slot *slot, const struct jar_message *message)
{
	return control_of(slot) < 0 ? -ESHUTDOWN : control_send(control_of(slot), message, -1);
}

int jar_slot_send_run(struct slot *slot, const struct plan *plan, const struct jar_streams *streams, bool is_detached,
		      struct error *error)
{
	return plan->kind == PLAN_ONCE
		       ? jar_start(slot->jar, streams, error)
		       : jar_send_run(control_of(slot), &plan->core, plan->metered != 0, is_detached, streams);
}

uint64_t jar_slot_overdue(struct slot *slot)
{
	slot_handle(slot, EVENT_OVERDUE);
	return SECOND_CHANCE_NS;
}
