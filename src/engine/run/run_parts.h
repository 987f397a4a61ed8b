/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/run_parts.h - private to the files of a run: the run, its states and its events
 */
#ifndef BELLJAR_ENGINE_RUN_RUN_PARTS_H
#define BELLJAR_ENGINE_RUN_RUN_PARTS_H

#include "engine/gate/engine_gate.h"
#include "engine/ledger/ledger.h"
#include "engine/run/failure.h"
#include "engine/run/relay.h"
#include "engine/run/run.h"
#include "engine/run/streams.h"
#include "engine/jar/jar_slot.h"

enum run_state { STATE_STARTING, STATE_RUNNING, STATE_ENDING, STATE_KILLING, STATE_DRAINING, STATE_DONE, STATE_COUNT };

enum run_event {
	EVENT_STARTED,
	EVENT_FAILED,   /* a step or exec failed: the command never ran */
	EVENT_EXITED,   /* the main process ended */
	EVENT_LEFT,     /* it ended, and its other processes continue */
	EVENT_SOFT_END, /* timeout or cancel: grace */
	EVENT_HARD_END, /* another limit, a second cancel, lost output: no grace */
	EVENT_GRACE_OVER,
	EVENT_GONE,
	EVENT_DRAINED,
	EVENT_COUNT,
};

struct run {
	struct loop *loop;
	struct run_request request;
	const struct plan *plan;
	enum run_state state;
	struct slot *slot;
	struct loop_timer deadline;
	struct loop_timer grace;
	struct loop_timer overdue;
	struct loop_timer stall;
	bool is_left; /* the command has ended, and its other processes continue */
	/* A limit that ended it before it was known to have started. */
	struct {
		enum limit_name name;
		struct limit_hit hit;
		enum cause cause;
	} early;
	struct streams streams;
	struct gate_visit visit;
	struct ledger ledger;
	bool is_drained; /* and waits for the ledger */
	struct relay *relay;
	int relay_target_fd; /* the write end of the command's stdin, until the relay takes it over */
	int relay_peek_fd;   /* its read end, to see what the command did not read; likewise */
	uint64_t begun_ns;
	struct observation seen;
};

/* --- run.c -------------------------------------------------------------------------------------------------- */

/* Apply an event by the table. Without a row for it in this state it changes nothing. */
void run_handle(struct run *run, enum run_event event);
/* Kill the processes that the command left, at a limit of its run. That limit is not reported any more. */
void run_kill_left(struct run *run);
/* All output has arrived. The ledger may need a moment more for refusals. */
void run_on_drained(void *owner);
void run_on_ledger_finished(void *owner);

/* --- run_limits.c ------------------------------------------------------------------------------------------- */

/* Set the cause of the run's end, unless there is one already. */
void run_set_cause(struct run *run, enum cause cause);
/* Set the deadline: the time limit, and @allowance_ns. */
void run_arm_deadline(struct run *run, uint64_t allowance_ns);
/* After the start, report a limit that ended the run before the start was known. True: there was one. */
bool run_tell_early(struct run *run);
/* Note the command's end, with its wait @status. */
void run_note_status(struct run *run, int status, uint64_t ended_ns);
/* From the limiter and the gate: see limiter_function. From the streams: see struct streams_listener. */
void run_on_limit(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause);
void run_on_overflow(void *owner, const char *what, uint64_t limit_bytes, uint64_t delivered_bytes);

/* --- run_news.c --------------------------------------------------------------------------------------------- */

/* The run's place, for error messages. */
struct failure_place run_failure_place(const struct run *run);
/* From the gate and the ledger. */
void run_on_denial(void *owner, const struct denial *denial);
/* As struct slot_occupant says. */
void run_on_message(void *owner, const struct jar_message *message, int fd);
void run_on_closing(void *owner);
void run_on_gone(void *owner, const struct rusage *usage, int status);

#endif
