/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_run.c - a run on a channel: STARTED, OUTPUT, EVENT, CAPTURED, RESULT
 *
 * A run goes through four steps: read the request (read_run), look at the host (engine_job_start), choose a jar
 * (choose_jar), and say which jars should wait for the next runs (want_next). All that can be wrong with a request is
 * found in the first, so that FAILED means that nothing was started; from then on every end is a RESULT.
 *
 * The run is in the server's list. If the client closes the channel before the result, the run is killed; the object
 * stays until nothing of the run is left and its pipes have taken what was already read.
 */
#include "door/serve/serve_run.h"

#include <errno.h>

#include "engine/engine_events.h"
#include "engine/engine_outlets.h"
#include "engine/result/result_denied.h"
#include "door/serve/serve_prepared.h"

struct serve_run {
	struct object object;
	struct channel *channel; /* NULL: the client does not wait for it any more */
	struct serve_request *request;
	struct job job;
	struct server_jar *server_jar; /* the jar it is given; NULL: one of its own */
	bool is_joined;                /* that is a session */
	bool is_starting;              /* it counts in server->starting */
	unsigned jar_number;           /* of one of its own */
	int stdin_fd;
	int sink_fds[STREAM_COUNT];
	int extra_fds[FRAME_MAX_EXTRA];
	struct engine_outlets outlets; /* REQUEST_SINK_PIPES only */
	struct pieces pieces;
};

/* Leave the jar after the run. A jar that was made for this run is closed: no other run may use it. */
static void leave_jar(struct serve_run *run)
{
	engine_job_done(&run->job);
	if (run->server_jar && !run->is_joined)
		server_jar_close(run->server_jar);
	if (run->server_jar)
		server_jar_leave(run->server_jar);
	run->server_jar = NULL;
}

/* It has its descriptors, or will have none. */
static void settle(struct serve_run *run)
{
	run->object.server->starting -= run->is_starting;
	run->is_starting = false;
}

static void close_extra(struct serve_run *run)
{
	for (size_t i = 0; i < ARRAY_LEN(run->extra_fds); i++)
		close_fd(&run->extra_fds[i]);
}

/* --- frames to the client ----------------------------------------------------------------------------------- */

static void send_json(struct serve_run *run, enum frame_type type, const struct text *payload)
{
	struct error error = {0};

	if (!run->channel)
		return;
	if (text_failed(payload)) {
		error_set(&error, STAGE_ENGINE, ENOMEM, "out of memory for an answer");
		serve_channel_fail(run->channel, &error, NULL);
		return;
	}
	wire_send(&run->channel->wire, type, text_string(payload), payload->len, -1);
}

static void serve_run_on_started(void *owner, struct run *started)
{
	struct serve_run *run = ((struct job *)owner)->owner;
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload, .has_byte_escapes = true};

	(void)started;
	settle(run);
	close_extra(run); /* the command has them; a copy of ours would keep pipes from ending */
	if (!run->request->wire.is_start_told)
		return; /* do not wake a client that does not need it */
	json_open_object(&writer, NULL);
	engine_event_write_start(engine_job_plan(&run->job), engine_job_seen(&run->job), &writer);
	json_close_object(&writer);
	send_json(run, FRAME_STARTED, &payload);
}

static void send_output(void *owner, enum stream_index stream, const char *bytes, size_t len)
{
	struct serve_run *run = owner;

	if (run->channel)
		wire_send_stream(&run->channel->wire, FRAME_OUTPUT, stream + 1, bytes, len);
}

static bool serve_run_on_output(void *owner, enum stream_index stream, const void *bytes, size_t len)
{
	struct serve_run *run = ((struct job *)owner)->owner;

	if (run->request->wire.sink == REQUEST_SINK_PIPES)
		return engine_outlets_write(&run->outlets, stream, bytes, len);
	if (engine_pieces_feed(&run->pieces, stream, bytes, len, send_output, run) < 0)
		run_output_lost(run->job.run, ENOMEM, "memory");
	return run->channel && wire_is_full(&run->channel->wire);
}

static void serve_run_on_ended(void *owner, enum stream_index stream)
{
	engine_outlets_end(&((struct serve_run *)((struct job *)owner)->owner)->outlets, stream);
}

