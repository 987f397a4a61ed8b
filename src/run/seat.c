/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/seat.c - a place for one run in a jar that outlives the call
 *
 * A keeper says JAR_EMPTY when all it started is dead and reaped; then the run is over. One that was killed cannot say
 * so: then the jar's first process does (JAR_KEEPER_GONE), after it has hunted down what the keeper left. That comes in
 * every case, and only then the run's cgroup can be removed and the seat be freed.
 */
#include "run/seat_jar.h"

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
 * While a command runs, its caller waits for nothing of ours: that is the time to make keepers ready. If no other run comes
 * soon after one, it is done without.
 */
#define SPARE_DELAY_NS 1000000ULL
/* Who runs one command after the other finds a keeper ready while the next one is being made. */
#define SPARES_IN_USE 2
/*
 * Calls come in bursts, and each needs a keeper that nobody has used: so many are ready, made one at a time, so that calls
 * that are under way have the other processors. docs/design/0031 has what other numbers cost.
 */
#define CALLS_AHEAD 8
/* A keeper of commands that is there already costs little: so many may wait for another one. */
#define SPARES_MAX 5

static void ask(struct seat *seat)
{
	struct kept_jar *jar = seat->jar;

	if (seat->is_asked || jar->asked_count >= ASKED_MAX ||
	    jar_send_keeper(jar->jar.control_fd, seat->number, seat->keeper_end, seat->member_fds, seat->member_count) <
		    0)
		return;
	seat->is_asked = true;
	jar->asked_count++;
	close_fd(&seat->keeper_end);
	while (seat->member_count)
		close(seat->member_fds[--seat->member_count]);
}

static void ask_next(struct kept_jar *jar)
{
	for (struct seat *seat = jar->seats; seat && jar->asked_count < ASKED_MAX; seat = seat->next)
		ask(seat);
}

static void note_answer(struct seat *seat)
{
	if (seat->is_answered)
		return;
	seat->is_answered = true;
	if (!seat->number)
		return;
	seat->jar->asked_count--;
	ask_next(seat->jar);
}

static void tell_over(struct seat *seat, const struct rusage *usage, int status)
{
	if (seat->is_over)
		return;
	seat->is_over = true;
	if (seat->occupant.owner)
		seat->occupant.gone(seat->occupant.owner, usage, status);
	/* One that could not be made ready is not tried again until somebody wants it. */
	if (seat->number && seat->is_taken)
		seat_want_spare(seat->jar, seat->jar->plan->has_zygote ? 0 : SPARE_DELAY_NS);
}

static void tell_end(struct seat *seat, const struct jar_message *message)
{
	struct jar_message ended = *message;

	ended.kind = JAR_EXITED;
	seat->occupant.message(seat->occupant.owner, &ended, -1);
}

void seat_hear(struct seat *seat, const struct jar_message *message, int fd)
{
	bool has_run = seat->occupant.owner && !seat->is_over;

	switch (message->kind) {
	case JAR_READY:
		seat->pid = (pid_t)message->status;
		note_answer(seat);
		if (seat->jar->plan->has_zygote)
			seat_want_spare(seat->jar, 0);
		return;
	case JAR_EMPTY:
		seat->is_renewable = message->step == 1;
		if (message->has_ended && has_run)
			tell_end(seat, message);
		tell_over(seat, &message->self, 0);
		return;
	case JAR_STEP_FAILED:
		note_answer(seat);
		break;
	case JAR_STARTED:
		seat_want_spare(seat->jar, seat->jar->plan->has_zygote ? SPARE_DELAY_NS : 0);
		break;
	case JAR_WRITTEN:
		seat->written_bytes = MAX_OF(seat->written_bytes, message->written_bytes);
		kept_note_written(seat->jar);
		break;
	}
	if (has_run)
		seat->occupant.message(seat->occupant.owner, message, fd);
	else if (fd >= 0)
		close(fd);
}

