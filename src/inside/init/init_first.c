/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/init/init_first.c - the first process of a session: make minders, see that nothing of theirs is left, carry out tasks
 *
 * Each minder is a child and a subreaper: it adopts the orphans of its command and ends all of them before it
 * leaves with status 0. Any other status means that a command, or the kernel for lack of memory, killed it.
 * Then this process adopts its orphans, and ends every child other than minders before it reports the minder's
 * end. On the namespace rung this process is the pid namespace's first: no process inside can stop it.
 */
#include "inside/init/init_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/processor.h"
#include "base/reap/reap.h"
#include "base/reap/reap_children.h"
#include "base/sys/calls.h"
#include "inside/task/task.h"

/* Minders, and children that carry out a task. */
#define CHILDREN_MAX 1024
#define TASKS_MAX 64
/* All other runs of the jar wait meanwhile. */
#define HUNT_NS 1000000000ULL

struct serving {
	struct jar_inside *inside;
	const struct session_kind *kind;
	pid_t pids[CHILDREN_MAX];
	uint32_t numbers[CHILDREN_MAX]; /* 0: it carries out a task */
	size_t count;
	size_t task_count; /* of them */
};

static void close_attached(const struct jar_attached *attached)
{
	for (size_t i = 0; i < attached->passed.count; i++)
		close(attached->passed.fds[i]);
}

static pid_t fork_child(void)
{
	pid_t pid = fork();

	return pid < 0 ? -errno : pid;
}

static void add_child(struct serving *serving, pid_t pid, uint32_t number)
{
	serving->pids[serving->count] = pid;
	serving->numbers[serving->count++] = number;
}

/* --- minders ------------------------------------------------------------------------------------------------ */

static void become_minder(const struct serving *serving, const struct jar_attached *attached) __attribute__((noreturn));
static void become_minder(const struct serving *serving, const struct jar_attached *attached)
{
	struct jar_inside *inside = serving->inside;
	int rc = 0;

	inside->is_minder = true;
	inside->owns_pids = false;
	/* The jar's own control socket is not for it. */
	for (int fd = 0; fd <= JAR_CONTROL_FD; fd++)
		dup3(attached->passed.fds[0], fd, O_CLOEXEC);
	close(attached->passed.fds[0]);
	inside->build.has_run_cgroup = attached->passed.count > 1;
	inside->written_bytes = 0;
	processor_be_prompt();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		rc = -errno;
	for (size_t i = 0; i < inside->plan->minder.count && rc == 0; i++)
		rc = build_step(&inside->build, &inside->plan->minder.items[i]);
	if (rc < 0)
		init_fail(inside, rc);
	serving->kind->minder_main(inside, attached->passed.fds + 1, attached->passed.count - 1);
	_exit(125);
}

static void report_minder_gone(struct jar_inside *inside, uint32_t number, const struct rusage *usage)
{
	struct jar_message message = {.kind = JAR_MINDER_GONE, .minder_gone = {.minder = number, .usage = *usage}};

	if (inside->build.written_fd >= 0)
		message.minder_gone.written_bytes = reap_written_bytes(inside->build.written_fd);
	init_report(inside, &message, -1);
}

static void make_minder(struct serving *serving, uint32_t number, const struct jar_attached *attached)
{
	struct jar_inside *inside = serving->inside;
	struct jar_message refusal = {.kind = JAR_STEP_FAILED, .step_failed = {.step = -1, .error = EAGAIN}};
	pid_t pid = -1;

	if (serving->count < CHILDREN_MAX && attached->passed.count) {
		pid = serving->kind->fork_minder();
		if (pid == 0)
			become_minder(serving, attached);
		refusal.step_failed.error = (int)-pid;
	}
	if (pid < 0) {
		if (attached->passed.count)
			control_send(attached->passed.fds[0], &refusal, -1);
		report_minder_gone(inside, number, &(struct rusage){0});
		return;
	}
	add_child(serving, pid, number);
}

/* End the orphans. If that fails while other children live, end the whole jar. */
static void hunt_orphans(struct serving *serving)
{
	if (!reap_hunt(&(struct reap_family){.items = serving->pids, .count = serving->count},
		       sys_monotonic_ns() + HUNT_NS))
		init_leave(serving->inside, 0);
}

static void reap_child(struct serving *serving, pid_t pid, int status, const struct rusage *usage)
{
	for (size_t i = 0; i < serving->count; i++) {
		uint32_t number = serving->numbers[i];

		if (serving->pids[i] != pid)
			continue;
		serving->count--;
		serving->pids[i] = serving->pids[serving->count];
		serving->numbers[i] = serving->numbers[serving->count];
		if (!number) {
			serving->task_count--;
			return;
		}
		if (serving->kind->has_orphans && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
			hunt_orphans(serving);
		report_minder_gone(serving->inside, number, usage);
		return;
	}
}

static bool is_own_child(const struct serving *serving, pid_t pid)
{
	for (size_t i = 0; i < serving->count; i++)
		if (serving->pids[i] == pid)
			return true;
	return false;
}

static void reap_children(struct serving *serving)
{
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED | __WALL, &usage)) > 0) {
		if (serving->kind->child_gone && !WIFSTOPPED(status))
			serving->kind->child_gone(serving->inside, pid, status);
		if (WIFEXITED(status) || WIFSIGNALED(status))
			reap_child(serving, pid, status, &usage);
		else if (is_own_child(serving, pid))
			kill(pid, SIGCONT); /* a command that could reach it has stopped it */
	}
}

