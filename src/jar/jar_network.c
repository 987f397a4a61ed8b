/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_network.c - a network namespace made by a thread of its own
 *
 * The thread shares memory and descriptors with the first one, the C library's thread-local data included; it makes
 * system calls only, and touches errno only when one fails, which ends the jar anyway.
 */
#include "jar/jar_network.h"

#include <errno.h>
#include <linux/futex.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* The network namespace of a socket, as a descriptor; older headers lack the name. */
#define GET_SOCKET_NAMESPACE 0x894c

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

static int thread_main(void *argument)
{
	struct jar_network *network = argument;

	network->error = make_network(&network->namespace_fd);
	return 0;
}

void jar_network_start(struct jar_network *network)
{
	network->namespace_fd = -1;
	network->error = 0;
	network->is_alive = 1;
	network->thread =
		clone(thread_main, network->stack + sizeof(network->stack),
		      CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID,
		      network, NULL, NULL, &network->is_alive);
	if (network->thread < 0) {
		network->error = -errno;
		network->is_alive = 0;
	}
}

int jar_network_join(struct jar_network *network)
{
	while (__atomic_load_n(&network->is_alive, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &network->is_alive, FUTEX_WAIT, 1, NULL, NULL, 0);
	/*
	 * It has left our memory, but the kernel may still count it: a process with two threads may not change its user
	 * namespace. It is gone for good when it cannot be signalled any more.
	 */
	while (network->thread > 0 && syscall(SYS_tgkill, getpid(), network->thread, 0) == 0)
		sched_yield();
	if (network->error < 0)
		return network->error;
	if (setns(network->namespace_fd, CLONE_NEWNET) < 0)
		return -errno;
	close_fd(&network->namespace_fd);
	return 0;
}
