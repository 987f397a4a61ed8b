/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/session_jar.h - what session.c, session_files.c and session_slot.c share: the jar, and its slots
 */
#ifndef BELLJAR_SESSION_SESSION_JAR_H
#define BELLJAR_SESSION_SESSION_JAR_H

#include "reap/reaper.h"
#include "session/session_slot.h"

struct slot {
	struct session *jar;
	struct slot *next;
	uint32_t number; /* 0: the only slot of its jar, whose minder is the first process */
	int control_fd;  /* the minder's socket; -1: it is the jar's, or closed */
	struct loop_watch watch;
	int minder_end;                    /* until the minder was asked for */
	int member_fds[CGROUP_PART_COUNT]; /* likewise */
	size_t member_count;
	pid_t pid;         /* the minder's, inside; 0: not known yet */
	bool is_asked;     /* for a minder */
	bool is_answered;  /* it is ready, or could not be made */
	bool is_taken;     /* there is or was a run in it */
	bool is_over;      /* the run has been told that it is over */
	bool is_renewable; /* the minder, whose run is over, waits for another */
	bool is_given_up;  /* the first process was told to kill the minder */
	bool is_minder_gone;
	struct slot_occupant occupant; /* owner NULL: none, or it has left */
	struct cgroup cgroup;          /* until there is a limiter */
	struct limiter limiter;
	uint64_t written_bytes; /* as the minder says */
};

struct session_file;

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
	struct observation seen;
	struct jar_message failure; /* kind 0: none */
	struct reaper reaper;
	bool is_closing, is_gone;
	bool is_killed;  /* it was told to leave */
	bool is_overdue; /* it did not, and was given a second chance, or killed */
	struct slot *slots;
	uint32_t last_number;
	unsigned asked_count; /* minders that were asked for and have not answered */
	uint64_t first_written_bytes;
	struct session_file *files; /* oldest first */
};

/* session.c */
/* The record of a jar, with its limits and without processes. */
int session_new(struct loop *loop, const struct session_request *request, struct session **out, struct error *error);
/* Make its first process. @streams are for the command of PLAN_ONCE, or for a zygote; else NULL. On failure it must be freed. */
int session_start(struct session *jar, const struct jar_streams *streams, struct error *error);
/* Read what has arrived from the jar's first process. */
void session_poll(struct session *jar);
/* End the jar now; it is not said to anybody that this was wanted. */
void session_kill(struct session *jar);
/* It was asked to end, or ends by itself, and takes too long. */
void session_hurry(struct session *jar);
/* The sum of what minders and the first process say was written. */
void session_note_written(struct session *jar);

/* session_files.c */
/* The oldest question is answered: @fd, or -1 and why not. */
void session_file_opened(struct session *jar, int fd, int errno_value);
/* Nobody will answer any more. */
void session_refuse_files(struct session *jar);

/* session_slot.c */
bool slot_has_run(const struct slot *slot);
/* A limit of the slot's run was reached; as limiter_function. */
void slot_on_limit(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause);
/* Have a minder ready for the next run, made off the path of the one that is on now. */
void slot_want_spare(struct session *jar, uint64_t delay_ns);
/* A message that came on the jar's own socket, for the only slot; @fd is the slot's from here on. */
void slot_hear(struct slot *slot, const struct jar_message *message, int fd);
struct slot *slot_find(struct session *jar, uint32_t number);
/* The minder and all it started are dead and reaped. */
void slot_minder_gone(struct slot *slot, const struct rusage *usage, int status);
/* Free what nobody holds any more. */
void slot_sweep(struct session *jar);

#endif
