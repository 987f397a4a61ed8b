/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/seat.h - a place for one run in a jar that outlives the call: between run.c and kept.c
 *
 * In a kept jar a seat is a keeper with its own control socket and cgroup, made ahead where possible. In a prepared jar
 * the only seat is the jar's first process itself.
 */
#ifndef BELLJAR_RUN_SEAT_H
#define BELLJAR_RUN_SEAT_H

#include "run/guard.h"
#include "run/kept.h"

struct seat;

/* The run in a seat. Called from within the loop. */
struct seat_occupant {
	void *owner;
	/* From its keeper; @fd is the run's from here on. */
	void (*message)(void *owner, const struct jar_message *message, int fd);
	guard_function *limit;
	/* The jar is being closed. */
	void (*closing)(void *owner);
	/* No process of the run is left; they used @usage. @status is how the one in charge of them ended, if it was killed. */
	void (*gone)(void *owner, const struct rusage *usage, int status);
};

/* @plan is the run's and must stay until seat_leave(). */
int seat_take(struct kept_jar *jar, const struct plan *plan, const struct seat_occupant *occupant, struct seat **out,
	      struct error *error);
/* The run is freed. If it has not ended, it is killed. */
void seat_leave(struct seat *seat);

struct guard *seat_guard(struct seat *seat);
/* Begin to hold the run to its limits. False: it cannot be. */
bool seat_guard_start(struct seat *seat);
int seat_send(struct seat *seat, const struct jar_message *message);
int seat_send_run(struct seat *seat, const struct plan *plan, const struct jar_streams *streams);
/* Read what has arrived and was not looked at yet. */
void seat_poll(struct seat *seat);
/* The keeper does not do its part. Returns the time to wait before this is called again. */
uint64_t seat_overdue(struct seat *seat);

#endif
