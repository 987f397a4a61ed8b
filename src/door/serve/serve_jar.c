/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_jar.c - a session on a channel: OPENED, JOIN, tasks, CLOSE
 *
 * Each run and each task has a channel of its own, which comes with the frame that asks for it. The engine says there
 * what is wrong with such a request, and the jar lives on: one bad request of a client must not end what its other
 * threads run. The jar's own channel is its life: when the client closes it, the jar ends.
 *
 * What changes a layer (apply, discard, checkpoint, rollback, fork) needs it unmounted. So the jar ends, the order is
 * carried out, and another jar takes over the channel, the request and the layers: for the client it is the same jar.
 */
#include "door/serve/serve.h"

#include <errno.h>
#include <string.h>

#include "engine/engine_events.h"
#include "engine/engine_redact.h"
#include "door/serve/server_jar.h"
#include "door/serve/serve_look.h"
#include "door/serve/serve_net.h"
#include "door/serve/serve_order.h"
#include "door/serve/serve_run.h"
#include "door/serve/serve_task.h"
#include "base/sys/calls.h"

struct serve_jar {
	struct server_jar server_jar; /* first: it is freed through it */
	struct channel *channel;      /* NULL: the client has let go of it */
	struct loop_timer ttl;
	uint64_t opened_ns;        /* 0: it never stood */
	struct serve_order *order; /* for which it makes room, or which it waits for; NULL: none */
	const char *order_store;   /* the id of the workspace that it is about: of launch.stores */
	bool is_before_order;      /* it makes room */
	bool is_closing;
	bool is_expired; /* its time to live is over */
};

/* --- frames from the client --------------------------------------------------------------------------------- */

/* The channel that came with the frame: what is wrong with the rest is told there. */
static struct channel *take_channel(struct channel *channel, struct wire_frame *frame)
{
	struct channel *own = NULL;
	struct error error = {0};

	if (frame->fd_count)
		own = serve_channel_open(channel->server, take_fd(&frame->fds[0]), NULL, NULL);
	if (!own) {
		error_set(&error, STAGE_ENGINE, EPROTO, "the client sent a request without a channel for its answer");
		serve_channel_fail(channel, &error, NULL);
	}
	return own;
}

static void on_join(struct serve_jar *jar, struct wire_frame *frame)
{
	struct channel *own = take_channel(jar->channel, frame);

	if (own)
		serve_run_join(own, &jar->server_jar, frame, 1);
}

static bool is_open(const struct serve_jar *jar)
{
	return jar->server_jar.is_standing && !jar->server_jar.is_gone && !jar->is_closing && !jar->is_expired &&
	       !jar->order;
}

static void on_task_request(struct serve_jar *jar, enum request_kind kind, struct wire_frame *frame)
{
	struct channel *own = take_channel(jar->channel, frame);

	if (own)
		serve_task_begin(own, &jar->server_jar, kind, frame);
}

static void write_known(struct json_writer *writer, const char *key, uint64_t number)
{
	if (number == UINT64_MAX)
		json_write_null(writer, key);
	else
		json_write_unsigned(writer, key, number);
}

static void send_usage(const struct serve_jar *jar, struct channel *own)
{
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload};
	uint64_t now_ns = sys_monotonic_ns();
	struct limiter_usage usage;
	unsigned run_count;

	jar_usage(jar->server_jar.jar, &usage, &run_count);
	json_open_object(&writer, NULL);
	json_write_milliseconds(&writer, "age_ms", (now_ns - jar->opened_ns) / 1000);
	if (jar->ttl.loop)
		json_write_milliseconds(&writer, "ttl_ms",
					(jar->ttl.deadline_ns - MIN_OF(now_ns, jar->ttl.deadline_ns)) / 1000);
	else
		json_write_null(&writer, "ttl_ms");
	json_write_unsigned(&writer, "runs", run_count);
	write_known(&writer, "memory_bytes", usage.memory_bytes);
	write_known(&writer, "peak_memory_bytes", usage.peak_memory_bytes);
	write_known(&writer, "processes", usage.processes);
	write_known(&writer, "peak_processes", usage.peak_processes);
	if (usage.cpu_us == UINT64_MAX)
		json_write_null(&writer, "cpu_ms");
	else
		json_write_milliseconds(&writer, "cpu_ms", usage.cpu_us);
	json_close_object(&writer);
	wire_send(&own->wire, FRAME_ANSWER, text_string(&payload), payload.len, -1);
	serve_channel_end(own);
}

