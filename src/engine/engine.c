/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine.c - the door of the command line: one request, its output, its result
 *
 * The command runs as a job (engine_job.c). This file has what only the command line needs: output passed
 * through, as events or as one result, and answers about a run. The same outlets write output and result,
 * because a slow or lost reader must not block the program before the jar has ended. The run is done when the
 * jar is gone and everything is written or lost.
 */
#include "engine/engine.h"

#include <inttypes.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/descriptors.h"
#include "base/processor.h"
#include "engine/engine_events.h"
#include "engine/engine_outlets.h"
#include "engine/engine_stdin.h"
#include "engine/result/result_denied.h"
#include "base/sys/calls.h"

/* The time for removals after the jar is gone. */
#define DRAIN_NS 1000000000ULL

struct engine_run {
	struct loop *loop;
	struct engine_request request;
	struct job job;
	struct engine_input input;
	struct jar_times *times;
	struct jar_argv_memory argv_memory;
	struct reap_family family; /* the caller's own child, the helper, and the jar */
	struct engine_helpers helpers;
	uint64_t begun_ns;
	struct engine_outlets outlets; /* pass-through: one for each stream; otherwise one for both */
	struct outlet status;
	bool has_status;
	struct event_stream events;
	bool is_over;      /* the jar is gone; the result is being written */
	bool is_cancelled; /* the user cancelled: do not wait for readers that take nothing */
	bool is_done;
};

static uint64_t elapsed_us(const struct engine_run *engine)
{
	return engine->job.run ? run_elapsed_ns(engine->job.run) / 1000 : 0;
}

static struct result_source source_of(const struct engine_run *engine)
{
	struct result_source source = engine_job_result(&engine->job);

	source.is_captured = engine->request.mode == ENGINE_JSON;
	source.has_bytes = engine->request.has_bytes;
	return source;
}

/* --- writing ------------------------------------------------------------------------------------------------ */

/* True: that was enough for now. */
static bool write_lines(struct engine_run *engine, struct text *lines)
{
	if (text_failed(lines) && engine->job.run)
		run_output_lost(engine->job.run, ENOMEM, "memory");
	return engine_outlets_write(&engine->outlets, STREAM_STDOUT, text_string(lines), lines->len);
}

static void check_done(struct engine_run *engine)
{
	if (!engine->is_over || engine->is_done)
		return;
	if (!engine_outlets_are_empty(&engine->outlets) ||
	    (engine->has_status && !run_outlet_is_empty(&engine->status)))
		return;
	engine->is_done = true;
}

static void engine_on_moved(struct job *job)
{
	check_done(job->owner);
}

static void engine_on_status(struct outlet *outlet)
{
	check_done(outlet->owner);
}

static int engine_open_outlets(struct engine_run *engine, struct error *error)
{
	const struct engine_request *request = &engine->request;
	/* A program reads a result or events; without that reader the run is pointless. */
	bool is_watching = request->mode != ENGINE_PASS;
	int fds[STREAM_COUNT] = {request->stdout_fd, request->stderr_fd};
	int rc;

	engine->outlets = (struct engine_outlets){
		.job = &engine->job,
		.loop = engine->loop,
		.is_shared = request->mode != ENGINE_PASS,
		.moved = engine_on_moved,
	};
	rc = engine_outlets_open(&engine->outlets, fds, is_watching, error);
	if (rc < 0 || request->status_fd < 0)
		return rc;
	rc = run_outlet_open(&engine->status, engine->loop, request->status_fd, false, engine_on_status, engine);
	engine->has_status = rc == 0;
	return rc < 0 ? error_set(error, STAGE_ENGINE, -rc, "cannot watch the output: %s", strerror(-rc)) : 0;
}

/* --- hearing from the run ----------------------------------------------------------------------------------- */

