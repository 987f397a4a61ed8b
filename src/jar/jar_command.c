/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_command.c - one command from inside: start it, reap, and end its tree
 *
 * Whoever does this is the keeper of that command: the jar's first process where it is the only one, a child of it where
 * a jar has many. A keeper cannot be traced (not dumpable) and holds a control socket as its leash.
 */
#include "jar/jar_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "jar/jar_call.h"
#include "jar/jar_traces.h"
#include "jar/jar_spec.h"
#include "sys/calls.h"

/* What getrusage() counts in. */
#define BLOCK_BYTES 512

static bool owns_pid_namespace(const struct jar_inside *inside)
{
	/* Not the rung: kill(-1) below must never happen in the host's pid namespace, whatever a plan is made of. */
	return inside->plan->namespaces & CLONE_NEWPID && (!inside->is_keeper || inside->call.fd >= 0);
}

void jar_report(struct jar_inside *inside, enum jar_message_kind kind, int fd)
{
	struct pollfd room = {.fd = JAR_CONTROL_FD, .events = POLLOUT};

	inside->report.kind = (int32_t)kind;
	while (jar_send(JAR_CONTROL_FD, &inside->report, fd) == -EAGAIN)
		poll(&room, 1, -1);
}

void jar_report_failure(struct jar_inside *inside, int errno_value)
{
	inside->report.step = -1;
	inside->report.error = errno_value;
	jar_report(inside, JAR_STEP_FAILED, -1);
}

static void add_usage(struct rusage *sum, const struct rusage *more)
{
	timeradd(&sum->ru_utime, &more->ru_utime, &sum->ru_utime);
	timeradd(&sum->ru_stime, &more->ru_stime, &sum->ru_stime);
	sum->ru_maxrss = MAX_OF(sum->ru_maxrss, more->ru_maxrss);
}

/*
 * Alone in a pid namespace is whoever has no children there: every orphan becomes its child. Only a call's process comes
 * from outside. To signal all others the kernel would look at every process of the host.
 */
static bool is_alone(const struct jar_inside *inside)
{
	siginfo_t info;

	return inside->call.fd < 0 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 &&
	       errno == ECHILD;
}

/* End everything this process is in charge of. */
static void end_tree(struct jar_inside *inside)
{
	/*
	 * The kernel would kill what is left in a pid namespace anyway, but would not count it: processes are reaped here,
	 * so that their CPU time reaches the engine with our own end.
	 */
	if (owns_pid_namespace(inside)) {
		if (!is_alone(inside))
			kill(-1, SIGKILL);
		while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
			;
		if (inside->call.fd >= 0)
			jar_call_bury(inside);
		return;
	}
	jar_hunt(NULL);
	if (!inside->is_keeper && inside->plan->run_directory) {
		jar_sweep(inside->plan->run_directory);
		jar_sweep_abandoned(inside->plan->run_directory);
	}
}

static void report_empty(struct jar_inside *inside, bool can_renew)
{
	getrusage(RUSAGE_CHILDREN, &inside->report.self);
	if (inside->call.fd >= 0)
		add_usage(&inside->report.self, &inside->call.usage);
	inside->report.step = can_renew;
	jar_report(inside, JAR_EMPTY, -1);
}

void jar_leave(struct jar_inside *inside, int status)
{
	end_tree(inside);
	/* Taking the jar's mounts down takes the kernel a while; an engine that goes on need not wait for that. */
	if (inside->mode != JAR_MODE_ONCE)
		report_empty(inside, false);
	_exit(status);
}

int jar_carry(struct jar_inside *inside, const struct plan_step_list *steps, uint32_t *done, uint64_t *times)
{
	for (size_t i = 0; i < steps->count; i++) {
		int rc = jar_step(&inside->build, &steps->items[i]);

		if (times && i < JAR_TIMES_MAX)
			times[i] = sys_monotonic_ns();
		if (rc < 0) {
			inside->report.step = (int32_t)i;
			inside->report.error = -rc;
			return rc;
		}
		(*done)++;
	}
	return 0;
}

/* --- starting ----------------------------------------------------------------------------------------------- */