static void serve_run_on_limit(void *owner, enum limit_name name, const struct limit_hit *hit)
{
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload, .has_byte_escapes = true};

	json_open_object(&writer, NULL);
	json_write_string(&writer, "event", "limit");
	result_write_limit(name, hit, &writer, "limit");
	json_close_object(&writer);
	send_json(((struct job *)owner)->owner, FRAME_EVENT, &payload);
}

static void serve_run_on_denied(void *owner, const struct denial *denial)
{
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload, .has_byte_escapes = true};

	json_open_object(&writer, NULL);
	json_write_string(&writer, "event", "denied");
	result_write_denial(engine_job_plan(owner), denial, &writer, "denied");
	json_close_object(&writer);
	send_json(((struct job *)owner)->owner, FRAME_EVENT, &payload);
}

static void serve_run_on_question(void *owner, const struct net_question *question)
{
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload, .has_byte_escapes = true};

	json_open_object(&writer, NULL);
	json_write_string(&writer, "event", "ask");
	engine_event_write_question(question, &writer);
	json_close_object(&writer);
	send_json(((struct job *)owner)->owner, FRAME_EVENT, &payload);
}

static void serve_run_on_withdrawn(void *owner, uint32_t id)
{
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload};

	json_open_object(&writer, NULL);
	json_write_string(&writer, "event", "withdrawn");
	json_write_unsigned(&writer, "id", id);
	json_close_object(&writer);
	send_json(((struct job *)owner)->owner, FRAME_EVENT, &payload);
}

static void send_captured(struct serve_run *run, const struct capture *capture)
{
	for (int i = 0; i < STREAM_COUNT && run->channel; i++) {
		AUTO_TEXT bytes = {0};

		run_capture_bytes(capture, (enum stream_index)i, &bytes);
		for (size_t at = 0, part; at < bytes.len; at += part) {
			part = MIN_OF(bytes.len - at, FRAME_OUTPUT_MAX_BYTES);
			wire_send_stream(&run->channel->wire, FRAME_CAPTURED, (unsigned)i + 1, bytes.data + at, part);
		}
	}
}

