/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/init/init.h - what the files of the first process share
 *
 * Everything declared here runs between clone and exec in a copy of the engine: no allocation, no stdio, no locks.
 */
#ifndef BELLJAR_INSIDE_INIT_INIT_H
#define BELLJAR_INSIDE_INIT_INIT_H

#include <poll.h>
#include <signal.h>

#include "inside/build/build.h"
#include "inside/jar.h"

/* The control socket of a first process or minder. */
#define JAR_CONTROL_FD 3

/* The state of a first process or minder. */
struct jar_inside {
	const struct jar_plan *plan;
	bool is_minder; /* of one command in a session */
	bool owns_pids; /* it is the first of a pid namespace */
	struct jar_times *times;
	struct jar_build build;
	struct jar_command command;
	/* What the engine is told of it. */
	uint32_t steps_done, entry_done;
	uint64_t written_bytes;
	struct jar_message start; /* JAR_STARTED, or why not */
	struct jar_end end;
	pid_t pid;                                      /* the command's */
	void (*report_left)(struct jar_inside *inside); /* sessions: tell the engine that the tree is gone */
	/* A process of the tree that is another's child, the fork of a zygote: see inside/call/. NULL: there is none. */
	void (*await_outsider)(struct jar_inside *inside); /* it was killed: wait until that has happened */
	struct rusage outsider_usage;                      /* what it used, once it is gone */
};

/* init.c: give the engine what STEP_METER opened. */
void init_hand_over_view(struct jar_inside *inside);

/* init.c: give the engine what STEP_SOCKETS made, and keep nothing of it. */
void init_hand_over_sockets(struct jar_inside *inside);

/* init_exec.c */
/* Reset the signal mask and all handlers, for the command. */
void init_unblock_signals(void);
/* Be the first of the candidates that is there. Returns only on failure. */
int init_execute(const struct jar_command *command, const char *shell);
/*
 * Be the command, in a child made for that. Before the last step *@start, whose time is set, becomes JAR_STARTED; on failure it
 * says why.
 */
void init_become_command(struct jar_inside *inside, struct jar_message *start) __attribute__((noreturn));

/* init_watch.c */
/* Tell the engine, and how many steps are carried out. */
void init_report(struct jar_inside *inside, struct jar_message *message, int fd);
/* Tell the engine the negative errno @rc, which no step of the plan stands for, and leave. */
void init_fail(struct jar_inside *inside, int rc) __attribute__((noreturn));
/* Carry out a list of steps; on failure *@done is the one that failed. */
int init_carry(struct jar_inside *inside, const struct plan_step_list *steps, uint32_t *done, uint64_t *times);
/* Start the command and watch over it until nothing of it is left. Never returns. */
void init_supervise(struct jar_inside *inside) __attribute__((noreturn));
/* Tell what `start` says; if the command was not started, leave. */
void init_report_start(struct jar_inside *inside);
/* Tell which system calls were refused: those that were not told yet, at the end also how often. */
void init_report_refusals(struct jar_inside *inside, bool is_end);
/* Watch over the command, tell its end, and end what it left. */
void init_watch_to_end(struct jar_inside *inside);
/* The command has ended with the status in `end`. */
void init_report_end(struct jar_inside *inside);
/* Reap what has ended. True: the command is among it; its status is in `end`. */
bool init_reap(struct jar_inside *inside);
/* Do what the engine says. */
void init_on_request(struct jar_inside *inside);
/* End everything this process is in charge of. */
void init_end_tree(struct jar_inside *inside);
/* End everything this process is in charge of, and leave. */
void init_leave(struct jar_inside *inside, int status) __attribute__((noreturn));
/* ppoll(), as long as the command has time: when that is over, end everything and leave. */
int init_wait(struct jar_inside *inside, struct pollfd *waiting, size_t count, const sigset_t *signals);
/* Wake from sleep when a child ends; the signals that may come then. */
void init_catch_children(sigset_t *all_but_child);

/* The life of the jar's first process. Never returns. */
void init_main(const struct jar_plan *plan, jar_main_function *main, const struct jar_streams *streams,
	       struct jar_times *times, int control_fd) __attribute__((noreturn));

#endif
