/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/task/task.h - what the client asks of a session that is no run: files, a connection, its processes
 *
 * The jar's first process carries a task out, or a child of it, behind the walls that hold for commands: what a path of the
 * jar means is decided by nobody outside. The answer goes to a socket that came with the task. What takes long is done in a
 * child, which ends when nobody holds the other end of that socket any more.
 *
 * As everything in inside/init/init.h: no allocation, no stdio, no locks.
 */
#ifndef BELLJAR_INSIDE_TASK_TASK_H
#define BELLJAR_INSIDE_TASK_TASK_H

#include "inside/control.h"

enum task_operation {
	TASK_READ,  /* a regular file, to read */
	TASK_WRITE, /* a regular file, made or emptied, to write; the last component is not followed if it is a link */
	TASK_LIST,  /* a directory; likewise */
	TASK_WATCH, /* an inotify descriptor for a directory or a regular file; likewise */
	TASK_STAT,  /* likewise, but with TASK_FOLLOW */
	TASK_MAKE_DIRECTORY,
	TASK_REMOVE, /* a file, a link, or a directory that is empty */
	TASK_RENAME,
	TASK_CONNECT, /* a stream socket that is connected to a port of the jar's loopback */
	TASK_PROCESSES,
	TASK_KILL,
	TASK_OPERATION_COUNT,
};

#define TASK_PARENTS (1U << 0)   /* directories above it are made; one that is to be made may be there */
#define TASK_RECURSIVE (1U << 1) /* with all that is in it */
#define TASK_FOLLOW (1U << 2)
#define TASK_ALL_FLAGS (TASK_PARENTS | TASK_RECURSIVE | TASK_FOLLOW)

/* A path is shorter than this; both of a rename are, together. */
#define TASK_PATH_MAX JAR_TEXT_MAX

/* Whose processes are the jar's runs. */
struct task_minders {
	const pid_t *pids;
	const uint32_t *numbers; /* 0: it is no minder */
	size_t count;
};

struct task {
	struct jar_task order;
	const char *path, *to; /* never NULL */
	int reply_fd;
	struct task_minders minders;
};

/* The task that came with @message; its strings are in @attached. -EPROTO: that is none. */
int task_read(const struct jar_message *message, const struct jar_attached *attached, struct task *out);
/* May it take longer than the jar's other runs can wait? */
bool task_is_long(const struct task *task);
/* Is it about names of files or about the network, and so has to be done behind the walls? */
bool task_needs_walls(const struct task *task);
/* Carry it out, and answer. */
void task_carry_out(const struct task *task);
/* Answer that it cannot be done: the negative errno @rc. */
void task_refuse(const struct task *task, int rc);

#endif
