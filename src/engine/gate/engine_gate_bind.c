/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/gate/engine_gate_bind.c - listen on the host's loopback for what a jar publishes
 *
 * The engine does this, before the jar is made, and hands the listener to the gate's process. It never enters the jar.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "engine/gate/engine_gate.h"
#include "plan/plan_gate.h"

static int refuse(const struct publish *entry, int errno_value, struct error *error)
{
	error_set(error, STAGE_PLAN, errno_value, "cannot publish port %u at 127.0.0.1:%u: %s", entry->port,
		  entry->host_port, strerror(errno_value));
	if (errno_value == EADDRINUSE)
		return error_hint(error, "another program has that port of the host: choose another one, or none");
	if (errno_value == EACCES)
		return error_hint(error, "ports of the host below 1024 are for root: choose another one, or none");
	return -errno_value;
}

int engine_gate_bind(const struct publish *entry, uint16_t *host_port, struct error *error)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(entry->host_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(address);
	const int on = 1;

	/* Closed connections of an earlier run do not block the port. Another listener does. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, GATE_BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return refuse(entry, errno, error);
	*host_port = ntohs(address.sin_port);
	return take_fd(&fd);
}
