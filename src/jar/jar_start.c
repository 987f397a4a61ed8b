/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_start.c - the engine's side: make the jar's first process, and talk to it
 */
#include "jar/jar.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "jar/jar_inside.h"
#include "sys/calls.h"

int jar_send(int control_fd, const struct jar_message *message, int fd)
{
	struct iovec part = {.iov_base = (void *)message, .iov_len = sizeof(*message)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ancillary = {{0}};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *carrier;

		header.msg_control = ancillary.bytes;
		header.msg_controllen = sizeof(ancillary.bytes);
		carrier = CMSG_FIRSTHDR(&header);
		carrier->cmsg_level = SOL_SOCKET;
		carrier->cmsg_type = SCM_RIGHTS;
		carrier->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(carrier), &fd, sizeof(int));
	}
	return sendmsg(control_fd, &header, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int jar_receive(int control_fd, struct jar_message *message, int *fd_out)
{
	struct iovec part = {.iov_base = message, .iov_len = sizeof(*message)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ancillary;
	struct msghdr header = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = ancillary.bytes,
		.msg_controllen = sizeof(ancillary.bytes),
	};
	struct cmsghdr *carrier;
	ssize_t len = recvmsg(control_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*fd_out = -1;
	/* The other end closed with a message of ours unread: the kernel says so once, before what it had sent us. */
	if (len < 0 && errno == ECONNRESET)
		len = recvmsg(control_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (len < 0)
		return errno == ECONNRESET ? 0 : -errno;
	carrier = CMSG_FIRSTHDR(&header);
	if (carrier && carrier->cmsg_level == SOL_SOCKET && carrier->cmsg_type == SCM_RIGHTS)
		memcpy(fd_out, CMSG_DATA(carrier), sizeof(int));
	if (len == 0)
		return 0;
	return len == (ssize_t)sizeof(*message) ? 1 : -EPROTO;
}

void jar_clean_up(const struct plan *plan, pid_t spared_pid)
{
	jar_hunt(spared_pid);
	if (plan->run_directory)
		jar_sweep(plan->run_directory);
}

static const char *cgroup2_directory(const struct plan *plan)
{
	const struct plan_cgroup *cgroup = &plan->cgroup;

	return cgroup->memory ? cgroup->memory : cgroup->pids ? cgroup->pids : cgroup->cpu;
}

int jar_start(const struct plan *plan, const struct jar_streams *streams, const struct jar_area *area,
	      struct jar_times *times, struct jar *jar, struct error *error)
{
	AUTO_CLOSE int engine_end = -1;
	AUTO_CLOSE int jar_end = -1;
	AUTO_CLOSE int cgroup_fd = -1;
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(error, STAGE_ENGINE, errno, "cannot make a control socket: %s", strerror(errno));
	engine_end = ends[0];
	jar_end = ends[1];
	if (plan->rung != RUNG_NAMESPACE) {
		/* Should the jar's first process be killed, its orphans must come to us. */
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		/* The command runs as the same user beside us: our environment and memory are not for it. */
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	}
	if (times)
		times->begun_ns = sys_monotonic_ns();
	if (plan->cgroup.version == 2) {
		cgroup_fd = open(cgroup2_directory(plan), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (cgroup_fd < 0)
			return error_set(error, STAGE_LIMITS, errno, "cannot open the run's cgroup: %s",
					 strerror(errno));
	}
	pid = sys_fork(plan->namespaces & ~(uint64_t)CLONE_NEWNET, cgroup_fd, &jar->pidfd);
	/* The first process of a cgroup is refused for more reasons than we can tell apart: without one it may do. */
	if (pid < 0 && cgroup_fd >= 0)
		return error_set(error, STAGE_LIMITS, -pid, "cannot make the jar's first process in its cgroup: %s",
				 strerror(-pid));
	if (pid < 0)
		return error_set(error, STAGE_ISOLATE, -pid, "cannot make the jar's first process: %s", strerror(-pid));
	if (pid == 0) {
		/* This is a copy: the engine's own command line and environment stay as they are. */
		if (area->len)
			memset(area->start, 0, area->len);
		jar_inside(plan, streams, times, jar_end);
	}
	jar->pid = pid;
	jar->control_fd = take_fd(&engine_end);
	return 0;
}
