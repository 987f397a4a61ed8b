/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_slot.h - a place for one run in a jar: all that engine/run/ knows of jars
 *
 * In a session a slot is a minder with its own control socket and cgroup, made ahead where possible. A one-shot jar and a
 * prepared one have a single slot, whose minder is the jar's first process itself.
 */
#ifndef BELLJAR_ENGINE_JAR_JAR_SLOT_H
#define BELLJAR_ENGINE_JAR_JAR_SLOT_H

#include "engine/limits/limiter.h"
#include "engine/jar/jar.h"

struct gate;
struct slot;

/* The run in a slot. Called from within the loop. */
struct slot_occupant {
	void *owner;
	/* From its minder; @fd is the run's from here on. */
	void (*message)(void *owner, const struct jar_message *message, int fd);
	limiter_function *limit;
	/* The jar is being closed. */
	void (*closing)(void *owner);
	/* No process of the run is left; they used @usage. @status: how their minder ended, if it was killed. */
	void (*gone)(void *owner, const struct rusage *usage, int status);
};

/* Take a slot for a run. @plan is the run's and must stay until jar_slot_leave(). */
int jar_slot_take(struct session *jar, const struct plan *plan, const struct slot_occupant *occupant, struct slot **out,
		  struct error *error);
/* The same in a new one-shot jar for @request. jar_slot_send_run() starts the jar, and jar_slot_leave() frees it. */
int jar_slot_take_once(struct loop *loop, const struct session_request *request, const struct slot_occupant *occupant,
		       struct slot **out, struct error *error);
/* Leave the slot, because the run is freed. Kills a run that has not ended. */
void jar_slot_leave(struct slot *slot);

struct limiter *jar_slot_limiter(struct slot *slot);
/* NULL: the jar has none. */
struct gate *jar_slot_gate(struct slot *slot);
/* Begin to measure the run's limits. False: they cannot be held. */
bool jar_slot_limiter_start(struct slot *slot);
int jar_slot_send(struct slot *slot, const struct jar_message *message);
/* Send the command, or start the jar with it. A negative errno; @error says more if the jar could not be made. */
int jar_slot_send_run(struct slot *slot, const struct plan *plan, const struct jar_streams *streams, bool is_detached,
		      struct error *error);
/* Read messages that have arrived. */
void jar_slot_poll(struct slot *slot);
/* Act on a minder that is too slow. Returns the time until the next call. */
uint64_t jar_slot_overdue(struct slot *slot);

#endif
