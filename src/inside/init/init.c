/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/init/init.c - the jar's first process: drop the engine's state, build the jar, then run its main function
 *
 * It is a copy of the engine that has closed all it inherited, cannot be traced (not dumpable), and ends when
 * its control socket closes. On the namespace rung the kernel ends the jar: when process 1 of a pid namespace
 * ends, the kernel kills and reaps every process in it before the engine sees the end.
 */
#include "inside/init/init.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/processor.h"
#include "base/sys/calls.h"

/*
 * Keep the control socket at 3 and the command's descriptors above all numbers that it will have; close all else that the
 * engine had open. Nothing of it can then leak, whatever flags it was opened with.
 */
static void keep_descriptors(struct jar_command *command, int control_fd)
{
	int base = JAR_CONTROL_FD + 1 + (int)(command->fd_count - MIN_OF(command->fd_count, JAR_STREAM_FDS));
	int first_free = base + (int)command->fd_count;
	int high_control, high[ARRAY_LEN(command->fds)];

	/* First out of the way of the numbers that will be used. */
	high_control = fcntl(control_fd, F_DUPFD_CLOEXEC, first_free);
	for (size_t i = 0; i < command->fd_count; i++) {
		high[i] = command->fds[i] < 0 ? -1 : fcntl(command->fds[i], F_DUPFD_CLOEXEC, first_free);
		if (high[i] < 0 && command->fds[i] >= 0)
			_exit(125);
	}
	/* With no number left, whatever the engine has at ours would be taken for the control socket. */
	if (high_control < 0)
		_exit(125);
	dup3(high_control, JAR_CONTROL_FD, O_CLOEXEC);
	/* 0, 1 and 2 stay taken, so that nothing opened later is mistaken for the command's own. */
	for (int fd = 0; fd < JAR_CONTROL_FD; fd++)
		dup3(high_control, fd, O_CLOEXEC);
	if (base > JAR_CONTROL_FD + 1)
		sys_close_range(JAR_CONTROL_FD + 1, (unsigned)base - 1);
	for (size_t i = 0; i < command->fd_count; i++) {
		int fd = base + (int)i;

		if (high[i] < 0) {
			close(fd);
			continue;
		}
		command->fds[i] = fd;
		dup3(high[i], fd, O_CLOEXEC);
	}
	sys_close_range((unsigned)first_free, ~0U);
}

/* Reset signals that the caller ignored. Exec resets handlers that are set later. */
static void reset_actions(void)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &standard, NULL);
}

static void build(struct jar_inside *inside)
{
	uint64_t *times = inside->times ? inside->times->step_ns : NULL;
	int rc = init_carry(inside, &inside->plan->steps, &inside->steps_done, times);
	struct jar_message failure = {.kind = JAR_STEP_FAILED};

	if (rc == 0)
		return;
	failure.step_failed.step = (int32_t)inside->steps_done;
	failure.step_failed.error = -rc;
	init_report(inside, &failure, -1);
	init_leave(inside, 125);
}

void init_hand_over_view(struct jar_inside *inside)
{
	for (uint32_t i = 0; i < JAR_VIEW_COUNT; i++) {
		struct jar_message message = {.kind = JAR_VIEW, .view = {.what = i}};
		uint64_t *clock_ns = &message.view.clock_ns;

		if (inside->build.view_fds[i] < 0)
			continue;
		if (i == JAR_VIEW_CLOCK && read(inside->build.view_fds[i], clock_ns, sizeof(*clock_ns)) < 0)
			*clock_ns = 0;
		init_report(inside, &message, inside->build.view_fds[i]);
		close_fd(&inside->build.view_fds[i]);
	}
}

void init_hand_over_sockets(struct jar_inside *inside)
{
	struct jar_build *build = &inside->build;

	for (size_t i = 0; i < build->socket_count; i++) {
		struct jar_message message = {.kind = JAR_SOCKET, .socket = {.number = (uint32_t)i}};

		init_report(inside, &message, build->socket_fds[i]);
		close_fd(&build->socket_fds[i]);
	}
	build->socket_count = 0;
}

/* The plan's own command and the descriptors for it. */
static void take_own_command(struct jar_inside *inside, const struct jar_streams *streams)
{
	const struct jar_plan *plan = inside->plan;
	struct jar_command *command = &inside->command;

	command->argv = plan->argv.items;
	command->argv_count = plan->argv.count;
	command->env = plan->env.items;
	command->env_count = plan->env.count;
	command->candidates = plan->candidates.items;
	command->candidate_count = plan->candidates.count;
	command->entry = plan->entry;
	command->has_pty = streams->has_pty;
	command->window = streams->window;
	command->time = streams->time;
	command->fds[0] = streams->stdin_fd;
	command->fds[1] = streams->stdout_fd;
	command->fds[2] = streams->stderr_fd;
	command->fd_count = JAR_STREAM_FDS + streams->extra_count;
	for (size_t i = JAR_STREAM_FDS; i < command->fd_count; i++)
		command->fds[i] = streams->extra_fds[i - JAR_STREAM_FDS];
}

void init_main(const struct jar_plan *plan, jar_main_function *main, const struct jar_streams *streams,
	       struct jar_times *times, int control_fd)
{
	struct jar_inside inside = {
		.plan = plan,
		.owns_pids = plan->namespaces & CLONE_NEWPID,
		.times = times,
		.build = {.plan = plan,
			  .root_fd = -1,
			  .scratch_fd = -1,
			  .user_namespace_fd = -1,
			  .view_fds = {-1, -1, -1, -1, -1, -1},
			  .run_directory_fd = -1,
			  .listener_socket = -1,
			  .listener_fd = -1,
			  .written_fd = -1},
	};
	sigset_t all;

	inside.build.engine_pid = getppid();
	inside.build.first_pid = getpid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	reset_actions();
	if (streams)
		take_own_command(&inside, streams);
	keep_descriptors(&inside.command, control_fd);
	/* Out of the caller's session and process group: kill(0) crosses pid namespaces otherwise. */
	setsid();
	build_set_oom_score();
	processor_be_prompt();
	umask(0);
	build(&inside);
	init_hand_over_view(&inside);
	init_hand_over_sockets(&inside);
	umask(022);
	/* Steps that change ids make the process dumpable by the kernel's own rules; undo that before anything else runs. */
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		_exit(125);
	if (main)
		main(&inside);
	init_supervise(&inside);
}
