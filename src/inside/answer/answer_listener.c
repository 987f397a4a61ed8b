/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer_listener.c - a filter that asks: load it, pass its listener on, hear and answer what it asks
 */
#include "inside/answer/answer_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/descriptors.h"

/* From Linux 5.19 and 6.6; the headers may be older. */
#define FILTER_FLAG_WAIT_KILLABLE (1UL << 5)
#define NOTIFY_SET_FLAGS _IOW('!', 4, uint64_t)
#define NOTIFY_SYNC_WAKE_UP 1UL
/* More than any kernel writes into one of its notifications. */
#define NOTIFICATION_BYTES 512

int answer_listen(const struct sock_filter *program, size_t len)
{
	struct sock_fprog filter = {.len = (unsigned short)len, .filter = (struct sock_filter *)program};
	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | FILTER_FLAG_WAIT_KILLABLE, &filter);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
	if (fd < 0)
		return -errno;
	/* The caller is about to sleep, so run the answering process on the same processor. */
	ioctl(fd, NOTIFY_SET_FLAGS, NOTIFY_SYNC_WAKE_UP);
	return fd;
}

bool answer_is_listener(int fd)
{
	uint64_t nobody = 0;

	return ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &nobody) < 0 && errno == ENOENT;
}

int answer_question_receive(int listener_fd, struct answer_question *question)
{
	union {
		struct seccomp_notif known;
		char room[NOTIFICATION_BYTES];
	} notification;

	memset(&notification, 0, sizeof(notification));
	if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &notification) < 0)
		return -errno;
	question->id = notification.known.id;
	question->pid = (pid_t)notification.known.pid;
	question->number = notification.known.data.nr;
	memcpy(question->arguments, notification.known.data.args, sizeof(question->arguments));
	return 0;
}

bool answer_question_is_open(int listener_fd, const struct answer_question *question)
{
	uint64_t id = question->id;

	return ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static int respond(int listener_fd, const struct answer_question *question, int rc, uint32_t flags)
{
	union {
		struct seccomp_notif_resp known;
		char room[NOTIFICATION_BYTES];
	} response;

	memset(&response, 0, sizeof(response));
	response.known.id = question->id;
	response.known.error = rc;
	response.known.flags = flags;
	return ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0 ? -errno : 0;
}

int answer_question_answer(int listener_fd, const struct answer_question *question, int rc)
{
	return respond(listener_fd, question, rc, 0);
}

int answer_question_continue(int listener_fd, const struct answer_question *question)
{
	return respond(listener_fd, question, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

/* --- the listener's way ------------------------------------------------------------------------------------- */

int answer_open_sockets(int *own_end, int *child_end, int lowest)
{
	int ends[2], rc = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	*child_end = fcntl(ends[1], F_DUPFD_CLOEXEC, lowest);
	if (*child_end < 0)
		rc = -errno;
	close(ends[1]);
	if (rc < 0)
		close(ends[0]);
	else
		*own_end = ends[0];
	return rc;
}

int answer_hand_over(int socket_fd, int *listener_fd)
{
	char word = 'L';
	struct iovec part = {.iov_base = &word, .iov_len = sizeof(word)};
	int rc;

	if (socket_fd < 0)
		return 0;
	rc = descriptors_send_packet(socket_fd, &part, 1, listener_fd, 1);
	close_fd(listener_fd);
	return rc;
}

bool answer_take_listener(int socket_fd, int *listener_fd)
{
	char word;
	struct iovec part = {.iov_base = &word, .iov_len = sizeof(word)};
	struct descriptors received;

	if (descriptors_receive(socket_fd, &part, 1, 1, &received) <= 0)
		return false;
	if (received.count) {
		close_fd(listener_fd);
		*listener_fd = received.fds[0];
	}
	return true;
}
