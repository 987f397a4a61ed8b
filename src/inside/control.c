/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/control.c - what the engine and a jar say to each other: send, receive, check
 */
#include "inside/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define HEADER_BYTES offsetof(struct jar_message, step_failed)
#define PART(member) sizeof(((struct jar_message *)NULL)->member)

static const struct {
	size_t part_bytes;
	bool has_text;
} shapes[JAR_MESSAGE_KIND_COUNT] = {
	[JAR_STEP_FAILED] = {PART(step_failed)},
	[JAR_EXEC_FAILED] = {PART(exec_failed)},
	[JAR_VIEW] = {PART(view)},
	[JAR_SOCKET] = {PART(socket)},
	[JAR_TERMINAL] = {0},
	[JAR_STARTED] = {PART(started)},
	[JAR_WRITTEN] = {PART(written)},
	[JAR_DENIED] = {PART(denied)},
	[JAR_TRIED] = {PART(tried)},
	[JAR_TRIED_AGAIN] = {PART(tried_again)},
	[JAR_EXITED] = {PART(exited)},
	[JAR_LEFT] = {PART(left)},
	[JAR_EMPTY] = {PART(empty)},
	[JAR_SIGNAL] = {PART(signal)},
	[JAR_KILL] = {PART(kill)},
	[JAR_READY] = {PART(ready)},
	[JAR_MINDER_GONE] = {PART(minder_gone)},
	[JAR_PROCESS] = {PART(process), .has_text = true},
	[JAR_TASK_DONE] = {PART(task_done)},
	[JAR_RUN] = {PART(run), .has_text = true},
	[JAR_MINDER] = {PART(minder)},
	[JAR_TASK] = {PART(task), .has_text = true},
};

int control_socket_pair(int *engine_end, int *jar_end)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	*engine_end = ends[0];
	*jar_end = ends[1];
	return 0;
}

int control_send_all(int control_fd, const struct jar_message *message, const char *text, size_t text_len,
		     const int *fds, size_t fd_count)
{
	const struct iovec parts[] = {
		{.iov_base = (void *)message, .iov_len = HEADER_BYTES + shapes[message->kind].part_bytes},
		{.iov_base = (void *)text, .iov_len = text_len},
	};

	return descriptors_send_packet(control_fd, parts, text_len ? 2 : 1, fds, fd_count);
}

int control_send(int control_fd, const struct jar_message *message, int fd)
{
	return control_send_all(control_fd, message, NULL, 0, &fd, fd >= 0);
}

/* The message in the @len bytes that came, and its text. */
static int read_message(struct jar_message *message, struct jar_attached *attached, size_t len)
{
	size_t expected;

	memset(message, 0, sizeof(*message));
	if (len < HEADER_BYTES)
		return -EPROTO;
	memcpy(message, attached->bytes, HEADER_BYTES);
	if (message->kind == 0 || message->kind >= JAR_MESSAGE_KIND_COUNT)
		return -EPROTO;
	expected = HEADER_BYTES + shapes[message->kind].part_bytes;
	if (shapes[message->kind].has_text ? len < expected : len != expected)
		return -EPROTO;
	memcpy(message, attached->bytes, expected);
	attached->bytes[len] = '\0';
	attached->text = attached->bytes + expected;
	attached->text_len = len - expected;
	return 1;
}

int control_receive_all(int control_fd, struct jar_message *message, struct jar_attached *attached)
{
	struct iovec part = {.iov_base = attached->bytes, .iov_len = sizeof(attached->bytes) - 1};
	ssize_t len = descriptors_receive(control_fd, &part, 1, JAR_ATTACHED_MAX, &attached->passed);
	int rc;

	/* The other end closed with a message of ours unread: the kernel says so once, before what it had sent us. */
	if (len == -ECONNRESET)
		len = descriptors_receive(control_fd, &part, 1, JAR_ATTACHED_MAX, &attached->passed);
	if (len <= 0)
		return len == -ECONNRESET ? 0 : (int)len;
	rc = attached->passed.flags & MSG_TRUNC ? -EPROTO : read_message(message, attached, (size_t)len);
	return rc > 0 && attached->passed.flags & MSG_CTRUNC ? -EMFILE : rc;
}

int control_receive(int control_fd, struct jar_message *message, int *fd_out)
{
	struct jar_attached attached;
	int rc = control_receive_all(control_fd, message, &attached);
	size_t kept = rc > 0 && attached.passed.count ? 1 : 0;

	*fd_out = kept ? attached.passed.fds[0] : -1;
	for (size_t i = kept; i < attached.passed.count; i++)
		close(attached.passed.fds[i]);
	/* Deliver the message all the same; a receiver that needs the descriptor finds it missing. */
	return rc == -EMFILE ? 1 : rc;
}
