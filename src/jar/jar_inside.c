/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_inside.c - the jar's first process: build, start the command, reap, and end everything
 *
 * It is a copy of the engine that has closed all it inherited, cannot be traced (not dumpable), and holds the control
 * socket as its leash. On the namespace rung the kernel does the killing: when process 1 of a pid namespace ends, every
 * process in it is killed and reaped before the engine is told.
 */
#include "jar/jar_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "jar/jar_carry.h"
#include "jar/jar_network.h"
#include "sys/calls.h"

#define CONTROL_FD 3
#define STREAM_FDS 3
#define FIRST_FREE_FD (CONTROL_FD + 1 + STREAM_FDS)

struct inside {
	const struct plan *plan;
	struct jar_streams streams;
	struct jar_times *times;
	struct jar_build build;
	struct jar_message report;
	pid_t command;
	int pty_master;
	int pty_slave;
};

static bool has_pid_namespace(const struct plan *plan)
{
	/* Not the rung: kill(-1) below must never happen in the host's pid namespace, whatever a plan is made of. */
	return plan->namespaces & CLONE_NEWPID;
}

static void leave(const struct inside *inside, int status) __attribute__((noreturn));
static void leave(const struct inside *inside, int status)
{
	/*
	 * The kernel would kill what is left in a pid namespace anyway, but would not count it: processes are reaped here,
	 * so that their CPU time reaches the engine with our own end.
	 */
	if (has_pid_namespace(inside->plan)) {
		kill(-1, SIGKILL);
		while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
			;
	} else {
		jar_hunt(0);
		jar_sweep(inside->plan->run_directory);
	}
	_exit(status);
}

static void report(struct inside *inside, enum jar_message_kind kind, int fd)
{
	inside->report.kind = (int32_t)kind;
	jar_send(CONTROL_FD, &inside->report, fd);
}

/* --- set-up ------------------------------------------------------------------------------------------------- */

/*
 * Keep the control socket at 3 and the command's three streams after it; close all else that the engine had open.
 * Nothing of it can then leak, whatever flags it was opened with.
 */
static void keep_descriptors(struct inside *inside, int control_fd)
{
	int *streams[STREAM_FDS] = {&inside->streams.stdin_fd, &inside->streams.stdout_fd, &inside->streams.stderr_fd};
	int high[STREAM_FDS + 1];

	/* First out of the way of the numbers that will be used. */
	high[STREAM_FDS] = fcntl(control_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	for (int i = 0; i < STREAM_FDS; i++)
		high[i] = *streams[i] < 0 ? -1 : fcntl(*streams[i], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	dup3(high[STREAM_FDS], CONTROL_FD, O_CLOEXEC);
	/* 0, 1 and 2 stay taken, so that nothing opened later is mistaken for the command's own. */
	for (int fd = 0; fd < CONTROL_FD; fd++)
		dup3(high[STREAM_FDS], fd, O_CLOEXEC);
	for (int i = 0; i < STREAM_FDS; i++) {
		int fd = CONTROL_FD + 1 + i;

		if (high[i] < 0) {
			close(fd);
			continue;
		}
		*streams[i] = fd;
		dup3(high[i], fd, O_CLOEXEC);
	}
	sys_close_range(FIRST_FREE_FD, ~0U);
}

static int carry_out(struct inside *inside, const struct plan_step_list *steps, uint32_t *done, uint64_t *times)
{
	struct jar_progress progress;
	int rc = jar_carry_out(&inside->build, steps, times, &progress);

	*done += progress.done;
	if (rc < 0) {
		inside->report.step = progress.failed_step;
		inside->report.error = -rc;
	}
	return rc;
}

static void build(struct inside *inside)
{
	uint64_t *times = inside->times ? inside->times->step_ns : NULL;

	if (carry_out(inside, &inside->plan->steps, &inside->report.steps_done, times) == 0)
		return;
	report(inside, JAR_STEP_FAILED, -1);
	leave(inside, 125);
}

static void hand_over_view(struct inside *inside)
{
	for (int i = 0; i < JAR_VIEW_COUNT; i++) {
		if (inside->build.view_fds[i] < 0)
			continue;
		inside->report.step = i;
		if (i == JAR_VIEW_CLOCK &&
		    read(inside->build.view_fds[i], &inside->report.clock_ns, sizeof(inside->report.clock_ns)) < 0)
			inside->report.clock_ns = 0;
		report(inside, JAR_VIEW, inside->build.view_fds[i]);
		close_fd(&inside->build.view_fds[i]);
	}
}

static int open_pty(struct inside *inside)
{
	int unlock = 0, number;
	char path[32];

	inside->pty_master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (inside->pty_master < 0)
		return -errno;
	if (ioctl(inside->pty_master, TIOCSPTLCK, &unlock) < 0 || ioctl(inside->pty_master, TIOCGPTN, &number) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/dev/pts/%d", number);
	inside->pty_slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (inside->pty_slave < 0)
		return -errno;
	ioctl(inside->pty_slave, TIOCSWINSZ, &inside->streams.window);
	inside->streams.stdin_fd = inside->streams.stdout_fd = inside->streams.stderr_fd = inside->pty_slave;
	return 0;
}

/* --- the command -------------------------------------------------------------------------------------------- */

static void reset_signals(void)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &standard, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static const char *environment_value(const struct string_list *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->items[i], name, len) && env->items[i][len] == '=')
			return env->items[i] + len + 1;
	return NULL;
}

/* A script without a first line that says what runs it is the shell's, as everywhere; a foreign binary is not. */
static int execute_as_script(const char *path, const struct plan *plan)
{
	enum { ARGUMENTS_MAX = 1024 };
	char *arguments[ARGUMENTS_MAX + 2];
	char magic[4] = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t count = 0;

	if (fd < 0 || read(fd, magic, sizeof(magic)) < 0 || !memcmp(magic, "\177ELF", 4) ||
	    plan->argv.count > ARGUMENTS_MAX)
		return -ENOEXEC;
	arguments[count++] = (char *)"/bin/sh";
	arguments[count++] = (char *)path;
	for (size_t i = 1; i < plan->argv.count; i++)
		arguments[count++] = plan->argv.items[i];
	arguments[count] = NULL;
	execve(arguments[0], arguments, plan->env.items);
	return -errno;
}

static int execute(const char *path, const struct plan *plan)
{
	execve(path, plan->argv.items, plan->env.items);
	return errno == ENOEXEC ? execute_as_script(path, plan) : -errno;
}

/* Look the command up in the PATH it will have itself. Returns only on failure. */
static int execute_by_path(const struct plan *plan)
{
	const char *name = plan->argv.items[0];
	const char *path = environment_value(&plan->env, "PATH");
	bool was_refused = false;
	char candidate[4096];

	if (!name[0])
		return -ENOENT;
	if (strchr(name, '/'))
		return execute(name, plan);
	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	for (;;) {
		size_t len = strcspn(path, ":");
		int rc;

		/* An empty or relative entry would mean the workdir, where the untrusted side writes: not searched. */
		if (len && path[0] == '/' &&
		    snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)len, path, name) < (int)sizeof(candidate)) {
			rc = execute(candidate, plan);
			if (rc == -EACCES)
				was_refused = true;
			else if (rc != -ENOENT && rc != -ENOTDIR && rc != -ENAMETOOLONG)
				return rc;
		}
		if (!path[len])
			return was_refused ? -EACCES : -ENOENT;
		path += len + 1;
	}
}