static void engine_on_started(void *owner, struct run *run)
{
	struct engine_run *engine = ((struct job *)owner)->owner;
	AUTO_TEXT lines = {0};

	(void)run;
	if (engine->request.mode != ENGINE_EVENTS)
		return;
	engine_event_start(&engine->events, elapsed_us(engine), engine_job_plan(&engine->job),
			   engine_job_seen(&engine->job), &lines);
	write_lines(engine, &lines);
}

static bool engine_on_output(void *owner, enum stream_index stream, const void *bytes, size_t len)
{
	struct engine_run *engine = ((struct job *)owner)->owner;
	AUTO_TEXT lines = {0};

	if (engine->request.mode == ENGINE_PASS)
		return engine_outlets_write(&engine->outlets, stream, bytes, len);
	engine_event_output(&engine->events, elapsed_us(engine), stream, bytes, len, &lines);
	return write_lines(engine, &lines);
}

static void engine_on_limit(void *owner, enum limit_name name, const struct limit_hit *hit)
{
	struct engine_run *engine = ((struct job *)owner)->owner;
	AUTO_TEXT lines = {0};

	if (engine->request.mode != ENGINE_EVENTS)
		return;
	engine_event_limit(&engine->events, elapsed_us(engine), name, hit, &lines);
	write_lines(engine, &lines);
}

static void engine_on_denied(void *owner, const struct denial *denial)
{
	struct engine_run *engine = ((struct job *)owner)->owner;
	AUTO_TEXT lines = {0};

	if (engine->request.mode != ENGINE_EVENTS)
		return;
	engine_event_denied(&engine->events, elapsed_us(engine), engine_job_plan(&engine->job), denial, &lines);
	write_lines(engine, &lines);
}

static void engine_on_question(void *owner, const struct net_question *question)
{
	struct engine_run *engine = ((struct job *)owner)->owner;
	const struct engine_asker *asker = &engine->request.asker;
	AUTO_TEXT lines = {0};

	if (engine->request.mode == ENGINE_EVENTS) {
		engine_event_question(&engine->events, elapsed_us(engine), question, &lines);
		write_lines(engine, &lines);
	}
	asker->question(asker->owner, question);
}

static void engine_on_withdrawn(void *owner, uint32_t id)
{
	const struct engine_asker *asker = &((struct engine_run *)((struct job *)owner)->owner)->request.asker;

	asker->withdrawn(asker->owner, id);
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static void write_events_end(struct engine_run *engine, const struct result_source *source, struct text *lines)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		engine_event_output_end(&engine->events, elapsed_us(engine), (enum stream_index)i,
					source->seen && source->seen->is_stream_cut[i], lines);
	engine_event_result(&engine->events, elapsed_us(engine), source, lines);
}

static void write_result_line(const struct result_source *source, struct text *line)
{
	struct json_writer writer = {.text = line};

	result_write(source, &writer, NULL);
	text_append_char(line, '\n');
}

static void engine_on_over(struct job *job)
{
	struct engine_run *engine = job->owner;
	struct result_source source = source_of(engine);
	AUTO_TEXT lines = {0};
	AUTO_TEXT status_line = {0};

	engine->is_over = true;
	engine_outlets_hold(&engine->outlets, false); /* there is nothing left to ask about */
	if (engine->request.mode == ENGINE_EVENTS)
		write_events_end(engine, &source, &lines);
	else if (engine->request.mode == ENGINE_JSON)
		write_result_line(&source, &lines);
	if (lines.len && engine->outlets.is_open[STREAM_STDOUT])
		write_lines(engine, &lines);
	if (engine->has_status) {
		write_result_line(&source, &status_line);
		run_outlet_write(&engine->status, text_string(&status_line), status_line.len);
	}
	if (engine->request.mode == ENGINE_PASS && source.seen &&
	    (source.seen->cause != CAUSE_NONE || engine->is_cancelled))
		engine_outlets_drop_later(&engine->outlets);
	check_done(engine);
}

/* --- the beginning ------------------------------------------------------------------------------------------ */

