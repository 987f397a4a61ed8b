/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/session_slot.c - a place for one run in a jar
 *
 * A minder says JAR_EMPTY when all it started is dead and reaped; then the run is over. One that was killed cannot say
 * so: then the jar's first process does (JAR_MINDER_GONE), after it has hunted down what the minder left. That comes in
 * every case, and only then the run's cgroup can be removed and the slot be freed.
 */
#include "session/session_jar.h"
#include "session/session_send.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "sys/calls.h"

/* So many are asked for and not yet made at a time: what the jar has not read takes up room in its socket. */
#define ASKED_MAX 16
#define SECOND_CHANCE_NS 2000000000ULL
/*
 * While a command runs, its caller waits for nothing of ours: that is the time to make minders ready. If no other run comes
 * soon after one, it is done without.
 */
#define SPARE_DELAY_NS 1000000ULL
/* Who runs one command after the other finds a minder ready while the next one is being made. */
#define SPARES_IN_USE 2
/*
 * Calls come in bursts, and each needs a minder that nobody has used: so many are ready, made one at a time, so that calls
 * that are under way have the other processors. docs/design/0031 has what other numbers cost.
 */
#define CALLS_AHEAD 8
/* A minder of commands that is there already costs little: so many may wait for another one. */
#define SPARES_MAX 5

bool slot_has_run(const struct slot *slot)
{
	return slot->occupant.owner && !slot->is_over;
}

static int control_of(const struct slot *slot)
{
	return slot->number ? slot->control_fd : slot->jar->jar.control_fd;
}

static void ask(struct slot *slot)
{
	struct session *jar = slot->jar;

	if (slot->is_asked || jar->asked_count >= ASKED_MAX ||
	    jar_send_minder(jar->jar.control_fd, slot->number, slot->minder_end, slot->member_fds, slot->member_count) <
		    0)
		return;
	slot->is_asked = true;
	jar->asked_count++;
	close_fd(&slot->minder_end);
	while (slot->member_count)
		close(slot->member_fds[--slot->member_count]);
}

static void ask_next(struct session *jar)
{
	for (struct slot *slot = jar->slots; slot && jar->asked_count < ASKED_MAX; slot = slot->next)
		ask(slot);
}

static void note_answer(struct slot *slot)
{
	if (slot->is_answered)
		return;
	slot->is_answered = true;
	if (!slot->number)
		return;
	slot->jar->asked_count--;
	ask_next(slot->jar);
}

static void tell_over(struct slot *slot, const struct rusage *usage, int status)
{
	if (slot->is_over)
		return;
	slot->is_over = true;
	if (slot->occupant.owner)
		slot->occupant.gone(slot->occupant.owner, usage, status);
	/* One that could not be made ready is not tried again until somebody wants it. */
	if (slot->number && slot->is_taken)
		slot_want_spare(slot->jar, slot->jar->plan->core.has_zygote ? 0 : SPARE_DELAY_NS);
}

static void tell_end(struct slot *slot, const struct jar_message *message)
{
	struct jar_message ended = {
		.kind = JAR_EXITED,
		.steps_done = message->steps_done,
		.entry_done = message->entry_done,
		.exited = message->empty.end,
	};

	slot->occupant.message(slot->occupant.owner, &ended, -1);
}

void slot_hear(struct slot *slot, const struct jar_message *message, int fd)
{
	bool has_run = slot_has_run(slot);

	switch (message->kind) {
	case JAR_READY:
		slot->pid = (pid_t)message->ready.pid;
		note_answer(slot);
		if (slot->jar->plan->core.has_zygote)
			slot_want_spare(slot->jar, 0);
		return;
	case JAR_EMPTY:
		slot->is_renewable = message->empty.can_renew;
		if (message->empty.end.is_last && has_run)
			tell_end(slot, message);
		tell_over(slot, &message->empty.usage, 0);
		return;
	case JAR_STEP_FAILED:
		note_answer(slot);
		break;
	case JAR_STARTED:
		slot_want_spare(slot->jar, slot->jar->plan->core.has_zygote ? SPARE_DELAY_NS : 0);
		break;
	case JAR_WRITTEN:
		slot->written_bytes = MAX_OF(slot->written_bytes, message->written.bytes);
		session_note_written(slot->jar);
		break;
	}
	if (has_run)
		slot->occupant.message(slot->occupant.owner, message, fd);
	else if (fd >= 0)
		close(fd);
}

