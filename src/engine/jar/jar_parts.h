/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_parts.h - what the engine's files of engine/jar/ share: the jar, and its slots
 */
#ifndef BELLJAR_ENGINE_JAR_JAR_PARTS_H
#define BELLJAR_ENGINE_JAR_JAR_PARTS_H

#include "engine/gate/engine_gate.h"
#include "engine/jar/jar_start.h"
#include "engine/jar/jar_reaper.h"
#include "engine/jar/jar_slot.h"

enum slot_state {
	SLOT_SPARE,  /* free for a run */
	SLOT_TAKEN,  /* a run is in it */
	SLOT_DOOMED, /* the first process was asked to kill its minder */
	SLOT_OVER,   /* the run knows that it is over, or no run will come; the minder leaves */
	SLOT_GONE,   /* the minder and all it started are dead and reaped */
	SLOT_STATE_COUNT,
};

enum slot_minder {
	MINDER_WANTED,
	MINDER_ASKED,
	MINDER_ANSWERED, /* it is ready, or could not be made */
};

struct slot {
	struct session *jar;
	struct slot *next;
	uint32_t number; /* 0: the only slot of its jar, whose minder is the first process */
	enum slot_state state;
	enum slot_minder minder;
	pid_t pid;      /* the minder's, inside; 0: not known yet */
	int control_fd; /* the minder's socket; -1: it is the jar's, or closed */
	struct loop_watch watch;
	int minder_end;                    /* until the minder was asked for */
	int member_fds[CGROUP_PART_COUNT]; /* likewise */
	size_t member_count;
	struct slot_occupant occupant; /* owner NULL: none, or it has left */
	struct cgroup cgroup;          /* until there is a limiter */
	struct limiter limiter;
	uint64_t written_bytes; /* as the minder reports */
	struct rusage usage;    /* what the run used, once it is over */
	int status;             /* how the minder ended, if it was killed */
	struct gate *gate;      /* of a call, which has its own network; else NULL */
	bool is_gate_ending;    /* the run is over when the gate is */
	bool is_minder_gone;    /* meanwhile the minder has ended too */
};

struct session_task;

struct session {
	struct loop *loop;
	struct session_request request;
	const struct plan *plan;
	struct jar jar;
	struct loop_watch control;
	struct loop_watch pidfd;
	struct loop_timer overdue;
	struct loop_timer spare;
	struct limiter limiter;
	unsigned over_looks; /* looks over a limit of the jar since the engine last ended a run for it */
	struct observation seen;
	struct jar_message failure; /* kind 0: none */
	struct reaper reaper;
	struct gate *gate;   /* of all its runs; NULL: none, or each has one */
	struct rusage usage; /* of the first process, and its status, once it is gone */
	int status;
	bool is_closing, is_gone;
	bool is_killed;  /* it was asked to leave */
	bool is_overdue; /* it did not, and was given a second chance, or killed */
	struct slot *slots;
	uint32_t last_number;
	unsigned asked_count; /* minders that were asked for and have not answered */
	uint64_t first_written_bytes;
	struct session_task *tasks; /* oldest first */
	unsigned sent_tasks;        /* how many of them wait for an answer */
};

/* --- session.c ---------------------------------------------------------------------------------------------- */

/* Make the record of a jar, with its limits and without processes. */
int jar_new(struct loop *loop, const struct session_request *request, struct session **out, struct error *error);
/* Make its first process. @streams are for the command of PLAN_ONCE, or for a zygote; else NULL. On failure it must be freed. */
int jar_start(struct session *jar, const struct jar_streams *streams, struct error *error);
/* Read what has arrived from the jar's first process. */
void jar_poll(struct session *jar);
/* Kill the jar now. Its runs are not told that this was intended. */
void jar_kill(struct session *jar);
/* Act on a jar that takes too long to end. */
void jar_hurry(struct session *jar);
/* Add up the written bytes that minders and the first process reported. */
void jar_note_written(struct session *jar);

/* --- jar_tasks.c ---------------------------------------------------------------------------------------- */

/* Fail all tasks: no answer will come any more. */
void jar_refuse_tasks(struct session *jar);

/* --- jar_slot.c ----------------------------------------------------------------------------------------- */

bool jar_slot_has_run(const struct slot *slot);
/* A limit of the slot's run was reached; as limiter_function. */
void jar_slot_on_limit(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause);
/* Pass a socket of the jar to its gate; with @gate NULL close it. */
void jar_take_socket(struct session *jar, struct gate *gate, int fd);
/* Make a slot with its own minder. */
int jar_slot_open(struct session *jar, struct slot **out);
struct slot *jar_slot_find(struct session *jar, uint32_t number);
/* Take a message from the jar's own socket, for the only slot; the slot owns @fd from here on. */
void jar_slot_hear(struct slot *slot, const struct jar_message *message, int fd);
/* The minder and all it started are dead and reaped. */
void jar_slot_minder_gone(struct slot *slot, const struct rusage *usage, int status);
/* Free slots that are gone and without a run. */
void jar_slot_sweep(struct session *jar);

/* --- jar_spares.c --------------------------------------------------------------------------------------- */

/* Have a minder ready for the next run; make it later, so that it does not delay the current one. */
void jar_slot_want_spare(struct session *jar, uint64_t delay_ns);
/* Ask for the slot's minder, now or when others have answered. */
void jar_slot_ask(struct slot *slot);
void jar_slot_answered(struct slot *slot);
int jar_slot_open_cgroup(struct slot *slot);
/* NULL: there is none. */
struct slot *jar_slot_find_spare(const struct session *jar);

#endif