static struct launch launch_of(const struct engine_request *request)
{
	return (struct launch){
		.policy = request->policy,
		.environment = request->environment,
		.current_directory = request->current_directory,
		.has_no_cache = request->has_no_cache,
		.is_rung_limited = request->is_rung_limited,
		.rung_max = request->rung_max,
	};
}

static struct run_request run_request_of(struct engine_run *engine)
{
	const struct engine_request *request = &engine->request;

	return (struct run_request){
		.listener =
			{
				.started = engine_on_started,
				.output = request->mode == ENGINE_JSON ? NULL : engine_on_output,
				.limit = engine_on_limit,
				.denied = engine_on_denied,
				.question = request->asker.question ? engine_on_question : NULL,
				.withdrawn = engine_on_withdrawn,
			},
		.argv_memory = &engine->argv_memory,
		.times = engine->times,
		.is_captured = request->mode == ENGINE_JSON,
		.has_pty = request->has_pty,
		.window = request->window,
		.stdin_fd = engine->input.direct_fd,
		.relay_fd = engine->input.relay_fd,
		.is_relay_terminal = engine->input.is_terminal,
		.family = &engine->family,
	};
}

int engine_start(struct loop *loop, const struct engine_request *request, struct engine_run **out)
{
	struct engine_run *engine = calloc(1, sizeof(*engine));
	struct error error = {0};
	int rc;

	if (!engine)
		return -ENOMEM;
	engine->loop = loop;
	processor_be_prompt();
	descriptors_raise_limit();
	engine->request = *request;
	engine->argv_memory = (struct jar_argv_memory){request->argv_memory, request->argv_memory_len};
	engine->input = (struct engine_input){.direct_fd = -1, .relay_fd = -1, .opened_fd = -1};
	engine->events.has_bytes = request->has_bytes;
	engine->begun_ns = sys_monotonic_ns();
	if (request->has_timing) {
		engine->times =
			mmap(NULL, sizeof(*engine->times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (engine->times == MAP_FAILED)
			engine->times = NULL;
	}
	rc = engine_open_outlets(engine, &error);
	if (rc == 0 && request->spared_pid > 0 && reap_family_add(&engine->family, request->spared_pid) < 0)
		rc = error_set(&error, STAGE_ENGINE, ENOMEM, "out of memory");
	if (rc == 0)
		rc = engine_input_open(request, &engine->input, &error);
	engine->helpers = (struct engine_helpers){.loop = loop, .family = &engine->family};
	engine->job.launch = launch_of(request);
	engine->job.launch.helpers = &engine->helpers;
	engine->job.loop = loop;
	engine->job.request = run_request_of(engine);
	engine->job.input_name = request->stdin_path;
	engine->job.input = engine->input.found.path ? &engine->input.found : NULL;
	engine->job.over = engine_on_over;
	engine->job.owner = engine;
	if (rc == 0)
		engine_job_set_command(&engine->job, request->command, (size_t)request->command_count,
				       request->is_shell_string, &error);
	engine->job.launch.error = error;
	engine_job_start(&engine->job);
	*out = engine;
	return 0;
}

bool engine_has_started(const struct engine_run *run)
{
	const struct observation *seen = engine_job_seen(&run->job);

	return seen && seen->has_started;
}

bool engine_is_done(const struct engine_run *run)
{
	return run->is_done;
}

void engine_free(struct engine_run *engine)
{
	if (!engine)
		return;
	engine_job_done(&engine->job);
	engine_helpers_done(&engine->helpers);
	engine_outlets_done(&engine->outlets);
	if (engine->has_status)
		run_outlet_done(&engine->status);
	close_fd(&engine->request.status_fd);
	engine_input_done(&engine->input);
	loop_drain(engine->loop, sys_monotonic_ns() + DRAIN_NS);
	free(engine->family.items);
	if (engine->times)
		munmap(engine->times, sizeof(*engine->times));
	free(engine);
}

void engine_cancel(struct engine_run *engine, int signal_number)
{
	engine->is_cancelled = true;
	engine_job_cancel(&engine->job, signal_number);
	/* The rest of the output waits for a reader that takes nothing: drop it. */
	if (engine->is_over && engine->request.mode == ENGINE_PASS)
		engine_outlets_drop(&engine->outlets);
}

void engine_signal(struct engine_run *engine, int signal_number)
{
	engine_job_signal(&engine->job, signal_number);
}

void engine_answer(struct engine_run *engine, uint32_t id, enum net_answer answer)
{
	engine_job_answer(&engine->job, id, answer);
}

void engine_hold_terminal(struct engine_run *engine, bool is_held)
{
	engine_job_hold_input(&engine->job, is_held);
	if (!is_held || !engine->is_over)
		engine_outlets_hold(&engine->outlets, is_held);
}

void engine_resize(struct engine_run *engine, const struct winsize *window)
{
	engine_job_resize(&engine->job, window);
}

/* --- asking about it ---------------------------------------------------------------------------------------- */

int engine_exit_status(const struct engine_run *engine)
{
	struct result_source source = source_of(engine);

	return result_exit_status(&source);
}

const struct error *engine_error(const struct engine_run *engine)
{
	const struct observation *seen = engine_job_seen(&engine->job);
	const struct error *error = &engine->job.launch.error;

	if (seen && seen->error.stage != STAGE_NONE)
		return &seen->error;
	return error->stage != STAGE_NONE ? error : NULL;
}

bool engine_is_over_pids(const struct engine_run *engine)
{
	const struct observation *seen = engine_job_seen(&engine->job);

	return seen && seen->cause == CAUSE_PIDS;
}

void engine_explain(const struct engine_run *engine, struct text *out)
{
	struct result_source source = source_of(engine);

	result_explain(&source, out);
}

bool engine_denied(const struct engine_run *engine, size_t index, struct text *what, struct text *cure)
{
	struct result_source source = source_of(engine);

	if (!source.plan || !source.seen || result_exit_status(&source) == 0)
		return false;
	return result_tell_denial(source.plan, source.seen, index, what, cure);
}

void engine_write_denied(const struct engine_run *engine, struct text *out)
{
	struct result_source source = source_of(engine);
	struct json_writer writer = {.text = out, .has_byte_escapes = true};

	json_open_object(&writer, NULL);
	result_write_denied(source.plan, source.seen, &writer);
	json_close_object(&writer);
}

bool engine_risky(const struct engine_run *engine, size_t index, struct text *words)
{
	const struct risky_list *risky = &engine->job.search.risky;

	if (index >= risky->count)
		return false;
	text_append_format(words, "'%s': %s", risky->items[index].path, risky->items[index].why);
	return true;
}

const char *engine_unsearched(const struct engine_run *engine)
{
	return survey_risky_unsearched_words(engine->job.search.risky.unsearched);
}

bool engine_workspace(const struct engine_run *engine, size_t index, struct text *words)
{
	struct result_source source = source_of(engine);
	const struct result_workspace *workspace;

	if (!source.workspaces || index >= source.workspaces->count)
		return false;
	workspace = &source.workspaces->items[index];
	if (workspace->id)
		text_append_format(
			words,
			"%" PRIu64 " added, %" PRIu64 " modified, %" PRIu64
			" deleted: in the workspace %s, not in '%s'; see `belljar diff %s`, then `apply` or `discard`",
			workspace->added, workspace->modified, workspace->deleted, workspace->id, workspace->path,
			workspace->id);
	return true;
}

bool engine_note(const struct engine_run *engine, size_t index, struct engine_note *out)
{
	const struct plan *plan = engine_job_plan(&engine->job);
	const struct plan_remark *remark;

	if (!plan || index >= plan->notes.count)
		return false;
	remark = &plan->notes.items[index];
	*out = (struct engine_note){
		.why = remark->why,
		.hint = remark->hint,
		.is_quiet = remark->time != REMARK_ALWAYS,
		.is_about_a_failure = remark->time == REMARK_AFTER_FAILURE,
	};
	return true;
}

bool engine_missing(const struct engine_run *engine, size_t index, const char **name, const char **why)
{
	const struct plan *plan = engine_job_plan(&engine->job);

	if (!plan || index >= plan->missing.count)
		return false;
	*name = plan->missing.items[index].name;
	*why = plan->missing.items[index].why;
	return true;
}

const char *engine_rung(const struct engine_run *engine)
{
	return engine_job_plan(&engine->job) ? plan_rung_name(engine_job_plan(&engine->job)->rung) : "none";
}

const char *engine_workdir(const struct engine_run *engine)
{
	const struct plan *plan = engine_job_plan(&engine->job);

	return plan ? plan->core.workdir : NULL;
}

static void print_time(struct text *out, uint64_t from_ns, uint64_t to_ns, const char *what)
{
	text_append_format(out, "%8.1f µs  %s\n", to_ns > from_ns ? (double)(to_ns - from_ns) / 1000 : 0.0, what);
}

void engine_print_timing(const struct engine_run *engine, struct text *out)
{
	const struct jar_times *times = engine->times;
	const struct launch *launch = &engine->job.launch;
	uint64_t last;

	print_time(out, engine->begun_ns, launch->surveyed_ns, "survey the host");
	print_time(out, launch->surveyed_ns, launch->planned_ns, "make the plan");
	if (!times || !times->begun_ns)
		return;
	print_time(out, launch->planned_ns, times->begun_ns, "prepare the streams");
	last = times->begun_ns;
	for (size_t i = 0; i < launch->plan.core.steps.count && i < JAR_TIMES_MAX && times->step_ns[i]; i++) {
		AUTO_TEXT words = {0};

		plan_describe_step(&launch->plan.core.steps.items[i], &words);
		print_time(out, last, times->step_ns[i], text_string(&words));
		last = times->step_ns[i];
	}
	print_time(out, last, times->started_ns, "start the command");
	if (engine_job_seen(&engine->job))
		print_time(out, times->started_ns, times->started_ns + engine_job_seen(&engine->job)->wall_us * 1000,
			   "the command, until everything is gone");
}

/* --- without a run ------------------------------------------------------------------------------------------ */

void engine_failure_result(const struct error *error, bool is_captured, struct text *out)
{
	struct result_source source = {.error = error, .is_captured = is_captured};

	write_result_line(&source, out);
}

void engine_failure_event(const struct error *error, struct text *out)
{
	struct event_stream events = {0};
	struct result_source source = {.error = error};

	engine_event_result(&events, 0, &source, out);
}

int engine_plan(const struct engine_request *request, bool is_json, struct text *out, struct error *error)
{
	struct job job = {.launch = launch_of(request)};
	struct launch *launch = &job.launch;
	int rc = engine_job_set_command(&job, request->command, (size_t)request->command_count,
					request->is_shell_string, &launch->error);

	launch->request = (struct plan_request){
		.argv = &job.argv,
		.is_captured = request->mode == ENGINE_JSON,
		.has_pty = request->has_pty,
	};
	launch->is_plan_only = true;
	if (rc == 0)
		rc = engine_launch_survey(launch);
	if (rc == 0 && engine_workspaces_pretend(&launch->host, launch->environment) < 0)
		rc = error_set(&launch->error, STAGE_ENGINE, ENOMEM, "out of memory");
	if (rc == 0)
		rc = engine_launch_compile(launch);
	if (rc < 0)
		*error = launch->error;
	else if (is_json)
		plan_print_json(&launch->plan, out);
	else
		plan_print(&launch->plan, out);
	engine_job_done(&job);
	return rc;
}
