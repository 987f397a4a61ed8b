/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/mux/mux.c - the connection: frames of all channels in and out of one stream of bytes
 *
 * A channel gets a frame only after it has taken the one before, and a turn opens few channels, so a client cannot
 * make memory grow by sending. The server always reads, so no frame waits long. Output is collected during a turn of
 * the loop and written at its end. If a client breaks a rule of the framing, the bytes that follow have no sure
 * meaning: the connection ends.
 */
#include "door/serve/mux/mux.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "base/json_write.h"
#include "door/serve/mux/mux_channel.h"
#include "base/sys/calls.h"
#include "door/wire/request.h"

#define READ_BYTES ((size_t)64 << 10)
/* New channels in one turn of the loop: their requests are served in between. */
#define CHANNELS_PER_TURN 8
/* The time that a client has to read its last frame. */
#define FAREWELL_NS 1000000000ULL

/* --- out ---------------------------------------------------------------------------------------------------- */

void mux_send(struct mux *mux, uint32_t id, enum frame_type type, const void *payload, size_t len)
{
	unsigned char header[FRAME_HEADER_BYTES];

	frame_header_write(header, type, len, id);
	text_append(&mux->pending, header, sizeof(header));
	text_append(&mux->pending, payload, len);
}

void mux_send_error(struct mux *mux, uint32_t id, const struct error *error)
{
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload, .has_byte_escapes = true};

	json_open_object(&writer, NULL);
	json_write_error(&writer, "error", error);
	json_open_array(&writer, "missing");
	json_close_array(&writer);
	json_close_object(&writer);
	mux_send(mux, id, FRAME_FAILED, text_string(&payload), payload.len);
}

static void answer_hello(struct mux *mux)
{
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload};

	json_open_object(&writer, NULL);
	mux->listener.hello(mux->listener.owner, &writer);
	json_write_unsigned(&writer, "channels", FRAME_CHANNELS_OPEN_MAX);
	json_write_unsigned(&writer, "window", FRAME_WINDOW_BYTES);
	json_close_object(&writer);
	mux_send(mux, 0, FRAME_ANSWER, text_string(&payload), payload.len);
}

/* The client is gone, or is to go: nothing more is read. */
static void end(struct mux *mux, const struct error *error)
{
	if (mux->is_ended)
		return;
	mux->is_ended = true;
	loop_remove(&mux->in);
	mux->listener.ended(mux->listener.owner, error);
}

