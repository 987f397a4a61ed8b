/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/init/init_minder.c - a first process or minder that waits for a command to be sent
 *
 * A minder has a child ready, the starter. The starter is in the run's cgroup, receives the command from
 * the socket and becomes it. So the kernel wakes one process only and creates none between request and
 * command, while the minder sleeps. The starter's socket closes on exec or exit; a shared page says
 * which. The seccomp listener arrives on that socket first.
 */
#include "inside/init/init_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "inside/command.h"
#include "base/sys/calls.h"

static struct jar_attached received;

void init_report_ready(struct jar_inside *inside, pid_t pid)
{
	init_report(inside, &(struct jar_message){.kind = JAR_READY, .ready = {.pid = (int32_t)pid}}, -1);
}

static void add_usage(struct rusage *sum, const struct rusage *more)
{
	timeradd(&sum->ru_utime, &more->ru_utime, &sum->ru_utime);
	timeradd(&sum->ru_stime, &more->ru_stime, &sum->ru_stime);
	sum->ru_maxrss = MAX_OF(sum->ru_maxrss, more->ru_maxrss);
}

void init_report_empty(struct jar_inside *inside)
{
	struct jar_message message = {.kind = JAR_EMPTY, .empty = {.end = inside->end}};

	getrusage(RUSAGE_CHILDREN, &message.empty.usage);
	add_usage(&message.empty.usage, &inside->outsider_usage);
	init_report(inside, &message, -1);
}

void init_begin(struct jar_inside *inside)
{
	inside->report_left = init_report_empty;
}

/* Wait for a message of @kind, with what came with it in `received`. False: there will be none. */
bool init_receive(enum jar_message_kind kind, struct jar_message *message)
{
	struct pollfd waiting = {.fd = JAR_CONTROL_FD, .events = POLLIN};
	int rc;

	for (;;) {
		if (poll(&waiting, 1, -1) < 0)
			continue;
		rc = control_receive_all(JAR_CONTROL_FD, message, &received);
		if (rc == -EAGAIN || rc == -EINTR)
			continue;
		if (rc <= 0 || message->kind == JAR_KILL)
			return false;
		if (message->kind == (uint32_t)kind)
			return true;
	}
}

/* Parse the specification, in the message or in a file that came with it. */
static int take_spec(const struct jar_message *message, size_t *fd_taken, struct jar_command *command)
{
	int rc;

	*fd_taken = 0;
	if (!message->run.has_file)
		return inside_command_parse(received.text, received.text_len, received.passed.count, command);
	if (!received.passed.count)
		return -EBADMSG;
	*fd_taken = 1;
	rc = inside_command_map(received.passed.fds[0], received.passed.count - 1, command);
	close(received.passed.fds[0]);
	return rc;
}

/* Move the descriptors, and *@own_fd unless NULL, above the numbers that the command will use. */
int init_take_command(struct jar_inside *inside, const struct jar_message *message, int *own_fd)
{
	struct jar_command *command = &inside->command;
	size_t first, skipped;
	int rc = take_spec(message, &first, command);
	int free_from;

	if (rc < 0)
		return rc;
	skipped = command->has_pty ? JAR_STREAM_FDS : 0;
	command->fd_count = skipped + received.passed.count - first;
	free_from = JAR_CONTROL_FD + 1 + (int)command->fd_count;
	if (own_fd && *own_fd < free_from) {
		*own_fd = fcntl(*own_fd, F_DUPFD_CLOEXEC, free_from);
		if (*own_fd < 0)
			return -errno;
	}
	for (size_t i = first; i < received.passed.count; i++) {
		int fd = fcntl(received.passed.fds[i], F_DUPFD_CLOEXEC, free_from);

		if (fd < 0)
			return -errno;
		close(received.passed.fds[i]);
		command->fds[skipped + i - first] = fd;
	}
	return 0;
}

/* --- the starter -------------------------------------------------------------------------------------------- */

/* Shared with the starter. */
static struct shared {
	struct jar_message start; /* how far it came; nothing in it: it was not sent a command */
	bool is_detached;
	struct reap_time time; /* that it has: see struct jar_streams */
} * shared;

static int share_page(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? -ENOMEM : 0;
}

static int join_cgroups(const int *cgroup_fds, size_t cgroup_count)
{
	for (size_t i = 0; i < cgroup_count; i++)
		if (write(cgroup_fds[i], "0", 1) < 0)
			return -errno;
	return 0;
}

static void share_failure(const struct jar_inside *inside, int rc) __attribute__((noreturn));
static void share_failure(const struct jar_inside *inside, int rc)
{
	shared->start = (struct jar_message){
		.kind = JAR_STEP_FAILED,
		.steps_done = inside->steps_done,
		.step_failed = {.step = -1, .error = -rc},
	};
	_exit(125);
}

static void become_starter(struct jar_inside *inside, int socket_fd, const int *cgroup_fds, size_t cgroup_count)
	__attribute__((noreturn));
