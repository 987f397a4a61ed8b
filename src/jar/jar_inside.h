/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_inside.h - what the files of jar/ share: the child's side
 *
 * Everything declared here runs between clone and exec in a copy of the engine: no allocation, no stdio, no locks.
 */
#ifndef BELLJAR_JAR_JAR_INSIDE_H
#define BELLJAR_JAR_JAR_INSIDE_H

#include <signal.h>

#include "jar/jar.h"

#define JAR_STREAM_FDS 3
#define JAR_ATTACHED_MAX (1 + JAR_STREAM_FDS + JAR_EXTRA_MAX)
/* The control socket of a first process or keeper. */
#define JAR_CONTROL_FD 3

/* What the steps leave for one another. */
struct jar_build {
	const struct plan *plan;
	int root_fd;    /* the new root while it is built */
	int scratch_fd; /* the tmpfs of the private places */
	int scratch_count;
	pid_t engine_pid;
	pid_t first_pid;              /* the jar's first process */
	bool has_run_cgroup;          /* a keeper has entered the cgroups of its own run */
	int user_namespace_fd;        /* root only: where the jar's host id is 0; -1: not made */
	int view_fds[JAR_VIEW_COUNT]; /* for the engine's meter; -1: not asked for */
	int run_directory_fd;         /* held as long as the jar's first process lives; -1: there is none */
	int written_fd; /* what this process and all it has waited for have written; -1: nobody wants to know */
};

/* A command to start: the plan's own, or one that was sent. */
struct jar_command {
	char *const *argv;
	size_t argv_count;
	char *const *env;
	size_t env_count;
	struct plan_step_list entry;
	int fds[JAR_STREAM_FDS + JAR_EXTRA_MAX]; /* what it has as 0, 1, 2, ...; higher numbers than these */
	size_t fd_count;
	bool has_pty;
	bool is_metered; /* of one that was sent: the engine looks at it */
	struct winsize window;
	/* Of one that was sent: what the rest points at. */
	void *spec, *lists;
	size_t spec_len, lists_len;
};

/* The fork of the zygote that a keeper watches over; see jar_call.h. */
struct jar_call {
	int fd;              /* to it, and to the zygote; -1: this is no keeper of a call */
	pid_t pid;           /* as the keeper sees it */
	pid_t keeper_pid;    /* the keeper's, as the jar sees it */
	int last_pid_fd;     /* to set the numbers of processes back; -1: that cannot be done */
	bool is_reaped;      /* the zygote has said how it ended */
	int status;          /* likewise */
	struct rusage usage; /* likewise */
};

/* The state of a first process or keeper. */
struct jar_inside {
	const struct plan *plan;
	enum jar_mode mode;
	bool is_keeper;
	struct jar_times *times;
	struct jar_build build;
	struct jar_message report;
	struct jar_command command;
	pid_t pid; /* the command's */
	struct jar_call call;
	int pty_master;
	int pty_slave;
};

/* What came with a message. */
struct jar_attached {
	int fds[JAR_ATTACHED_MAX];
	size_t fd_count;
	char text[JAR_PATH_MAX + 1]; /* NUL-terminated */
};

typedef int jar_step_function(struct jar_build *build, const struct plan_step *step);

/* Carry out one step: 0 or a negative errno. */
int jar_step(struct jar_build *build, const struct plan_step *step);

/* Bytes that this process and all it has waited for have written, less what was taken back before it was stored. */
uint64_t jar_written_bytes(const struct jar_build *build);

/* When the host runs out of memory, this process and all it starts go before the engine does. */
void jar_volunteer(void);

/* Kill every descendant of this process, a subreaper, until none is left; all but the children @spared (NULL: none). */
void jar_hunt(const struct jar_family *spared);
/* Remove the run's own directory and all in it. */
void jar_sweep(const char *path);
/* Remove those beside @run_directory that nobody holds any more. */
void jar_sweep_abandoned(const char *run_directory);
/* Send a signal to every descendant once. */
void jar_signal_tree(int signal_number);

/* jar_start.c */
struct iovec;
/* One message with descriptors, without waiting. 0 or a negative errno. */
int jar_send_parts(int socket_fd, const struct iovec *parts, size_t part_count, const int *fds, size_t fd_count);
int jar_receive_all(int control_fd, struct jar_message *message, struct jar_attached *attached);

/* jar_inside.c: give the engine what STEP_METER opened. */
void jar_hand_over_view(struct jar_inside *inside);

/* jar_steps.c: the plan's rules as a ruleset, or a negative errno. */
int jar_landlock_ruleset(const struct jar_build *build);

/* jar_command.c */
/* Standard actions, and none blocked. */
void jar_reset_signals(void);
/* Look the command up in the PATH it will have itself. Returns only on failure. */
int jar_execute(const struct jar_command *command);
/* Tell the engine. */
void jar_report(struct jar_inside *inside, enum jar_message_kind kind, int fd);
/* A failure that no step of the plan stands for. */
void jar_report_failure(struct jar_inside *inside, int errno_value);
/* Carry out a list of steps; the one that failed is in the report. */
int jar_carry(struct jar_inside *inside, const struct plan_step_list *steps, uint32_t *done, uint64_t *times);
/* Start the command and watch over it until nothing of it is left. Never returns. */
void jar_keep(struct jar_inside *inside) __attribute__((noreturn));
/* Wait for a command to be sent, then keep it. Never returns. */
void jar_wait_and_keep(struct jar_inside *inside) __attribute__((noreturn));
/* End everything this process is in charge of, and leave. */
void jar_leave(struct jar_inside *inside, int status) __attribute__((noreturn));
/* Wake from sleep when a child ends; the signals that may come then. */
void jar_catch_children(sigset_t *all_but_child);

/* jar_serve.c: make keepers and open files until told to leave. Never returns. */
void jar_serve(struct jar_inside *inside) __attribute__((noreturn));

/* The life of the jar's first process. Never returns. */
void jar_inside(const struct plan *plan, enum jar_mode mode, const struct jar_streams *streams, struct jar_times *times,
		int control_fd) __attribute__((noreturn));

#endif