int mux_break(struct mux *mux, int errno_value, const char *format, ...)
{
	struct error error = {0};
	char message[sizeof(error.message)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	error_set(&error, STAGE_ENGINE, errno_value, "%s", message);
	if (!mux->is_ended) {
		mux_send_error(mux, 0, &error);
		mux->is_broken = true;
	}
	end(mux, &error);
	return -errno_value;
}

/* 0: written; -EAGAIN: the rest must wait; or another negative errno. */
static int flush(struct mux *mux)
{
	int rc = 0;

	while (rc == 0 && mux_pending(mux)) {
		ssize_t count = write(mux->out_fd, mux->pending.data + mux->pending_at, mux_pending(mux));

		if (count >= 0)
			mux->pending_at += (size_t)count;
		else if (errno != EINTR)
			rc = -errno;
	}
	if (!mux_pending(mux)) {
		text_clear(&mux->pending);
		mux->pending_at = 0;
	} else if (mux->pending_at > mux->pending.len / 2) {
		text_consume(&mux->pending, mux->pending_at);
		mux->pending_at = 0;
	}
	return rc;
}

/* --- in: what concerns one channel -------------------------------------------------------------------------- */

static const char *name_of(unsigned type)
{
	const struct frame_row *row = frame_row(type);

	return row ? row->name : "a frame of no known type";
}

static int take_shared(struct mux *mux, struct mux_channel *channel, const struct wire_frame *frame)
{
	uint32_t count;

	if (frame->type == FRAME_END) {
		mux_channel_close(channel);
		return 0;
	}
	if (channel->is_over)
		return 0;
	if (frame->type == FRAME_DATA)
		return mux_stream_take(channel, frame->payload, frame->len);
	if (frame->type == FRAME_DATA_END)
		return mux_stream_end(channel);
	count = frame_number(frame->payload, 4);
	if (count == 0 || count > FRAME_CREDIT_MAX_BYTES - MIN_OF(channel->credit, FRAME_CREDIT_MAX_BYTES))
		return mux_break(mux, EPROTO, "the client gave channel %u a credit of %u bytes beyond the %zu it has",
				 channel->id, count, channel->credit);
	mux_channel_credit(channel, count);
	return 0;
}

static bool wants_input(enum request_kind kind, const struct wire_frame *frame)
{
	AUTO_REQUEST request = {0};
	struct error error = {0};

	/* The server reports the errors of an invalid request. */
	return wire_request_parse(kind, frame->payload, frame->len, &request, &error) == 0 &&
	       request.stdin_choice == REQUEST_STDIN_DESCRIPTOR;
}

/* The input's other end in *@fd_out, where the request asks for one. */
static void open_input(struct mux_channel *channel, const struct wire_frame *frame, int *fd_out)
{
	unsigned traits = frame_traits(frame->type);
	struct error error = {0};
	int rc;

	if (!(traits & FRAME_FEEDS))
		return;
	channel->stream.kind = MUX_STREAM_NONE;
	if (!wants_input(traits & FRAME_JOINS ? REQUEST_JOIN : REQUEST_RUN, frame))
		return;
	rc = mux_stream_open_input(channel, fd_out);
	if (rc == 0)
		return;
	error_set(&error, STAGE_ENGINE, -rc, "cannot make a pipe for the input: %s", strerror(-rc));
	mux_channel_fail(channel, &error);
}

/* @answering is the channel on which the client waits for the answer. */
static void hand_on(struct mux_channel *channel, struct mux_channel *answering, const struct wire_frame *frame,
		    int fds[2])
{
	struct error error = {0};
	size_t count = 0;
	int rc;

	for (size_t i = 0; i < 2; i++)
		if (fds[i] >= 0)
			fds[count++] = take_fd(&fds[i]);
	rc = wire_send_descriptors(&channel->wire, frame->type, frame->payload, frame->len, fds, count);
	if (rc == 0)
		return;
	error_set(&error, STAGE_ENGINE, -rc, "cannot pass the request on: %s",
		  rc == -ETOOMANYREFS ? "too many open files of this user are on their way between processes"
				      : strerror(-rc));
	mux_channel_fail(answering, &error);
}

/* A frame that begins with the number of a new channel, where its answer is to come. */
static int take_joining(struct mux *mux, struct mux_channel *channel, struct wire_frame *frame)
{
	struct mux_channel *joined;
	uint32_t id = frame->len >= FRAME_CHANNEL_BYTES ? frame_number(frame->payload, FRAME_CHANNEL_BYTES) : 0;
	int fds[2] = {-1, -1}, rc;

	if (!id || id > FRAME_CHANNEL_MAX || mux_find(mux, id))
		return mux_break(mux, EPROTO, "the client sent %s without the number of a new channel",
				 name_of(frame->type));
	rc = mux_channel_new(mux, id, MUX_STREAM_LATER, &joined, &fds[0]);
	if (rc < 0)
		return rc;
	frame->payload += FRAME_CHANNEL_BYTES;
	frame->len -= FRAME_CHANNEL_BYTES;
	if (fds[0] >= 0)
		open_input(joined, frame, &fds[1]);
	/* If the channel is over, the end of the new one tells it. */
	if (fds[0] >= 0 && !channel->is_over && !joined->is_over)
		hand_on(channel, joined, frame, fds);
	for (size_t i = 0; i < 2; i++)
		close_fd(&fds[i]);
	return 0;
}

static int take_first(struct mux *mux, uint32_t id, const struct wire_frame *frame)
{
	struct mux_channel *channel;
	int fds[2] = {-1, -1}, rc;

	if (!(frame_traits(frame->type) & FRAME_BEGINS))
		return mux_break(mux, EPROTO, "the client sent %s on channel %u, which is not open",
				 name_of(frame->type), id);
	rc = mux_channel_new(mux, id, MUX_STREAM_NONE, &channel, &fds[0]);
	if (rc < 0 || fds[0] < 0)
		return rc;
	mux->listener.channel(mux->listener.owner, take_fd(&fds[0]));
	open_input(channel, frame, &fds[1]);
	if (!channel->is_over)
		hand_on(channel, channel, frame, fds);
	close_fd(&fds[1]);
	return 0;
}

/* --- in: frames --------------------------------------------------------------------------------------------- */

static int take_hello(struct mux *mux, const struct wire_frame *frame)
{
	AUTO_REQUEST request = {0};
	struct error error = {0};

	if (wire_request_parse(REQUEST_HELLO, frame->payload, frame->len, &request, &error) < 0)
		return mux_break(mux, EPROTO, "%s", error.message);
	if (request.hello->type != JSON_INTEGER || request.hello->number.integer != WIRE_VERSION)
		return mux_break(mux, EPROTO, "this engine speaks version %d of the protocol", WIRE_VERSION);
	mux->is_greeted = true;
	answer_hello(mux);
	return 0;
}

/* How long a payload may and must be, by what the header says of it. */
static int check_length(struct mux *mux, const struct frame_header *header)
{
	unsigned traits = frame_traits(header->type);
	size_t most = FRAME_MAX_BYTES + (traits & FRAME_JOINS ? FRAME_CHANNEL_BYTES : 0), least = 0;

	if (!mux->is_greeted || header->type == FRAME_DATA)
		most = FRAME_DATA_MAX_BYTES;
	else if (header->type == FRAME_CREDIT)
		most = least = 4;
	else if (traits & FRAME_SHARED)
		most = 0;
	if (header->len < least || header->len > most)
		return mux_break(mux, EMSGSIZE, "the client sent %s with %u bytes, which must be %zu to %zu",
				 name_of(header->type), header->len, least, most);
	return 0;
}

/* Check the header before the payload comes. */
static int check_header(struct mux *mux, const struct frame_header *header)
{
	if (!mux->is_greeted && (header->type != FRAME_HELLO || header->channel))
		return mux_break(mux, EPROTO, "the client must begin with HELLO on channel 0");
	if (mux->is_greeted && !header->channel)
		return mux_break(mux, EPROTO, "the client sent %s on channel 0", name_of(header->type));
	if (mux->is_greeted && header->type == FRAME_DATA_STOP)
		return mux_break(mux, EPROTO, "the client sent %s on channel %u", name_of(header->type),
				 header->channel);
	return check_length(mux, header);
}

/* 1: taken; 0: it must wait; or a negative errno, after mux_break(). */
static int take_frame(struct mux *mux, uint32_t id, struct wire_frame *frame)
{
	struct mux_channel *channel = mux_find(mux, id);
	unsigned traits = frame_traits(frame->type);
	int rc = 0;

	if ((!channel || traits & FRAME_JOINS) && mux->new_count >= CHANNELS_PER_TURN)
		return 0;
	if (!mux->is_greeted)
		rc = take_hello(mux, frame);
	else if (!channel)
		rc = take_first(mux, id, frame);
	else if (traits & FRAME_SHARED)
		rc = take_shared(mux, channel, frame);
	else if (!channel->is_over && !wire_is_empty(&channel->wire))
		return 0;
	else if (traits & FRAME_JOINS)
		rc = take_joining(mux, channel, frame);
	else if (!channel->is_over && !channel->is_served)
		wire_send(&channel->wire, frame->type, frame->payload, frame->len, -1);
	return rc < 0 ? rc : 1;
}

static void take_frames(struct mux *mux)
{
	mux->is_blocked = false;
	while (!mux->is_ended && mux->arrived.len - mux->arrived_at >= FRAME_HEADER_BYTES) {
		const char *bytes = mux->arrived.data + mux->arrived_at;
		struct frame_header header;
		int rc;

		frame_header_read((const unsigned char *)bytes, &header);
		if (check_header(mux, &header) < 0 ||
		    mux->arrived.len - mux->arrived_at - FRAME_HEADER_BYTES < header.len)
			break;
		rc = take_frame(mux, header.channel,
				&(struct wire_frame){
					.type = (enum frame_type)header.type,
					.payload = bytes + FRAME_HEADER_BYTES,
					.len = header.len,
				});
		mux->is_blocked = rc == 0;
		if (rc <= 0)
			break;
		mux->arrived_at += FRAME_HEADER_BYTES + header.len;
	}
	text_consume(&mux->arrived, mux->arrived_at);
	mux->arrived_at = 0;
	if (!mux->arrived.len)
		text_done(&mux->arrived);
}

void mux_unblock(struct mux *mux)
{
	if (mux->is_blocked && !mux->is_ended)
		take_frames(mux);
}

static bool may_read(const struct mux *mux)
{
	return !mux->is_blocked && mux_pending(mux) < MUX_ANSWERS_MAX;
}

static void on_in(struct loop_watch *watch, uint32_t events)
{
	struct mux *mux = watch->owner;
	ssize_t count;
	char *room;

	if (!may_read(mux)) {
		/* It is watched for this alone. */
		if (events & (EPOLLHUP | EPOLLERR))
			end(mux, NULL);
		return;
	}
	room = text_reserve(&mux->arrived, READ_BYTES);
	if (!room) {
		mux_break(mux, ENOMEM, "out of memory for what a client sends");
		return;
	}
	count = read(mux->in_fd, room, READ_BYTES);
	if (count > 0) {
		mux->arrived.len += (size_t)count;
		take_frames(mux);
	} else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
		end(mux, NULL);
	}
}

