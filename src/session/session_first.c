/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/session_first.c - the first process of a session: make minders, see that nothing of theirs is left, open files
 *
 * Each minder is a child and a subreaper: what a command's tree loses comes to its minder, which ends all of it before it
 * leaves with status 0. A minder that leaves otherwise was killed, by a command that could reach it or by the kernel for
 * want of memory; then its orphans are children of this process, and every child that is no minder is hunted down before
 * the engine learns of it. On the namespace rung this process is the pid namespace's first: nothing inside can stop it.
 */
#include "session/session_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include "base/processor.h"
#include "reap/reap.h"
#include "reap/reap_children.h"
#include "session/session_send.h"
#include "sys/calls.h"

#define MINDERS_MAX 1024
#define MAGIC_PROC 0x9fa0
/* All other runs of the jar wait meanwhile. */
#define HUNT_NS 1000000000ULL

struct serving {
	struct jar_inside *inside;
	const struct session_kind *kind;
	pid_t pids[MINDERS_MAX];
	uint32_t numbers[MINDERS_MAX];
	size_t count;
};

static void close_attached(const struct jar_attached *attached)
{
	for (size_t i = 0; i < attached->passed.count; i++)
		close(attached->passed.fds[i]);
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
		rc = jar_step(&inside->build, &inside->plan->minder.items[i]);
	if (rc < 0)
		jar_fail(inside, rc);
	serving->kind->minder_main(inside, attached->passed.fds + 1, attached->passed.count - 1);
	_exit(125);
}

static void report_minder_gone(struct jar_inside *inside, uint32_t number, const struct rusage *usage)
{
	struct jar_message message = {.kind = JAR_MINDER_GONE, .minder_gone = {.minder = number, .usage = *usage}};

	if (inside->build.written_fd >= 0)
		message.minder_gone.written_bytes = reap_written_bytes(inside->build.written_fd);
	jar_report(inside, &message, -1);
}

static void make_minder(struct serving *serving, uint32_t number, const struct jar_attached *attached)
{
	struct jar_inside *inside = serving->inside;
	struct jar_message refusal = {.kind = JAR_STEP_FAILED, .step_failed = {.step = -1, .error = EAGAIN}};
	pid_t pid = -1;

	if (serving->count < MINDERS_MAX && attached->passed.count) {
		pid = serving->kind->fork_minder();
		if (pid == 0)
			become_minder(serving, attached);
		refusal.step_failed.error = (int)-pid;
	}
	if (pid < 0) {
		if (attached->passed.count)
			jar_send(attached->passed.fds[0], &refusal, -1);
		report_minder_gone(inside, number, &(struct rusage){0});
		return;
	}
	serving->pids[serving->count] = pid;
	serving->numbers[serving->count++] = number;
}

/* What cannot be ended while others are spared is ended with the whole jar. */
static void hunt_orphans(struct serving *serving)
{
	if (!reap_hunt(&(struct reap_family){.items = serving->pids, .count = serving->count},
		       sys_monotonic_ns() + HUNT_NS))
		jar_leave(serving->inside, 0);
}

static void reap_minder(struct serving *serving, pid_t pid, int status, const struct rusage *usage)
{
	for (size_t i = 0; i < serving->count; i++) {
		uint32_t number = serving->numbers[i];

		if (serving->pids[i] != pid)
			continue;
		serving->count--;
		serving->pids[i] = serving->pids[serving->count];
		serving->numbers[i] = serving->numbers[serving->count];
		if (serving->kind->has_orphans && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
			hunt_orphans(serving);
		report_minder_gone(serving->inside, number, usage);
		return;
	}
}

static bool is_minder(const struct serving *serving, pid_t pid)
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
			reap_minder(serving, pid, status, &usage);
		else if (is_minder(serving, pid))
			kill(pid, SIGCONT); /* a command that could reach it has stopped it */
	}
}

static void kill_minder(const struct serving *serving, uint32_t number)
{
	for (size_t i = 0; i < serving->count; i++)
		if (serving->numbers[i] == number)
			kill(serving->pids[i], SIGKILL);
}

/* --- files -------------------------------------------------------------------------------------------------- */

static const struct {
	uint64_t flags;
	mode_t type;
} accesses[] = {
	[SESSION_READ] = {O_RDONLY, S_IFREG},
	[SESSION_WRITE] = {O_WRONLY | O_CREAT | O_NOFOLLOW, S_IFREG},
	[SESSION_LIST] = {O_RDONLY | O_DIRECTORY | O_NOFOLLOW, S_IFDIR},
};

