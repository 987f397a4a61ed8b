/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/task/task_inside.h - what the files of inside/task/ share
 */
#ifndef BELLJAR_INSIDE_TASK_TASK_INSIDE_H
#define BELLJAR_INSIDE_TASK_TASK_INSIDE_H

#include "inside/task/task.h"

struct task_answer {
	struct jar_message done;
	int fd; /* goes with it; -1: none */
};

/* Carry the task out: 0 or a negative errno. */
typedef int task_function(const struct task *task, struct task_answer *answer);

/* --- task_files.c --- */
task_function task_open, task_watch, task_stat, task_make_directory, task_remove, task_rename;
/* --- task_remove.c --- */
/* Remove the directory @name of @parent_fd and all in it. Stop if @reply_fd's peer closes. 0 or a negative errno. */
int task_remove_tree(int parent_fd, const char *name, int reply_fd);
/* --- task_connect.c --- */
task_function task_connect;
/* --- task_processes.c --- */
task_function task_processes, task_kill;

/* Send to the task's requester, waiting for room. 0 or a negative errno. */
int task_send(const struct task *task, const struct jar_message *message, const char *text, size_t text_len, int fd);

#endif
