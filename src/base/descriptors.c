/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/descriptors.c - pass open descriptors over a socket, with the bytes they belong to
 */
#include "base/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

union ancillary {
	char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	struct cmsghdr align;
};

ssize_t descriptors_send(int socket_fd, const struct iovec *parts, size_t part_count, const int *fds, size_t fd_count,
			 int flags)
{
	struct msghdr header = {.msg_iov = (struct iovec *)parts, .msg_iovlen = part_count};
	union ancillary ancillary;
	ssize_t len;

	if (fd_count > DESCRIPTORS_MAX)
		return -E2BIG;
	if (fd_count) {
		struct cmsghdr *carrier;

		memset(&ancillary, 0, sizeof(ancillary));
		header.msg_control = ancillary.bytes;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		carrier = CMSG_FIRSTHDR(&header);
		carrier->cmsg_level = SOL_SOCKET;
		carrier->cmsg_type = SCM_RIGHTS;
		carrier->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(carrier), fds, fd_count * sizeof(int));
	}
	do
		len = sendmsg(socket_fd, &header, flags | MSG_NOSIGNAL);
	while (len < 0 && errno == EINTR);
	return len < 0 ? -errno : len;
}

int descriptors_send_packet(int socket_fd, const struct iovec *parts, size_t part_count, const int *fds,
			    size_t fd_count)
{
	ssize_t len = descriptors_send(socket_fd, parts, part_count, fds, fd_count, MSG_DONTWAIT);

	return len < 0 ? (int)len : 0;
}

ssize_t descriptors_receive(int socket_fd, struct iovec *parts, size_t part_count, size_t room,
			    struct descriptors *received)
{
	union ancillary ancillary;
	struct msghdr header = {
		.msg_iov = parts,
		.msg_iovlen = part_count,
		.msg_control = ancillary.bytes,
		/* Not CMSG_SPACE(): the kernel would use its padding for one more. */
		.msg_controllen = CMSG_LEN(MIN_OF(room, DESCRIPTORS_MAX) * sizeof(int)),
	};
	const struct cmsghdr *carrier;
	ssize_t len;

	received->count = 0;
	do
		len = recvmsg(socket_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	received->flags = header.msg_flags;
	carrier = CMSG_FIRSTHDR(&header);
	if (carrier && carrier->cmsg_level == SOL_SOCKET && carrier->cmsg_type == SCM_RIGHTS) {
		received->count = (carrier->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(received->fds, CMSG_DATA(carrier), received->count * sizeof(int));
	}
	return len;
}

void descriptors_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}
