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

/* The most descriptors that one message can carry. */
#define DESCRIPTORS_MAX 68

/* Call sendmsg() without SIGPIPE, and again if interrupted. Returns the number of bytes or a negative errno. */
ssize_t descriptors_send(int socket_fd, const struct iovec *parts, size_t part_count, const int *fds, size_t fd_count,
			 int flags);

/* Send one packet without waiting. Returns 0 or a negative errno. */
int descriptors_send_packet(int socket_fd, const struct iovec *parts, size_t part_count, const int *fds,
			    size_t fd_count);

struct descriptors {
	int fds[DESCRIPTORS_MAX]; /* closed on exec */
	size_t count;
	int flags; /* MSG_TRUNC: bytes were lost; MSG_CTRUNC: descriptors were, the kernel has closed them */
};

/* Call recvmsg() without waiting, with room for @room descriptors. Returns its result or a negative errno. */
ssize_t descriptors_receive(int socket_fd, struct iovec *parts, size_t part_count, size_t room,
			    struct descriptors *received);

/*
 * Raise the limit on open descriptors to the hard limit. The kernel also refuses to pass a descriptor while the user
 * has more in flight than the sender's soft limit. A command has a lower limit than the engine, so no command can
 * stop the engine and the jar's first process from passing theirs.
 */
void descriptors_raise_limit(void);

#endif
