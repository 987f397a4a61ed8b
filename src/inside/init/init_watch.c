/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/init/init_watch.c - one command from inside: start it, reap, and end its tree
 *
 * The process that does this is the command's minder. In a jar with one command it is the jar's first process, else a
 * child of that. No process can trace a minder (not dumpable). A minder ends when its control socket closes.
 */
#include "inside/init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/processor.h"
#include "base/reap/reap.h"
#include "base/reap/reap_children.h"
#include "base/sys/calls.h"

#define FOR_EVER UINT64_MAX
/* Children to reap before this process reads from the engine again. */
#define REAPED_AT_ONCE 64

/*
 * Signal all that this process is in charge of, where kill(-1) reaches all of it and nothing else. The kernel makes no process while
 * it goes through them, so nothing that forks escapes it. In the host's pid namespace that rests on a scope of this process's
 * own (STEP_SCOPE), which was proven and is proven again: without it everything of the user would be signalled.
 */
static bool signal_all(const struct jar_inside *inside, int number)
{
	bool is_scoped = inside->build.scoped_pid == getpid() && kill(getppid(), 0) < 0 && errno == EPERM;

	if ((inside->owns_pids || is_scoped) && (kill(-1, number) == 0 || errno == ESRCH))
		return true;
	reap_signal_tree(number); /* each that is seen: what forks meanwhile may escape it */
	return false;
}

void init_report(struct jar_inside *inside, struct jar_message *message, int fd)
{
	struct pollfd room = {.fd = JAR_CONTROL_FD, .events = POLLOUT};

	message->steps_done = inside->steps_done;
	message->entry_done = inside->entry_done;
	/* An engine that is stopped and does not listen must not stop a traced command too. */
	while (control_send(JAR_CONTROL_FD, message, fd) == -EAGAIN && message->kind != JAR_TRIED)
		init_wait(inside, &room, 1, NULL);
}

/*
 * In a pid namespace every orphan becomes this process's child, so without children it is alone. Only a call's
 * process comes from outside. This check avoids kill(-1), for which the kernel walks every process of the host.
 */
static bool is_alone(const struct jar_inside *inside)
{
	siginfo_t info;

	return !inside->await_outsider && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 &&
	       errno == ECHILD;
}

/* End everything this process is in charge of. */
void init_end_tree(struct jar_inside *inside)
{
	/*
	 * The kernel would kill what is left in a pid namespace anyway, but would not count it: processes are reaped here,
	 * so that their CPU time reaches the engine with our own end.
	 */
	if (!is_alone(inside))
		signal_all(inside, SIGKILL);
	if (inside->owns_pids) {
		while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
			;
		if (inside->await_outsider)
			inside->await_outsider(inside);
		return;
	}
	reap_hunt(NULL, FOR_EVER);
	if (!inside->is_minder && inside->plan->run_directory) {
		reap_sweep(inside->plan->run_directory);
		reap_sweep_abandoned(inside->plan->run_directory);
	}
}

void init_leave(struct jar_inside *inside, int status)
{
	init_end_tree(inside); /* before any report: the engine may not read */
	init_report_refusals(inside, true);
	/* The kernel takes a while to remove the jar's mounts; an engine that continues need not wait for that. */
	if (inside->report_left)
		inside->report_left(inside);
	_exit(status);
}

void init_fail(struct jar_inside *inside, int rc)
{
	struct jar_message message = {.kind = JAR_STEP_FAILED, .step_failed = {.step = -1, .error = -rc}};

	init_report(inside, &message, -1);
	init_leave(inside, 125);
}

int init_carry(struct jar_inside *inside, const struct plan_step_list *steps, uint32_t *done, uint64_t *times)
{
	for (size_t i = 0; i < steps->count; i++) {
		int rc = build_step(&inside->build, &steps->items[i]);

		if (times && i < JAR_TIMES_MAX)
			times[i] = sys_monotonic_ns();
		if (rc < 0)
			return rc;
		(*done)++;
	}
	return 0;
}

/* --- starting ----------------------------------------------------------------------------------------------- */

/* Runs in a child that shares this process's memory until it execs: what it writes here is seen by the parent. */
__attribute__((noreturn, noinline)) static void command_child(struct jar_inside *inside,
							      const struct processors *processors)
{
	processor_roam(processors);
	setsid();
	init_become_command(inside, &inside->start);
}

void init_report_start(struct jar_inside *inside)
{
	if (inside->start.kind != JAR_STARTED) {
		init_report(inside, &inside->start, -1);
		init_leave(inside, 125);
	}
	getrusage(RUSAGE_SELF, &inside->start.started.making);
	if (inside->times)
		inside->times->started_ns = sys_monotonic_ns();
	init_report(inside, &inside->start, -1);
}

static void start_command(struct jar_inside *inside)
{
	struct processors processors = {0};
	AUTO_CLOSE int listener_socket = -1;
	int lowest = JAR_CONTROL_FD + 1 + (int)inside->command.fd_count;
	int rc = 0;
	pid_t pid;

	/* Out of the way of the numbers that the command will have. */
	if (inside->plan->filter_asks && inside->build.listener_fd < 0)
		rc = answer_open_sockets(&listener_socket, &inside->build.listener_socket, lowest);
	if (rc < 0)
		init_fail(inside, rc);
	inside->start = (struct jar_message){.kind = JAR_STARTED, .started = {.begun_ns = sys_monotonic_ns()}};
	processor_stay(&processors);
	/* The child makes system calls only, until it execs or leaves. */
	pid = vfork();
	if (pid == 0)
		command_child(inside, &processors); /* NOLINT(clang-analyzer-unix.Vfork) */
	rc = pid < 0 ? -errno : 0;
	processor_roam(&processors);
	if (rc < 0)
		init_fail(inside, rc);
	close_fd(&inside->build.listener_socket);
	answer_take_listener(listener_socket, &inside->build.listener_fd);
	inside->pid = pid;
	init_report_start(inside);
	for (size_t i = inside->command.has_pty ? JAR_STREAM_FDS : 0; i < inside->command.fd_count; i++)
		close(inside->command.fds[i]);
}

