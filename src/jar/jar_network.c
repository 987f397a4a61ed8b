/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_network.c - a network namespace made by a thread of its own
 */
#include "jar/jar_network.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* The network namespace of a socket, as a descriptor; older headers lack the name. */
#define GET_SOCKET_NAMESPACE 0x894c

/* Here errno is read only where a call failed that ends the jar anyway. */
static int make_network(int *namespace_fd)
{
	AUTO_CLOSE int fd = -1;
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return -errno;
	*namespace_fd = ioctl(fd, GET_SOCKET_NAMESPACE);
	return *namespace_fd < 0 ? -errno : 0;
}

static void thread_main(void *argument)
{
	struct jar_network *network = argument;

	network->error = make_network(&network->namespace_fd);
}

void jar_network_start(struct jar_network *network)
{
	int rc;

	network->namespace_fd = -1;
	network->error = 0;
	rc = jar_thread_start(&network->thread, thread_main, network);
	if (rc < 0)
		network->error = rc;
}

void jar_network_wait(struct jar_network *network)
{
	jar_thread_join(&network->thread);
}

int jar_network_join(struct jar_network *network)
{
	jar_network_wait(network);
	if (network->error < 0)
		return network->error;
	if (setns(network->namespace_fd, CLONE_NEWNET) < 0)
		return -errno;
	close_fd(&network->namespace_fd);
	return 0;
}
