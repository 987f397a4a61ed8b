/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_hello.c - HELLO: which protocol this engine speaks, and what it can do
 *
 * The only request whose version may be any: a client of another build learns from the answer that it is one.
 */
#include "door/serve/serve.h"

#include "base/json_write.h"
#include "door/wire/request.h"

/* What clients may rely on, for those that know more engines than one. Only ever added to. */
static const char *const features[] = {"files",  "watch",  "connect",   "processes", "usage",     "ttl",
				       "events", "detach", "net_rules", "ask",       "workspaces"};

void serve_hello_write(struct json_writer *writer)
{
	json_write_integer(writer, "version", WIRE_VERSION);
	json_write_string(writer, "belljar", BELLJAR_VERSION);
	json_open_array(writer, "features");
	for (size_t i = 0; i < ARRAY_LEN(features); i++)
		json_write_string(writer, NULL, features[i]);
	json_close_array(writer);
}

void serve_hello_begin(struct channel *channel, struct wire_frame *frame)
{
	AUTO_REQUEST request = {0};
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload};
	struct error error = {0};

	if (wire_request_parse(REQUEST_HELLO, frame->payload, frame->len, &request, &error) < 0) {
		serve_channel_fail(channel, &error, NULL);
		return;
	}
	if (frame->fd_count) {
		serve_channel_refuse(channel, frame);
		return;
	}
	json_open_object(&writer, NULL);
	serve_hello_write(&writer);
	json_close_object(&writer);
	wire_send(&channel->wire, FRAME_ANSWER, text_string(&payload), payload.len, -1);
	serve_channel_end(channel);
}
