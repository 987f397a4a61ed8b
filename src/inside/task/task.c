/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/task/task.c - carry out a task and answer: one row for each operation
 */
#include "inside/task/task_inside.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

static const struct {
	task_function *function;
	unsigned path_count;
	bool is_long;
	bool is_outside; /* it needs no walls: it reads /proc and nothing else */
} operations[] = {
	[TASK_READ] = {task_open, 1},
	[TASK_WRITE] = {task_open, 1},
	[TASK_LIST] = {task_open, 1},
	[TASK_WATCH] = {task_watch, 1},
	[TASK_STAT] = {task_stat, 1},
	[TASK_MAKE_DIRECTORY] = {task_make_directory, 1},
	[TASK_REMOVE] = {task_remove, 1},
	[TASK_RENAME] = {task_rename, 2},
	[TASK_CONNECT] = {task_connect, 0, .is_long = true},
	[TASK_PROCESSES] = {task_processes, 0, .is_long = true, .is_outside = true},
	[TASK_KILL] = {task_kill, 0, .is_outside = true},
};
_Static_assert(ARRAY_LEN(operations) == TASK_OPERATION_COUNT, "every operation has a function");

/* The next string of a text whose end is @end; NULL: there is none. */
static const char *next_string(const char **at, const char *end)
{
	const char *string = *at;
	const char *nul = memchr(string, '\0', (size_t)(end - string));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return string;
}

int task_read(const struct jar_message *message, const struct jar_attached *attached, struct task *out)
{
	const char *at = attached->text, *end = attached->text + attached->text_len;
	unsigned path_count;

	if (attached->passed.count != 1 || message->task.operation >= TASK_OPERATION_COUNT ||
	    message->task.flags & ~TASK_ALL_FLAGS)
		return -EPROTO;
	path_count = operations[message->task.operation].path_count;
	*out = (struct task){.order = message->task, .path = "", .to = "", .reply_fd = attached->passed.fds[0]};
	if (path_count > 0)
		out->path = next_string(&at, end);
	if (path_count > 1 && out->path)
		out->to = next_string(&at, end);
	return out->path && out->to && at == end ? 0 : -EPROTO;
}

bool task_is_long(const struct task *task)
{
	return operations[task->order.operation].is_long || task->order.flags & TASK_RECURSIVE;
}

bool task_needs_walls(const struct task *task)
{
	return !operations[task->order.operation].is_outside;
}

int task_send(const struct task *task, const struct jar_message *message, const char *text, size_t text_len, int fd)
{
	struct pollfd room = {.fd = task->reply_fd, .events = POLLOUT};
	int rc;

	while ((rc = control_send_all(task->reply_fd, message, text, text_len, &fd, fd >= 0)) == -EAGAIN)
		poll(&room, 1, -1);
	return rc;
}

void task_refuse(const struct task *task, int rc)
{
	struct jar_message done = {.kind = JAR_TASK_DONE, .task_done = {.error = -rc}};

	task_send(task, &done, NULL, 0, -1);
}

void task_carry_out(const struct task *task)
{
	struct task_answer answer = {.done = {.kind = JAR_TASK_DONE}, .fd = -1};
	int rc = operations[task->order.operation].function(task, &answer);

	if (rc < 0)
		task_refuse(task, rc);
	else
		task_send(task, &answer.done, NULL, 0, answer.fd);
	close_fd(&answer.fd);
}