/* Runs in a child that shares this process's memory until it execs: what it writes here is seen by the parent. */
static void command_child(struct inside *inside) __attribute__((noreturn, noinline));
static void command_child(struct inside *inside)
{
	const struct jar_streams *streams = &inside->streams;
	int fds[STREAM_FDS] = {streams->stdin_fd, streams->stdout_fd, streams->stderr_fd};
	int rc;

	setsid();
	for (int i = 0; i < STREAM_FDS; i++)
		if (dup2(fds[i], i) < 0)
			goto engine_failed;
	if (streams->has_pty && ioctl(0, TIOCSCTTY, 0) < 0)
		goto engine_failed;
	rc = carry_out(inside, &inside->plan->entry, &inside->report.entry_done,
		       inside->times ? inside->times->entry_ns : NULL);
	if (rc < 0) {
		inside->report.kind = JAR_STEP_FAILED;
		inside->report.is_entry = 1;
		_exit(125);
	}
	reset_signals();
	rc = execute_by_path(inside->plan);
	inside->report.kind = JAR_EXEC_FAILED;
	inside->report.error = -rc;
	inside->report.interpreter_missing = rc == -ENOENT && strchr(inside->plan->argv.items[0], '/') &&
					     access(inside->plan->argv.items[0], F_OK) == 0;
	_exit(127);

engine_failed:
	inside->report.kind = JAR_STEP_FAILED;
	inside->report.step = -1;
	inside->report.error = errno;
	_exit(125);
}