static void on_usage_request(struct serve_jar *jar, struct wire_frame *frame)
{
	struct channel *own = take_channel(jar->channel, frame);
	AUTO_REQUEST request = {0};
	struct error error = {0};

	if (!own)
		return;
	if (serve_check_descriptors_sent(frame, 1, &error) < 0 ||
	    wire_request_parse(REQUEST_USAGE, frame->payload, frame->len, &request, &error) < 0)
		serve_channel_fail(own, &error, NULL);
	else
		send_usage(jar, own);
}

static void on_look_request(struct serve_jar *jar, struct wire_frame *frame)
{
	struct channel *own = take_channel(jar->channel, frame);

	if (own)
		serve_look_begin(own, &jar->server_jar, frame);
}

static void on_net_request(struct serve_jar *jar, struct wire_frame *frame)
{
	struct channel *own = take_channel(jar->channel, frame);

	if (own)
		serve_net_begin(own, &jar->server_jar, frame);
}

/* Keep the ids of all its stores, for the jar after it. */
static int keep_stores(struct serve_jar *jar)
{
	struct engine_workspaces *workspaces = &jar->server_jar.launch.workspaces;
	struct string_list *stores = &jar->server_jar.launch.stores;
	int rc = 0;

	string_list_clear(stores);
	for (size_t i = 0; i < workspaces->count && rc == 0; i++)
		rc = string_list_add(stores, workspaces->items[i].meta.id);
	return rc;
}

