/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/init/init_session.h - the jar's side of sessions and prepared jars
 *
 * As everything in inside/init/init.h: no allocation, no stdio, no locks.
 */
#ifndef BELLJAR_INSIDE_INIT_INIT_SESSION_H
#define BELLJAR_INSIDE_INIT_INIT_SESSION_H

#include <sys/wait.h>

#include "inside/init/init.h"

/* What makes one kind of session differ from another. */
struct session_kind {
	/* The first process, before minders are made: 0 or a negative errno. NULL: there is nothing to do. */
	int (*begin)(struct jar_inside *inside);
	/* Fork a minder: as fork(), or a negative errno. */
	pid_t (*fork_minder)(void);
	/* What a minder does, with cgroups that its command is to be in. */
	void (*minder_main)(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count);
	/* A child of the first process that is no minder has ended. NULL: there is none that matters. */
	void (*child_gone)(struct jar_inside *inside, pid_t pid, int status);
	bool has_orphans; /* what a minder that was killed leaves becomes the first process's */
	bool has_tasks;   /* the first process is behind walls, or can make a child that is (inside/task/) */
};

/* Make minders and carry out tasks until the engine ends the jar. */
void init_serve(struct jar_inside *inside, const struct session_kind *kind) __attribute__((noreturn));
/* The first process of a session for commands. */
void init_first_main(struct jar_inside *inside);
/* The first process of a jar prepared for one command. */
void init_prepared_main(struct jar_inside *inside);

/*
 * Wait for a command to be sent, with a child in the cgroups @cgroup_fds ready for it, and watch over it.
 */
void init_minder_supervise(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count)
	__attribute__((noreturn));
/* From here on the engine goes on after this process, and hears from it when nothing is left. */
void init_begin(struct jar_inside *inside);
/* Nothing is left. */
void init_report_empty(struct jar_inside *inside);
/* Tell the engine that a command can be sent to @pid, or a minder asked for. */
void init_report_ready(struct jar_inside *inside, pid_t pid);
/* Wait for a message of @kind. False: there will be none. */
bool init_receive(enum jar_message_kind kind, struct jar_message *message);
/*
 * The command that came with @message, the last that was received. Its descriptors go out of the way of the numbers that it will
 * have, and so does *@own_fd, unless that is NULL. 0 or a negative errno.
 */
int init_take_command(struct jar_inside *inside, const struct jar_message *message, int *own_fd);

#endif
