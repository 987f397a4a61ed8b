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

/* How one kind of session differs from another. */
struct session_kind {
	/* Prepare the first process, before it makes minders: 0 or a negative errno. NULL: nothing to do. */
	int (*begin)(struct jar_inside *inside);
	/* Fork a minder: as fork(), or a negative errno. */
	pid_t (*fork_minder)(void);
	/* Run a minder, with the cgroups for its command. */
	void (*minder_main)(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count);
	/* Called when a child of the first process other than a minder has ended. NULL: ignore it. */
	void (*child_gone)(struct jar_inside *inside, pid_t pid, int status);
	bool has_orphans; /* the first process adopts the children of a killed minder */
	bool has_tasks;   /* the first process or a child of it can be behind walls (inside/task/) */
};

/* Make minders and carry out tasks until the engine ends the jar. */
void init_serve(struct jar_inside *inside, const struct session_kind *kind) __attribute__((noreturn));
/* Run the first process of a session for commands. */
void init_first_main(struct jar_inside *inside);
/* Run the first process of a jar prepared for one command. */
void init_prepared_main(struct jar_inside *inside);

/*
 * Have a child ready in the cgroups @cgroup_fds, wait for a command, and supervise it.
 */
void init_minder_supervise(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count)
	__attribute__((noreturn));
/* From here on the engine outlives this process, which reports when its tree is gone. */
void init_begin(struct jar_inside *inside);
/* Report that the whole tree is gone. */
void init_report_empty(struct jar_inside *inside);
/* Report that @pid can take a command, or a request for a minder. */
void init_report_ready(struct jar_inside *inside, pid_t pid);
/* Wait for a message of @kind. False: none will come. */
bool init_receive(enum jar_message_kind kind, struct jar_message *message);
/*
 * Take the command that came with @message, the last one received. Move its descriptors, and *@own_fd
 * unless NULL, above the numbers that the command will use. 0 or a negative errno.
 */
int init_take_command(struct jar_inside *inside, const struct jar_message *message, int *own_fd);

#endif
