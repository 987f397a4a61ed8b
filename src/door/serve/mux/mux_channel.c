/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/mux/mux_channel.c - one channel: frames from the server to the client, held back where credit or room is missing
 *
 * At most one frame of a channel is in memory here: while it is held, nothing more is read from the server, whose own
 * bounds then hold the run. What has its say in turn: a channel that finds no room goes to the end of a queue.
 */
#include "door/serve/mux/mux_channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

struct mux_channel *mux_find(const struct mux *mux, uint32_t id)
{
	struct mux_channel *channel = mux->buckets[id % MUX_BUCKETS];

	while (channel && channel->id != id)
		channel = channel->next;
	return channel;
}

static void unlink_channel(struct mux_channel *channel)
{
	struct mux_channel **at = &channel->mux->buckets[channel->id % MUX_BUCKETS];

	while (*at != channel)
		at = &(*at)->next;
	*at = channel->next;
	channel->mux->channel_count--;
}

static void wait_for_room(struct mux_channel *channel)
{
	struct mux *mux = channel->mux;

	if (channel->is_waiting)
		return;
	channel->is_waiting = true;
	channel->next_waiting = NULL;
	if (mux->last_waiting)
		mux->last_waiting->next_waiting = channel;
	else
		mux->first_waiting = channel;
	mux->last_waiting = channel;
}

static void leave_queue(struct mux_channel *channel)
{
	struct mux *mux = channel->mux;
	struct mux_channel *before = NULL;

	if (!channel->is_waiting)
		return;
	for (struct mux_channel *at = mux->first_waiting; at != channel; at = at->next_waiting)
		before = at;
	if (before)
		before->next_waiting = channel->next_waiting;
	else
		mux->first_waiting = channel->next_waiting;
	if (mux->last_waiting == channel)
		mux->last_waiting = before;
	channel->is_waiting = false;
}

void mux_channel_update(struct mux_channel *channel)
{
	bool has_wire = !channel->is_over && !channel->is_served;

	if (mux_is_full(channel->mux) && !channel->is_over)
		wait_for_room(channel);
	if (has_wire && !channel->is_waiting && !channel->is_holding)
		wire_resume_reading(&channel->wire);
	else if (has_wire)
		wire_stop_reading(&channel->wire);
	mux_stream_update(channel);
}

void mux_channel_send(struct mux_channel *channel, enum frame_type type, const void *payload, size_t len)
{
	if (frame_traits(type) & FRAME_COUNTED) {
		channel->credit -= len;
		if (channel->mux->first_waiting && !channel->is_over)
			wait_for_room(channel); /* others were there before its next */
	}
	mux_send(channel->mux, channel->id, type, payload, len);
}

void mux_channel_check_over(struct mux_channel *channel)
{
	if (channel->is_over || !channel->is_served || channel->is_holding || mux_stream_is_busy(channel))
		return;
	channel->is_over = true;
	mux_send(channel->mux, channel->id, FRAME_END, "", 0);
	leave_queue(channel);
	mux_stream_done(channel);
	channel->next_waiting = channel->mux->over;
	channel->mux->over = channel;
}

/* Nothing more is read from the server: it learns that the channel is gone. */
static void hang_up(struct mux_channel *channel)
{
	channel->is_served = true;
	channel->is_holding = false;
	text_done(&channel->held);
	wire_stop_reading(&channel->wire);
	if (channel->wire.fd >= 0)
		shutdown(channel->wire.fd, SHUT_RDWR);
}

void mux_channel_fail(struct mux_channel *channel, const struct error *error)
{
	hang_up(channel);
	mux_send_error(channel->mux, channel->id, error);
	mux_stream_done(channel);
	mux_channel_check_over(channel);
}

/* --- from the server ---------------------------------------------------------------------------------------- */