static int open_pty(struct jar_inside *inside)
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
	ioctl(inside->pty_slave, TIOCSWINSZ, &inside->command.window);
	for (int i = 0; i < JAR_STREAM_FDS; i++)
		inside->command.fds[i] = inside->pty_slave;
	return 0;
}

void jar_reset_signals(void)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &standard, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static const char *environment_value(const struct jar_command *command, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < command->env_count; i++)
		if (!strncmp(command->env[i], name, len) && command->env[i][len] == '=')
			return command->env[i] + len + 1;
	return NULL;
}

/* A script without a first line that says what runs it is the shell's, as everywhere; a foreign binary is not. */
static int execute_as_script(const char *path, const struct jar_command *command)
{
	enum { ARGUMENTS_MAX = 1024 };
	char *arguments[ARGUMENTS_MAX + 2];
	char magic[4] = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t count = 0;

	if (fd < 0 || read(fd, magic, sizeof(magic)) < 0 || !memcmp(magic, "\177ELF", 4) ||
	    command->argv_count > ARGUMENTS_MAX)
		return -ENOEXEC;
	arguments[count++] = (char *)"/bin/sh";
	arguments[count++] = (char *)path;
	for (size_t i = 1; i < command->argv_count; i++)
		arguments[count++] = command->argv[i];
	arguments[count] = NULL;
	execve(arguments[0], arguments, command->env);
	return -errno;
}

static int execute(const char *path, const struct jar_command *command)
{
	execve(path, command->argv, command->env);
	return errno == ENOEXEC ? execute_as_script(path, command) : -errno;
}