static void on_keeper(struct loop_watch *watch, uint32_t events)
{
	struct seat *seat = watch->owner;
	struct jar_message message;
	int fd, rc = -EAGAIN;

	(void)events;
	while (watch->loop && (rc = jar_receive(seat->control_fd, &message, &fd)) > 0)
		seat_hear(seat, &message, fd);
	if (watch->loop && rc != -EAGAIN && rc != -EINTR)
		loop_remove(watch); /* its parent tells the rest */
}

void seat_poll(struct seat *seat)
{
	if (!seat->number)
		kept_poll(seat->jar);
	else if (seat->watch.loop)
		on_keeper(&seat->watch, EPOLLIN);
}

/* --- making and freeing ------------------------------------------------------------------------------------- */

static void free_seat(struct seat *seat)
{
	loop_remove(&seat->watch);
	if (seat->number)
		close_fd(&seat->control_fd);
	close_fd(&seat->keeper_end);
	while (seat->member_count)
		close(seat->member_fds[--seat->member_count]);
	guard_done(&seat->guard);
	cgroup_done(&seat->cgroup, seat->jar->loop);
	free(seat);
}

void seat_sweep(struct kept_jar *jar)
{
	struct seat **at = &jar->seats;

	while (*at) {
		struct seat *seat = *at;

		if (!seat->is_keeper_gone || seat->occupant.owner) {
			at = &seat->next;
			continue;
		}
		*at = seat->next;
		free_seat(seat);
	}
}

static struct seat *add_seat(struct kept_jar *jar)
{
	struct seat *seat = calloc(1, sizeof(*seat));

	if (!seat)
		return NULL;
	seat->jar = jar;
	seat->control_fd = seat->keeper_end = -1;
	seat->next = jar->seats;
	jar->seats = seat;
	return seat;
}

/* With the limits that most runs in the jar have. */
static int open_cgroup(struct seat *seat)
{
	struct kept_jar *jar = seat->jar;
	int rc =
		cgroup_open_run(&seat->cgroup, &jar->guard.cgroup, seat->number, seat->member_fds, &seat->member_count);

	return rc < 0 ? rc : cgroup_limit(&seat->cgroup, &jar->plan->limits);
}

/* With a keeper, in a kept jar. */
static int open_seat(struct kept_jar *jar, struct seat **out)
{
	struct seat *seat = add_seat(jar);
	int rc;

	if (!seat)
		return -ENOMEM;
	seat->number = ++jar->last_number;
	rc = jar_socket_pair(&seat->control_fd, &seat->keeper_end);
	if (rc == 0)
		rc = loop_add(jar->loop, &seat->watch, seat->control_fd, EPOLLIN, on_keeper, seat);
	if (rc == 0)
		rc = open_cgroup(seat);
	if (rc < 0) {
		jar->seats = seat->next;
		free_seat(seat);
		return rc;
	}
	ask(seat);
	*out = seat;
	return 0;
}

struct seat *seat_find(struct kept_jar *jar, uint32_t number)
{
	struct seat *seat = jar->seats;

	while (seat && seat->number != number)
		seat = seat->next;
	return seat;
}

static bool is_spare(const struct seat *seat)
{
	/* One may have left by itself, and not be gone yet: that of a call whose zygote has died. */
	return !seat->is_taken && !seat->is_over && !seat->is_keeper_gone && seat->watch.loop;
}

/* One whose keeper is there already, if there is one. */
static struct seat *find_spare(struct kept_jar *jar)
{
	struct seat *found = NULL;

	for (struct seat *seat = jar->seats; seat; seat = seat->next)
		if (is_spare(seat) && (!found || seat->is_answered))
			found = seat;
	return found;
}

static void on_limit(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause)
{
	struct seat *seat = owner;

	if (seat->occupant.owner && !seat->is_over)
		seat->occupant.limit(seat->occupant.owner, name, hit, cause);
}

static int find_seat(struct kept_jar *jar, struct seat **out)
{
	if (jar->plan->kind == PLAN_KEPT) {
		/* An earlier command may have killed the spare keepers, with the news still unread. */
		while ((*out = find_spare(jar))) {
			seat_poll(*out);
			if (is_spare(*out))
				return 0;
		}
		return open_seat(jar, out);
	}
	if (jar->seats)
		return -EBUSY;
	*out = add_seat(jar);
	if (!*out)
		return -ENOMEM;
	(*out)->control_fd = jar->jar.control_fd;
	return 0;
}

