/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_run.c - one run under way: its channel, its frames, its end
 *
 * A handle is its channel. The engine writes no faster than the program reads, so a slow program slows only its own
 * run. Freeing a handle shuts its channel down, which ends the run. Closing is not enough: a child of fork() may hold
 * a copy.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "client/client.h"
#include "client/client_request.h"
#include "client/client_result.h"

/* At most this much in one call of belljar_process(), so that other handles have their turn. */
#define FAIR_BYTES ((size_t)1 << 20)
#define MAX_SIGNAL 64

struct belljar_handle {
	struct belljar_engine *engine;
	struct client_channel channel;
	belljar_output_fn on_output;
	belljar_event_fn on_event;
	belljar_ask_fn on_ask;
	void *data;
	char *started;                 /* JSON text */
	struct belljar_result *result; /* being filled; NULL once taken, or where there is none */
	atomic_bool is_over;
	int rc; /* once it is over: what belljar_process() returns */
	struct belljar_error failure;
};

int client_handle_new(struct belljar_engine *engine, int fd, const struct belljar_command *command,
		      struct belljar_handle **out, struct belljar_error *failure)
{
	struct belljar_handle *handle = calloc(1, sizeof(*handle));
	struct belljar_result *result = calloc(1, sizeof(*result));

	if (!handle || !result) {
		free(handle);
		free(result);
		close(fd);
		return client_no_memory(failure);
	}
	client_channel_init(&handle->channel, fd);
	handle->result = result;
	handle->on_output = command->on_output;
	handle->on_event = command->on_event;
	handle->on_ask = command->on_ask;
	handle->data = command->data;
	handle->engine = engine;
	client_engine_hold(engine);
	*out = handle;
	return 0;
}

static int check_handle(const struct belljar_handle *handle, struct belljar_error *failure)
{
	if (!handle) {
		error_set(&failure->error, STAGE_USAGE, EINVAL, "there is no handle: the pointer is NULL");
		return -EINVAL;
	}
	return client_engine_check(handle->engine, failure);
}

static int send_number(struct belljar_handle *handle, enum frame_type type, uint32_t number)
{
	unsigned char payload[] = {number & 0xff, number >> 8 & 0xff, number >> 16 & 0xff, number >> 24};
	int rc = client_send_short(handle->channel.fd, type, payload, sizeof(payload));

	return rc == -EPIPE || rc == -ECONNRESET ? -ESRCH : rc;
}

/* --- frames --- */

/* A callback wants no more: the run is killed, and no callback is called again. */
static void stop(struct belljar_handle *handle)
{
	handle->on_output = NULL;
	handle->on_event = NULL;
	handle->on_ask = NULL;
	/* The second one kills at once. */
	send_number(handle, FRAME_CANCEL, SIGKILL);
	send_number(handle, FRAME_CANCEL, SIGKILL);
}

static int take_stream(struct belljar_handle *handle, const struct client_frame *frame)
{
	const char *bytes = frame->payload + FRAME_STREAM_BYTES;
	size_t len = frame->len - FRAME_STREAM_BYTES;
	int stream = (unsigned char)frame->payload[0];

	if (stream != BELLJAR_STDOUT && stream != BELLJAR_STDERR)
		return client_engine_nonsense(&handle->failure);
	if (frame->type == FRAME_CAPTURED)
		return client_result_append(handle->result, stream, bytes, len, &handle->failure);
	if (handle->on_output && handle->on_output(handle->data, stream, bytes, len) != 0)
		stop(handle);
	return 0;
}

static bool is_event(const struct json_value *document, const char *name)
{
	const struct json_member *member = json_find(document, "event");

	return member && member->value.type == JSON_STRING && !strcmp(member->value.string.bytes, name);
}

/* The engine waits no longer than the policy says, so an answer that cannot be sent is a denial. */
static void answer(struct belljar_handle *handle, const struct json_value *document, const char *json)
{
	const struct json_member *id = json_find(document, "id");
	int said = handle->on_ask ? handle->on_ask(handle->data, json) : BELLJAR_ASK_DENY;
	unsigned char payload[8];

	if (said != BELLJAR_ASK_ONCE && said != BELLJAR_ASK_RUN)
		said = BELLJAR_ASK_DENY;
	frame_number_write(payload, id && id->value.type == JSON_INTEGER ? (uint32_t)id->value.number.integer : 0, 4);
	frame_number_write(payload + 4, (uint32_t)said, 4);
	client_send_short(handle->channel.fd, FRAME_REPLY, payload, sizeof(payload));
}

