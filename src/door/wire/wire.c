/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/wire/wire.c - frames in and out over one stream socket
 *
 * The other side may be slow, hostile or gone, and everybody else's channels are in the same loop. So nothing blocks,
 * a turn takes a bounded number of frames, and no byte is read before its frame's length was checked. Header and
 * payload are read apart and never more than the frame at hand, since descriptors come with the bytes they were sent
 * with: reading further would mix those of two frames.
 */
#include "door/wire/wire.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/descriptors.h"

/* Frames handed over in one turn of the loop: a client that sends without end must not keep others waiting. */
#define FRAMES_PER_TURN 16
/* A length is only a claim: memory is taken as the bytes arrive. */
#define READ_BYTES ((size_t)64 << 10)
/* Throw away what a client sent after the last frame, so that it reads an end rather than an error. */
#define LEFT_OVER_READS 16

/* --- descriptors -------------------------------------------------------------------------------------------- */

static void close_descriptors(struct wire *wire)
{
	for (size_t i = 0; i < wire->fd_count; i++)
		close_fd(&wire->fds[i]);
	wire->fd_count = 0;
}

static int check_descriptors(struct wire *wire, const struct descriptors *received, bool is_first, struct error *error)
{
	if (received->flags & MSG_CTRUNC && received->count + wire->fd_count < FRAME_MAX_DESCRIPTORS)
		return error_set(error, STAGE_ENGINE, EMFILE,
				 "the engine has no descriptors left for those of the request");
	if (received->flags & MSG_CTRUNC)
		return error_set(error, STAGE_ENGINE, EPROTO, "the client sent more than %d descriptors with a frame",
				 FRAME_MAX_DESCRIPTORS);
	if (received->count && !is_first)
		return error_set(error, STAGE_ENGINE, EPROTO, "the client sent descriptors in the middle of a frame");
	return 0;
}

/* Read at most @len bytes: how many, 0 at the end, -EAGAIN, or a negative errno with the error recorded. */
static ssize_t receive(struct wire *wire, void *bytes, size_t len, bool is_first, struct error *error)
{
	struct iovec part = {.iov_base = bytes, .iov_len = len};
	struct descriptors received;
	ssize_t count = descriptors_receive(wire->fd, &part, 1, FRAME_MAX_DESCRIPTORS, &received);
	int rc;

	if (count < 0)
		return count == -EAGAIN ? -EAGAIN : 0; /* a reset is an end like another */
	rc = check_descriptors(wire, &received, is_first, error);
	for (size_t i = 0; i < received.count; i++) {
		if (rc == 0)
			wire->fds[wire->fd_count++] = received.fds[i];
		else
			close(received.fds[i]);
	}
	return rc < 0 ? rc : count;
}

/* --- in ----------------------------------------------------------------------------------------------------- */

/* 1: the header is complete; 0: not yet; a negative errno as receive() has it, -EPIPE at the end. */
static int read_header(struct wire *wire, struct frame_header *header, struct error *error)
{
	if (wire->header_len < FRAME_HEADER_BYTES) {
		ssize_t count = receive(wire, wire->header + wire->header_len, FRAME_HEADER_BYTES - wire->header_len,
					wire->header_len == 0, error);

		if (count <= 0)
			return count == 0 ? -EPIPE : (int)count;
		wire->header_len += (size_t)count;
		if (wire->header_len < FRAME_HEADER_BYTES)
			return 0;
	}
	frame_header_read(wire->header, header);
	if (header->channel)
		return error_set(error, STAGE_ENGINE, EPROTO, "the client sent a frame whose header is malformed");
	if (header->len > wire->max_bytes)
		return error_set(error, STAGE_ENGINE, EMSGSIZE, "the client sent a frame that is too long: %u bytes",
				 header->len);
	return 1;
}

static int read_payload(struct wire *wire, size_t len, struct error *error)
{
	while (wire->payload.len < len) {
		size_t wanted = MIN_OF(len - wire->payload.len, READ_BYTES);
		char *room = text_reserve(&wire->payload, wanted);
		ssize_t count;

		if (!room)
			return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory for a request");
		count = receive(wire, room, wanted, false, error);
		if (count <= 0)
			return count == 0 ? -EPIPE : (int)count;
		wire->payload.len += (size_t)count;
	}
	return 1;
}