int seat_take(struct kept_jar *jar, const struct plan *plan, const struct seat_occupant *occupant, struct seat **out,
	      struct error *error)
{
	struct seat *seat;
	int rc = jar->is_closing || jar->is_gone ? -ESHUTDOWN : find_seat(jar, &seat);

	if (rc < 0)
		return error_set(error, STAGE_ENGINE, -rc, "there is no room for a run in the jar: %s", strerror(-rc));
	seat->is_taken = true;
	seat->occupant = *occupant;
	if (seat->number) {
		rc = guard_open_run(&seat->guard, jar->loop, plan, &jar->guard, &seat->cgroup, on_limit, seat, error);
		seat->cgroup = (struct cgroup){0}; /* it is the guard's now */
	}
	if (rc < 0) {
		seat_leave(seat);
		return rc;
	}
	*out = seat;
	return 0;
}

/*
 * A keeper of commands knows how much memory the largest of all that it ever reaped had, not of which run. Where a cgroup
 * counts, nobody asks it.
 */
static bool is_fit_for_another(const struct seat *seat)
{
	return seat->is_renewable && !seat->is_keeper_gone && seat->watch.loop && !seat->jar->is_closing &&
	       seat->guard.cgroup.fds[CGROUP_MEMORY] >= 0;
}

/* Have the keeper ready for another run. False: it is not needed, or cannot be. */
static bool renew(struct seat *seat)
{
	struct kept_jar *jar = seat->jar;
	unsigned spares = 0;

	for (const struct seat *other = jar->seats; other; other = other->next)
		spares += is_spare(other);
	if (!is_fit_for_another(seat) || spares >= SPARES_MAX)
		return false;
	guard_done(&seat->guard); /* and with it the cgroup, in which nobody is left */
	seat->guard = (struct guard){0};
	if (open_cgroup(seat) < 0 || jar_send_renew(seat->control_fd, seat->member_fds, seat->member_count) < 0)
		return false;
	while (seat->member_count)
		close(seat->member_fds[--seat->member_count]);
	seat->is_taken = seat->is_over = seat->is_renewable = seat->is_answered = false;
	jar->asked_count++;
	return true;
}

/* Nobody is in the seat any more, and its run is over: another one, or none. */
static void give_back(struct seat *seat)
{
	if (renew(seat))
		return;
	seat->is_renewable = false;
	loop_remove(&seat->watch);
	close_fd(&seat->control_fd); /* its leash */
}

/* The keepers of commands that are over: see SPARE_DELAY_NS. */
static void give_back_all(struct kept_jar *jar)
{
	for (struct seat *seat = jar->seats; seat; seat = seat->next)
		if (seat->is_renewable && !seat->occupant.owner)
			give_back(seat);
}

/* How many more to ask for now. */
static unsigned count_missing(const struct kept_jar *jar)
{
	bool has_calls = jar->plan->has_zygote;
	/* A jar for commands that was never used has one. */
	unsigned wanted = has_calls ? CALLS_AHEAD : jar->last_number ? SPARES_IN_USE : 1;
	unsigned there = 0;
	bool is_one_made = false;

	for (const struct seat *seat = jar->seats; seat; seat = seat->next) {
		there += is_spare(seat) || seat->is_renewable;
		is_one_made |= is_spare(seat) && !seat->is_answered;
	}
	if (there >= wanted || (has_calls && is_one_made))
		return 0;
	return has_calls ? 1 : wanted - there;
}

static void on_spare(struct loop_timer *timer)
{
	struct kept_jar *jar = timer->owner;
	struct seat *seat;
	unsigned missing;

	if (jar->is_closing || jar->is_gone)
		return;
	give_back_all(jar);
	missing = count_missing(jar);
	while (missing-- && open_seat(jar, &seat) == 0)
		; /* if it fails, the next run finds out */
}

