/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/task/task_connect.c - connect to a port of the jar's own loopback
 */
#include "inside/task/task_inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* A listener whose queue is full answers late or never. */
#define CONNECT_SECONDS 10

static int connect_to(const struct sockaddr *address, socklen_t len)
{
	const struct timeval limit = {.tv_sec = CONNECT_SECONDS}, none = {0};
	AUTO_CLOSE int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		return -errno;
	if (connect(fd, address, len) < 0)
		return errno == EINPROGRESS || errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none)) < 0)
		return -errno;
	return take_fd(&fd);
}

int task_connect(const struct task *task, struct task_answer *answer)
{
	uint16_t port = htons((uint16_t)task->order.number);
	const struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 six = {
		.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = connect_to((const struct sockaddr *)&four, sizeof(four)), other;

	if (fd == -ECONNREFUSED) {
		other = connect_to((const struct sockaddr *)&six, sizeof(six));
		fd = other >= 0 ? other : fd;
	}
	if (fd < 0)
		return fd;
	answer->fd = fd;
	return 0;
}
