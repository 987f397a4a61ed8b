/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/build/build_network.c - the steps that make the jar's own network
 *
 * With a gate, sockets of this network leave the jar: they are made here, go to the engine, and no process of the jar has them.
 * Nothing ever comes the other way: no socket of the host's network enters a jar.
 */
#include "inside/build/build.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/sys/calls.h"

int build_loopback(struct jar_build *build, const struct plan_step *step)
{
	return sys_new_network();
}

int build_netlink(struct jar_build *build, const struct plan_step *step)
{
	AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, step->as.netlink.protocol);
	int rc = fd < 0 ? -errno
			: sys_netlink(fd, step->as.netlink.messages, step->as.netlink.len,
				      step->as.netlink.acknowledged);

	return step->flags & STEP_IF_POSSIBLE ? 0 : rc;
}

static int open_socket(const struct jar_socket *wanted)
{
	bool is_ipv6 = wanted->address.any.sa_family == AF_INET6;
	socklen_t address_len = is_ipv6 ? sizeof(wanted->address.ipv6) : sizeof(wanted->address.ipv4);
	AUTO_CLOSE int fd =
		socket(wanted->address.any.sa_family, wanted->type | SOCK_CLOEXEC | SOCK_NONBLOCK, wanted->protocol);
	const int on = 1;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(wanted->options) && wanted->options[i].name; i++)
		if (setsockopt(fd, wanted->options[i].level, wanted->options[i].name, &on, sizeof(on)) < 0)
			return -errno;
	if (bind(fd, &wanted->address.any, address_len) < 0)
		return -errno;
	if (wanted->backlog && listen(fd, wanted->backlog) < 0)
		return -errno;
	return take_fd(&fd);
}

int build_sockets(struct jar_build *build, const struct plan_step *step)
{
	const struct jar_socket *wanted = step->as.sockets.items;

	for (build->socket_count = 0; build->socket_count < step->as.sockets.count; build->socket_count++, wanted++) {
		int fd = open_socket(wanted);

		if (fd < 0 && !wanted->may_be_absent)
			return fd;
		build->socket_fds[build->socket_count] = MAX_OF(fd, -1);
	}
	return 0;
}