static void start_command(struct inside *inside)
{
	int rc = inside->streams.has_pty ? open_pty(inside) : 0;
	pid_t pid;

	inside->report.kind = 0;
	if (rc < 0) {
		inside->report.step = -1;
		inside->report.error = -rc;
		report(inside, JAR_STEP_FAILED, -1);
		leave(inside, 125);
	}
	inside->report.begun_ns = sys_monotonic_ns();
	/* The child makes system calls only, until it execs or leaves. */
	pid = vfork();
	if (pid == 0)
		command_child(inside); /* NOLINT(clang-analyzer-unix.Vfork) */
	inside->command = pid;
	if (pid < 0) {
		inside->report.step = -1;
		inside->report.error = errno;
		inside->report.kind = JAR_STEP_FAILED;
	}
	if (inside->report.kind) {
		report(inside, (enum jar_message_kind)inside->report.kind, -1);
		leave(inside, 125);
	}
	getrusage(RUSAGE_SELF, &inside->report.self);
	if (inside->times)
		inside->times->started_ns = sys_monotonic_ns();
	report(inside, JAR_STARTED, inside->pty_master);
	for (int fd = CONTROL_FD + 1; fd < FIRST_FREE_FD; fd++)
		close(fd);
	if (inside->pty_master >= 0) {
		close(inside->pty_master);
		close(inside->pty_slave);
	}
}

/* --- watching over it --------------------------------------------------------------------------------------- */

static void on_child(int number)
{
	(void)number; /* it only has to interrupt ppoll() */
}

/* What ended processes have written is in nobody's account but ours. */
static void report_written(struct inside *inside)
{
	uint64_t written = inside->build.written_fd < 0 ? 0 : jar_written_bytes(&inside->build);

	if (written <= inside->report.written_bytes)
		return;
	inside->report.written_bytes = written;
	report(inside, JAR_WRITTEN, -1);
}

static void report_end(struct inside *inside, int status) __attribute__((noreturn));
static void report_end(struct inside *inside, int status)
{
	inside->report.status = status;
	report_written(inside);
	report(inside, JAR_EXITED, -1);
	leave(inside, 0);
}

/*
 * The command has ended, but its end is not ours to see yet: a process it left behind traces it. With all others gone it
 * comes to us.
 */
static void reap_traced(struct inside *inside)
{
	int status = 0;

	if (has_pid_namespace(inside->plan))
		kill(-1, SIGKILL);
	else
		jar_hunt(inside->command);
	while (waitpid(inside->command, &status, __WALL) < 0 && errno == EINTR)
		;
	report_end(inside, status);
}

static void reap(struct inside *inside)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		/* A command that asked to be traced by its parent only stops here; that is not its end. */
		if (pid != inside->command || !(WIFEXITED(status) || WIFSIGNALED(status)))
			continue;
		report_end(inside, status);
	}
	report_written(inside);
}

static void obey(const struct inside *inside)
{
	struct jar_message message;
	int fd, rc = jar_receive(CONTROL_FD, &message, &fd);

	if (rc == -EAGAIN || rc == -EINTR)
		return;
	if (rc <= 0 || message.kind == JAR_KILL)
		leave(inside, 0);
	if (message.kind != JAR_SIGNAL)
		return;
	if (has_pid_namespace(inside->plan))
		kill(-1, message.status); /* everything in the pid namespace but this process */
	else
		jar_signal_tree(message.status);
}

static void watch(struct inside *inside) __attribute__((noreturn));
static void watch(struct inside *inside)
{
	struct sigaction interrupt = {.sa_handler = on_child};
	struct pollfd waiting[] = {
		{.fd = CONTROL_FD, .events = POLLIN},
		{.fd = sys_pidfd_open(inside->command), .events = POLLIN},
	};
	sigset_t all_but_child;

	sigaction(SIGCHLD, &interrupt, NULL);
	sigfillset(&all_but_child);
	sigdelset(&all_but_child, SIGCHLD);
	for (;;) {
		reap(inside);
		if (ppoll(waiting, ARRAY_LEN(waiting), NULL, &all_but_child) <= 0)
			continue;
		if (waiting[0].revents)
			obey(inside);
		if (waiting[1].revents) {
			reap(inside);
			reap_traced(inside);
		}
	}
}

void jar_inside(const struct plan *plan, const struct jar_streams *streams, struct jar_times *times, int control_fd)
{
	struct inside inside = {
		.plan = plan,
		.streams = *streams,
		.times = times,
		.build = {.plan = plan,
			  .root_fd = -1,
			  .scratch_fd = -1,
			  .user_namespace_fd = -1,
			  .view_fds = {-1, -1, -1, -1},
			  .written_fd = -1},
		.pty_master = -1,
		.pty_slave = -1,
	};
	static struct jar_network network;
	sigset_t all;

	inside.build.network = &network;
	inside.build.engine_pid = getppid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	keep_descriptors(&inside, control_fd);
	/* Out of the caller's session and process group: kill(0) crosses pid namespaces otherwise. */
	setsid();
	jar_volunteer();
	if (plan->namespaces & CLONE_NEWNET)
		jar_network_start(&network);
	umask(0);
	build(&inside);
	hand_over_view(&inside);
	umask(022);
	/* Steps that change ids make the process dumpable by the kernel's own rules; undo that before anything else runs. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	start_command(&inside);
	watch(&inside);
}