static void send_result(struct serve_run *run)
{
	struct result_source source = engine_job_result(&run->job);
	AUTO_TEXT payload = {0};
	struct json_writer writer = {.text = &payload, .has_byte_escapes = true};

	for (int i = 0; i < STREAM_COUNT; i++)
		engine_pieces_end(&run->pieces, (enum stream_index)i, source.seen && source.seen->is_stream_cut[i],
				  send_output, run);
	if (source.capture)
		send_captured(run, source.capture);
	source.has_bytes = true; /* offsets count bytes, which is what CAPTURED has */
	result_write(&source, &writer, NULL);
	send_json(run, FRAME_RESULT, &payload);
	if (run->channel)
		serve_channel_end(run->channel);
	run->channel = NULL;
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static void serve_run_check_dead(struct serve_run *run)
{
	if (run->job.is_over && !run->channel && !(run->job.run && run_is_left(run->job.run)) &&
	    engine_outlets_are_empty(&run->outlets))
		run->object.is_dead = true;
}

static void start_alone(struct serve_run *run);

/* A prepared jar could not be made after all, or has died: that is not the run's fault. Nothing has run in it. */
static bool is_let_down(const struct serve_run *run)
{
	const struct observation *seen = engine_job_seen(&run->job);

	if (!run->server_jar || run->is_joined || !run->channel)
		return false;
	if (!seen)
		return true;
	return !seen->has_started && seen->cause == CAUSE_NONE &&
	       (!run->server_jar->is_standing || seen->error.stage == STAGE_ENGINE);
}

/*
 * The client is likely to ask for the same policy again. A run that was given a prepared jar shows that it does: then
 * two jars wait for it, else one.
 */
static void want_next(struct serve_run *run)
{
	const struct observation *seen = engine_job_seen(&run->job);

	/*
	 * A layer begins when its run does: with a jar that waits it would be older than what the host changed since.
	 * Two jars cannot have the same port of the host.
	 */
	if (!run->is_joined && seen && seen->has_started && !run->job.launch.corrections &&
	    !run->job.launch.host.layers.count && !seen->network.published_count)
		serve_prepared_want(run->object.server, run->request, &run->job.launch.host,
				    run->server_jar ? PREPARED_DEPTH : 1);
}

static void note_search(struct serve_run *run)
{
	if (run->is_joined && run->server_jar)
		server_jar_searched(run->server_jar, &run->job, run->job.run && run_is_left(run->job.run));
}

static void serve_run_on_over(struct job *job)
{
	struct serve_run *run = job->owner;
	const struct observation *seen = engine_job_seen(&run->job);

	settle(run);
	if (is_let_down(run)) {
		leave_jar(run);
		start_alone(run);
		return;
	}
	close_extra(run);
	if (seen && seen->cause != CAUSE_NONE)
		engine_outlets_drop_later(&run->outlets);
	note_search(run);
	send_result(run);
	want_next(run);
	serve_run_check_dead(run);
}

static void serve_run_on_emptied(void *owner, struct run *emptied)
{
	(void)emptied;
	serve_run_check_dead(((struct job *)owner)->owner);
}

static void kill_run(struct object *object)
{
	engine_job_kill(&((struct serve_run *)object)->job);
}

static void free_run(struct object *object)
{
	struct serve_run *run = (struct serve_run *)object;

	settle(run);
	leave_jar(run);
	engine_outlets_done(&run->outlets);
	for (size_t i = 0; i < STREAM_COUNT; i++)
		close_fd(&run->sink_fds[i]);
	close_fd(&run->stdin_fd);
	close_extra(run);
	server_return_number(object->server, run->jar_number);
	serve_request_release(run->request);
	free(run);
}

/* --- frames from the client --------------------------------------------------------------------------------- */

static int check_signal(const struct wire_frame *frame, uint32_t least, struct error *error)
{
	uint32_t number = frame->len == 4 ? frame_number(frame->payload, 4) : UINT32_MAX;

	if (number < least || number > 64)
		return error_set(error, STAGE_ENGINE, EINVAL, "the signal must be a number of 4 bytes from %u to 64",
				 least);
	return (int)number;
}

static int take_resize(struct serve_run *run, const struct wire_frame *frame, struct error *error)
{
	struct winsize window = {0};

	if (frame->len != 4)
		return error_set(error, STAGE_ENGINE, EINVAL, "the window size must be 4 bytes: rows and columns");
	window.ws_row = (unsigned short)frame_number(frame->payload, 2);
	window.ws_col = (unsigned short)frame_number(frame->payload + 2, 2);
	engine_job_resize(&run->job, &window);
	return 0;
}

/* An answer to a question that is not there any more is nothing: it was on its way when that ended. */
static int take_reply(struct serve_run *run, const struct wire_frame *frame, struct error *error)
{
	uint32_t answer = frame->len == 8 ? frame_number(frame->payload + 4, 4) : NET_ANSWER_COUNT;

	if (answer >= NET_ANSWER_COUNT || !run->request->wire.is_asked)
		return error_set(
			error, STAGE_ENGINE, EINVAL,
			"an answer must be 8 bytes, the question's id and a number from 0 to %d, for a run that asks questions",
			NET_ANSWER_COUNT - 1);
	engine_job_answer(&run->job, frame_number(frame->payload, 4), (enum net_answer)answer);
	return 0;
}

static void serve_run_on_frame(struct channel *channel, struct wire_frame *frame)
{
	struct serve_run *run = channel->object;
	struct error error = {0};
	int rc;

	if (frame->fd_count) {
		error_set(&error, STAGE_ENGINE, EPROTO, "the client sent descriptors with a frame that takes none");
	} else if (frame->type == FRAME_SIGNAL) {
		rc = check_signal(frame, 1, &error);
		if (rc > 0)
			engine_job_signal(&run->job, rc);
	} else if (frame->type == FRAME_CANCEL) {
		rc = check_signal(frame, 0, &error);
		if (rc >= 0)
			engine_job_cancel(&run->job, rc);
	} else if (frame->type == FRAME_GO && !frame->len) {
		engine_job_go(&run->job);
	} else if (frame->type == FRAME_RESIZE) {
		take_resize(run, frame, &error);
	} else if (frame->type == FRAME_REPLY) {
		take_reply(run, frame, &error);
	} else {
		serve_channel_refuse(channel, frame);
		return;
	}
	if (error.stage != STAGE_NONE)
		serve_channel_fail(channel, &error, NULL);
}

static void serve_run_on_drained(struct channel *channel)
{
	struct serve_run *run = channel->object;

	for (int i = 0; i < STREAM_COUNT && run->job.run && !run->job.is_over; i++)
		run_resume(run->job.run, (enum stream_index)i);
}

/* The client is gone: end the run at once, and drop its output. */
static void serve_run_on_gone(struct channel *channel)
{
	struct serve_run *run = channel->object;

	run->channel = NULL;
	engine_job_kill(&run->job);
	if (run->request->wire.sink == REQUEST_SINK_FRAMES)
		serve_run_on_drained(channel);
	serve_run_check_dead(run);
}

static const struct channel_role run_role = {serve_run_on_frame, serve_run_on_drained, serve_run_on_gone};

/* --- the beginning ------------------------------------------------------------------------------------------ */

static void serve_run_on_moved(struct job *job)
{
	serve_run_check_dead(job->owner);
}

static int take_descriptors(struct serve_run *run, struct wire_frame *frame, size_t first, struct error *error)
{
	const struct request *request = &run->request->wire;
	size_t at = first;
	int rc = serve_check_descriptors_sent(frame, first + wire_request_descriptors(request), error);

	if (rc < 0)
		return rc;
	if (request->stdin_choice == REQUEST_STDIN_DESCRIPTOR)
		run->stdin_fd = take_fd(&frame->fds[at++]);
	for (size_t i = 0; i < STREAM_COUNT && request->sink == REQUEST_SINK_PIPES; i++)
		run->sink_fds[i] = take_fd(&frame->fds[at++]);
	for (size_t i = 0; at < frame->fd_count; i++)
		run->extra_fds[i] = take_fd(&frame->fds[at++]);
	return 0;
}

static int serve_run_open_outlets(struct serve_run *run, struct error *error)
{
	run->outlets = (struct engine_outlets){
		.job = &run->job,
		.loop = run->object.server->loop,
		.sinks = run->sink_fds,
		.moved = serve_run_on_moved,
	};
	if (run->request->wire.sink != REQUEST_SINK_PIPES)
		return 0;
	return engine_outlets_open(&run->outlets, run->sink_fds, true, error);
}

static struct run_request run_request_of(struct serve_run *run)
{
	const struct request *request = &run->request->wire;
	bool has_null = request->stdin_choice == REQUEST_STDIN_NULL;
	int null_fd = run->object.server->null_fd;

	return (struct run_request){
		.listener =
			{
				.started = serve_run_on_started,
				.output = request->sink == REQUEST_SINK_NONE ? NULL : serve_run_on_output,
				.limit = request->has_events ? serve_run_on_limit : NULL,
				.denied = request->has_events ? serve_run_on_denied : NULL,
				.question = request->is_asked ? serve_run_on_question : NULL,
				.withdrawn = serve_run_on_withdrawn,
				.emptied = serve_run_on_emptied,
				.ended = request->sink == REQUEST_SINK_PIPES ? serve_run_on_ended : NULL,
			},
		.argv_memory = &run->object.server->argv_memory,
		.family = &run->object.server->family,
		.is_captured = request->is_captured,
		.is_rest_taken = request->sink == REQUEST_SINK_PIPES,
		.is_merged = request->is_merged,
		.is_held = request->is_held,
		.is_detached = request->is_detached,
		.has_pty = request->has_pty,
		.window = {.ws_row = (unsigned short)request->rows, .ws_col = (unsigned short)request->columns},
		/* A terminal's input is typed: there the end of an empty input is too. */
		.stdin_fd = has_null && !request->has_pty ? null_fd : -1,
		.relay_fd = has_null && request->has_pty ? null_fd : run->stdin_fd,
		.extra_fds = run->extra_fds,
		.extra_count = (size_t)request->extra_count,
	};
}

static struct serve_run *new_run(struct server *server)
{
	struct serve_run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->object = (struct object){.kill = kill_run, .free = free_run};
	run->stdin_fd = run->sink_fds[STREAM_STDOUT] = run->sink_fds[STREAM_STDERR] = -1;
	for (size_t i = 0; i < ARRAY_LEN(run->extra_fds); i++)
		run->extra_fds[i] = -1;
	run->jar_number = server_take_number(server);
	server_add(server, &run->object);
	return run;
}

/* All but the jar. */
static void set_up(struct serve_run *run)
{
	const struct request *request = &run->request->wire;
	struct error error = {0};
	char *const *environment = request->environment;

	if (run->is_joined && run->server_jar && !environment)
		environment = run->server_jar->request->wire.environment;
	run->job = (struct job){
		.launch =
			{
				.policy = &run->request->policy,
				.environment = environment,
				.prefixes = request->prefixes,
				.current_directory = request->cwd,
				.is_caller_elsewhere = true,
				.jar_number = run->jar_number,
				.helpers = &run->object.server->helpers,
			},
		.loop = run->object.server->loop,
		.request = run_request_of(run),
		.over = serve_run_on_over,
		.owner = run,
	};
	engine_job_set_command(&run->job, request->argv, request->argument_count, request->is_shell_string, &error);
	run->job.launch.error = error;
}

static void start_alone(struct serve_run *run)
{
	set_up(run);
	engine_job_start(&run->job);
}

/* A prepared one that shows what a jar made now would show. Its filter has been loaded, and traces nothing. */
static void choose_jar(struct job *job)
{
	struct serve_run *run = job->owner;

	if (run->request->policy.ledger == LEDGER_BASIC)
		run->server_jar = serve_prepared_take(run->object.server, run->request, &job->launch.host);
	if (run->server_jar)
		job->jar = server_jar_enter(run->server_jar);
}

/* Captured output is held in memory. */
static int check_output(const struct serve_run *run, struct error *error)
{
	if (!run->request->wire.is_captured || policy_output_is_bounded(&run->request->policy.limits.output))
		return 0;
	error_set(error, STAGE_POLICY, EINVAL, "captured output needs a limit: output cannot be none");
	return error_hint(error, "give a size, such as 10M");
}

/* A jar has commands or calls, never both. */
static int check_joining(const struct serve_run *run, const struct server_jar *server_jar, struct error *error)
{
	if (plan_is_for_calls(&server_jar->launch.plan) && run->request->wire.argv)
		return error_set(error, STAGE_USAGE, EINVAL, "this is a jar for calls: it takes no command");
	if (plan_is_for_calls(&server_jar->launch.plan) && run->request->wire.has_pty)
		return error_set(error, STAGE_USAGE, EINVAL, "a call cannot have a terminal");
	if (plan_is_for_calls(&server_jar->launch.plan) && run->request->wire.is_detached)
		return error_set(error, STAGE_USAGE, EINVAL, "a call cannot leave processes behind");
	if (run->request->wire.is_asked && !server_jar->launch.plan.gate.may_ask) {
		error_set(error, STAGE_USAGE, EINVAL, "this jar asks no questions");
		return error_hint(error, "open it with ask=\"net\"");
	}
	if (!plan_is_for_calls(&server_jar->launch.plan) && !run->request->wire.argv)
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'argv' is missing");
	return 0;
}

/* All that can be wrong with a request before anything is tried. @first: of the descriptors, the run's first. */
static int read_run(struct serve_run *run, struct wire_frame *frame, size_t first, struct error *error)
{
	struct server *server = run->object.server;
	const struct server_jar *joined = run->server_jar; /* none was chosen yet */
	int rc = server_check_descriptors(server, error);

	if (rc == 0)
		rc = serve_request_read(server, joined ? REQUEST_JOIN : REQUEST_RUN, joined, frame, &run->request,
					error);
	if (rc == 0 && joined)
		rc = check_joining(run, joined, error);
	if (rc == 0)
		rc = take_descriptors(run, frame, first, error);
	if (rc == 0)
		rc = check_output(run, error);
	return rc < 0 ? rc : serve_run_open_outlets(run, error);
}

/* @joined: the jar that was asked for; NULL: a jar for this run alone. */
static void begin_run(struct channel *channel, struct server_jar *joined, struct wire_frame *frame, size_t first)
{
	struct serve_run *run = new_run(channel->server);
	struct error error = {0};

	if (!run) {
		error_set(&error, STAGE_ENGINE, ENOMEM, "out of memory");
		serve_channel_fail(channel, &error, NULL);
		return;
	}
	run->server_jar = joined;
	run->is_joined = joined;
	if (read_run(run, frame, first, &error) < 0) {
		run->server_jar = NULL; /* it has not entered */
		run->object.is_dead = true;
		serve_channel_fail(channel, &error, NULL);
		return;
	}
	run->channel = channel;
	serve_channel_set_role(channel, &run_role, run);
	set_up(run);
	if (joined)
		run->job.jar = server_jar_enter(joined);
	else
		run->job.choose = choose_jar;
	run->is_starting = true;
	run->object.server->starting++;
	engine_job_start(&run->job);
}

void serve_run_begin(struct channel *channel, struct wire_frame *frame)
{
	begin_run(channel, NULL, frame, 0);
}

void serve_run_join(struct channel *channel, struct server_jar *server_jar, struct wire_frame *frame, size_t first)
{
	begin_run(channel, server_jar, frame, first);
}