/* 1: a frame was handed over. */
static int read_frame(struct wire *wire, struct error *error)
{
	struct frame_header header;
	int rc = read_header(wire, &header, error);

	if (rc > 0)
		rc = read_payload(wire, header.len, error);
	if (rc <= 0)
		return rc;
	text_append(&wire->payload, "", 0); /* so that there is a NUL */
	if (text_failed(&wire->payload))
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory for a request");
	wire->header_len = 0;
	wire->listener.frame(wire->listener.owner, &(struct wire_frame){
							   .type = (enum frame_type)header.type,
							   .payload = wire->payload.data,
							   .len = wire->payload.len,
							   .fds = wire->fds,
							   .fd_count = wire->fd_count,
						   });
	close_descriptors(wire);
	text_done(&wire->payload);
	return 1;
}

static void read_frames(struct wire *wire)
{
	struct error error = {0};
	int rc = 1;

	for (int i = 0; i < FRAMES_PER_TURN && rc > 0 && wire->is_reading; i++)
		rc = read_frame(wire, &error);
	if (rc >= 0 || rc == -EAGAIN || !wire->is_reading)
		return;
	wire_stop_reading(wire);
	wire->listener.ended(wire->listener.owner, error.stage == STAGE_NONE ? NULL : &error);
}

/* --- out ---------------------------------------------------------------------------------------------------- */

static void set_interest(struct wire *wire)
{
	uint32_t events = (wire->is_reading ? EPOLLIN : 0) | (wire_is_empty(wire) ? 0 : EPOLLOUT);

	/* Not watched rather than watched for nothing: a hang-up is reported whatever one asks for. */
	if (!events)
		loop_remove(&wire->watch);
	else
		loop_change(&wire->watch, events);
}

static void close_pending_descriptors(struct wire *wire)
{
	while (wire->pending_fd_count)
		close_fd(&wire->pending_fds[--wire->pending_fd_count]);
}

static void drop_pending(struct wire *wire)
{
	close_pending_descriptors(wire);
	text_done(&wire->pending);
	wire->pending_at = 0;
}

/*
 * Drop all frames that wait. The other side must see an end, or it would wait for ever if it still exists: the kernel
 * also refuses descriptors while too many are on their way.
 */
static void wire_lose(struct wire *wire)
{
	if (!wire->is_lost)
		shutdown(wire->fd, SHUT_RDWR);
	wire->is_lost = true;
	drop_pending(wire);
}

/* 0 or a negative errno; what was not sent is kept. */
static int wire_flush(struct wire *wire)
{
	ssize_t count = 0;

	while (!wire_is_empty(wire) && count >= 0) {
		struct iovec part = {wire->pending.data + wire->pending_at, wire->pending.len - wire->pending_at};

		count = descriptors_send(wire->fd, &part, 1, wire->pending_fds, wire->pending_fd_count, MSG_DONTWAIT);
		if (count < 0)
			break;
		close_pending_descriptors(wire);
		wire->pending_at += (size_t)count;
	}
	if (wire_is_empty(wire)) {
		text_done(&wire->pending);
		wire->pending_at = 0;
	} else if (wire->pending_at > wire->pending.len / 2) {
		text_consume(&wire->pending, wire->pending_at);
		wire->pending_at = 0;
	}
	return count < 0 && count != -EAGAIN ? (int)count : 0;
}

static void wire_on_ready(struct loop_watch *watch, uint32_t events)
{
	struct wire *wire = watch->owner;

	if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP) && !wire_is_empty(wire)) {
		if (wire_flush(wire) < 0)
			wire_lose(wire);
		if (!wire_is_full(wire))
			wire->listener.drained(wire->listener.owner);
	}
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP) && wire->is_reading)
		read_frames(wire);
	set_interest(wire);
}

/* Send what the socket takes of a frame now; the descriptor goes with it or not at all. */
static size_t send_now(struct wire *wire, struct iovec *parts, size_t part_count, int fd)
{
	ssize_t count = descriptors_send(wire->fd, parts, part_count, &fd, fd >= 0, MSG_DONTWAIT);

	if (count < 0 && (count != -EAGAIN || fd >= 0))
		wire_lose(wire);
	return count < 0 ? 0 : (size_t)count;
}

/* Watch for when more can be sent. */
static void wait_to_send(struct wire *wire)
{
	if (!wire_is_empty(wire) && !wire->watch.loop &&
	    loop_add(wire->loop, &wire->watch, wire->fd, EPOLLOUT, wire_on_ready, wire) < 0)
		wire_lose(wire);
	set_interest(wire);
}

