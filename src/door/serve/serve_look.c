/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_look.c - LOOK: changed files of a session that other programs execute or read as configuration
 *
 * A run's result lists them at its end. A cell of a kept interpreter, a command of a kept shell and a process that
 * lives on have no result, so the client asks when they are done. Each change is reported once: the next search
 * compares with the last one.
 */
#include "door/serve/serve_look.h"

#include <errno.h>

#include "engine/result/result.h"
#include "door/serve/serve_request.h"

struct serve_look {
	struct object object;
	struct channel *channel; /* NULL: the client has let go of it */
	struct server_jar *server_jar;
	struct engine_search search;
};

static void on_over(void *owner)
{
	struct serve_look *look = owner;
	struct channel *channel = take_ptr(look->channel);
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload, .has_byte_escapes = true};

	look->object.is_dead = true;
	server_jar_looked(look->server_jar, &look->search);
	if (!channel)
		return;
	json_open_object(&writer, NULL);
	result_write_risky_paths("new", &look->search.risky, &writer);
	result_write_risky(&look->server_jar->risky, &writer);
	json_close_object(&writer);
	serve_channel_set_role(channel, NULL, NULL);
	wire_send(&channel->wire, FRAME_ANSWER, text_string(&payload), payload.len, -1);
	serve_channel_end(channel);
}

static void on_channel_gone(struct channel *channel)
{
	((struct serve_look *)channel->object)->channel = NULL;
}

static const struct channel_role look_role = {serve_channel_refuse, NULL, on_channel_gone};

static void kill_look(struct object *object)
{
	struct serve_look *look = (struct serve_look *)object;

	look->channel = NULL;
	look->object.is_dead = true;
	engine_search_done(&look->search);
}

static void free_look(struct object *object)
{
	struct serve_look *look = (struct serve_look *)object;

	engine_search_done(&look->search);
	server_jar_leave(look->server_jar);
	free(look);
}

static int begin(struct channel *channel, struct server_jar *server_jar, struct wire_frame *frame, struct error *error)
{
	struct serve_look *look;
	AUTO_REQUEST request = {0};
	int rc = serve_check_descriptors_sent(frame, 1, error);

	if (rc == 0)
		rc = wire_request_parse(REQUEST_USAGE, frame->payload, frame->len, &request, error);
	if (rc < 0)
		return rc;
	look = calloc(1, sizeof(*look));
	if (!look)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	look->object = (struct object){.kill = kill_look, .free = free_look};
	look->server_jar = server_jar;
	look->channel = channel;
	server_jar_hold(server_jar);
	server_add(channel->server, &look->object);
	serve_channel_set_role(channel, &look_role, look);
	server_jar_search(server_jar, &look->search, on_over, look);
	return 0;
}

void serve_look_begin(struct channel *channel, struct server_jar *server_jar, struct wire_frame *frame)
{
	struct error error = {0};

	if (begin(channel, server_jar, frame, &error) < 0)
		serve_channel_fail(channel, &error, NULL);
}
