/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_ask.c - ASK: what this host can enforce, or whether a policy and keys are right, and the answer
 *
 * Whether a policy is right, the engine reads at once: a program wants to know when it is configured, before it opens a jar.
 * To answer what the host can enforce, the engine must try things, and that takes time. So a child of the server tries them, and only the client that
 * asked waits.
 */
#include "door/serve/serve.h"

#include <errno.h>
#include <string.h>

#include "doctor/doctor.h"
#include "door/serve/serve_child.h"
#include "door/serve/serve_request.h"
#include "door/wire/request.h"

struct serve_ask {
	struct object object;
	struct channel *channel; /* NULL: the client does not wait for it any more */
	struct serve_child child;
};

/* --- the child ---------------------------------------------------------------------------------------------- */

static void find_out(const void *context)
{
	const struct server *server = context;
	struct engine_doctor_request request = {
		.is_json = true,
		.rung_max = RUNG_NAMESPACE,
		.environment = server->environment,
		.argv_memory = server->argv_memory.start,
		.argv_memory_len = server->argv_memory.len,
	};
	struct error error = {0};
	AUTO_TEXT out = {0};

	if (doctor_engine(&request, &out, &error) == 0)
		serve_child_write(SERVE_CHILD_FD, out.data, out.len);
}

/* --- the server --------------------------------------------------------------------------------------------- */

static void kill_ask(struct object *object)
{
	serve_child_kill(&((struct serve_ask *)object)->child);
}

static void free_ask(struct object *object)
{
	serve_child_done(&((struct serve_ask *)object)->child);
	free(object);
}

static void ask_on_over(void *owner)
{
	struct serve_ask *ask = owner;
	struct text *answer = &ask->child.told;
	struct channel *channel = ask->channel;
	struct error error = {0};

	ask->channel = NULL;
	ask->object.is_dead = true;
	if (!channel)
		return;
	while (answer->len && answer->data[answer->len - 1] == '\n')
		answer->data[--answer->len] = '\0';
	if (answer->len && !text_failed(answer)) {
		wire_send(&channel->wire, FRAME_ANSWER, answer->data, answer->len, -1);
		serve_channel_end(channel);
		return;
	}
	serve_channel_set_role(channel, NULL, NULL);
	error_set(&error, STAGE_ENGINE, EIO, "cannot find out what this host can enforce");
	serve_channel_fail(channel, &error, NULL);
}

static void ask_on_gone(struct channel *channel)
{
	struct serve_ask *ask = channel->object;

	ask->channel = NULL;
	ask->object.is_dead = true;
}

static const struct channel_role ask_role = {serve_channel_refuse, NULL, ask_on_gone};

/* The same answer as to OPEN, but that no jar is made. */
static void answer_policy(struct channel *channel, const struct wire_frame *frame)
{
	struct serve_request *request = NULL;
	struct error error = {0};

	if (serve_request_read(channel->server, REQUEST_ASK, NULL, frame, &request, &error) < 0) {
		serve_channel_fail(channel, &error, NULL);
		return;
	}
	serve_request_release(request);
	wire_send(&channel->wire, FRAME_ANSWER, "{}", 2, -1);
	serve_channel_end(channel);
}

static int ask_start(struct serve_ask *ask, struct error *error)
{
	struct server *server = ask->object.server;
	int rc = serve_child_start(
		&ask->child, server,
		&(struct serve_child_request){
			.work = find_out, .context = server, .file_fd = -1, .over = ask_on_over, .owner = ask});

	return rc < 0 ? error_set(error, STAGE_ENGINE, -rc,
				  "cannot start a process that tries what this host can enforce: %s", strerror(-rc))
		      : 0;
}

void serve_ask_begin(struct channel *channel, struct wire_frame *frame)
{
	struct serve_ask *ask = NULL;
	AUTO_REQUEST request = {0};
	struct error error = {0};
	int rc = wire_request_parse(REQUEST_ASK, frame->payload, frame->len, &request, &error);

	if (rc == 0 && frame->fd_count)
		rc = error_set(&error, STAGE_ENGINE, EPROTO,
			       "the client sent descriptors with a frame that takes none");
	if (rc == 0 && request.question == REQUEST_POLICY) {
		answer_policy(channel, frame);
		return;
	}
	if (rc == 0) {
		ask = calloc(1, sizeof(*ask));
		rc = ask ? 0 : error_set(&error, STAGE_ENGINE, ENOMEM, "out of memory");
	}
	if (rc == 0 && ask) {
		ask->object = (struct object){.kill = kill_ask, .free = free_ask};
		server_add(channel->server, &ask->object);
		rc = ask_start(ask, &error);
		ask->object.is_dead = rc < 0;
	}
	if (rc < 0 || !ask) {
		serve_channel_fail(channel, &error, NULL);
		return;
	}
	ask->channel = channel;
	serve_channel_set_role(channel, &ask_role, ask);
}
