/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_jar.c - sessions: opening, runs in them, closing
 *
 * A jar is its channel, as a run is. Runs and files get channels of their own, which are sent over the jar's: a lock
 * keeps the requests of several threads apart.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "client/client_jar.h"

struct belljar_jar {
	struct belljar_engine *engine;
	struct client_channel channel;
	pthread_mutex_t lock; /* for sending */
	char *info;           /* JSON text; NULL: it does not stand yet */
	bool is_over;         /* it could not be made, or has ended */
	char *last;           /* the last frame, which says what its processes left: JSON text; NULL: not known yet */
};

int client_jar_check(const struct belljar_jar *jar, struct belljar_error *failure)
{
	if (!jar) {
		error_set(&failure->error, STAGE_USAGE, EINVAL, "there is no jar: the pointer is NULL");
		return -EINVAL;
	}
	if (!jar->info)
		return error_set(&failure->error, STAGE_USAGE, EAGAIN,
				 "the jar is not ready yet, or could not be made");
	return client_engine_check(jar->engine, failure);
}

int client_read_refusal(const struct client_frame *frame, struct belljar_error *failure)
{
	AUTO_JSON document = {0};
	int rc;

	if (frame->type != FRAME_FAILED)
		return client_engine_nonsense(failure);
	rc = client_parse(frame->payload, frame->len, &document, failure);
	return rc < 0 ? rc : client_read_failure(&document, failure);
}

/* CLOSED or FAILED. */
static void keep_last(struct belljar_jar *jar, const struct client_frame *frame)
{
	if (!jar->last && (frame->type == FRAME_CLOSED || frame->type == FRAME_FAILED))
		jar->last = strndup(frame->payload, frame->len);
}

/* Why the jar is not there any more: the engine may have said so. */
static int jar_lost(struct belljar_jar *jar, struct belljar_error *failure)
{
	struct client_frame frame;

	pthread_mutex_lock(&jar->lock);
	while (client_receive(&jar->channel) > 0)
		;
	if (client_next_frame(&jar->channel, &frame) > 0 && frame.type == FRAME_FAILED) {
		keep_last(jar, &frame);
		client_read_refusal(&frame, failure);
	}
	pthread_mutex_unlock(&jar->lock);
	return failure->error.stage ? error_hint(&failure->error, "open another jar")
				    : client_engine_lost(jar->engine, failure);
}

static int send_request(struct belljar_jar *jar, const struct client_request *request, enum frame_type type,
			struct belljar_error *failure)
{
	struct client_message message = client_request_message(request, type);
	int rc;

	pthread_mutex_lock(&jar->lock);
	rc = client_send(jar->channel.fd, &message);
	pthread_mutex_unlock(&jar->lock);
	if (rc == -EPIPE || rc == -ECONNRESET)
		return jar_lost(jar, failure);
	if (rc < 0)
		return error_set(&failure->error, rc == -E2BIG ? STAGE_USAGE : STAGE_ENGINE, -rc,
				 "cannot send the request to the engine: %s", errno_name(-rc));
	return 0;
}

static int make_channel(int *ours, int *theirs, struct belljar_error *failure)
{
	int rc = client_channel_pair(ours, theirs);

	if (rc < 0)
		return error_set(&failure->error, STAGE_ENGINE, -rc, "cannot make a channel to the engine: %s",
				 errno_name(-rc));
	return 0;
}

/* --- opening and closing --- */

static void free_jar(struct belljar_jar *jar)
{
	client_channel_done(&jar->channel);
	pthread_mutex_destroy(&jar->lock);
	client_engine_release(jar->engine);
	free(jar->info);
	free(jar->last);
	free(jar);
}

static int take_opened(struct belljar_jar *jar, const struct client_frame *frame, struct belljar_error *failure)
{
	if (frame->type != FRAME_OPENED)
		return client_read_refusal(frame, failure);
	jar->info = strndup(frame->payload, frame->len);
	return jar->info ? 0 : client_no_memory(failure);
}

static int begin_jar(struct belljar_engine *engine, const struct belljar_jar_options *given, struct belljar_jar **out,
		     struct belljar_error *failure)
{
	struct belljar_jar_options options = {0};
	AUTO_REQUEST_OUT request = {.input_fd = -1};
	struct client_message message;
	struct belljar_jar *jar;
	AUTO_CLOSE int fd = -1;
	int rc = client_engine_check(engine, failure);

