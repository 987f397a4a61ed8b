/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_channel.c - frames over one channel to the engine, from the client's side
 *
 * The socket itself is left blocking and every read says MSG_DONTWAIT, so that sending a large request needs no loop of
 * its own. Nothing here can raise SIGPIPE.
 */
#include "client/client_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/descriptors.h"

/* Room for each read: little for the many runs that say little, then up to two of the largest output frames. */
#define FIRST_READ_BYTES ((size_t)8 << 10)
#define MAX_READ_BYTES ((size_t)128 << 10)
#define MAX_JSON_BYTES FRAME_ANSWER_MAX_BYTES
#define MAX_STREAM_BYTES (FRAME_OUTPUT_MAX_BYTES + FRAME_STREAM_BYTES)
#define SHORT_BYTES 8

void client_channel_init(struct client_channel *channel, int fd)
{
	*channel = (struct client_channel){.fd = fd, .received_fd = -1, .read_bytes = FIRST_READ_BYTES};
}

void client_channel_done(struct client_channel *channel)
{
	close_fd(&channel->fd);
	close_fd(&channel->received_fd);
	text_done(&channel->buffer);
}

int client_raise_fd(int fd)
{
	int raised;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd < 0 ? -errno : fd;
	raised = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (raised < 0)
		raised = -errno;
	close(fd);
	return raised;
}

int client_channel_pair(int *ours_out, int *theirs_out)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	AUTO_CLOSE int ours = client_raise_fd(ends[0]);
	AUTO_CLOSE int theirs = client_raise_fd(ends[1]);
	if (ours < 0 || theirs < 0)
		return ours < 0 ? ours : theirs;
	*ours_out = take_fd(&ours);
	*theirs_out = take_fd(&theirs);
	return 0;
}

int client_send(int fd, const struct client_message *message)
{
	unsigned char head[FRAME_HEADER_BYTES];
	size_t sent = 0;

	if (message->fd_count > FRAME_MAX_DESCRIPTORS || message->len > FRAME_MAX_BYTES)
		return -E2BIG;
	frame_header_write(head, message->type, message->len, 0);
	while (sent < sizeof(head) + message->len) {
		size_t head_sent = MIN_OF(sent, sizeof(head)), payload_sent = sent - head_sent;
		struct iovec parts[] = {
			{.iov_base = head + head_sent, .iov_len = sizeof(head) - head_sent},
			{.iov_base = (void *)(message->payload + payload_sent), .iov_len = message->len - payload_sent},
		};
		/* The descriptors go with the first byte. */
		ssize_t count = descriptors_send(fd, parts, message->len ? 2 : 1, message->fds,
						 sent == 0 ? message->fd_count : 0, 0);

		if (count < 0)
			return (int)count;
		sent += (size_t)count;
	}
	return 0;
}

/* A message this short is one buffer in the kernel: sent whole or not at all, never in between another thread's. */
int client_send_short(int fd, enum frame_type type, const void *payload, size_t len)
{
	unsigned char frame[FRAME_HEADER_BYTES + SHORT_BYTES];
	ssize_t count;

	if (len > SHORT_BYTES)
		return -E2BIG;
	frame_header_write(frame, type, len, 0);
	if (len)
		memcpy(frame + FRAME_HEADER_BYTES, payload, len);
	do
		count = send(fd, frame, FRAME_HEADER_BYTES + len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (count < 0 && errno == EINTR);
	return count < 0 ? -errno : 0;
}

/* Keep one descriptor; whatever else comes is not to be left open. */
static void channel_take_descriptors(struct client_channel *channel, const struct descriptors *received)
{
	for (size_t i = 0; i < received->count; i++) {
		close_fd(&channel->received_fd);
		channel->received_fd = client_raise_fd(received->fds[i]);
	}
}

ssize_t client_receive(struct client_channel *channel)
{
	struct descriptors received;
	struct iovec part;
	ssize_t count;

	text_consume(&channel->buffer, channel->at);
	channel->at = 0;
	part.iov_base = text_reserve(&channel->buffer, channel->read_bytes);
	part.iov_len = channel->read_bytes;
	if (!part.iov_base)
		return -ENOMEM;
	count = descriptors_receive(channel->fd, &part, 1, DESCRIPTORS_MAX, &received);
	if (count < 0)
		return count;
	channel_take_descriptors(channel, &received);
	channel->buffer.len += (size_t)count;
	if ((size_t)count == channel->read_bytes)
		channel->read_bytes = MIN_OF(channel->read_bytes * 2, MAX_READ_BYTES);
	return count;
}

static size_t max_bytes(enum frame_type type)
{
	return type == FRAME_OUTPUT || type == FRAME_CAPTURED ? MAX_STREAM_BYTES : MAX_JSON_BYTES;
}

int client_next_frame(struct client_channel *channel, struct client_frame *out)
{
	size_t len = channel->buffer.len - channel->at;
	struct frame_header header;
	const char *bytes;

	if (len < FRAME_HEADER_BYTES)
		return 0;
	bytes = channel->buffer.data + channel->at;
	frame_header_read((const unsigned char *)bytes, &header);
	if (header.channel || header.len > max_bytes(header.type))
		return -EPROTO;
	if ((header.type == FRAME_OUTPUT || header.type == FRAME_CAPTURED) && header.len < FRAME_STREAM_BYTES)
		return -EPROTO;
	if (len - FRAME_HEADER_BYTES < header.len)
		return 0;
	*out = (struct client_frame){.type = header.type, .payload = bytes + FRAME_HEADER_BYTES, .len = header.len};
	channel->at += FRAME_HEADER_BYTES + header.len;
	return 1;
}
