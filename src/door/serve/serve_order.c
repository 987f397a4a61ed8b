/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_order.c - what a client wants done with a workspace: WORKSPACE, LAYER
 *
 * A walk of a large layer, or applying it, takes its time. So a child of the server does it
 * (workspace/workspace_order.c), and only the client that asked waits. The answer can be larger than any frame: it is
 * a file. A client that closes the channel gives the order up; an apply that was killed goes on with the next one.
 */
#include "door/serve/serve_order.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/json_write.h"
#include "engine/result/result.h"
#include "door/serve/serve_child.h"
#include "door/serve/serve_request.h"
#include "workspace/workspace_order.h"

struct serve_order {
	struct object object;
	struct channel *channel; /* NULL: the client is gone */
	struct request request;
	struct workspace_order order;
	struct serve_child child;
	int file_fd; /* where the child writes the answer */
	struct error error;
	void (*over)(void *owner); /* NULL: answer it */
	void *owner;
};

static const enum workspace_verb verbs[] = {
	[REQUEST_SHOW] = WORKSPACE_SHOW,         [REQUEST_DIFF] = WORKSPACE_DIFF,
	[REQUEST_PATCH] = WORKSPACE_PATCH,       [REQUEST_APPLY] = WORKSPACE_APPLY,
	[REQUEST_DISCARD] = WORKSPACE_DISCARD,   [REQUEST_CHECKPOINT] = WORKSPACE_CHECKPOINT,
	[REQUEST_ROLLBACK] = WORKSPACE_ROLLBACK, [REQUEST_FORK] = WORKSPACE_FORK,
};
_Static_assert(ARRAY_LEN(verbs) == REQUEST_VERB_COUNT, "every word has its verb");

/* --- the child ---------------------------------------------------------------------------------------------- */

/* The answer to the file, then what went wrong, if anything did, to the pipe. */
static void carry_out(const void *context)
{
	const struct workspace_order *order = context;
	struct error error = {0};
	AUTO_TEXT out = {0};

	if (workspace_carry_out(order, &out, &error) == 0)
		serve_child_write(SERVE_CHILD_FILE_FD, text_string(&out), out.len);
	serve_child_write(SERVE_CHILD_FD, &error, sizeof(error));
}

/* --- life --------------------------------------------------------------------------------------------------- */

static void kill_order(struct object *object)
{
	struct serve_order *order = (struct serve_order *)object;

	order->channel = NULL; /* the server ends: its channels go first */
	serve_child_kill(&order->child);
}

static void free_order(struct object *object)
{
	struct serve_order *order = (struct serve_order *)object;

	serve_child_done(&order->child);
	close_fd(&order->file_fd);
	wire_request_done(&order->request);
	free(order);
}

static void order_on_channel_gone(struct channel *channel)
{
	struct serve_order *order = channel->object;

	order->channel = NULL;
	serve_child_kill(&order->child);
}

static const struct channel_role order_role = {serve_channel_refuse, NULL, order_on_channel_gone};

struct serve_order *serve_order_read(struct channel *channel, const struct wire_frame *frame)
{
	bool is_layer = frame->type == FRAME_LAYER;
	struct serve_order *order = calloc(1, sizeof(*order));
	struct error error = {0};
	int rc = order ? serve_check_descriptors_sent(frame, is_layer, &error)
		       : error_set(&error, STAGE_ENGINE, ENOMEM, "out of memory");

	if (rc == 0)
		rc = wire_request_parse(is_layer ? REQUEST_LAYER : REQUEST_WORKSPACE, frame->payload, frame->len,
					&order->request, &error);
	if (rc < 0) {
		free(order);
		serve_channel_fail(channel, &error, NULL);
		return NULL;
	}
	order->file_fd = -1;
	order->object = (struct object){.kill = kill_order, .free = free_order};
	server_add(channel->server, &order->object);
	order->channel = channel;
	serve_channel_set_role(channel, &order_role, order);
	return order;
}

const char *serve_order_which(const struct serve_order *order)
{
	return order->request.id;
}

bool serve_order_needs_jar_gone(const struct serve_order *order)
{
	return !workspace_verb_looks(verbs[order->request.verb]);
}

