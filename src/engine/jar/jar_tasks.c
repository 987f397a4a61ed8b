/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_tasks.c - have a session do something for a caller outside
 *
 * Each task has its own socket, whose other end goes to the jar's first process and from there to the process
 * that carries the task out. So answers come in any order, and the engine notices if that process ends. At most
 * SENT_MAX tasks are sent at a time; the others wait here.
 */
#include "engine/jar/jar_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define SENT_MAX 32
/* In one turn of the loop; a jar may have thousands of processes. */
#define MESSAGES_PER_TURN 64

struct session_task {
	struct session *jar;
	struct session_task *next;
	struct session_task_listener listener;
	struct loop_watch watch;
	int reply_fd; /* -1: it was not sent yet */
	struct jar_message message;
	size_t text_len;
	char text[];
};

static void unlink_task(struct session_task *task)
{
	struct session_task **at = &task->jar->tasks;

	while (*at != task)
		at = &(*at)->next;
	*at = task->next;
	if (task->reply_fd >= 0)
		task->jar->sent_tasks--;
	loop_remove(&task->watch);
	close_fd(&task->reply_fd);
}

static void finish_task(struct session_task *task, const struct jar_message *done, int fd)
{
	struct session_task_listener listener = task->listener;

	unlink_task(task);
	free(task);
	listener.done(listener.owner, done, fd);
}

static void fail_task(struct session_task *task, int errno_value)
{
	finish_task(task, &(struct jar_message){.kind = JAR_TASK_DONE, .task_done = {.error = errno_value}}, -1);
}

static void send_tasks(struct session *jar);

/* A process that no run is with is one that waits for a command to come. */
static void hear_process(struct session_task *task, const struct jar_message *message, const char *text, size_t len)
{
	const struct slot *slot = jar_slot_find(task->jar, message->process.minder);

	if (slot && jar_slot_has_run(slot) && task->listener.process)
		task->listener.process(task->listener.owner, message, text, len);
}

static void task_on_reply(struct loop_watch *watch, uint32_t events)
{
	struct session_task *task = watch->owner;
	struct session *jar = task->jar;
	struct jar_message message;
	struct jar_attached attached;
	int fd, rc = 1;

	(void)events;
	for (unsigned i = 0; i < MESSAGES_PER_TURN; i++) {
		rc = control_receive_all(task->reply_fd, &message, &attached);
		if (rc <= 0)
			break;
		if (message.kind == JAR_PROCESS && !attached.passed.count) {
			hear_process(task, &message, attached.text, attached.text_len);
			continue;
		}
		fd = attached.passed.count ? attached.passed.fds[0] : -1;
		for (size_t other = 1; other < attached.passed.count; other++)
			close(attached.passed.fds[other]);
		if (message.kind == JAR_TASK_DONE) {
			finish_task(task, &message, fd);
			send_tasks(jar);
			return;
		}
		close_fd(&fd);
		rc = -EPROTO;
		break;
	}
	if (rc > 0 || rc == -EAGAIN || rc == -EINTR)
		return;
	/* The task's process was killed, or the engine has no free descriptor for the opened file. */
	fail_task(task, rc < 0 ? -rc : EIO);
	send_tasks(jar);
}

static int send_task(struct session_task *task)
{
	AUTO_CLOSE int own_end = -1;
	AUTO_CLOSE int other_end = -1;
	int rc = control_socket_pair(&own_end, &other_end);

	if (rc == 0)
		rc = control_send_all(task->jar->jar.control_fd, &task->message, task->text, task->text_len, &other_end,
				      1);
	if (rc == 0)
		rc = loop_add(task->jar->loop, &task->watch, own_end, EPOLLIN, task_on_reply, task);
	if (rc == 0) {
		task->reply_fd = take_fd(&own_end);
		task->jar->sent_tasks++;
	}
	return rc;
}

/* Send waiting tasks. The rest goes after the next answer; if no answer is due, fail it. */
static void send_tasks(struct session *jar)
{
	struct session_task *next;

	for (struct session_task *task = jar->tasks; task && jar->sent_tasks < SENT_MAX; task = next) {
		int rc = task->reply_fd < 0 ? send_task(task) : 0;

		next = task->next;
		if (rc < 0 && jar->sent_tasks)
			return;
		if (rc < 0)
			fail_task(task, -rc);
	}
}

void jar_refuse_tasks(struct session *jar)
{
	while (jar->tasks)
		fail_task(jar->tasks, ESHUTDOWN);
}

int jar_begin_task(struct session *jar, const struct session_task_request *request,
		   const struct session_task_listener *listener, struct session_task **out)
{
	size_t path_len = request->path ? strlen(request->path) + 1 : 0;
	size_t to_len = request->to ? strlen(request->to) + 1 : 0;
	struct session_task **end = &jar->tasks, *task;
	int rc;

	if (jar->is_closing || jar->is_gone)
		return -ESHUTDOWN;
	if (jar->plan->kind != PLAN_SESSION)
		return -EINVAL;
	if (path_len > TASK_PATH_MAX || to_len > TASK_PATH_MAX || path_len + to_len > TASK_PATH_MAX)
		return -ENAMETOOLONG;
	task = calloc(1, sizeof(*task) + path_len + to_len);
	if (!task)
		return -ENOMEM;
	task->jar = jar;
	task->listener = *listener;
	task->reply_fd = -1;
	task->message = (struct jar_message){.kind = JAR_TASK, .task = request->task};
	task->text_len = path_len + to_len;
	if (path_len)
		memcpy(task->text, request->path, path_len);
	if (to_len)
		memcpy(task->text + path_len, request->to, to_len);
	while (*end)
		end = &(*end)->next;
	*end = task;
	rc = jar->sent_tasks < SENT_MAX ? send_task(task) : 0;
	if (rc < 0 && !jar->sent_tasks) {
		unlink_task(task);
		free(task);
		return rc;
	}
	*out = task;
	return 0;
}

void jar_drop_task(struct session_task *task)
{
	struct session *jar;

	if (!task)
		return;
	jar = task->jar;
	unlink_task(task);
	free(task);
	send_tasks(jar);
}