static void on_minder(struct loop_watch *watch, uint32_t events)
{
	struct slot *slot = watch->owner;
	struct jar_message message;
	int fd, rc = -EAGAIN;

	(void)events;
	while (watch->loop && (rc = jar_receive(slot->control_fd, &message, &fd)) > 0)
		slot_hear(slot, &message, fd);
	if (watch->loop && rc != -EAGAIN && rc != -EINTR)
		loop_remove(watch); /* its parent tells the rest */
}

void slot_poll(struct slot *slot)
{
	if (!slot->number)
		session_poll(slot->jar);
	else if (slot->watch.loop)
		on_minder(&slot->watch, EPOLLIN);
}

/* --- making and freeing ------------------------------------------------------------------------------------- */

static void free_slot(struct slot *slot)
{
	loop_remove(&slot->watch);
	close_fd(&slot->control_fd);
	close_fd(&slot->minder_end);
	while (slot->member_count)
		close(slot->member_fds[--slot->member_count]);
	limiter_done(&slot->limiter);
	cgroup_done(&slot->cgroup, slot->jar->loop);
	free(slot);
}

void slot_sweep(struct session *jar)
{
	struct slot **at = &jar->slots;

	while (*at) {
		struct slot *slot = *at;

		if (!slot->is_minder_gone || slot->occupant.owner) {
			at = &slot->next;
			continue;
		}
		*at = slot->next;
		free_slot(slot);
	}
}

static struct slot *add_slot(struct session *jar)
{
	struct slot *slot = calloc(1, sizeof(*slot));

	if (!slot)
		return NULL;
	slot->jar = jar;
	slot->control_fd = slot->minder_end = -1;
	slot->next = jar->slots;
	jar->slots = slot;
	return slot;
}

/* With the limits that most runs in the jar have. */
static int open_cgroup(struct slot *slot)
{
	struct session *jar = slot->jar;
	int rc = cgroup_open_run(&slot->cgroup, &jar->limiter.cgroup, slot->number, slot->member_fds,
				 &slot->member_count);

	return rc < 0 ? rc : cgroup_limit(&slot->cgroup, &jar->plan->limits);
}

/* With a minder, in a session. */
static int open_slot(struct session *jar, struct slot **out)
{
	struct slot *slot = add_slot(jar);
	int rc;

	if (!slot)
		return -ENOMEM;
	slot->number = ++jar->last_number;
	rc = jar_socket_pair(&slot->control_fd, &slot->minder_end);
	if (rc == 0)
		rc = loop_add(jar->loop, &slot->watch, slot->control_fd, EPOLLIN, on_minder, slot);
	if (rc == 0)
		rc = open_cgroup(slot);
	if (rc < 0) {
		jar->slots = slot->next;
		free_slot(slot);
		return rc;
	}
	ask(slot);
	*out = slot;
	return 0;
}

struct slot *slot_find(struct session *jar, uint32_t number)
{
	struct slot *slot = jar->slots;

	while (slot && slot->number != number)
		slot = slot->next;
	return slot;
}

static bool is_spare(const struct slot *slot)
{
	/* One may have left by itself, and not be gone yet: that of a call whose zygote has died. */
	return !slot->is_taken && !slot->is_over && !slot->is_minder_gone && slot->watch.loop;
}

/* One whose minder is there already, if there is one. */
static struct slot *find_spare(struct session *jar)
{
	struct slot *found = NULL;

	for (struct slot *slot = jar->slots; slot; slot = slot->next)
		if (is_spare(slot) && (!found || slot->is_answered))
			found = slot;
	return found;
}

void slot_on_limit(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause)
{
	struct slot *slot = owner;

	if (slot->occupant.owner)
		slot->occupant.limit(slot->occupant.owner, name, hit, cause);
}

static int find_slot(struct session *jar, struct slot **out)
{
	if (jar->plan->kind == PLAN_SESSION) {
		/* An earlier command may have killed the spare minders, with the news still unread. */
		while ((*out = find_spare(jar))) {
			slot_poll(*out);
			if (is_spare(*out))
				return 0;
		}
		return open_slot(jar, out);
	}
	if (jar->slots)
		return -EBUSY;
	*out = add_slot(jar);
	return *out ? 0 : -ENOMEM;
}