int jar_execute(const struct jar_command *command)
{
	const char *name = command->argv[0];
	const char *path = environment_value(command, "PATH");
	bool was_refused = false;
	char candidate[4096];

	if (!name[0])
		return -ENOENT;
	if (strchr(name, '/'))
		return execute(name, command);
	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	for (;;) {
		size_t len = strcspn(path, ":");
		int rc;

		/* An empty or relative entry would mean the workdir, where the untrusted side writes: not searched. */
		if (len && path[0] == '/' &&
		    snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)len, path, name) < (int)sizeof(candidate)) {
			rc = execute(candidate, command);
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
static void command_child(struct jar_inside *inside, const struct sys_processors *processors)
	__attribute__((noreturn, noinline));
static void command_child(struct jar_inside *inside, const struct sys_processors *processors)
{
	const struct jar_command *command = &inside->command;
	int rc;

	sys_roam(processors);
	setsid();
	for (size_t i = 0; i < command->fd_count; i++)
		if (dup2(command->fds[i], (int)i) < 0)
			goto engine_failed;
	if (command->has_pty && ioctl(0, TIOCSCTTY, 0) < 0)
		goto engine_failed;
	rc = jar_carry(inside, &command->entry, &inside->report.entry_done,
		       inside->times ? inside->times->entry_ns : NULL);
	if (rc < 0) {
		inside->report.kind = JAR_STEP_FAILED;
		inside->report.is_entry = 1;
		_exit(125);
	}
	jar_reset_signals();
	rc = jar_execute(command);
	inside->report.kind = JAR_EXEC_FAILED;
	inside->report.error = -rc;
	inside->report.interpreter_missing =
		rc == -ENOENT && strchr(command->argv[0], '/') && access(command->argv[0], F_OK) == 0;
	_exit(127);

engine_failed:
	inside->report.kind = JAR_STEP_FAILED;
	inside->report.step = -1;
	inside->report.error = errno;
	_exit(125);
}

static void start_command(struct jar_inside *inside)
{
	int rc = inside->command.has_pty ? open_pty(inside) : 0;
	struct sys_processors processors = {0};
	pid_t pid;

	inside->report.kind = 0;
	if (rc < 0) {
		jar_report_failure(inside, -rc);
		jar_leave(inside, 125);
	}
	inside->report.begun_ns = sys_monotonic_ns();
	/* Where the command was sent, the engine that sent it may still be busy here. */
	if (inside->mode == JAR_MODE_ONCE)
		sys_stay(&processors);
	/* The child makes system calls only, until it execs or leaves. */
	pid = vfork();
	if (pid == 0)
		command_child(inside, &processors); /* NOLINT(clang-analyzer-unix.Vfork) */
	sys_roam(&processors);
	inside->pid = pid;
	if (inside->pid < 0) {
		jar_report_failure(inside, errno);
		jar_leave(inside, 125);
	}
	if (inside->report.kind) {
		jar_report(inside, (enum jar_message_kind)inside->report.kind, -1);
		jar_leave(inside, 125);
	}
	getrusage(RUSAGE_SELF, &inside->report.self);
	if (inside->times)
		inside->times->started_ns = sys_monotonic_ns();
	jar_report(inside, JAR_STARTED, inside->pty_master);
	for (size_t i = inside->command.has_pty ? JAR_STREAM_FDS : 0; i < inside->command.fd_count; i++)
		close(inside->command.fds[i]);
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
static uint64_t written_bytes(const struct jar_inside *inside)
{
	struct rusage usage;

	if (inside->build.written_fd < 0)
		return 0;
	if (!inside->is_keeper)
		return jar_written_bytes(&inside->build);
	/* /proc/self/io is not to be had once a process is not dumpable; this counts what was taken back too. */
	getrusage(RUSAGE_CHILDREN, &usage);
	return (uint64_t)(usage.ru_oublock + inside->call.usage.ru_oublock) * BLOCK_BYTES;
}

static void report_written(struct jar_inside *inside)
{
	uint64_t written = written_bytes(inside);

	if (written <= inside->report.written_bytes)
		return;
	inside->report.written_bytes = written;
	jar_report(inside, JAR_WRITTEN, -1);
}

static void report_end(struct jar_inside *inside, int status) __attribute__((noreturn));
static void report_end(struct jar_inside *inside, int status)
{
	inside->report.status = status;
	report_written(inside);
	jar_report(inside, JAR_EXITED, -1);
	jar_leave(inside, 0);
}

/*
 * The command has ended, but its end is not ours to see yet: a process it left behind traces it. With all others gone it
 * comes to us.
 */
static void reap_traced(struct jar_inside *inside)
{
	int status = 0;

	if (owns_pid_namespace(inside))
		kill(-1, SIGKILL);
	else
		jar_hunt(&(struct jar_family){.items = &inside->pid, .count = 1});
	while (waitpid(inside->pid, &status, __WALL) < 0 && errno == EINTR)
		;
	report_end(inside, status);
}

static void reap(struct jar_inside *inside)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		/* A command that asked to be traced by its parent only stops here; that is not its end. */
		if (pid != inside->pid || !(WIFEXITED(status) || WIFSIGNALED(status)))
			continue;
		report_end(inside, status);
	}
	report_written(inside);
}

static void obey(struct jar_inside *inside)
{
	struct jar_message message;
	int fd, rc = jar_receive(JAR_CONTROL_FD, &message, &fd);

	if (rc == -EAGAIN || rc == -EINTR)
		return;
	if (rc <= 0 || message.kind == JAR_KILL)
		jar_leave(inside, 0);
	if (message.kind != JAR_SIGNAL)
		return;
	if (owns_pid_namespace(inside))
		kill(-1, message.status); /* everything in the pid namespace but this process */
	else
		jar_signal_tree(message.status);
}

void jar_catch_children(sigset_t *all_but_child)
{
	struct sigaction interrupt = {.sa_handler = on_child};

	sigaction(SIGCHLD, &interrupt, NULL);
	sigfillset(all_but_child);
	sigdelset(all_but_child, SIGCHLD);
}