void seat_want_spare(struct kept_jar *jar, uint64_t delay_ns)
{
	if (jar->plan->kind == PLAN_KEPT && !jar->is_closing && !jar->is_gone)
		loop_arm(jar->loop, &jar->spare, sys_monotonic_ns() + delay_ns, on_spare, jar);
}

void seat_leave(struct seat *seat)
{
	struct kept_jar *jar = seat->jar;
	struct jar_message message = {.kind = JAR_KILL};

	seat->occupant = (struct seat_occupant){0};
	guard_stop(&seat->guard);
	if (!seat->is_taken)
		return; /* its keeper gets ready for another run */
	if (!seat->is_over && seat->number) {
		jar_send(seat->control_fd, &message, -1);
		loop_remove(&seat->watch);
		close_fd(&seat->control_fd); /* its leash */
	} else if (!seat->is_over) {
		kept_kill(jar);
	}
	seat->is_over = true;
	seat_sweep(jar);
}

/* Whoever could kill a keeper may have killed the spare ones too, and a killed process is not gone at once: have new ones. */
static void give_spares_up(struct kept_jar *jar)
{
	for (struct seat *seat = jar->seats; seat; seat = seat->next) {
		struct jar_message message = {.kind = JAR_KILL, .step = (int32_t)seat->number};

		if (!is_spare(seat) || !seat->is_asked)
			continue;
		seat->is_taken = true;
		seat->is_given_up = jar_send(jar->jar.control_fd, &message, -1) == 0;
	}
}

void seat_keeper_gone(struct seat *seat, const struct rusage *usage, int status)
{
	if (seat->number)
		seat_poll(seat); /* its last words may still be unread */
	if (seat->number && seat->is_taken && !seat->is_over && !seat->is_given_up && !seat->jar->is_gone)
		give_spares_up(seat->jar);
	if (seat->is_asked)
		note_answer(seat);
	seat->is_keeper_gone = true;
	seat->written_bytes = 0;
	tell_over(seat, usage, status);
}

/* --- for the run -------------------------------------------------------------------------------------------- */

struct guard *seat_guard(struct seat *seat)
{
	return seat->number ? &seat->guard : &seat->jar->guard;
}

/* Where the host hides processes from us we would look at the run in vain. */
static bool can_look(const struct kept_jar *jar)
{
	char path[32], content[16];

	if (jar->plan->rung == RUNG_NAMESPACE)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)jar->jar.pid);
	return sys_read_file(AT_FDCWD, path, content, sizeof(content)) > 0;
}

bool seat_guard_start(struct seat *seat)
{
	struct rusage nothing = {0};

	if (!seat->number)
		return guard_start(&seat->jar->guard, seat->jar->jar.pid, &nothing);
	/* What the jar handed over to look at may still be unread. */
	kept_poll(seat->jar);
	/* The keeper of a call has a /proc of its own, and has handed it over. */
	if (seat->jar->plan->has_zygote)
		return guard_start(&seat->guard, seat->pid, &nothing);
	if (seat->guard.plan->metered && !can_look(seat->jar))
		return false;
	return guard_join(&seat->guard, seat->pid) == 0 && guard_start(&seat->guard, seat->pid, &nothing);
}

int seat_send(struct seat *seat, const struct jar_message *message)
{
	return seat->control_fd < 0 ? -ESHUTDOWN : jar_send(seat->control_fd, message, -1);
}

int seat_send_run(struct seat *seat, const struct plan *plan, const struct jar_streams *streams)
{
	return jar_send_run(seat->control_fd, plan, streams);
}

uint64_t seat_overdue(struct seat *seat)
{
	struct jar_message message = {.kind = JAR_KILL, .step = (int32_t)seat->number};

	if (!seat->number || !seat->is_asked || seat->is_given_up ||
	    jar_send(seat->jar->jar.control_fd, &message, -1) < 0) {
		kept_kill(seat->jar);
		return SECOND_CHANCE_NS;
	}
	/* If the first process does not do its part either, the jar has to go. */
	seat->is_given_up = true;
	return SECOND_CHANCE_NS;
}