int slot_take(struct session *jar, const struct plan *plan, const struct slot_occupant *occupant, struct slot **out,
	      struct error *error)
{
	struct slot *slot;
	int rc = jar->is_closing || jar->is_gone ? -ESHUTDOWN : find_slot(jar, &slot);

	if (rc < 0)
		return error_set(error, STAGE_ENGINE, -rc, "there is no room for a run in the jar: %s", strerror(-rc));
	slot->is_taken = true;
	slot->occupant = *occupant;
	if (slot->number) {
		rc = limiter_open_run(&slot->limiter, jar->loop, plan, &jar->limiter, &slot->cgroup, slot_on_limit,
				      slot, error);
		slot->cgroup = (struct cgroup){0}; /* it is the limiter's now */
	}
	if (rc < 0) {
		slot_leave(slot);
		return rc;
	}
	*out = slot;
	return 0;
}

int slot_take_once(struct loop *loop, const struct session_request *request, const struct slot_occupant *occupant,
		   struct slot **out, struct error *error)
{
	struct session *jar;
	int rc = session_new(loop, request, &jar, error);

	if (rc < 0)
		return rc;
	rc = slot_take(jar, request->plan, occupant, out, error);
	if (rc < 0)
		session_free(jar);
	return rc;
}

/*
 * A minder of commands knows how much memory the largest of all that it ever reaped had, not of which run. Where a cgroup
 * counts, nobody asks it.
 */
static bool is_fit_for_another(const struct slot *slot)
{
	return slot->is_renewable && !slot->is_minder_gone && slot->watch.loop && !slot->jar->is_closing &&
	       slot->limiter.cgroup.fds[CGROUP_MEMORY] >= 0;
}

/* Have the minder ready for another run. False: it is not needed, or cannot be. */
static bool renew(struct slot *slot)
{
	struct session *jar = slot->jar;
	unsigned spares = 0;

	for (const struct slot *other = jar->slots; other; other = other->next)
		spares += is_spare(other);
	if (!is_fit_for_another(slot) || spares >= SPARES_MAX)
		return false;
	limiter_done(&slot->limiter); /* and with it the cgroup, in which nobody is left */
	slot->limiter = (struct limiter){0};
	if (open_cgroup(slot) < 0 || jar_send_renew(slot->control_fd, slot->member_fds, slot->member_count) < 0)
		return false;
	while (slot->member_count)
		close(slot->member_fds[--slot->member_count]);
	slot->is_taken = slot->is_over = slot->is_renewable = slot->is_answered = false;
	jar->asked_count++;
	return true;
}

/* Nobody is in the slot any more, and its run is over: another one, or none. */
static void give_back(struct slot *slot)
{
	if (renew(slot))
		return;
	slot->is_renewable = false;
	loop_remove(&slot->watch);
	close_fd(&slot->control_fd); /* its leash */
}

/* The minders of commands that are over: see SPARE_DELAY_NS. */
static void give_back_all(struct session *jar)
{
	for (struct slot *slot = jar->slots; slot; slot = slot->next)
		if (slot->is_renewable && !slot->occupant.owner)
			give_back(slot);
}

/* How many more to ask for now. */
static unsigned count_missing(const struct session *jar)
{
	bool has_calls = jar->plan->core.has_zygote;
	/* A jar for commands that was never used has one. */
	unsigned wanted = has_calls ? CALLS_AHEAD : jar->last_number ? SPARES_IN_USE : 1;
	unsigned there = 0;
	bool is_one_made = false;

	for (const struct slot *slot = jar->slots; slot; slot = slot->next) {
		there += is_spare(slot) || slot->is_renewable;
		is_one_made |= is_spare(slot) && !slot->is_answered;
	}
	if (there >= wanted || (has_calls && is_one_made))
		return 0;
	return has_calls ? 1 : wanted - there;
}

static void on_spare(struct loop_timer *timer)
{
	struct session *jar = timer->owner;
	struct slot *slot;
	unsigned missing;

	if (jar->is_closing || jar->is_gone)
		return;
	give_back_all(jar);
	missing = count_missing(jar);
	while (missing-- && open_slot(jar, &slot) == 0)
		; /* if it fails, the next run finds out */
}

