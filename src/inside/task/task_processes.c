/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/task/task_processes.c - the processes of a jar's runs, and a signal to one of them
 *
 * A process belongs to a run if the run's minder is its ancestor. /proc may be the host's, so a task never reports or
 * signals a process that is not below a minder.
 */
#include "inside/task/task_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/reap/reap_children.h"
#include "base/sys/calls.h"

#define SEEN_MAX 65536
#define TOLD_MAX 4096
#define STAT_BYTES 1024
#define NAME_BYTES 64
#define ARGUMENT_BYTES 512
/* In /proc/PID/stat after the name: state and parent come first, the start time is the 20th field. */
#define START_FIELD 20
/* In a full jar the first process does this itself, so that the client can end a process. Bound the walk upwards. */
#define ANCESTORS_MAX 1024
#define NANOSECONDS 1000000000ULL

struct seen {
	pid_t pid, parent;
	uint32_t minder; /* 0: none */
	char state;
	bool is_judged;
	uint64_t started_ticks;
};

struct listing {
	int proc_fd;
	size_t count;
	bool is_full;
	struct seen items[SEEN_MAX];
};

/* Read /proc/PID/stat, and the name in it into @name. */
static bool read_stat(int proc_fd, pid_t pid, struct seen *out, char name[NAME_BYTES])
{
	char path[32], content[STAT_BYTES], *bracket;
	const char *rest;
	ssize_t len;

	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	len = sys_read_file(proc_fd, path, content, sizeof(content));
	rest = len > 0 ? reap_after_name(content) : NULL;
	bracket = rest ? strchr(content, '(') : NULL;
	if (!bracket)
		return false;
	*out = (struct seen){.pid = pid, .state = rest[0], .parent = (pid_t)strtol(rest + 1, NULL, 10)};
	snprintf(name, NAME_BYTES, "%.*s", (int)(rest - 2 - (bracket + 1)), bracket + 1);
	for (int field = 1; field < START_FIELD && rest; field++) {
		rest = strchr(rest, ' ');
		rest = rest ? rest + 1 : NULL;
	}
	out->started_ticks = rest ? strtoull(rest, NULL, 10) : 0;
	return true;
}

static uint32_t minder_number(const struct task *task, pid_t pid)
{
	for (size_t i = 0; i < task->minders.count; i++)
		if (task->minders.pids[i] == pid)
			return task->minders.numbers[i];
	return 0;
}

/* --- listing ------------------------------------------------------------------------------------------------- */

static bool on_number(void *owner, pid_t number)
{
	struct listing *listing = owner;
	char name[NAME_BYTES];

	if (listing->count == SEEN_MAX) {
		listing->is_full = true;
		return false;
	}
	if (read_stat(listing->proc_fd, number, &listing->items[listing->count], name))
		listing->count++;
	return true;
}

/* /proc lists them in order. */
static struct seen *find(struct listing *listing, pid_t pid)
{
	size_t low = 0, high = listing->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (listing->items[middle].pid == pid)
			return &listing->items[middle];
		if (listing->items[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Up to a minder, to one that is judged already, or to the top; then once more, to leave the judgement with all on the way. */
static void judge(const struct task *task, struct listing *listing, struct seen *from)
{
	uint32_t minder = 0;
	struct seen *at;
	size_t steps = 0;

	for (at = from; at && !at->is_judged && steps < listing->count; at = find(listing, at->parent), steps++) {
		minder = minder_number(task, at->parent);
		if (minder)
			break;
	}
	if (at && at->is_judged)
		minder = at->minder;
	for (at = from; at && !at->is_judged; at = find(listing, at->parent)) {
		at->minder = minder;
		at->is_judged = true;
		if (minder_number(task, at->parent))
			break;
	}
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);

	return ticks / per_second * NANOSECONDS + ticks % per_second * NANOSECONDS / per_second;
}

static int tell(const struct task *task, const struct listing *listing, const struct seen *seen)
{
	struct jar_message message = {.kind = JAR_PROCESS};
	char text[NAME_BYTES + ARGUMENT_BYTES], path[32];
	struct seen now;
	size_t name_len;
	ssize_t len;

	if (!read_stat(listing->proc_fd, seen->pid, &now, text))
		return 0; /* it has ended since */
	name_len = strlen(text) + 1;
	snprintf(path, sizeof(path), "%d/cmdline", (int)seen->pid);
	len = sys_read_file(listing->proc_fd, path, text + name_len, ARGUMENT_BYTES);
	message.process.pid = (int32_t)seen->pid;
	message.process.parent = (int32_t)now.parent;
	message.process.minder = seen->minder;
	message.process.state = (unsigned char)now.state;
	message.process.started_ns = ticks_to_ns(now.started_ticks);
	return task_send(task, &message, text, name_len + (len > 0 ? (size_t)len : 0), -1);
}

int task_processes(const struct task *task, struct task_answer *answer)
{
	static struct listing listing; /* too large for a stack */
	AUTO_CLOSE int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t told = 0;
	long len = 0;

	(void)answer;
	if (proc_fd < 0)
		return -errno;
	listing.proc_fd = proc_fd;
	listing.count = 0;
	listing.is_full = false;
	while (!listing.is_full && (len = reap_some_numbers(proc_fd, on_number, &listing)) > 0)
		;
	if (len < 0)
		return (int)len;
	if (listing.is_full)
		return -E2BIG;
	for (size_t i = 0; i < listing.count; i++) {
		struct seen *seen = &listing.items[i];
		int rc;

		judge(task, &listing, seen);
		if (!seen->minder)
			continue;
		if (++told > TOLD_MAX)
			return -E2BIG;
		rc = tell(task, &listing, seen);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* --- a signal ------------------------------------------------------------------------------------------------ */

static bool is_of_run(const struct task *task, int proc_fd, pid_t pid)
{
	char name[NAME_BYTES];
	struct seen seen = {.parent = pid};

	if (minder_number(task, pid))
		return false;
	for (size_t i = 0; i < ANCESTORS_MAX && seen.parent > 1; i++) {
		if (!read_stat(proc_fd, seen.parent, &seen, name))
			return false;
		if (minder_number(task, seen.parent))
			return true;
	}
	return false;
}

/* The descriptor is opened first: should the number become another's meanwhile, that one is not signalled. */
int task_kill(const struct task *task, struct task_answer *answer)
{
	pid_t pid = (pid_t)task->order.pid;
	AUTO_CLOSE int pidfd = pid > 1 ? sys_pidfd_open(pid) : -ESRCH;
	AUTO_CLOSE int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)answer;
	if (proc_fd < 0)
		return -errno;
	if (pidfd < 0 || !is_of_run(task, proc_fd, pid))
		return -ESRCH;
	if (syscall(SYS_pidfd_send_signal, pidfd, (int)task->order.number, NULL, 0) < 0)
		return -errno;
	return 0;
}