static void send_parts(struct wire *wire, struct iovec *parts, size_t part_count, int fd)
{
	size_t sent = wire_is_empty(wire) && !wire->is_lost ? send_now(wire, parts, part_count, fd) : 0;

	for (size_t i = 0; i < part_count && !wire->is_lost; i++) {
		size_t skipped = MIN_OF(sent, parts[i].iov_len);

		text_append(&wire->pending, (const char *)parts[i].iov_base + skipped, parts[i].iov_len - skipped);
		sent -= skipped;
	}
	if (text_failed(&wire->pending))
		wire_lose(wire);
	wait_to_send(wire);
}

int wire_send_descriptors(struct wire *wire, enum frame_type type, const void *payload, size_t len, int *fds,
			  size_t fd_count)
{
	unsigned char header[FRAME_HEADER_BYTES];
	int rc;

	assert(wire_is_empty(wire) && fd_count <= ARRAY_LEN(wire->pending_fds));
	for (size_t i = 0; i < fd_count; i++)
		wire->pending_fds[wire->pending_fd_count++] = take_fd(&fds[i]);
	frame_header_write(header, type, len, 0);
	text_append(&wire->pending, header, sizeof(header));
	text_append(&wire->pending, payload, len);
	rc = text_failed(&wire->pending) ? -ENOMEM : wire->is_lost ? -EPIPE : wire_flush(wire);
	/* The other side is gone, which it has said, or will. */
	if (rc == -EPIPE || rc == -ECONNRESET || (rc < 0 && wire->pending_at)) {
		wire_lose(wire);
		rc = 0;
	} else if (rc < 0) {
		drop_pending(wire);
	}
	wait_to_send(wire);
	return rc;
}

void wire_send(struct wire *wire, enum frame_type type, const void *payload, size_t len, int fd)
{
	unsigned char header[FRAME_HEADER_BYTES];
	struct iovec parts[] = {{header, sizeof(header)}, {(void *)payload, len}};

	frame_header_write(header, type, len, 0);
	send_parts(wire, parts, ARRAY_LEN(parts), fd);
}

void wire_send_stream(struct wire *wire, enum frame_type type, unsigned stream, const void *bytes, size_t len)
{
	unsigned char header[FRAME_HEADER_BYTES + FRAME_STREAM_BYTES] = {0};
	struct iovec parts[] = {{header, sizeof(header)}, {(void *)bytes, len}};

	frame_header_write(header, type, FRAME_STREAM_BYTES + len, 0);
	header[FRAME_HEADER_BYTES] = (unsigned char)stream;
	send_parts(wire, parts, ARRAY_LEN(parts), -1);
}

/* --- beginning and end -------------------------------------------------------------------------------------- */

static bool is_channel(int fd)
{
	int type = 0, domain = 0;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX;
}

int wire_open(struct wire *wire, struct loop *loop, int fd, const struct wire_listener *listener)
{
	int rc;

	*wire = (struct wire){
		.loop = loop,
		.fd = fd,
		.listener = *listener,
		.is_reading = true,
		.max_bytes = FRAME_MAX_BYTES,
	};
	rc = is_channel(fd) ? loop_add(loop, &wire->watch, fd, EPOLLIN, wire_on_ready, wire) : -ENOTSOCK;
	if (rc < 0)
		close_fd(&wire->fd);
	return rc;
}

void wire_stop_reading(struct wire *wire)
{
	wire->is_reading = false;
	set_interest(wire);
}

void wire_resume_reading(struct wire *wire)
{
	wire->is_reading = true;
	if (!wire->watch.loop && loop_add(wire->loop, &wire->watch, wire->fd, EPOLLIN, wire_on_ready, wire) < 0)
		wire_lose(wire);
	set_interest(wire);
}

/* Closing a socket with bytes unread makes the other side read an error behind our last frame. */
static void drop_left_overs(struct wire *wire)
{
	char bytes[4096];
	struct error error = {0};

	for (int i = 0; i < LEFT_OVER_READS; i++) {
		wire->fd_count = 0;
		if (receive(wire, bytes, sizeof(bytes), true, &error) <= 0)
			break;
		close_descriptors(wire);
	}
}

void wire_done(struct wire *wire)
{
	loop_remove(&wire->watch);
	close_descriptors(wire);
	close_pending_descriptors(wire);
	if (wire->fd >= 0 && !wire->is_lost)
		drop_left_overs(wire);
	close_fd(&wire->fd);
	text_done(&wire->payload);
	text_done(&wire->pending);
	wire->pending_at = 0;
}
