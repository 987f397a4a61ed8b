/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/seat_jar.h - what kept.c and seat.c share: the jar, and its seats
 */
#ifndef BELLJAR_RUN_SEAT_JAR_H
#define BELLJAR_RUN_SEAT_JAR_H

#include "run/burial.h"
#include "run/seat.h"

struct seat {
	struct kept_jar *jar;
	struct seat *next;
	uint32_t number; /* 0: the only seat of a prepared jar */
	int control_fd;  /* the keeper's socket, or borrowed from the jar */
	struct loop_watch watch;
	int keeper_end;                    /* until the keeper was asked for */
	int member_fds[CGROUP_PART_COUNT]; /* likewise */
	size_t member_count;
	pid_t pid;         /* the keeper's, inside; 0: not known yet */
	bool is_asked;     /* for a keeper */
	bool is_answered;  /* it is ready, or could not be made */
	bool is_taken;     /* there is or was a run in it */
	bool is_over;      /* the run has been told that it is over */
	bool is_renewable; /* the keeper, whose run is over, waits for another */
	bool is_given_up;  /* the first process was told to kill the keeper */
	bool is_keeper_gone;
	struct seat_occupant occupant; /* owner NULL: none, or it has left */
	struct cgroup cgroup;          /* until there is a guard */
	struct guard guard;
	uint64_t written_bytes; /* as the keeper says */
};

struct kept_file;

struct kept_jar {
	struct loop *loop;
	struct kept_request request;
	const struct plan *plan;
	struct jar jar;
	struct loop_watch control;
	struct loop_watch pidfd;
	struct loop_timer overdue;
	struct loop_timer spare;
	struct guard guard;
	struct observation seen;
	struct jar_message failure; /* kind 0: none */
	struct burial burial;
	bool is_closing, is_gone;
	bool is_killed;  /* it was told to leave */
	bool is_overdue; /* it did not, and was given a second chance */
	struct seat *seats;
	uint32_t last_number;
	unsigned asked_count; /* keepers that were asked for and have not answered */
	uint64_t first_written_bytes;
	struct kept_file *files; /* oldest first */
};

/* kept.c */
/* Read what has arrived from the jar's first process. */
void kept_poll(struct kept_jar *jar);
/* End the jar now; it is not said to anybody that this was wanted. */
void kept_kill(struct kept_jar *jar);
/* The sum of what keepers and the first process say was written. */
void kept_note_written(struct kept_jar *jar);

/* seat.c */
/* Have a keeper ready for the next run, made off the path of the one that is on now. */
void seat_want_spare(struct kept_jar *jar, uint64_t delay_ns);
/* A message that came on the jar's own socket, for the only seat; @fd is the seat's from here on. */
void seat_hear(struct seat *seat, const struct jar_message *message, int fd);
struct seat *seat_find(struct kept_jar *jar, uint32_t number);
/* The keeper and all it started are dead and reaped. */
void seat_keeper_gone(struct seat *seat, const struct rusage *usage, int status);
/* Free what nobody holds any more. */
void seat_sweep(struct kept_jar *jar);

#endif