static int take_event(struct belljar_handle *handle, const struct client_frame *frame)
{
	AUTO_FREE char *json = strndup(frame->payload, frame->len);
	AUTO_JSON document = {0};
	int rc;

	if (!json)
		return client_no_memory(&handle->failure);
	rc = client_parse(frame->payload, frame->len, &document, &handle->failure);
	if (rc < 0)
		return rc;
	if (is_event(&document, "ask"))
		answer(handle, &document, json);
	else if (!is_event(&document, "withdrawn") && handle->on_event && handle->on_event(handle->data, json) != 0)
		stop(handle);
	return 0;
}

static int take_started(struct belljar_handle *handle, const struct client_frame *frame)
{
	if (handle->started)
		return client_engine_nonsense(&handle->failure);
	handle->started = strndup(frame->payload, frame->len);
	return handle->started ? 0 : client_no_memory(&handle->failure);
}

static int take_failed(struct belljar_handle *handle, const struct client_frame *frame)
{
	AUTO_JSON document = {0};
	int rc = client_parse(frame->payload, frame->len, &document, &handle->failure);

	return rc < 0 ? rc : client_read_failure(&document, &handle->failure);
}

/* 1: this was the last frame. */
static int take_result(struct belljar_handle *handle, const struct client_frame *frame)
{
	int rc = client_result_read(handle->result, frame->payload, frame->len, &handle->failure);

	return rc < 0 ? rc : 1;
}

static int take_frame(struct belljar_handle *handle, const struct client_frame *frame)
{
	static int (*const takers[])(struct belljar_handle *, const struct client_frame *) = {
		[FRAME_STARTED] = take_started, [FRAME_OUTPUT] = take_stream, [FRAME_CAPTURED] = take_stream,
		[FRAME_RESULT] = take_result,   [FRAME_FAILED] = take_failed, [FRAME_EVENT] = take_event,
	};

	if (frame->type >= ARRAY_LEN(takers) || !takers[frame->type])
		return client_engine_nonsense(&handle->failure);
	return takers[frame->type](handle, frame);
}

/* Hand on what was read. */
static int take_frames(struct belljar_handle *handle)
{
	struct client_frame frame;
	int rc;

	while ((rc = client_next_frame(&handle->channel, &frame)) > 0) {
		rc = take_frame(handle, &frame);
		if (rc != 0)
			return rc;
	}
	return rc < 0 ? client_engine_nonsense(&handle->failure) : 0;
}

/* 1: over; 0: not yet, and nothing to read any more or enough for now; negative: there will be no result. */
static int take_all(struct belljar_handle *handle)
{
	size_t taken = 0;

	while (taken < FAIR_BYTES) {
		ssize_t count = client_receive(&handle->channel);
		int rc;

		if (count == -EAGAIN)
			return 0;
		if (count == -ENOMEM)
			return client_no_memory(&handle->failure);
		if (count <= 0)
			return client_engine_lost(handle->engine, &handle->failure);
		rc = take_frames(handle);
		if (rc != 0)
			return rc;
		taken += (size_t)count;
	}
	return 0;
}

/* Shut the channel down, so that the engine ends the run. */
static void hang_up(struct belljar_handle *handle)
{
	if (client_engine_is_ours(handle->engine))
		shutdown(handle->channel.fd, SHUT_RDWR);
}

static int handle_process(struct belljar_handle *handle)
{
	int rc;

	if (handle->is_over)
		return handle->rc;
	rc = take_all(handle);
	if (rc == 0)
		return 0;
	handle->rc = rc;
	handle->is_over = true;
	if (rc < 0) {
		/* The descriptor stays readable, as it is at every end. */
		hang_up(handle);
		belljar_result_free(handle->result);
		handle->result = NULL;
	}
	return rc;
}

/* The record stays with the handle, so that asking again gives the same answer. */
static int publish_copy(const struct belljar_handle *handle, int rc, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	if (rc >= 0)
		return rc;
	failure = handle->failure;
	failure.missing = handle->failure.missing ? strdup(handle->failure.missing) : NULL;
	return client_publish(rc, &failure, error);
}

int client_handle_finish(struct belljar_handle *handle, struct belljar_result **out, struct belljar_error **error)
{
	int rc = belljar_wait(handle, -1, error);

	if (rc > 0) {
		*out = belljar_take_result(handle);
		rc = 0;
	}
	belljar_free(handle);
	return rc;
}

