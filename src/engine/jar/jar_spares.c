/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_spares.c - have minders ready for the next runs of a session
 *
 * Making a minder takes longer than sending it a command, so minders are made ahead, off the path of the runs that are on
 * now. Each is for one run: docs/design/10-jars-and-slots has what using them again was worth.
 */
#include "engine/jar/jar_parts.h"

#include "engine/jar/jar_send.h"
#include "base/sys/calls.h"

/* Open requests for minders at a time, because unread requests take room in the jar's socket. */
#define ASKED_MAX 16
/*
 * Calls come in bursts, and each needs a fresh minder. Keep this many ready, and make them one at a time, so
 * that running calls have the other processors. docs/design/11-calls has the cost of other numbers.
 */
#define CALLS_AHEAD 8

void jar_slot_ask(struct slot *slot)
{
	struct session *jar = slot->jar;

	if (slot->minder != MINDER_WANTED || jar->asked_count >= ASKED_MAX ||
	    jar_send_minder(jar->jar.control_fd, slot->number, slot->minder_end, slot->member_fds, slot->member_count) <
		    0)
		return;
	slot->minder = MINDER_ASKED;
	jar->asked_count++;
	close_fd(&slot->minder_end);
	while (slot->member_count)
		close(slot->member_fds[--slot->member_count]);
}

void jar_slot_answered(struct slot *slot)
{
	struct session *jar = slot->jar;

	if (slot->minder != MINDER_ASKED)
		return;
	slot->minder = MINDER_ANSWERED;
	jar->asked_count--;
	for (struct slot *other = jar->slots; other && jar->asked_count < ASKED_MAX; other = other->next)
		jar_slot_ask(other);
}

/* With the limits that most runs in the jar have. */
int jar_slot_open_cgroup(struct slot *slot)
{
	struct session *jar = slot->jar;
	int rc = limits_cgroup_open_run(&slot->cgroup, &jar->limiter.cgroup, slot->number, slot->member_fds,
					&slot->member_count);

	return rc < 0 ? rc : limits_cgroup_limit(&slot->cgroup, &jar->plan->limits);
}

/* Find a spare slot, if possible one whose minder is ready. */
struct slot *jar_slot_find_spare(const struct session *jar)
{
	struct slot *found = NULL;

	for (struct slot *slot = jar->slots; slot; slot = slot->next)
		if (slot->state == SLOT_SPARE && (!found || slot->minder == MINDER_ANSWERED))
			found = slot;
	return found;
}

/* Count the minders to ask for now. */
static unsigned count_missing(const struct session *jar)
{
	bool is_for_calls = plan_is_for_calls(jar->plan);
	/* A jar for commands that was never used has one. */
	unsigned wanted = is_for_calls ? CALLS_AHEAD : jar->last_number ? PLAN_SPARE_MINDERS : 1;
	unsigned there = 0;
	bool is_one_made = false;

	for (const struct slot *slot = jar->slots; slot; slot = slot->next) {
		there += slot->state == SLOT_SPARE;
		is_one_made |= slot->state == SLOT_SPARE && slot->minder != MINDER_ANSWERED;
	}
	if (there >= wanted || (is_for_calls && is_one_made))
		return 0;
	return is_for_calls ? 1 : wanted - there;
}

static void session_on_spare(struct loop_timer *timer)
{
	struct session *jar = timer->owner;
	struct slot *slot;
	unsigned missing;

	if (jar->is_closing || jar->is_gone)
		return;
	missing = count_missing(jar);
	while (missing-- && jar_slot_open(jar, &slot) == 0)
		; /* if it fails, the next run finds out */
}

void jar_slot_want_spare(struct session *jar, uint64_t delay_ns)
{
	if (plan_has_minders(jar->plan) && !jar->is_closing && !jar->is_gone)
		loop_arm(jar->loop, &jar->spare, sys_monotonic_ns() + delay_ns, session_on_spare, jar);
}
