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

#include "base/text.h"
#include "jar/jar_inside.h"
#include "jar/jar_spec.h"
#include "sys/calls.h"

/* --- messages ----------------------------------------------------------------------------------------------- */

union ancillary {
	char bytes[CMSG_SPACE(JAR_ATTACHED_MAX * sizeof(int))];
	struct cmsghdr align;
};

int jar_send_parts(int socket_fd, const struct iovec *parts, size_t part_count, const int *fds, size_t fd_count)
{
	struct msghdr header = {.msg_iov = (struct iovec *)parts, .msg_iovlen = part_count};
	union ancillary ancillary;

	if (fd_count > JAR_ATTACHED_MAX)
		return -E2BIG;
	if (fd_count) {
		struct cmsghdr *carrier;

		memset(&ancillary, 0, sizeof(ancillary.align));
		header.msg_control = ancillary.bytes;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		carrier = CMSG_FIRSTHDR(&header);
		carrier->cmsg_level = SOL_SOCKET;
		carrier->cmsg_type = SCM_RIGHTS;
		carrier->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(carrier), fds, fd_count * sizeof(int));
	}
	return sendmsg(socket_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int send_all(int control_fd, const struct jar_message *message, const char *text, size_t text_len,
		    const int *fds, size_t fd_count)
{
	const struct iovec parts[] = {
		{.iov_base = (void *)message, .iov_len = sizeof(*message)},
		{.iov_base = (void *)text, .iov_len = text_len},
	};

	return jar_send_parts(control_fd, parts, text_len ? 2 : 1, fds, fd_count);
}

int jar_send(int control_fd, const struct jar_message *message, int fd)
{
	return send_all(control_fd, message, NULL, 0, &fd, fd >= 0);
}

int jar_receive_all(int control_fd, struct jar_message *message, struct jar_attached *attached)
{
	struct iovec parts[] = {
		{.iov_base = message, .iov_len = sizeof(*message)},
		{.iov_base = attached->text, .iov_len = sizeof(attached->text) - 1},
	};
	union ancillary ancillary;
	struct msghdr header = {
		.msg_iov = parts,
		.msg_iovlen = 2,
		.msg_control = ancillary.bytes,
		.msg_controllen = sizeof(ancillary.bytes),
	};
	const struct cmsghdr *carrier;
	ssize_t len = recvmsg(control_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	attached->fd_count = 0;
	/* The other end closed with a message of ours unread: the kernel says so once, before what it had sent us. */
	if (len < 0 && errno == ECONNRESET)
		len = recvmsg(control_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (len < 0)
		return errno == ECONNRESET ? 0 : -errno;
	attached->text_len = (size_t)(len - MIN_OF(len, (ssize_t)sizeof(*message)));
	attached->text[attached->text_len] = '\0';
	carrier = CMSG_FIRSTHDR(&header);
	if (carrier && carrier->cmsg_level == SOL_SOCKET && carrier->cmsg_type == SCM_RIGHTS) {
		attached->fd_count = (carrier->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(attached->fds, CMSG_DATA(carrier), attached->fd_count * sizeof(int));
	}
	if (len == 0)
		return 0;
	if (len < (ssize_t)sizeof(*message) || header.msg_flags & MSG_TRUNC)
		return -EPROTO;
	return header.msg_flags & MSG_CTRUNC ? -EMFILE : 1;
}

int jar_receive(int control_fd, struct jar_message *message, int *fd_out)
{
	struct jar_attached attached;
	int rc = jar_receive_all(control_fd, message, &attached);

	*fd_out = attached.fd_count ? attached.fds[0] : -1;
	for (size_t i = 1; i < attached.fd_count; i++)
		close(attached.fds[i]);
	/* The message is heard all the same: who needs what came with it finds it missing. */
	if (rc != -EMFILE)
		return rc;
	message->error = message->error ? message->error : EMFILE;
	return 1;
}

int jar_send_run(int control_fd, const struct plan *plan, const struct jar_streams *streams)
{
	struct jar_message message = {.kind = JAR_RUN};
	AUTO_CLOSE int spec_fd = -1;
	AUTO_TEXT spec = {0};
	int fds[JAR_ATTACHED_MAX];
	size_t count = 0;
	int rc = jar_spec_write(plan, streams, &spec);

	if (rc < 0)
		return rc;
	if (streams->extra_count > JAR_EXTRA_MAX)
		return -E2BIG;
	if (spec.len > JAR_TEXT_MAX) {
		spec_fd = jar_spec_file(&spec);
		if (spec_fd < 0)
			return spec_fd;
		message.has_file = 1;
		fds[count++] = spec_fd;
	}
	if (!streams->has_pty) {
		fds[count++] = streams->stdin_fd;
		fds[count++] = streams->stdout_fd;
		fds[count++] = streams->stderr_fd;
	}
	for (size_t i = 0; i < streams->extra_count; i++)
		fds[count++] = streams->extra_fds[i];
	return send_all(control_fd, &message, text_string(&spec), message.has_file ? 0 : spec.len, fds, count);
}

int jar_send_keeper(int control_fd, uint32_t number, int keeper_end, const int *cgroup_fds, size_t cgroup_count)
{
	struct jar_message message = {.kind = JAR_KEEPER, .step = (int32_t)number};
	int fds[JAR_ATTACHED_MAX];

	if (cgroup_count > JAR_ATTACHED_MAX - 1)
		return -E2BIG;
	fds[0] = keeper_end;
	for (size_t i = 0; i < cgroup_count; i++)
		fds[i + 1] = cgroup_fds[i];
	return send_all(control_fd, &message, NULL, 0, fds, cgroup_count + 1);
}

int jar_send_renew(int control_fd, const int *cgroup_fds, size_t cgroup_count)
{
	struct jar_message message = {.kind = JAR_RENEW};

	return send_all(control_fd, &message, NULL, 0, cgroup_fds, cgroup_count);
}

int jar_send_open(int control_fd, const char *path, enum jar_access access, mode_t mode)
{
	struct jar_message message = {.kind = JAR_OPEN, .status = (int32_t)access, .error = (int32_t)mode};

	if (strlen(path) >= JAR_PATH_MAX)
		return -ENAMETOOLONG;
	return send_all(control_fd, &message, path, strlen(path) + 1, NULL, 0);
}

/* --- making ------------------------------------------------------------------------------------------------- */

int jar_family_add(struct jar_family *family, pid_t pid)
{
	pid_t *member = family ? list_add(family) : NULL;

	if (!member)
		return family ? -ENOMEM : 0;
	*member = pid;
	return 0;
}

void jar_family_remove(struct jar_family *family, pid_t pid)
{
	for (size_t i = 0; family && i < family->count; i++) {
		if (family->items[i] == pid) {
			family->items[i] = family->items[--family->count];
			return;
		}
	}
}

static const char *cgroup2_directory(const struct plan *plan)
{
	for (size_t i = 0; i < plan->steps.count; i++)
		if (plan->steps.items[i].kind == STEP_CGROUP)
			return plan->steps.items[i].target;
	return "";
}

int jar_socket_pair(int *engine_end, int *jar_end)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	*engine_end = ends[0];
	*jar_end = ends[1];
	return 0;
}

/* What the jar's first process has of the engine's, beside the plan's pool: a copy on the stack. */
struct inheritance {
	struct plan plan;
	struct jar_streams streams;
	int extra_fds[JAR_EXTRA_MAX];
	struct jar_area area;
};

static void bequeath(struct inheritance *inheritance, const struct plan *plan, const struct jar_streams *streams,
		     const struct jar_area *area)
{
	inheritance->plan = *plan;
	inheritance->area = *area;
	if (streams) {
		size_t count = MIN_OF(streams->extra_count, JAR_EXTRA_MAX);

		inheritance->streams = *streams;
		inheritance->streams.extra_count = count;
		inheritance->streams.extra_fds = inheritance->extra_fds;
		if (count)
			memcpy(inheritance->extra_fds, streams->extra_fds, count * sizeof(int));
	}
	if (plan->pool)
		heap_hide_all_but(plan->pool);
}

int jar_start(const struct plan *plan, enum jar_mode mode, const struct jar_streams *streams,
	      const struct jar_area *area, struct jar_times *times, struct jar *jar, struct error *error)
{
	AUTO_CLOSE int engine_end = -1;
	AUTO_CLOSE int jar_end = -1;
	AUTO_CLOSE int cgroup_fd = -1;
	struct sys_processors processors = {0};
	struct inheritance inheritance;
	int rc = jar_socket_pair(&engine_end, &jar_end);
	pid_t pid;

	if (rc < 0)
		return error_set(error, STAGE_ENGINE, -rc, "cannot make a control socket: %s", strerror(-rc));
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
	bequeath(&inheritance, plan, streams, area);
	/* An engine that makes a jar ahead goes on meanwhile. */
	if (mode == JAR_MODE_ONCE)
		sys_stay(&processors);
	pid = sys_fork(plan->namespaces & ~(uint64_t)CLONE_NEWNET, cgroup_fd, &jar->pidfd);
	/* Without clone3 nobody is born in a cgroup: the step joins it. Any other refusal shows then whose it was. */
	if (pid < 0 && cgroup_fd >= 0)
		pid = sys_fork(plan->namespaces & ~(uint64_t)CLONE_NEWNET, -1, &jar->pidfd);
	sys_roam(&processors);
	if (pid != 0 && plan->pool)
		heap_show(plan->pool);
	if (pid < 0)
		return error_set(error, STAGE_ISOLATE, -pid, "cannot make the jar's first process: %s", strerror(-pid));
	if (pid == 0) {
		/* This is a copy: the engine's own command line and environment stay as they are. */
		if (inheritance.area.len)
			memset(inheritance.area.start, 0, inheritance.area.len);
		heap_begin_anew();
		jar_inside(&inheritance.plan, mode, streams ? &inheritance.streams : NULL, times, jar_end);
	}
	jar->pid = pid;
	jar->control_fd = take_fd(&engine_end);
	return 0;
}
