/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/task/task.h - requests to a session other than runs: files, a connection, its processes
 *
 * The jar's first process or a child of it carries a task out, behind the same walls as commands. So the
 * jar, not a process outside, decides what a path of the jar means. The answer goes to a socket that came
 * with the task. A child does what takes long; it ends when the other end of that socket closes.
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

#define TASK_PARENTS (1U << 0)   /* make the directories above it; one to be made may exist */
#define TASK_RECURSIVE (1U << 1) /* with all that is in it */
#define TASK_FOLLOW (1U << 2)
#define TASK_ALL_FLAGS (TASK_PARENTS | TASK_RECURSIVE | TASK_FOLLOW)

/* A path is shorter than this, or both paths of a rename together. */
#define TASK_PATH_MAX JAR_TEXT_MAX

/* The minders of the jar's runs. */
struct task_minders {
	const pid_t *pids;
	const uint32_t *numbers; /* 0: not a minder */
	size_t count;
};

struct task {
	struct jar_task order;
	const char *path, *to; /* never NULL */
	int reply_fd;
	struct task_minders minders;
};

/* Read the task that came with @message; its strings stay in @attached. -EPROTO: this is not a task. */
int task_read(const struct jar_message *message, const struct jar_attached *attached, struct task *out);
/* Whether it may take longer than the jar's other runs can wait. */
bool task_is_long(const struct task *task);
/* Whether it must run behind the walls, because it uses names of files or the network. */
bool task_needs_walls(const struct task *task);
/* Carry the task out, and answer. */
void task_carry_out(const struct task *task);
/* Answer that the task failed with the negative errno @rc. */
void task_refuse(const struct task *task, int rc);

#endif
