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
	/* Reported to the engine. */
	uint32_t steps_done, entry_done;
	uint64_t written_bytes;
	struct jar_message start; /* JAR_STARTED, or why it failed */
	struct jar_end end;
	pid_t pid;                                      /* the command's */
	void (*report_left)(struct jar_inside *inside); /* sessions: report that the tree is gone */
	/* For a process of the tree that is the zygote's child: see inside/call/. NULL: there is none. */
	void (*await_outsider)(struct jar_inside *inside); /* it was killed: wait for its end */
	struct rusage outsider_usage;                      /* what it used, once it is gone */
};

/* init.c: send what STEP_METER opened to the engine. */
void init_hand_over_view(struct jar_inside *inside);

/* init.c: send the sockets of STEP_SOCKETS to the engine, and close them here. */
void init_hand_over_sockets(struct jar_inside *inside);

/* init_exec.c */
/* Reset the signal mask and all handlers, for the command. */
void init_unblock_signals(void);
/* Execute the first candidate that exists. Returns only on failure. */
int init_execute(const struct jar_command *command, const char *shell);
/*
 * Become the command, in a child made for that. Before the last step *@start, whose time is set, becomes
 * JAR_STARTED. On failure it says why.
 */
void init_become_command(struct jar_inside *inside, struct jar_message *start) __attribute__((noreturn));

/* init_watch.c */
/* Send @message to the engine, with the number of completed steps. */
void init_report(struct jar_inside *inside, struct jar_message *message, int fd);
/* Report the negative errno @rc, which belongs to no step of the plan, and leave. */
void init_fail(struct jar_inside *inside, int rc) __attribute__((noreturn));
/* Carry out a list of steps; on failure *@done is the one that failed. */
int init_carry(struct jar_inside *inside, const struct plan_step_list *steps, uint32_t *done, uint64_t *times);
/* Start the command and supervise it until its tree is gone. Never returns. */
void init_supervise(struct jar_inside *inside) __attribute__((noreturn));
/* Report `start`; if the command did not start, leave. */
void init_report_start(struct jar_inside *inside);
/* Report refused system calls that were not reported yet; at the end also how often. */
void init_report_refusals(struct jar_inside *inside, bool is_end);
/* Supervise the command, report its end, and end what it left. */
void init_watch_to_end(struct jar_inside *inside);
/* Report that the command has ended, with the status in `end`. */
void init_report_end(struct jar_inside *inside);
/* Reap what has ended. True: the command is among it; its status is in `end`. */
bool init_reap(struct jar_inside *inside);
/* Carry out the engine's next request. */
void init_on_request(struct jar_inside *inside);
/* End every process of this process's tree. */
void init_end_tree(struct jar_inside *inside);
/* End every process of this process's tree, and leave. */
void init_leave(struct jar_inside *inside, int status) __attribute__((noreturn));
/* Call ppoll(). When the command's time is over, end its tree and leave. */
int init_wait(struct jar_inside *inside, struct pollfd *waiting, size_t count, const sigset_t *signals);
/* Make the end of a child interrupt ppoll(); @all_but_child is the mask to pass to it. */
void init_catch_children(sigset_t *all_but_child);

/* Run the jar's first process. Never returns. */
void init_main(const struct jar_plan *plan, jar_main_function *main, const struct jar_streams *streams,
	       struct jar_times *times, int control_fd) __attribute__((noreturn));

#endif