	if (rc == 0 && given)
		rc = client_copy_struct(given, sizeof(options), &options, failure);
	if (rc == 0)
		rc = client_request_open(&request, &options, failure);
	if (rc < 0)
		return rc;
	message = client_request_message(&request, FRAME_OPEN);
	rc = client_engine_connect(engine, &message, &fd, failure);
	if (rc < 0)
		return rc;
	jar = calloc(1, sizeof(*jar));
	if (!jar)
		return client_no_memory(failure);
	jar->engine = engine;
	client_engine_hold(engine);
	client_channel_init(&jar->channel, take_fd(&fd));
	pthread_mutex_init(&jar->lock, NULL);
	*out = jar;
	return 0;
}

static int client_open_jar(struct belljar_engine *engine, const struct belljar_jar_options *given,
			   struct belljar_jar **out, struct belljar_error *failure)
{
	struct client_frame frame;
	struct belljar_jar *jar;
	int rc = begin_jar(engine, given, &jar, failure);

	if (rc < 0)
		return rc;
	rc = client_engine_await(engine, &jar->channel, &frame, failure);
	if (rc == 0)
		rc = take_opened(jar, &frame, failure);
	if (rc < 0) {
		free_jar(jar);
		return rc;
	}
	*out = jar;
	return 0;
}

int belljar_jar_open(struct belljar_engine *engine, const struct belljar_jar_options *options, struct belljar_jar **out,
		     struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(client_open_jar(engine, options, out, &failure), &failure, error);
}

int belljar_jar_begin(struct belljar_engine *engine, const struct belljar_jar_options *options,
		      struct belljar_jar **out, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(begin_jar(engine, options, out, &failure), &failure, error);
}

int belljar_jar_fd(const struct belljar_jar *jar)
{
	return jar ? jar->channel.fd : -EINVAL;
}

/* The next frame that is there. 1, 0: there is none, or a negative errno. */
static int next_frame(struct belljar_jar *jar, struct client_frame *frame, struct belljar_error *failure)
{
	for (;;) {
		int rc = client_next_frame(&jar->channel, frame);
		ssize_t count;

		if (rc != 0)
			return rc < 0 ? client_engine_nonsense(failure) : 1;
		count = client_receive(&jar->channel);
		if (count == -EAGAIN)
			return 0;
		if (count == -ENOMEM)
			return client_no_memory(failure);
		if (count <= 0)
			return client_engine_lost(jar->engine, failure);
	}
}

static int process_jar(struct belljar_jar *jar, struct belljar_error *failure)
{
	struct client_frame frame;
	int rc;

	if (jar->is_over)
		return error_set(&failure->error, STAGE_ENGINE, ESHUTDOWN, "the jar has ended");
	rc = next_frame(jar, &frame, failure);
	if (rc == 0)
		return jar->info ? 1 : 0;
	if (rc > 0) {
		keep_last(jar, &frame);
		rc = jar->info ? client_read_refusal(&frame, failure) : take_opened(jar, &frame, failure);
	}
	jar->is_over = rc < 0;
	return rc < 0 ? rc : 1;
}

int belljar_jar_process(struct belljar_jar *jar, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};
	int rc;

	if (!jar)
		return client_publish(client_jar_check(jar, &failure), &failure, error);
	rc = client_engine_check(jar->engine, &failure);
	if (rc == 0) {
		pthread_mutex_lock(&jar->lock);
		rc = process_jar(jar, &failure);
		pthread_mutex_unlock(&jar->lock);
	}
	return client_publish(rc, &failure, error);
}

const char *belljar_jar_info(const struct belljar_jar *jar)
{
	return jar ? jar->info : NULL;
}

/* CLOSED, FAILED or the end of the channel: in each case nothing is left. A jar that has ended may have said FAILED before. */
static void end_jar(struct belljar_jar *jar, struct belljar_error *failure)
{
	struct client_message message = {.type = FRAME_CLOSE, .payload = ""};
	struct client_frame frame;

	client_send(jar->channel.fd, &message);
	while (!jar->last && client_engine_await(jar->engine, &jar->channel, &frame, failure) == 0)
		keep_last(jar, &frame);
	jar->is_over = true;
}