void slot_want_spare(struct session *jar, uint64_t delay_ns)
{
	if (jar->plan->kind == PLAN_SESSION && !jar->is_closing && !jar->is_gone)
		loop_arm(jar->loop, &jar->spare, sys_monotonic_ns() + delay_ns, on_spare, jar);
}

void slot_leave(struct slot *slot)
{
	struct session *jar = slot->jar;
	struct jar_message message = {.kind = JAR_KILL};

	slot->occupant = (struct slot_occupant){0};
	if (jar->plan->kind == PLAN_ONCE) {
		session_free(jar);
		return;
	}
	limiter_stop(&slot->limiter);
	if (!slot->is_taken)
		return; /* its minder gets ready for another run */
	if (!slot->is_over && slot->number) {
		jar_send(slot->control_fd, &message, -1);
		loop_remove(&slot->watch);
		close_fd(&slot->control_fd); /* its leash */
	} else if (!slot->is_over) {
		session_kill(jar);
	}
	slot->is_over = true;
	slot_sweep(jar);
}

/* Whoever could kill a minder may have killed the spare ones too, and a killed process is not gone at once: have new ones. */
static void give_spares_up(struct session *jar)
{
	for (struct slot *slot = jar->slots; slot; slot = slot->next) {
		struct jar_message message = {.kind = JAR_KILL, .kill = {.minder = slot->number}};

		if (!is_spare(slot) || !slot->is_asked)
			continue;
		slot->is_taken = true;
		slot->is_given_up = jar_send(jar->jar.control_fd, &message, -1) == 0;
	}
}

void slot_minder_gone(struct slot *slot, const struct rusage *usage, int status)
{
	if (slot->number)
		slot_poll(slot); /* its last words may still be unread */
	if (slot->number && slot->is_taken && !slot->is_over && !slot->is_given_up && !slot->jar->is_gone)
		give_spares_up(slot->jar);
	if (slot->is_asked)
		note_answer(slot);
	slot->is_minder_gone = true;
	slot->written_bytes = 0;
	tell_over(slot, usage, status);
}

/* --- for the run -------------------------------------------------------------------------------------------- */

struct limiter *slot_limiter(struct slot *slot)
{
	return slot->number ? &slot->limiter : &slot->jar->limiter;
}

/* Where the host hides processes from us we would look at the run in vain. */
static bool can_look(const struct session *jar)
{
	char path[32], content[16];

	if (jar->plan->rung == RUNG_NAMESPACE)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)jar->jar.pid);
	return sys_read_file(AT_FDCWD, path, content, sizeof(content)) > 0;
}

bool slot_limiter_start(struct slot *slot)
{
	if (!slot->number)
		return limiter_start(&slot->jar->limiter, slot->jar->jar.pid);
	/* What the jar handed over to look at may still be unread. */
	session_poll(slot->jar);
	/* The minder of a call has a /proc of its own, and has handed it over. */
	if (slot->jar->plan->core.has_zygote)
		return limiter_start(&slot->limiter, slot->pid);
	if (slot->limiter.plan->metered && !can_look(slot->jar))
		return false;
	return limiter_join(&slot->limiter, slot->pid) == 0 && limiter_start(&slot->limiter, slot->pid);
}

int slot_send(struct slot *slot, const struct jar_message *message)
{
	return control_of(slot) < 0 ? -ESHUTDOWN : jar_send(control_of(slot), message, -1);
}

int slot_send_run(struct slot *slot, const struct plan *plan, const struct jar_streams *streams, struct error *error)
{
	if (plan->kind == PLAN_ONCE)
		return session_start(slot->jar, streams, error);
	return jar_send_run(control_of(slot), &plan->core, plan->metered != 0, streams);
}

uint64_t slot_overdue(struct slot *slot)
{
	struct jar_message message = {.kind = JAR_KILL, .kill = {.minder = slot->number}};

	if (!slot->number)
		session_hurry(slot->jar);
	/* If the first process does not do its part either, the jar has to go. */
	else if (!slot->is_asked || slot->is_given_up || jar_send(slot->jar->jar.control_fd, &message, -1) < 0)
		session_kill(slot->jar);
	else
		slot->is_given_up = true;
	return SECOND_CHANCE_NS;
}