/* Nothing blocks: a FIFO or a device that somebody put there is opened without waiting, and found out. */
static int open_file(const char *path, uint32_t access, mode_t mode)
{
	AUTO_CLOSE int fd = -1;
	struct statfs system;
	struct stat status;

	if (access >= ARRAY_LEN(accesses))
		return -EINVAL;
	umask(0);
	fd = sys_openat2(AT_FDCWD, path, accesses[access].flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			 accesses[access].flags & O_CREAT ? mode & 07777 : 0, SYS_RESOLVE_NO_MAGICLINKS);
	umask(022);
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0 || fstatfs(fd, &system) < 0)
		return -errno;
	if ((status.st_mode & S_IFMT) != accesses[access].type)
		return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
	/* What /proc shows of this process is not the jar's. */
	if (system.f_type == MAGIC_PROC)
		return -EACCES;
	if (access == SESSION_WRITE && ftruncate(fd, 0) < 0)
		return -errno;
	return take_fd(&fd);
}

static void report_opened(struct jar_inside *inside, int fd)
{
	struct jar_message message = {.kind = JAR_OPENED, .opened = {.error = fd < 0 ? -fd : 0}};

	jar_report(inside, &message, fd);
}

static void open_and_answer(struct jar_inside *inside, const struct jar_message *message, const char *path)
{
	AUTO_CLOSE int fd = open_file(path, message->open.access, message->open.mode);

	report_opened(inside, fd);
}

/* Without a pid namespace this process stands outside the walls: a child puts them up and opens. */
static void answer_behind_walls(struct jar_inside *inside, const struct jar_message *message, const char *path)
{
	const struct plan_step_list *walls = &inside->plan->entry;
	pid_t pid = fork();

	if (pid == 0) {
		int rc = 0;

		/* The filter is for programs; it names system calls that this one needs. */
		for (size_t i = 0; i < walls->count && rc == 0; i++)
			if (walls->items[i].kind != STEP_SECCOMP)
				rc = jar_step(&inside->build, &walls->items[i]);
		if (rc < 0)
			report_opened(inside, rc);
		else
			open_and_answer(inside, message, path);
		_exit(0);
	}
	if (pid < 0) {
		report_opened(inside, -errno);
		return;
	}
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

/* --- the loop ----------------------------------------------------------------------------------------------- */

static void on_request(struct serving *serving)
{
	static struct jar_attached attached;
	struct jar_inside *inside = serving->inside;
	struct jar_message message;
	int rc = jar_receive_all(JAR_CONTROL_FD, &message, &attached);

	if (rc == -EAGAIN || rc == -EINTR)
		return;
	if (rc <= 0 || (message.kind == JAR_KILL && !message.kill.minder))
		jar_leave(inside, 0);
	if (message.kind == JAR_MINDER)
		make_minder(serving, message.minder.number, &attached);
	else if (message.kind == JAR_KILL)
		kill_minder(serving, message.kill.minder);
	else if (message.kind == JAR_OPEN && !serving->kind->opens_files)
		report_opened(inside, -EPERM);
	else if (message.kind == JAR_OPEN && inside->owns_pids)
		open_and_answer(inside, &message, attached.text);
	else if (message.kind == JAR_OPEN)
		answer_behind_walls(inside, &message, attached.text);
	close_attached(&attached);
}

void session_serve(struct jar_inside *inside, const struct session_kind *kind)
{
	static struct serving serving;
	struct pollfd waiting = {.fd = JAR_CONTROL_FD, .events = POLLIN};
	sigset_t all_but_child;
	int rc = 0;

	session_begin(inside);
	serving.inside = inside;
	serving.kind = kind;
	jar_catch_children(&all_but_child);
	/* Minders find their descendants there; a policy may have hidden it. */
	if (access("/proc/self/stat", R_OK) < 0)
		rc = -errno;
	if (rc == 0 && kind->begin)
		rc = kind->begin(inside);
	if (rc < 0)
		jar_fail(inside, rc);
	session_report_ready(inside, getpid());
	for (;;) {
		reap_children(&serving);
		if (ppoll(&waiting, 1, NULL, &all_but_child) > 0)
			on_request(&serving);
	}
}

static pid_t fork_minder(void)
{
	pid_t pid = fork();

	return pid < 0 ? -errno : pid;
}

void session_first_main(struct jar_inside *inside)
{
	static const struct session_kind commands = {
		.fork_minder = fork_minder,
		.minder_main = session_supervise,
		.has_orphans = true,
		.opens_files = true,
	};

	session_serve(inside, &commands);
}