static int finish_jar(struct belljar_jar *jar, char **json_out, struct belljar_error *failure)
{
	int rc = client_jar_check(jar, failure);

	if (rc < 0)
		return rc;
	if (!jar->last)
		end_jar(jar, failure);
	if (!jar->last)
		return failure->error.stage ? -EPIPE : client_engine_lost(jar->engine, failure);
	*json_out = strdup(jar->last);
	return *json_out ? 0 : client_no_memory(failure);
}

int belljar_jar_finish(struct belljar_jar *jar, char **json_out, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(finish_jar(jar, json_out, &failure), &failure, error);
}

void belljar_jar_close(struct belljar_jar *jar)
{
	AUTO_FAILURE failure = {0};

	if (!jar)
		return;
	if (client_engine_is_ours(jar->engine)) {
		if (!jar->last)
			end_jar(jar, &failure);
		shutdown(jar->channel.fd, SHUT_RDWR);
	}
	free_jar(jar);
}

/* --- runs --- */

/* @is_blocking: only this library has the handle, until the run is over. */
static int jar_start_run(struct belljar_jar *jar, const struct belljar_command *given, bool is_blocking,
			 struct belljar_handle **out, struct belljar_error *failure)
{
	const struct client_run_request how = {.is_join = true, .is_start_told = !is_blocking};
	struct belljar_command command = {0};
	AUTO_REQUEST_OUT request = {.input_fd = -1};
	AUTO_CLOSE int ours = -1;
	AUTO_CLOSE int theirs = -1;
	int rc = client_jar_check(jar, failure);

	if (rc == 0)
		rc = client_copy_struct(given, sizeof(command), &command, failure);
	if (rc == 0)
		rc = client_request_run(&request, &command, &how, failure);
	if (rc < 0)
		return rc;
	rc = make_channel(&ours, &theirs, failure);
	client_request_give_channel(&request, theirs);
	if (rc == 0)
		rc = send_request(jar, &request, FRAME_JOIN, failure);
	return rc < 0 ? rc : client_handle_new(jar->engine, take_fd(&ours), &command, out, failure);
}

int belljar_jar_start(struct belljar_jar *jar, const struct belljar_command *command, struct belljar_handle **out,
		      struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(jar_start_run(jar, command, false, out, &failure), &failure, error);
}

int belljar_jar_run(struct belljar_jar *jar, const struct belljar_command *command, struct belljar_result **out,
		    struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};
	struct belljar_handle *handle = NULL;
	int rc = jar_start_run(jar, command, true, &handle, &failure);

	return rc < 0 ? client_publish(rc, &failure, error) : client_handle_finish(handle, out, error);
}

/* --- requests other than runs --- */

int client_jar_send(struct belljar_jar *jar, struct client_request *request, enum frame_type type,
		    struct client_channel *channel, struct client_frame *frame, struct belljar_error *failure)
{
	AUTO_CLOSE int ours = -1;
	AUTO_CLOSE int theirs = -1;
	int rc = make_channel(&ours, &theirs, failure);

	if (rc < 0)
		return rc;
	rc = client_request_finish(request, theirs, failure);
	if (rc == 0)
		rc = send_request(jar, request, type, failure);
	if (rc < 0)
		return rc;
	/* Or the end of the channel could not be seen. */
	close_fd(&theirs);
	client_channel_init(channel, take_fd(&ours));
	return client_engine_await(jar->engine, channel, frame, failure);
}

int client_jar_ask(struct belljar_jar *jar, const struct client_task *task, struct client_channel *channel,
		   struct client_frame *frame, struct belljar_error *failure)
{
	AUTO_REQUEST_OUT request = {.input_fd = -1};
	int rc = client_jar_check(jar, failure);

	if (rc < 0)
		return rc;
	client_request_task(&request, task);
	rc = client_jar_send(jar, &request, task->type, channel, frame, failure);
	if (rc < 0)
		return rc;
	return frame->type == FRAME_ANSWER || frame->type == FRAME_DESCRIPTOR ? 0 : client_read_refusal(frame, failure);
}

struct belljar_engine *client_jar_engine(const struct belljar_jar *jar)
{
	return jar->engine;
}

void client_jar_opened_again(struct belljar_jar *jar, char *info)
{
	char *before;

	pthread_mutex_lock(&jar->lock);
	before = jar->info;
	jar->info = info;
	pthread_mutex_unlock(&jar->lock);
	free(before);
}
