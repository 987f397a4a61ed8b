/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_channel.c - one channel: its first frame decides what it is
 */
#include "door/serve/serve.h"

#include <errno.h>

#include "plan/plan.h"
#include "engine/result/result.h"

struct first_frame {
	enum frame_type type;
	void (*begin)(struct channel *channel, struct wire_frame *frame);
};

static const struct first_frame first_frames[] = {
	{FRAME_RUN, serve_run_begin},     {FRAME_OPEN, serve_jar_begin},        {FRAME_ASK, serve_ask_begin},
	{FRAME_HELLO, serve_hello_begin}, {FRAME_WORKSPACE, serve_order_begin},
};

static void channel_on_frame(void *owner, struct wire_frame *frame)
{
	struct channel *channel = owner;

	if (channel->is_ending)
		return;
	if (channel->role) {
		channel->role->frame(channel, frame);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(first_frames); i++) {
		if (first_frames[i].type == frame->type) {
			first_frames[i].begin(channel, frame);
			return;
		}
	}
	serve_channel_refuse(channel, frame);
}

static void channel_on_drained(void *owner)
{
	struct channel *channel = owner;

	if (channel->is_ending)
		channel->is_dead |= wire_is_empty(&channel->wire);
	else if (channel->role && channel->role->drained)
		channel->role->drained(channel);
}

/* Detach the object from the channel. */
static void detach(struct channel *channel)
{
	const struct channel_role *role = channel->role;

	channel->role = NULL;
	if (role)
		role->gone(channel);
	channel->object = NULL;
}

static void channel_on_ended(void *owner, const struct error *error)
{
	struct channel *channel = owner;

	if (channel->is_ending)
		return;
	if (error) {
		serve_channel_fail(channel, error, NULL);
		return;
	}
	detach(channel);
	channel->is_dead = true;
}

struct channel *serve_channel_open(struct server *server, int fd, const struct channel_role *role, void *object)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	struct wire_listener listener = {channel, channel_on_frame, channel_on_drained, channel_on_ended};

	if (!channel) {
		close(fd);
		return NULL;
	}
	channel->server = server;
	if (wire_open(&channel->wire, server->loop, fd, &listener) < 0) {
		free(channel);
		return NULL;
	}
	channel->next = server->channels;
	server->channels = channel;
	serve_channel_set_role(channel, role, object);
	return channel;
}

void serve_channel_set_role(struct channel *channel, const struct channel_role *role, void *object)
{
	channel->role = role;
	channel->object = object;
}

void serve_channel_end(struct channel *channel)
{
	channel->role = NULL;
	channel->object = NULL;
	channel->is_ending = true; /* what the client still sends is read and thrown away: it must not wait for us */
	channel->is_dead |= wire_is_empty(&channel->wire);
}

void serve_channel_fail(struct channel *channel, const struct error *error, const struct plan *plan)
{
	serve_channel_fail_with(channel, error, plan, NULL);
}

void serve_channel_fail_with(struct channel *channel, const struct error *error, const struct plan *plan,
			     const struct risky_list *risky)
{
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload, .has_byte_escapes = true};

	detach(channel);
	json_open_object(&writer, NULL);
	result_write_error(error, &writer);
	result_write_missing(plan, NULL, &writer);
	if (risky)
		result_write_risky(risky, &writer);
	json_close_object(&writer);
	wire_send(&channel->wire, FRAME_FAILED, text_string(&payload), payload.len, -1);
	serve_channel_end(channel);
}

void serve_channel_refuse(struct channel *channel, struct wire_frame *frame)
{
	const struct frame_row *row = frame_row(frame->type);
	struct error error = {0};

	error_set(&error, STAGE_ENGINE, EPROTO, "the client sent a frame that is not allowed here: type %d (%s)",
		  (int)frame->type, row ? row->name : "there is none");
	serve_channel_fail(channel, &error, NULL);
}

void serve_channel_free(struct channel *channel)
{
	wire_done(&channel->wire);
	free(channel);
}