void serve_order_kill(struct serve_order *order)
{
	serve_child_kill(&order->child);
}

/* --- answers ------------------------------------------------------------------------------------------------ */

static void send_failure(const struct serve_order *order, const char *opened)
{
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload, .has_byte_escapes = true};

	json_open_object(&writer, NULL);
	result_write_error(&order->error, &writer);
	result_write_missing(NULL, NULL, &writer);
	if (opened)
		json_write_raw(&writer, "opened", opened, strlen(opened));
	json_close_object(&writer);
	wire_send(&order->channel->wire, FRAME_FAILED, text_string(&payload), payload.len, -1);
}

static void send_file(const struct serve_order *order, const char *opened)
{
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload, .has_byte_escapes = true};

	json_open_object(&writer, NULL);
	if (opened)
		json_write_raw(&writer, "opened", opened, strlen(opened));
	json_close_object(&writer);
	wire_send(&order->channel->wire, FRAME_DESCRIPTOR, text_string(&payload), payload.len, order->file_fd);
}

/* For the client to read from its beginning, and never to write. */
static int reopen_to_read(struct serve_order *order)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", order->file_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	close_fd(&order->file_fd);
	order->file_fd = fd;
	return 0;
}

void serve_order_answer(struct serve_order *order, const char *opened)
{
	int rc;

	order->object.is_dead = true;
	if (!order->channel)
		return;
	rc = order->error.stage == STAGE_NONE ? reopen_to_read(order) : 0;
	if (rc < 0)
		error_set(&order->error, STAGE_ENGINE, -rc, "cannot send the answer: %s", strerror(-rc));
	if (order->error.stage == STAGE_NONE)
		send_file(order, opened);
	else
		send_failure(order, opened);
	serve_channel_end(order->channel);
	order->channel = NULL;
}

void serve_order_fail(struct serve_order *order, const struct error *error)
{
	order->error = *error;
	serve_order_answer(order, NULL);
}

/* --- carrying it out ---------------------------------------------------------------------------------------- */

static void finish(struct serve_order *order)
{
	if (order->over)
		order->over(order->owner);
	else
		serve_order_answer(order, NULL);
}

static void order_on_over(void *owner)
{
	struct serve_order *order = owner;

	if (order->child.told.len == sizeof(order->error))
		memcpy(&order->error, order->child.told.data, sizeof(order->error));
	else
		error_set(&order->error, STAGE_ENGINE, EIO, "the process that changes workspaces was killed");
	finish(order);
}

static int start(struct serve_order *order)
{
	int rc;

	order->file_fd = memfd_create("belljar-answer", MFD_CLOEXEC);
	if (order->file_fd < 0)
		return -errno;
	rc = serve_child_start(&order->child, order->object.server,
			       &(struct serve_child_request){.work = carry_out,
							     .context = &order->order,
							     .file_fd = order->file_fd,
							     .over = order_on_over,
							     .owner = order});
	return rc;
}

void serve_order_start(struct serve_order *order, const char *id, char *const *environment, void (*over)(void *owner),
		       void *owner)
{
	const struct request *request = &order->request;
	int rc;

	order->over = over;
	order->owner = owner;
	order->order = (struct workspace_order){
		.verb = verbs[request->verb],
		.which = id,
		.directory = request->cwd,
		.environment = environment,
		.paths = request->paths,
		.theirs = request->theirs,
		.ours = request->ours,
		.risky = request->risky,
		.note = request->note,
		.checkpoint = request->checkpoint,
		.count = (unsigned)request->count,
	};
	rc = order->channel ? start(order) : -ECANCELED;
	if (rc < 0) {
		error_set(&order->error, STAGE_ENGINE, -rc, "cannot start a process that changes workspaces: %s",
			  strerror(-rc));
		finish(order);
	}
}

void serve_order_begin(struct channel *channel, struct wire_frame *frame)
{
	struct serve_order *order = serve_order_read(channel, frame);
	struct error error = {0};

	if (!order)
		return;
	if (server_check_descriptors(channel->server, &error) < 0)
		serve_order_fail(order, &error);
	else
		serve_order_start(order, order->request.id, order->request.environment, NULL, NULL);
}
