/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/call/call_first.c - the first process of a jar for calls: start the zygote, and make minders
 *
 * The zygote has two capabilities over the jar's user namespace, enough to enter the namespaces of minders, and
 * a filter that refuses all mount calls. It runs only its own code and what the client made it load. This
 * process is outside the walls too, so it opens no files on request.
 */
#include "inside/call/call.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "inside/call/call_inside.h"
#include "base/sys/calls.h"

static pid_t zygote_pid;

/* --- capabilities ------------------------------------------------------------------------------------------- */

int call_keep_capabilities(uint32_t mask)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}, {0}};
	int rc;

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	/* Set the inheritable set while the bounding set still has these capabilities. */
	data[0].inheritable = mask;
	data[1].inheritable = 0;
	rc = syscall(SYS_capset, &header, data) < 0 ? -errno : sys_drop_bounding_set();
	if (rc < 0)
		return rc;
	data[0].effective = data[0].permitted = mask;
	data[1].effective = data[1].permitted = 0;
	rc = syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
	for (int capability = 0; capability < 32 && rc == 0; capability++)
		if (mask >> capability & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) < 0)
			rc = -errno;
	return rc;
}

/* --- the zygote --------------------------------------------------------------------------------------------- */

static void become_zygote(struct jar_inside *inside, int request_fd) __attribute__((noreturn));
static void become_zygote(struct jar_inside *inside, int request_fd)
{
	const struct jar_command *command = &inside->command;
	const struct jar_plan *plan = inside->plan;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (null_fd < 0 || dup2(request_fd, JAR_STREAM_FDS) < 0)
		_exit(125);
	for (int fd = 0; fd < JAR_STREAM_FDS; fd++)
		if (dup2(null_fd, fd) < 0)
			_exit(125);
	for (size_t i = JAR_STREAM_FDS; i < command->fd_count; i++)
		if (dup2(command->fds[i], (int)i + 1) < 0)
			_exit(125);
	if (call_keep_capabilities(1U << CAP_SYS_ADMIN | 1U << CAP_SYS_CHROOT) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    sys_seccomp_load(plan->zygote.filter.program, plan->zygote.filter.len) < 0)
		_exit(125);
	init_unblock_signals();
	init_execute(command, plan->shell);
	_exit(127);
}

static int start_zygote(struct jar_inside *inside)
{
	int ours, theirs, rc;
	pid_t pid;

	if (inside->plan->zygote.anew.count > CALL_TREES_MAX)
		return -E2BIG;
	rc = control_socket_pair(&ours, &theirs);
	if (rc < 0)
		return rc;
	pid = fork();
	if (pid == 0)
		become_zygote(inside, theirs);
	if (pid < 0)
		return -errno;
	close(theirs);
	for (size_t i = JAR_STREAM_FDS; i < inside->command.fd_count; i++)
		close(inside->command.fds[i]);
	if (ours != CALL_ZYGOTE_FD) {
		dup3(ours, CALL_ZYGOTE_FD, O_CLOEXEC);
		close(ours);
	}
	zygote_pid = pid;
	return 0;
}

static pid_t fork_call_minder(void)
{
	int pidfd = -1;
	pid_t pid = sys_fork(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC, -1, &pidfd);

	if (pid > 0)
		close_fd(&pidfd);
	return pid;
}

/* Without the zygote the jar is of no use. */
static void on_child_gone(struct jar_inside *inside, pid_t pid, int status)
{
	if (pid != zygote_pid)
		return;
	init_report(inside, &(struct jar_message){.kind = JAR_EXITED, .exited = {.status = status}}, -1);
	init_leave(inside, 0);
}

void call_first_main(struct jar_inside *inside)
{
	/* A minder is the first of a pid namespace, and leaves no orphans; the first process is not behind the walls. */
	static const struct session_kind calls = {
		.begin = start_zygote,
		.fork_minder = fork_call_minder,
		.minder_main = call_minder_main,
		.child_gone = on_child_gone,
	};

	init_serve(inside, &calls);
}