void jar_keep(struct jar_inside *inside)
{
	struct pollfd waiting[] = {{.fd = JAR_CONTROL_FD, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	sigset_t all_but_child;

	start_command(inside);
	waiting[1].fd = sys_pidfd_open(inside->pid);
	jar_catch_children(&all_but_child);
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

/* --- calls, one after the other ----------------------------------------------------------------------------- */

static void begin_call(struct jar_inside *inside)
{
	inside->report.begun_ns = sys_monotonic_ns();
	if (jar_call_begin(inside) < 0) {
		jar_report(inside, JAR_STEP_FAILED, -1);
		jar_leave(inside, 125);
	}
	getrusage(RUSAGE_SELF, &inside->report.self);
	jar_report(inside, JAR_STARTED, -1);
	for (size_t i = 0; i < inside->command.fd_count; i++)
		close(inside->command.fds[i]);
}

/* Let the fork that waits begin, and watch over it until nothing of it is left. */
static void keep_call(struct jar_inside *inside)
{
	struct pollfd waiting[] = {{.fd = JAR_CONTROL_FD, .events = POLLIN}, {.fd = inside->call.fd, .events = POLLIN}};
	sigset_t all_but_child;

	begin_call(inside);
	jar_catch_children(&all_but_child);
	while (!waiting[1].revents) {
		reap(inside); /* orphans; the fork is the zygote's child */
		if (ppoll(waiting, ARRAY_LEN(waiting), NULL, &all_but_child) > 0 && waiting[0].revents)
			obey(inside);
	}
	jar_call_note_end(inside);
	inside->report.status = inside->call.status;
	report_written(inside);
	jar_report(inside, JAR_EXITED, -1);
	end_tree(inside);
}

static struct jar_attached received;

/* Wait for a message of @kind, with its descriptors in `received`. */
static void wait_for(struct jar_inside *inside, enum jar_message_kind kind)
{
	struct pollfd waiting = {.fd = JAR_CONTROL_FD, .events = POLLIN};
	struct jar_message message;
	int rc;

	for (;;) {
		if (poll(&waiting, 1, -1) < 0)
			continue;
		rc = jar_receive_all(JAR_CONTROL_FD, &message, &received);
		if (rc == -EAGAIN || rc == -EINTR)
			continue;
		if (rc <= 0 || message.kind == JAR_KILL)
			jar_leave(inside, 0);
		if (message.kind == (int32_t)kind)
			return;
	}
}

/* Be the keeper of another call, as if there had been none before. */
static void renew(struct jar_inside *inside)
{
	int rc;

	if (!jar_is_traceless(inside))
		jar_leave(inside, 0);
	report_empty(inside, true);
	wait_for(inside, JAR_RENEW);
	jar_spec_done(&inside->command);
	inside->report = (struct jar_message){.steps_done = inside->report.steps_done};
	inside->build.has_run_cgroup = received.fd_count > 0;
	rc = jar_call_renew(inside, received.fds, received.fd_count);
	if (rc < 0) {
		jar_report_failure(inside, -rc);
		jar_leave(inside, 125);
	}
}

/* --- a command that is sent --------------------------------------------------------------------------------- */

/* The descriptors go out of the way of the numbers that the command will have. */
static int take_command(struct jar_inside *inside, const struct jar_attached *attached)
{
	struct jar_command *command = &inside->command;
	size_t skipped, count = attached->fd_count - 1;
	int rc;

	if (!attached->fd_count)
		return -EBADMSG;
	rc = jar_spec_read(attached->fds[0], count, command);
	if (rc < 0)
		return rc;
	close(attached->fds[0]);
	skipped = command->has_pty ? JAR_STREAM_FDS : 0;
	command->fd_count = skipped + count;
	for (size_t i = 0; i < count; i++) {
		int fd = fcntl(attached->fds[i + 1], F_DUPFD_CLOEXEC, JAR_CONTROL_FD + 1 + (int)command->fd_count);

		if (fd < 0)
			return -errno;
		close(attached->fds[i + 1]);
		command->fds[skipped + i] = fd;
	}
	return 0;
}

void jar_wait_and_keep(struct jar_inside *inside)
{
	for (;;) {
		int rc;

		inside->report.status = (int32_t)(inside->call.fd >= 0 ? inside->call.keeper_pid : getpid());
		jar_report(inside, JAR_READY, -1);
		wait_for(inside, JAR_RUN);
		inside->report.status = 0;
		rc = take_command(inside, &received);
		if (rc < 0) {
			jar_report_failure(inside, -rc);
			jar_leave(inside, 125);
		}
		if (inside->call.fd < 0)
			jar_keep(inside);
		keep_call(inside);
		renew(inside);
	}
}