static int begin_order(struct serve_jar *jar, struct serve_order *order, struct error *error)
{
	const struct engine_workspaces *workspaces = &jar->server_jar.launch.workspaces;
	const char *which = serve_order_which(order);
	size_t at = 0;

	while (which && at < workspaces->count && strcmp(workspaces->items[at].meta.id, which) != 0)
		at++;
	if (!workspaces->count) {
		error_set(error, STAGE_USAGE, EINVAL, "this jar has no workspace");
		return error_hint(error, "open it with workspace=\"cow\"");
	}
	if (at == workspaces->count)
		return error_set(error, STAGE_USAGE, EINVAL, "this jar has no workspace '%.60s'", which);
	if (!serve_order_needs_jar_gone(order)) {
		serve_order_start(order, workspaces->items[at].meta.id, jar->server_jar.request->wire.environment, NULL,
				  NULL);
		return 0;
	}
	if (plan_is_for_calls(&jar->server_jar.launch.plan))
		return error_set(error, STAGE_USAGE, EINVAL, "this is a jar for calls: it cannot restart");
	if (keep_stores(jar) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	jar->server_jar.launch.workspaces.keeps_all = true;
	jar->order = order;
	jar->order_store = jar->server_jar.launch.stores.items[at];
	jar->is_before_order = true;
	server_jar_close(&jar->server_jar);
	return 0;
}

static void on_layer_request(struct serve_jar *jar, struct wire_frame *frame)
{
	struct channel *own = take_channel(jar->channel, frame);
	struct serve_order *order = own ? serve_order_read(own, frame) : NULL;
	struct error error = {0};

	if (order && begin_order(jar, order, &error) < 0)
		serve_order_fail(order, &error);
}

/* The client's other threads may not know yet. */
static void refuse_for_now(struct serve_jar *jar, struct wire_frame *frame)
{
	struct channel *own = take_channel(jar->channel, frame);
	struct error error = {0};

	if (!own)
		return;
	error_set(&error, STAGE_FILES, EBUSY, "the jar is restarting for a workspace change; try again");
	error_hint(&error, "wait for the answer about the workspace");
	serve_channel_fail(own, &error, NULL);
}

static void say_why_gone(const struct serve_jar *jar, struct error *error)
{
	*error = jar->server_jar.launch.error;
	if (error->stage == STAGE_NONE && jar->is_expired)
		error_set(error, STAGE_LIMITS, ETIME, "the jar's time to live is over");
	if (error->stage == STAGE_NONE)
		error_set(error, STAGE_ENGINE, 0, "the jar ended before it was closed: its first process was killed");
	if (jar->server_jar.is_standing)
		error_hint(error, "open another jar");
}

/* It has ended by itself, and the client does not know yet. */
static void refuse_for_good(struct serve_jar *jar, struct wire_frame *frame)
{
	struct channel *own = take_channel(jar->channel, frame);
	struct error error;

	if (!own)
		return;
	say_why_gone(jar, &error);
	engine_redact_error(jar->server_jar.launch.policy, jar->server_jar.launch.environment, &error);
	serve_channel_fail(own, &error, NULL);
}

static void close_jar(struct serve_jar *jar)
{
	jar->is_closing = true;
	if (jar->order)
		serve_order_kill(jar->order);
	server_jar_close(&jar->server_jar);
}

static void jar_on_frame(struct channel *channel, struct wire_frame *frame)
{
	struct serve_jar *jar = channel->object;
	enum request_kind kind;

	if (frame->type == FRAME_JOIN && is_open(jar)) {
		on_join(jar, frame);
	} else if (is_open(jar) && serve_is_task(frame->type, &kind)) {
		on_task_request(jar, kind, frame);
	} else if (is_open(jar) && frame->type == FRAME_USAGE) {
		on_usage_request(jar, frame);
	} else if (is_open(jar) && frame->type == FRAME_LOOK) {
		on_look_request(jar, frame);
	} else if (is_open(jar) && frame->type == FRAME_NET) {
		on_net_request(jar, frame);
	} else if (is_open(jar) && frame->type == FRAME_LAYER) {
		on_layer_request(jar, frame);
	} else if (jar->order && !jar->is_closing && frame_traits(frame->type) & FRAME_JOINS) {
		refuse_for_now(jar, frame);
	} else if ((jar->server_jar.is_gone || jar->is_expired) && !jar->is_closing &&
		   frame_traits(frame->type) & FRAME_JOINS) {
		refuse_for_good(jar, frame);
	} else if (frame->type == FRAME_CLOSE && !frame->len && !frame->fd_count && !jar->is_closing) {
		close_jar(jar);
	} else {
		serve_channel_refuse(channel, frame);
	}
}

static void jar_on_channel_gone(struct channel *channel)
{
	struct serve_jar *jar = channel->object;

	jar->channel = NULL;
	close_jar(jar);
}

static const struct channel_role jar_role = {jar_on_frame, NULL, jar_on_channel_gone};

/* --- hearing from the jar ----------------------------------------------------------------------------------- */

static void on_ttl_over(struct loop_timer *timer)
{
	struct serve_jar *jar = timer->owner;

	jar->is_expired = true;
	server_jar_close(&jar->server_jar);
}

static void write_opened(struct server_jar *server_jar, struct text *out)
{
	const struct plan *plan = &server_jar->launch.plan;
	const struct observation *seen = jar_observation(server_jar->jar);
	struct json_writer writer = {.text = out, .has_byte_escapes = true};

	json_open_object(&writer, NULL);
	json_write_string(&writer, "rung", plan_rung_name(plan->rung));
	result_write_enforced(plan, seen, &writer);
	result_write_missing(plan, NULL, &writer);
	plan_write_limits(&plan->limits, &writer, "limits");
	json_write_string(&writer, "workdir", plan->core.workdir);
	engine_workspaces_look(&server_jar->launch.workspaces, false);
	result_write_workspace(&server_jar->launch.workspaces.seen, &writer);
	json_write_bool(&writer, "searched", server_jar_is_searched(server_jar));
	if (seen->network.published_count)
		result_write_published(&seen->network, &writer);
	json_close_object(&writer);
}

static void jar_on_stands(struct server_jar *server_jar)
{
	struct serve_jar *jar = (struct serve_jar *)server_jar;
	uint64_t ttl_ns = server_jar->request->wire.ttl_ns;
	AUTO_TEXT payload = {0};

	if (!jar->channel || jar->is_closing)
		return;
	if (!jar->opened_ns)
		jar->opened_ns = sys_monotonic_ns();
	if (ttl_ns < LIMIT_NONE - jar->opened_ns)
		loop_arm(server_jar->object.server->loop, &jar->ttl, jar->opened_ns + ttl_ns, on_ttl_over, jar);
	write_opened(server_jar, &payload);
	if (jar->order)
		serve_order_answer(take_ptr(jar->order), text_string(&payload));
	else
		wire_send(&jar->channel->wire, FRAME_OPENED, text_string(&payload), payload.len, -1);
}

static struct serve_jar *jar_begin(struct channel *channel, struct serve_request *request);

static void order_on_over(void *owner)
{
	struct serve_jar *jar = owner;

	/* What went wrong with the order is told when the jar stands again. */
	if (jar->is_closing)
		server_jar_give_up(&jar->server_jar);
	else
		server_jar_build(&jar->server_jar, NULL);
}

/* The jar has made room for an order: another one waits for that, and goes on. */
static void hand_over(struct serve_jar *jar)
{
	struct serve_order *order = take_ptr(jar->order);
	struct channel *channel = take_ptr(jar->channel);
	struct serve_jar *next = jar_begin(channel, jar->server_jar.request);
	struct error error = {0};

	if (!next) {
		error_set(&error, STAGE_ENGINE, ENOMEM, "out of memory");
		serve_order_fail(order, &error);
		serve_channel_set_role(channel, NULL, NULL);
		serve_channel_fail(channel, &error, NULL);
		return;
	}
	next->opened_ns = jar->opened_ns;
	next->order = order;
	next->server_jar.launch.stores = jar->server_jar.launch.stores;
	jar->server_jar.launch.stores = (struct string_list){0};
	serve_order_start(order, jar->order_store, next->server_jar.request->wire.environment, order_on_over, next);
}

/* It ended by itself: the client hears why, and what its processes left. */
static void send_failed(void *owner)
{
	struct serve_jar *jar = owner;
	struct server_jar *server_jar = &jar->server_jar;
	struct channel *channel = take_ptr(jar->channel);
	struct error error;

	server_jar_leave(server_jar);
	if (!channel)
		return;
	serve_channel_set_role(channel, NULL, NULL);
	say_why_gone(jar, &error);
	engine_redact_error(server_jar->launch.policy, server_jar->launch.environment, &error);
	serve_channel_fail_with(channel, &error, server_jar->launch.has_plan ? &server_jar->launch.plan : NULL,
				server_jar->is_standing ? &server_jar->risky : NULL);
}

static void send_closed(void *owner)
{
	struct serve_jar *jar = owner;
	struct channel *channel = take_ptr(jar->channel);
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload, .has_byte_escapes = true};

	server_jar_leave(&jar->server_jar);
	if (!channel)
		return;
	json_open_object(&writer, NULL);
	result_write_risky(&jar->server_jar.risky, &writer);
	json_close_object(&writer);
	serve_channel_set_role(channel, NULL, NULL);
	wire_send(&channel->wire, FRAME_CLOSED, text_string(&payload), payload.len, -1);
	serve_channel_end(channel);
}