static void on_out(struct loop_watch *watch, uint32_t events)
{
	struct mux *mux = watch->owner;

	/* The reader is gone. mux_turn() handles what can still be written. */
	if (events & (EPOLLHUP | EPOLLERR)) {
		loop_remove(&mux->out);
		end(mux, NULL);
	}
}

/* --- beginning, turns and end ------------------------------------------------------------------------------- */

/* Each that waits for room has its turn: as many as there is room for, all if nothing is waiting to be written. */
static void wake_waiting(struct mux *mux)
{
	size_t count = mux_pending(mux) ? (MUX_HIGH_WATER - mux_pending(mux)) / FRAME_OUTPUT_MAX_BYTES + 1 : SIZE_MAX;
	struct mux_channel *last = mux->last_waiting;

	while (mux->first_waiting && count--) {
		struct mux_channel *channel = mux->first_waiting;

		mux->first_waiting = channel->next_waiting;
		if (!mux->first_waiting)
			mux->last_waiting = NULL;
		channel->is_waiting = false;
		mux_channel_update(channel);
		if (channel == last)
			break;
	}
}

static void sweep(struct mux *mux)
{
	while (mux->over) {
		struct mux_channel *channel = mux->over;

		mux->over = channel->next_waiting;
		wire_done(&channel->wire);
		mux_unblock(mux); /* a frame may have waited for it */
	}
	while (mux->dead) {
		struct mux_channel *channel = mux->dead;

		mux->dead = channel->next;
		mux_channel_free(channel);
	}
}

