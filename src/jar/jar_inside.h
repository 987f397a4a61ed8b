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
/* What a message has room for beside its fields: a path, or a short specification of a command. */
#define JAR_TEXT_MAX JAR_PATH_MAX

/* An object that the command may write, with all that lies in it if it is a directory. */
struct jar_place {
	dev_t device;
	ino_t inode;
};

/* What the steps leave for one another. */
struct jar_build {
	const struct plan *plan;
	int root_fd;    /* the new root while it is built */
	int scratch_fd; /* the tmpfs of the private places */
	int scratch_count;
	pid_t engine_pid;
	pid_t first_pid;              /* the jar's first process */
	bool has_run_cgroup;          /* a keeper has entered the cgroups of its own run */
	pid_t scoped_pid;             /* the process whose signals reach only itself and what it starts; 0: none */
	int user_namespace_fd;        /* root only: where the jar's host id is 0; -1: not made */
	int view_fds[JAR_VIEW_COUNT]; /* for the engine's meter; -1: not asked for */
	int run_directory_fd;         /* held as long as the jar's first process lives; -1: there is none */
	struct jar_place *places;     /* held as long; see jar_places.c */
	size_t place_count;
	int listener_socket; /* of a child that becomes a command: to its keeper, for its filter's listener; else -1 */
	int written_fd;      /* what this process and all it has waited for have written; -1: nobody wants to know */
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
	pid_t pid;       /* the command's */
	int listener_fd; /* of its filter, if that asks and until nobody can ask any more; else -1 */
	struct jar_call call;
	struct rusage before; /* what its children used in earlier runs */
};

/* What came with a message. */
struct jar_attached {
	int fds[JAR_ATTACHED_MAX];
	size_t fd_count;
	char text[JAR_TEXT_MAX + 1]; /* NUL-terminated */
	size_t text_len;
};

typedef int jar_step_function(struct jar_build *build, const struct plan_step *step);

/* Carry out one step: 0 or a negative errno. */
int jar_step(struct jar_build *build, const struct plan_step *step);

/* Bytes that this process and all it has waited for have written, less what was taken back before it was stored. */
uint64_t jar_written_bytes(const struct jar_build *build);

/* When the host runs out of memory, this process and all it starts go before the engine does. */
void jar_volunteer(void);

/*
 * Kill every descendant of this process, a subreaper, until none is left; all but the children @spared (NULL: none). False:
 * it was not done by @until_ns.
 */
bool jar_hunt(const struct jar_family *spared, uint64_t until_ns);
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

struct stat;
/* jar_places.c: whether the object lies in a place that the command may write. */
bool jar_is_in_place(const struct jar_build *build, int fd, const struct stat *object);

/* jar_answer.c */
/* Answer some of what the command's filter asks about, without waiting for more. */
void jar_answer(struct jar_inside *inside);
/* Whether there is an answer to a call other than that there is no such call. */
bool jar_can_answer(int number);
/* From a child that loads the filter to its keeper. */
int jar_hand_over_listener(int socket_fd, int listener_fd);
/* Take it, without waiting. False: there is none, and will be none if the other end is closed. */
bool jar_take_listener(struct jar_inside *inside, int socket_fd);

/* jar_steps.c: the plan's rules as a ruleset, or a negative errno. */
int jar_landlock_ruleset(const struct jar_build *build);

/* jar_exec.c */
/* Of what is blocked or ignored nothing is left to the command: see jar_inside(). */
void jar_unblock_signals(void);
/* Look the command up in the PATH it will have itself. Returns only on failure. */
int jar_execute(const struct jar_command *command);
/*
 * Be the command, in a child made for that. Its report goes to @told before the last step, with kind 0, and again if
 * that fails.
 */
void jar_become_command(struct jar_inside *inside, struct jar_message *told) __attribute__((noreturn));

/* jar_command.c */
/* Tell the engine. */
void jar_report(struct jar_inside *inside, enum jar_message_kind kind, int fd);
/* A failure that no step of the plan stands for. */
void jar_report_failure(struct jar_inside *inside, int errno_value);
/* Carry out a list of steps; the one that failed is in the report. */
int jar_carry(struct jar_inside *inside, const struct plan_step_list *steps, uint32_t *done, uint64_t *times);
/* Start the command and watch over it until nothing of it is left. Never returns. */
void jar_keep(struct jar_inside *inside) __attribute__((noreturn));
/* The command's process is as the report says: started, or why not; then this one leaves. */
void jar_report_start(struct jar_inside *inside);
/* Watch over the command, tell its end, and end what it left. */
void jar_watch_to_end(struct jar_inside *inside);
/* Its status is in the report. */
void jar_report_end(struct jar_inside *inside);
/* Reap what has ended. True: the command is among it; its status is in the report. */
bool jar_reap(struct jar_inside *inside);
/* Do what the engine says. */
void jar_obey(struct jar_inside *inside);
/* End everything this process is in charge of. */
void jar_end_tree(struct jar_inside *inside);
/* Nothing is left. @can_renew: JAR_RENEW is waited for. */
void jar_report_empty(struct jar_inside *inside, bool can_renew);
/* End everything this process is in charge of, and leave. */
void jar_leave(struct jar_inside *inside, int status) __attribute__((noreturn));
/* Wake from sleep when a child ends; the signals that may come then. */
void jar_catch_children(sigset_t *all_but_child);

/* jar_keeper.c */
/* Wait for a command to be sent, with a child in the cgroups @cgroup_fds ready for it, and keep it; a keeper, again and again. */
void jar_wait_and_keep(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count) __attribute__((noreturn));
/* Wait for the one call that this keeper is for, and keep it: the next has namespaces that nobody was in. */
void jar_keep_call(struct jar_inside *inside) __attribute__((noreturn));

/* jar_serve.c: make keepers and open files until told to leave. Never returns. */
void jar_serve(struct jar_inside *inside) __attribute__((noreturn));

/* The life of the jar's first process. Never returns. */
void jar_inside(const struct plan *plan, enum jar_mode mode, const struct jar_streams *streams, struct jar_times *times,
		int control_fd) __attribute__((noreturn));

#endif