static void kill_minder(const struct serving *serving, uint32_t number)
{
	for (size_t i = 0; i < serving->count; i++)
		if (serving->numbers[i] == number)
			kill(serving->pids[i], SIGKILL);
}

/* --- tasks -------------------------------------------------------------------------------------------------- */

/* In a child, with nothing of the first process but its walls. */
static void become_task(struct jar_inside *inside, const struct task *task) __attribute__((noreturn));
static void become_task(struct jar_inside *inside, const struct task *task)
{
	const struct plan_step_list *walls = &inside->plan->entry;
	struct task own = *task;
	int rc = 0;

	/*
	 * Without a pid namespace the first process is outside the walls, so the child restricts itself. It
	 * leaves out the filter, which refuses system calls that the child needs.
	 */
	for (size_t i = 0; !inside->owns_pids && task_needs_walls(task) && i < walls->count && rc == 0; i++)
		if (walls->items[i].kind != STEP_SECCOMP)
			rc = build_step(&inside->build, &walls->items[i]);
	for (int fd = 0; fd <= JAR_CONTROL_FD; fd++)
		dup3(task->reply_fd, fd, O_CLOEXEC);
	own.reply_fd = JAR_CONTROL_FD;
	sys_close_range(JAR_CONTROL_FD + 1, ~0U);
	umask(0);
	if (rc < 0)
		task_refuse(&own, rc);
	else
		task_carry_out(&own);
	_exit(0);
}

static void begin_task(struct serving *serving, const struct task *task)
{
	pid_t pid = -EAGAIN;

	if (serving->task_count < TASKS_MAX && serving->count < CHILDREN_MAX) {
		pid = fork_child();
		if (pid == 0)
			become_task(serving->inside, task);
	}
	/* Listing processes must work in a full jar, so do it here; this delays other tasks by milliseconds. */
	if (pid < 0 && task->order.operation == TASK_PROCESSES) {
		task_carry_out(task);
		return;
	}
	if (pid < 0) {
		task_refuse(task, (int)pid);
		return;
	}
	serving->task_count++;
	add_child(serving, pid, 0);
}

static void on_task(struct serving *serving, const struct jar_message *message, const struct jar_attached *attached)
{
	struct task task;

	/* Without an answer the requester sees the socket close. */
	if (task_read(message, attached, &task) < 0)
		return;
	task.minders = (struct task_minders){serving->pids, serving->numbers, serving->count};
	if (!serving->kind->has_tasks) {
		task_refuse(&task, -EPERM);
	} else if (task_is_long(&task) || (!serving->inside->owns_pids && task_needs_walls(&task))) {
		begin_task(serving, &task);
	} else {
		umask(0);
		task_carry_out(&task);
		umask(022);
	}
}

/* --- the loop ----------------------------------------------------------------------------------------------- */

static void on_request(struct serving *serving)
{
	static struct jar_attached attached;
	struct jar_inside *inside = serving->inside;
	struct jar_message message;
	int rc = control_receive_all(JAR_CONTROL_FD, &message, &attached);

	if (rc == -EAGAIN || rc == -EINTR)
		return;
	if (rc <= 0 || (message.kind == JAR_KILL && !message.kill.minder))
		init_leave(inside, 0);
	if (message.kind == JAR_MINDER)
		make_minder(serving, message.minder.number, &attached);
	else if (message.kind == JAR_KILL)
		kill_minder(serving, message.kill.minder);
	else if (message.kind == JAR_TASK)
		on_task(serving, &message, &attached);
	close_attached(&attached);
}

void init_serve(struct jar_inside *inside, const struct session_kind *kind)
{
	static struct serving serving;
	struct pollfd waiting = {.fd = JAR_CONTROL_FD, .events = POLLIN};
	sigset_t all_but_child;
	int rc = 0;

	init_begin(inside);
	/* The test listener proved that listeners work here. Close it: each run has its own. The kernel allows one. */
	close_fd(&inside->build.listener_fd);
	serving.inside = inside;
	serving.kind = kind;
	init_catch_children(&all_but_child);
	/* Minders find their descendants there; a policy may have hidden it. */
	if (access("/proc/self/stat", R_OK) < 0)
		rc = -errno;
	if (rc == 0 && kind->begin)
		rc = kind->begin(inside);
	if (rc < 0)
		init_fail(inside, rc);
	init_report_ready(inside, getpid());
	for (;;) {
		reap_children(&serving);
		if (ppoll(&waiting, 1, NULL, &all_but_child) > 0)
			on_request(&serving);
	}
}

void init_first_main(struct jar_inside *inside)
{
	static const struct session_kind commands = {
		.fork_minder = fork_child,
		.minder_main = init_minder_supervise,
		.has_orphans = true,
		.has_tasks = true,
	};

	init_serve(inside, &commands);
}
