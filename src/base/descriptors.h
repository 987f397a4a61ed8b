/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/descriptors.h - pass open descriptors over a socket, with the bytes they belong to
 *
 * May be called between clone and exec: no allocation, no locks.
 */
#ifndef BELLJAR_BASE_DESCRIPTORS_H
#define BELLJAR_BASE_DESCRIPTORS_H

#include <sys/uio.h>

#include "base/base.h"

/* With one message at most. */
#define DESCRIPTORS_MAX 68

/* As sendmsg(), but never with a signal and never interrupted: how many bytes, or a negative errno. */
ssize_t descriptors_send(int socket_fd, const struct iovec *parts, size_t part_count, const int *fds, size_t fd_count,
			 int flags);

/* One packet, without waiting: 0 or a negative errno. */
int descriptors_send_packet(int socket_fd, const struct iovec *parts, size_t part_count, const int *fds,
			    size_t fd_count);

struct descriptors {
	int fds[DESCRIPTORS_MAX]; /* closed on exec */
	size_t count;
	int flags; /* MSG_TRUNC: bytes were lost; MSG_CTRUNC: descriptors were, the kernel has closed them */
};

/* What has come, with at most @room descriptors: as recvmsg() without waiting, or a negative errno. */
ssize_t descriptors_receive(int socket_fd, struct iovec *parts, size_t part_count, size_t room,
			    struct descriptors *received);

/*
 * Let this process have as many descriptors open as its hard limit allows. The kernel also refuses to pass a descriptor
 * while more than the sender's soft limit are under way for the user. A command has a lower limit than the engine, so
 * no command can stop the engine and the jar's first process from passing theirs.
 */
void descriptors_raise_limit(void);

#endif