/* --- public --- */

/* @is_blocking: only this library has the handle, until the run is over. */
static int client_start_run(struct belljar_engine *engine, const struct belljar_command *given, bool is_blocking,
			    struct belljar_handle **out, struct belljar_error *failure)
{
	const struct client_run_request how = {.is_start_told = !is_blocking};
	struct belljar_command command = {0};
	AUTO_REQUEST_OUT request = {.input_fd = -1};
	struct client_message message;
	int fd = -1, rc = client_engine_check(engine, failure);

	if (rc == 0)
		rc = client_copy_struct(given, sizeof(command), &command, failure);
	if (rc == 0)
		rc = client_request_run(&request, &command, &how, failure);
	if (rc < 0)
		return rc;
	message = client_request_message(&request, FRAME_RUN);
	rc = client_engine_connect(engine, &message, &fd, failure);
	return rc < 0 ? rc : client_handle_new(engine, fd, &command, out, failure);
}

int belljar_start(struct belljar_engine *engine, const struct belljar_command *command, struct belljar_handle **out,
		  struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(client_start_run(engine, command, false, out, &failure), &failure, error);
}

int belljar_run(struct belljar_engine *engine, const struct belljar_command *command, struct belljar_result **out,
		struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};
	struct belljar_handle *handle = NULL;
	int rc = client_start_run(engine, command, true, &handle, &failure);

	return rc < 0 ? client_publish(rc, &failure, error) : client_handle_finish(handle, out, error);
}

int belljar_fd(const struct belljar_handle *handle)
{
	return handle ? handle->channel.fd : -EINVAL;
}

int belljar_process(struct belljar_handle *handle, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};
	int rc = check_handle(handle, &failure);

	if (rc < 0)
		return client_publish(rc, &failure, error);
	return publish_copy(handle, handle_process(handle), error);
}

int belljar_wait(struct belljar_handle *handle, int timeout_ms, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};
	int64_t deadline = timeout_ms < 0 ? INT64_MAX : (int64_t)(clock_ns() / 1000000) + timeout_ms;
	int rc = check_handle(handle, &failure);

	if (rc < 0)
		return client_publish(rc, &failure, error);
	while ((rc = handle_process(handle)) == 0) {
		struct pollfd readable = {.fd = handle->channel.fd, .events = POLLIN};
		int64_t left = timeout_ms < 0 ? -1 : deadline - (int64_t)(clock_ns() / 1000000);

		if (timeout_ms >= 0 && left <= 0)
			return 0;
		poll(&readable, 1, (int)left);
	}
	return publish_copy(handle, rc, error);
}

const char *belljar_started(const struct belljar_handle *handle)
{
	return handle ? handle->started : NULL;
}

struct belljar_result *belljar_take_result(struct belljar_handle *handle)
{
	return handle && handle->is_over ? take_ptr(handle->result) : NULL;
}

static int handle_tell(struct belljar_handle *handle, enum frame_type type, uint32_t number)
{
	AUTO_FAILURE failure = {0};
	int rc = check_handle(handle, &failure);

	if (rc == 0 && handle->is_over)
		rc = -ESRCH;
	return rc < 0 ? rc : send_number(handle, type, number);
}

int belljar_cancel(struct belljar_handle *handle, int signal)
{
	int rc = signal < 0 || signal > MAX_SIGNAL ? -EINVAL : handle_tell(handle, FRAME_CANCEL, (uint32_t)signal);

	return rc == -ESRCH ? 0 : rc;
}

int belljar_signal(struct belljar_handle *handle, int signal)
{
	return signal < 1 || signal > MAX_SIGNAL ? -EINVAL : handle_tell(handle, FRAME_SIGNAL, (uint32_t)signal);
}

int belljar_resize(struct belljar_handle *handle, uint16_t rows, uint16_t columns)
{
	/* Two numbers of two bytes are as good as one of four. */
	return handle_tell(handle, FRAME_RESIZE, (uint32_t)columns << 16 | rows);
}

void belljar_free(struct belljar_handle *handle)
{
	if (!handle)
		return;
	if (!handle->is_over)
		hang_up(handle);
	client_channel_done(&handle->channel);
	client_error_done(&handle->failure);
	belljar_result_free(handle->result);
	free(handle->started);
	client_engine_release(handle->engine);
	free(handle);
}
