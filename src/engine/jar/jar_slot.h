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
	/* No process of the run is left; they used @usage. @status is how the one in charge of them ended, if it was killed. */
	void (*gone)(void *owner, const struct rusage *usage, int status);
};

/* @plan is the run's and must stay until jar_slot_leave(). */
int jar_slot_take(struct session *jar, const struct plan *plan, const struct slot_occupant *occupant, struct slot **out,
		  struct error *error);
/* The same in a one-shot jar, of which @request is. The jar begins with jar_slot_send_run(), and jar_slot_leave() frees it. */
int jar_slot_take_once(struct loop *loop, const struct session_request *request, const struct slot_occupant *occupant,
		       struct slot **out, struct error *error);
/* The run is freed. If it has not ended, it is killed. */
void jar_slot_leave(struct slot *slot);

struct limiter *jar_slot_limiter(struct slot *slot);
/* NULL: the jar has none. */
struct gate *jar_slot_gate(struct slot *slot);
/* Begin to hold the run to its limits. False: it cannot be. */
bool jar_slot_limiter_start(struct slot *slot);
int jar_slot_send(struct slot *slot, const struct jar_message *message);
/* Send the command, or start the jar with it. A negative errno; @error says more if the jar could not be made. */
int jar_slot_send_run(struct slot *slot, const struct plan *plan, const struct jar_streams *streams, bool is_detached,
		      struct error *error);
/* Read what has arrived and was not looked at yet. */
void jar_slot_poll(struct slot *slot);
/* The minder does not do its part. Returns the time to wait before this is called again. */
uint64_t jar_slot_overdue(struct slot *slot);

#endif
