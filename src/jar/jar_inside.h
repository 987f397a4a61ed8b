/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_inside.h - what the files of jar/ share: the child's side
 *
 * Everything declared here runs between clone and exec in a copy of the engine: no allocation, no stdio, no locks.
 */
#ifndef BELLJAR_JAR_JAR_INSIDE_H
#define BELLJAR_JAR_JAR_INSIDE_H

#include <poll.h>
#include <signal.h>

#include "answer/answer.h"
#include "jar/jar.h"

#define JAR_STREAM_FDS 3
/* The control socket of a first process or minder. */
#define JAR_CONTROL_FD 3

/* What the steps leave for one another. */
struct jar_build {
	const struct jar_plan *plan;
	int root_fd;    /* the new root while it is built */
	int scratch_fd; /* the tmpfs of the private places */
	int scratch_count;
	pid_t engine_pid;
	pid_t first_pid;                 /* the jar's first process */
	bool has_run_cgroup;             /* a minder has entered the cgroups of its own run */
	pid_t scoped_pid;                /* the process whose signals reach only itself and what it starts; 0: none */
	int user_namespace_fd;           /* root only: where the jar's host id is 0; -1: not made */
	int view_fds[JAR_VIEW_COUNT];    /* for the engine's meter; -1: not asked for */
	int socket_fds[JAR_SOCKETS_MAX]; /* of STEP_SOCKETS, until the engine has them; -1: not there */
	size_t socket_count;
	int run_directory_fd;        /* held as long as the jar's first process lives; -1: there is none */
	struct answer_places places; /* held as long */
	int listener_socket; /* of a child that becomes a command: to its minder, for its filter's listener; else -1 */
	int listener_fd;     /* of the command's filter, if that asks and until nobody can ask any more; else -1 */
	int written_fd;      /* what this process and all it has waited for have written; -1: nobody wants to know */
};

/* A command to start: the plan's own, or one that was sent. */
struct jar_command {
	char *const *argv;
	size_t argv_count;
	char *const *env;
	size_t env_count;
	char *const *candidates; /* as in struct jar_plan */
	size_t candidate_count;
	struct plan_step_list entry;
	int fds[JAR_STREAM_FDS + JAR_EXTRA_MAX]; /* what it has as 0, 1, 2, ...; higher numbers than these */
	size_t fd_count;
	bool has_pty;
	bool is_metered; /* of one that was sent: the engine looks at it */
	struct winsize window;
	struct reap_time time; /* as in struct jar_streams */
	/* Of one that was sent: what the rest points at. */
	void *spec, *lists;
	size_t spec_len, lists_len;
};

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
	/* A process of the tree that is another's child, the fork of a zygote: see call/. NULL: there is none. */
	void (*await_outsider)(struct jar_inside *inside); /* it was killed: wait until that has happened */
	struct rusage outsider_usage;                      /* what it used, once it is gone */
};

typedef int jar_step_function(struct jar_build *build, const struct plan_step *step);

#define STEP_DECLARATION(kind, function, ...) jar_step_function function;
JAR_STEPS(STEP_DECLARATION)

/* Is this the object that the planner saw? An inode of 0: any is. 0, -ESTALE, another negative errno. */
int jar_check_object(int fd, dev_t device, ino_t inode);
/* STEP_BIND with the detached mount that is to stand there, which is closed. */
int jar_attach_tree(struct jar_build *build, const struct plan_step *step, int mount_fd);
/* Carry out one step: 0 or a negative errno. */
int jar_step(struct jar_build *build, const struct plan_step *step);

/* When the host runs out of memory, this process and all it starts go before the engine does. */
void jar_set_oom_score(void);

/* jar_inside.c: give the engine what STEP_METER opened. */
void jar_hand_over_view(struct jar_inside *inside);

/* jar_network.c: give the engine what STEP_SOCKETS made, and keep nothing of it. */
void jar_hand_over_sockets(struct jar_inside *inside);

/* jar_steps.c: the plan's rules as a ruleset, or a negative errno. */
int jar_landlock_ruleset(const struct jar_build *build);

/* jar_exec.c */
/* Reset the signal mask and all handlers, for the command. */
void jar_unblock_signals(void);
/* Be the first of the candidates that is there. Returns only on failure. */
int jar_execute(const struct jar_command *command, const char *shell);
/*
 * Be the command, in a child made for that. Before the last step *@start, whose time is set, becomes JAR_STARTED; on failure it
 * says why.
 */
void jar_become_command(struct jar_inside *inside, struct jar_message *start) __attribute__((noreturn));

/* jar_command.c */
/* Tell the engine, and how many steps are carried out. */
void jar_report(struct jar_inside *inside, struct jar_message *message, int fd);
/* Tell the engine the negative errno @rc, which no step of the plan stands for, and leave. */
void jar_fail(struct jar_inside *inside, int rc) __attribute__((noreturn));
/* Carry out a list of steps; on failure *@done is the one that failed. */
int jar_carry(struct jar_inside *inside, const struct plan_step_list *steps, uint32_t *done, uint64_t *times);
/* Start the command and watch over it until nothing of it is left. Never returns. */
void jar_supervise(struct jar_inside *inside) __attribute__((noreturn));
/* Tell what `start` says; if the command was not started, leave. */
void jar_report_start(struct jar_inside *inside);
/* Tell which system calls were refused: those that were not told yet, at the end also how often. */
void jar_report_refusals(struct jar_inside *inside, bool is_end);
/* Watch over the command, tell its end, and end what it left. */
void jar_watch_to_end(struct jar_inside *inside);
/* The command has ended with the status in `end`. */
void jar_report_end(struct jar_inside *inside);
/* Reap what has ended. True: the command is among it; its status is in `end`. */
bool jar_reap(struct jar_inside *inside);
/* Do what the engine says. */
void jar_on_request(struct jar_inside *inside);
/* End everything this process is in charge of. */
void jar_end_tree(struct jar_inside *inside);
/* End everything this process is in charge of, and leave. */
void jar_leave(struct jar_inside *inside, int status) __attribute__((noreturn));
/* ppoll(), as long as the command has time: when that is over, end everything and leave. */
int jar_wait(struct jar_inside *inside, struct pollfd *waiting, size_t count, const sigset_t *signals);
/* Wake from sleep when a child ends; the signals that may come then. */
void jar_catch_children(sigset_t *all_but_child);

/* The life of the jar's first process. Never returns. */
void jar_inside(const struct jar_plan *plan, jar_main_function *main, const struct jar_streams *streams,
		struct jar_times *times, int control_fd) __attribute__((noreturn));

#endif