/* --- watching over it --------------------------------------------------------------------------------------- */

static void on_child(int number)
{
	(void)number; /* it only has to interrupt ppoll() */
}

/* Report what ended processes wrote; only this process has that count. */
static void report_written(struct jar_inside *inside)
{
	uint64_t outside = (uint64_t)inside->outsider_usage.ru_oublock * REAP_BLOCK_BYTES;
	uint64_t written;

	if (inside->build.written_fd < 0)
		return;
	written =
		inside->is_minder ? reap_written_by_children() + outside : reap_written_bytes(inside->build.written_fd);
	if (written <= inside->written_bytes)
		return;
	inside->written_bytes = written;
	init_report(inside, &(struct jar_message){.kind = JAR_WRITTEN, .written = {.bytes = written}}, -1);
}

void init_report_refusals(struct jar_inside *inside, bool is_end)
{
	struct jar_message message;

	while (answer_next_refusal(&message, is_end))
		init_report(inside, &message, -1);
}

bool init_reap(struct jar_inside *inside)
{
	int status, count = 0;
	pid_t pid;

	while (count++ < REAPED_AT_ONCE && (pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		/* A command that asked to be traced by its parent only stops here; that is not its end. */
		if (pid != inside->pid || !(WIFEXITED(status) || WIFSIGNALED(status)))
			continue;
		inside->end.status = status;
		return true;
	}
	if (count > REAPED_AT_ONCE)
		kill(getpid(), SIGCHLD); /* there may be more: do not sleep */
	report_written(inside);
	return false;
}

/*
 * The command has ended, but its end is not ours to see yet: a process it left behind traces it. With all others gone it
 * comes to us.
 */
static void reap_traced(struct jar_inside *inside)
{
	int status = 0;

	if (!signal_all(inside, SIGKILL))
		reap_hunt(&(struct reap_family){.items = &inside->pid, .count = 1}, FOR_EVER);
	while (waitpid(inside->pid, &status, __WALL) < 0 && errno == EINTR)
		;
	inside->end.status = status;
}

void init_on_request(struct jar_inside *inside)
{
	struct jar_message message;
	int fd, rc = control_receive(JAR_CONTROL_FD, &message, &fd);

	if (rc == -EAGAIN || rc == -EINTR)
		return;
	if (rc <= 0 || message.kind == JAR_KILL)
		init_leave(inside, 0);
	if (message.kind == JAR_SIGNAL) {
		reap_time_note_signal(&inside->command.time, inside->start.started.begun_ns, message.signal.number);
		signal_all(inside, message.signal.number);
	}
}

void init_catch_children(sigset_t *all_but_child)
{
	struct sigaction interrupt = {.sa_handler = on_child};

	sigaction(SIGCHLD, &interrupt, NULL);
	sigfillset(all_but_child);
	sigdelset(all_but_child, SIGCHLD);
}

int init_wait(struct jar_inside *inside, struct pollfd *waiting, size_t count, const sigset_t *signals)
{
	struct timespec left;
	int due = reap_time_look(&inside->command.time, inside->start.started.begun_ns, &left);

	if (due == SIGKILL)
		init_leave(inside, 0);
	else if (due)
		signal_all(inside, due);
	return ppoll(waiting, count, left.tv_sec < 0 ? NULL : &left, signals);
}

static void watch_over(struct jar_inside *inside)
{
	AUTO_CLOSE int pidfd = sys_pidfd_open(inside->pid);
	struct pollfd waiting[] = {
		{.fd = JAR_CONTROL_FD, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}, {.events = POLLIN}};
	sigset_t all_but_child;

	init_catch_children(&all_but_child);
	while (!init_reap(inside)) {
		waiting[2].fd = inside->build.listener_fd;
		if (init_wait(inside, waiting, ARRAY_LEN(waiting), &all_but_child) <= 0)
			continue;
		if (waiting[0].revents)
			init_on_request(inside);
		if (waiting[2].revents)
			answer_some(&inside->build.places, &inside->build.listener_fd);
		init_report_refusals(inside, false);
		if (!waiting[1].revents)
			continue;
		if (!init_reap(inside))
			reap_traced(inside);
		break;
	}
	/* The remaining processes are about to be killed: answer them no more. */
	close_fd(&inside->build.listener_fd);
}

void init_report_end(struct jar_inside *inside)
{
	inside->end.ended_ns = sys_monotonic_ns();
	report_written(inside);
	init_report_refusals(inside, true);
	/* If no process is left, JAR_EMPTY reports the end too. */
	inside->end.is_last = inside->report_left && is_alone(inside);
	if (!inside->end.is_last)
		init_report(inside, &(struct jar_message){.kind = JAR_EXITED, .exited = inside->end}, -1);
	init_end_tree(inside);
}

void init_watch_to_end(struct jar_inside *inside)
{
	watch_over(inside);
	init_report_end(inside);
}

void init_supervise(struct jar_inside *inside)
{
	start_command(inside);
	init_watch_to_end(inside);
	_exit(0);
}