static void hold(struct mux_channel *channel, const struct wire_frame *frame)
{
	struct error error = {0};

	channel->is_holding = true;
	channel->held_type = frame->type;
	text_append(&channel->held, frame->payload, frame->len);
	if (!text_failed(&channel->held))
		return;
	error_set(&error, STAGE_ENGINE, ENOMEM, "out of memory for what a channel has to send");
	mux_channel_fail(channel, &error);
}

static void on_frame(void *owner, struct wire_frame *frame)
{
	struct mux_channel *channel = owner;
	unsigned traits = frame_traits(frame->type);

	if (channel->is_over || channel->is_served)
		return;
	if (traits & FRAME_COUNTED && frame->len > channel->credit)
		hold(channel, frame);
	else
		mux_channel_send(channel, frame->type, frame->payload, frame->len);
	if (traits & FRAME_OPENS && frame->fd_count == 1)
		mux_stream_attach(channel, take_fd(&frame->fds[0]));
	mux_channel_update(channel);
}

static void on_drained(void *owner)
{
	struct mux_channel *channel = owner;

	if (wire_is_empty(&channel->wire))
		mux_unblock(channel->mux);
}

/* What the server sends is well formed, or this program is wrong: then the channel has no last word. */
static void on_ended(void *owner, const struct error *error)
{
	struct mux_channel *channel = owner;

	(void)error;
	channel->is_served = true;
	mux_channel_check_over(channel);
}

/* --- from the client ---------------------------------------------------------------------------------------- */

void mux_channel_credit(struct mux_channel *channel, size_t count)
{
	channel->credit += count;
	if (channel->is_holding && channel->held.len <= channel->credit) {
		channel->is_holding = false;
		mux_channel_send(channel, channel->held_type, text_string(&channel->held), channel->held.len);
		text_done(&channel->held);
	}
	mux_channel_update(channel);
}

void mux_channel_close(struct mux_channel *channel)
{
	hang_up(channel);
	mux_stream_done(channel);
	mux_channel_check_over(channel);
	unlink_channel(channel);
	channel->next = channel->mux->dead;
	channel->mux->dead = channel;
}

/* --- beginning and end -------------------------------------------------------------------------------------- */

static int open_wire(struct mux_channel *channel, int *fd_out)
{
	struct wire_listener listener = {channel, on_frame, on_drained, on_ended};
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	rc = wire_open(&channel->wire, channel->mux->loop, ends[0], &listener);
	if (rc < 0) {
		close(ends[1]);
		return rc;
	}
	channel->wire.max_bytes = FRAME_ANSWER_MAX_BYTES;
	*fd_out = ends[1];
	return 0;
}

int mux_channel_new(struct mux *mux, uint32_t id, enum mux_stream_kind kind, struct mux_channel **out, int *fd_out)
{
	struct mux_channel *channel, **bucket = &mux->buckets[id % MUX_BUCKETS];
	struct error error = {0};
	int rc;

	if (mux->channel_count >= FRAME_CHANNELS_OPEN_MAX)
		return mux_break(mux, EMFILE, "the client opened more than %d channels", FRAME_CHANNELS_OPEN_MAX);
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return mux_break(mux, ENOMEM, "out of memory for another channel");
	*channel = (struct mux_channel){
		.mux = mux,
		.next = *bucket,
		.id = id,
		.wire.fd = -1,
		.stream = {.kind = kind, .fd = -1, .may_write = true, .allowed = FRAME_WINDOW_BYTES},
		.credit = FRAME_WINDOW_BYTES,
	};
	*bucket = channel;
	mux->channel_count++;
	mux->new_count++;
	*out = channel;
	*fd_out = -1;
	rc = open_wire(channel, fd_out);
	if (rc < 0) {
		error_set(&error, STAGE_ENGINE, -rc, "cannot make another channel: %s", strerror(-rc));
		mux_channel_fail(channel, &error);
	}
	return 0;
}

void mux_channel_free(struct mux_channel *channel)
{
	leave_queue(channel);
	mux_stream_done(channel);
	wire_done(&channel->wire);
	text_done(&channel->held);
	free(channel);
}