static void become_starter(struct jar_inside *inside, int socket_fd, const int *cgroup_fds, size_t cgroup_count)
{
	struct jar_message message;
	int rc = join_cgroups(cgroup_fds, cgroup_count);

	if (rc < 0)
		share_failure(inside, rc);
	if (inside->is_minder && dup3(socket_fd, JAR_CONTROL_FD + 1, O_CLOEXEC) >= 0) {
		socket_fd = JAR_CONTROL_FD + 1;
		sys_close_range(JAR_CONTROL_FD + 2, ~0U);
	}
	setsid();
	if (!init_receive(JAR_RUN, &message))
		_exit(0);
	shared->start.started.begun_ns = sys_monotonic_ns();
	shared->is_detached = message.run.is_detached;
	rc = init_take_command(inside, &message, &socket_fd);
	if (rc < 0)
		share_failure(inside, rc);
	shared->time = inside->command.time;
	inside->build.listener_socket = socket_fd;
	init_become_command(inside, &shared->start);
}

/* Make a starter. Returns a socket whose other end the starter closes, or a negative errno. */
static int make_starter(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count)
{
	int own_end, other_end, rc = share_page();
	pid_t pid;

	if (rc < 0)
		return rc;
	rc = control_socket_pair(&own_end, &other_end);
	if (rc < 0)
		return rc;
	pid = fork();
	if (pid == 0)
		become_starter(inside, other_end, cgroup_fds, cgroup_count);
	close(other_end);
	if (pid < 0) {
		rc = -errno;
		close(own_end);
		return rc;
	}
	inside->pid = pid;
	return own_end;
}

/* Sleep until the starter is the command, or has left. */
static void await_start(struct jar_inside *inside, int socket_fd)
{
	struct pollfd waiting = {.fd = socket_fd}; /* until it is closed: nothing that is sent is needed before */
	sigset_t all_but_child;
	siginfo_t info;

	init_catch_children(&all_but_child);
	while (ppoll(&waiting, 1, NULL, &all_but_child) <= 0)
		/* A command that could reach it may have stopped it. */
		if (waitid(P_PID, (id_t)inside->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid)
			kill(inside->pid, SIGCONT);
	answer_take_listener(socket_fd, &inside->build.listener_fd);
	close(socket_fd);
	if (!shared->start.kind)
		init_leave(inside, 0);
	inside->start = shared->start;
	inside->command.time = shared->time;
	inside->entry_done = shared->start.entry_done;
	init_report_start(inside);
}

/* --- a command that leaves others behind --------------------------------------------------------------------- */

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

/* Report the command's end if its other processes continue. True: they do. */
static bool report_left_behind(struct jar_inside *inside)
{
	struct jar_message message = {.kind = JAR_LEFT};

	inside->pid = -1; /* the number may be another's from now on */
	inside->command.time.limit_ns = 0;
	init_report_refusals(inside, true);
	inside->end.ended_ns = sys_monotonic_ns();
	inside->end.is_last = !has_children();
	if (inside->end.is_last)
		return false; /* JAR_EMPTY reports it */
	getrusage(RUSAGE_CHILDREN, &message.left.usage);
	message.left.end = inside->end;
	init_report(inside, &message, -1);
	return true;
}

/* Supervise and answer a detached command until its tree is gone. A tracer of the command can delay its end. */
static void watch_detached(struct jar_inside *inside)
{
	struct pollfd waiting[] = {{.fd = JAR_CONTROL_FD, .events = POLLIN}, {.events = POLLIN}};
	bool has_ended = false;
	sigset_t all_but_child;

	init_catch_children(&all_but_child);
	for (;;) {
		if (init_reap(inside)) {
			has_ended = true;
			if (!report_left_behind(inside))
				break;
		}
		if (has_ended && !has_children())
			break;
		waiting[1].fd = inside->build.listener_fd;
		if (init_wait(inside, waiting, ARRAY_LEN(waiting), &all_but_child) <= 0)
			continue;
		if (waiting[0].revents)
			init_on_request(inside);
		if (waiting[1].revents)
			answer_some(&inside->build.places, &inside->build.listener_fd);
		init_report_refusals(inside, false);
	}
	close_fd(&inside->build.listener_fd);
}

void init_minder_supervise(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count)
{
	int socket_fd = make_starter(inside, cgroup_fds, cgroup_count);

	if (socket_fd < 0)
		init_fail(inside, socket_fd);
	for (size_t i = 0; i < cgroup_count; i++)
		close(cgroup_fds[i]);
	init_report_ready(inside, getpid());
	await_start(inside, socket_fd);
	if (shared->is_detached)
		watch_detached(inside);
	else
		init_watch_to_end(inside);
	init_report_empty(inside);
	_exit(0);
}

void init_prepared_main(struct jar_inside *inside)
{
	init_begin(inside);
	init_minder_supervise(inside, NULL, 0);
}