static void on_again(struct loop_timer *timer)
{
	(void)timer; /* what is to be done mux_turn() does */
}

void mux_turn(struct mux *mux)
{
	int rc;

	mux->new_count = 0;
	mux_unblock(mux);
	sweep(mux);
	if (mux->is_ended)
		return;
	if (text_failed(&mux->pending)) {
		end(mux, NULL); /* frames are missing: what would follow means nothing */
		return;
	}
	rc = flush(mux);
	if (rc < 0 && rc != -EAGAIN) {
		end(mux, NULL);
		return;
	}
	if (!mux_is_full(mux))
		wake_waiting(mux);
	/* One that was woken may have failed, and said so. */
	loop_change(&mux->out, mux_pending(mux) ? EPOLLOUT : 0);
	loop_change(&mux->in, may_read(mux) ? EPOLLIN : 0);
	if (mux->is_blocked && mux->new_count >= CHANNELS_PER_TURN)
		loop_arm(mux->loop, &mux->again, 0, on_again, mux); /* no event may come otherwise */
}

static bool is_pipe_or_socket(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

static int start(struct mux *mux, struct error *error)
{
	int rc;

	if (!is_pipe_or_socket(mux->in_fd) || !is_pipe_or_socket(mux->out_fd)) {
		error_set(error, STAGE_USAGE, ENOTSOCK,
			  "standard input and output must be pipes or sockets of a client");
		return error_hint(error, "a program starts `belljar engine --stdio`; use `belljar run` by hand");
	}
	fcntl(mux->in_fd, F_SETFL, fcntl(mux->in_fd, F_GETFL) | O_NONBLOCK);
	fcntl(mux->out_fd, F_SETFL, fcntl(mux->out_fd, F_GETFL) | O_NONBLOCK);
	fcntl(mux->out_fd, F_SETPIPE_SZ,
	      MUX_HIGH_WATER); /* fewer turns for much output; without it, or for a socket, it goes too */
	rc = loop_add(mux->loop, &mux->in, mux->in_fd, EPOLLIN, on_in, mux);
	if (rc == 0)
		rc = loop_add(mux->loop, &mux->out, mux->out_fd, EPOLLOUT, on_out, mux);
	return rc < 0 ? error_set(error, STAGE_ENGINE, -rc, "cannot watch standard input and output: %s", strerror(-rc))
		      : 0;
}

struct mux *mux_new(struct loop *loop, int in_fd, int out_fd, const struct mux_listener *listener, struct error *error)
{
	struct mux *mux = calloc(1, sizeof(*mux));

	if (!mux) {
		close(in_fd);
		close(out_fd);
		error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
		return NULL;
	}
	*mux = (struct mux){.loop = loop, .listener = *listener, .in_fd = in_fd, .out_fd = out_fd};
	if (start(mux, error) == 0)
		return mux;
	mux_free(mux);
	return NULL;
}

static void say_farewell(struct mux *mux)
{
	struct pollfd room = {.fd = mux->out_fd, .events = POLLOUT};
	uint64_t now = sys_monotonic_ns(), until = now + FAREWELL_NS;

	while (flush(mux) == -EAGAIN && now < until && poll(&room, 1, (int)((until - now) / 1000000) + 1) > 0)
		now = sys_monotonic_ns();
}

void mux_free(struct mux *mux)
{
	if (!mux)
		return;
	loop_remove(&mux->in);
	loop_remove(&mux->out);
	loop_disarm(&mux->again);
	for (size_t i = 0; i < ARRAY_LEN(mux->buckets); i++) {
		while (mux->buckets[i]) {
			struct mux_channel *channel = mux->buckets[i];

			mux->buckets[i] = channel->next;
			mux_channel_free(channel);
		}
	}
	mux->over = NULL;
	sweep(mux);
	if (mux->is_broken)
		say_farewell(mux);
	close_fd(&mux->in_fd);
	close_fd(&mux->out_fd);
	text_done(&mux->arrived);
	text_done(&mux->pending);
	free(mux);
}