static void jar_on_gone(struct server_jar *server_jar)
{
	struct serve_jar *jar = (struct serve_jar *)server_jar;
	struct channel *channel = jar->channel;
	struct error error = {0};

	loop_disarm(&jar->ttl);
	if (jar->is_before_order && channel && !jar->is_closing && !jar->is_expired) {
		hand_over(jar);
		return;
	}
	/* The order was carried out, though the jar cannot be opened again; or it will not be. */
	if (jar->order && jar->is_before_order) {
		error_set(&error, STAGE_ENGINE, ECANCELED, "the jar was closed before its workspace was changed");
		serve_order_fail(take_ptr(jar->order), &error);
	} else if (jar->order) {
		serve_order_answer(take_ptr(jar->order), NULL);
	}
	if (!channel)
		return;
	server_jar_hold(server_jar); /* it lives until the search is over */
	if (jar->is_closing || server_jar->is_standing)
		server_jar_search_last(server_jar, jar->is_closing ? send_closed : send_failed);
	else
		send_failed(server_jar);
}

/* --- beginning and end -------------------------------------------------------------------------------------- */

static void kill_jar(struct object *object)
{
	server_jar_close((struct server_jar *)object);
}

static void free_jar(struct object *object)
{
	loop_disarm(&((struct serve_jar *)object)->ttl);
	server_jar_done((struct server_jar *)object);
	free(object);
}

static int read_open(struct server *server, const struct wire_frame *frame, struct serve_request **out,
		     struct error *error)
{
	struct serve_request *request;
	int rc = serve_request_read(server, REQUEST_OPEN, NULL, frame, &request, error);

	if (rc < 0)
		return rc;
	rc = serve_check_descriptors_sent(frame, wire_request_descriptors(&request->wire), error);
	if (rc == 0)
		rc = server_check_descriptors(server, error);
	if (rc < 0)
		serve_request_release(request);
	else
		*out = request;
	return rc;
}

static struct serve_jar *jar_begin(struct channel *channel, struct serve_request *request)
{
	struct serve_jar *jar = calloc(1, sizeof(*jar));

	if (!jar)
		return NULL;
	jar->server_jar.object = (struct object){.kill = kill_jar, .free = free_jar};
	jar->server_jar.stands = jar_on_stands;
	jar->server_jar.gone = jar_on_gone;
	jar->channel = channel;
	serve_channel_set_role(channel, &jar_role, jar);
	server_jar_init(&jar->server_jar, channel->server, PLAN_SESSION, request);
	return jar;
}

void serve_jar_begin(struct channel *channel, struct wire_frame *frame)
{
	struct serve_request *request = NULL;
	struct serve_jar *jar = NULL;
	struct error error = {0};

	if (read_open(channel->server, frame, &request, &error) == 0) {
		jar = jar_begin(channel, request);
		if (!jar)
			error_set(&error, STAGE_ENGINE, ENOMEM, "out of memory");
	}
	if (jar && request->wire.argv &&
	    server_jar_set_zygote(&jar->server_jar, request->wire.argv, frame->fds, frame->fd_count) < 0)
		error_set(&jar->server_jar.launch.error, STAGE_ENGINE, ENOMEM, "out of memory");
	serve_request_release(request); /* the jar holds it */
	if (jar)
		server_jar_build(&jar->server_jar, NULL);
	else
		serve_channel_fail(channel, &error, NULL);
}
