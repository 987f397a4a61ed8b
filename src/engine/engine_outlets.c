/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_outlets.c - where the output of a job goes
 */
#include "engine/engine_outlets.h"

#include <string.h>

#include "base/sys/calls.h"

/* A run that a limit ended, and a reader that takes nothing: after this long the rest is dropped. */
#define FLUSH_STALL_NS 1000000000ULL

static const char *const stream_words[] = {[STREAM_STDOUT] = "standard output", [STREAM_STDERR] = "standard error"};

static struct outlet *outlet_of(struct engine_outlets *outlets, enum stream_index stream)
{
	return &outlets->items[outlets->is_shared ? STREAM_STDOUT : stream];
}

/* The reader sees the end only when the last copy is closed: ours, and the one we were given. */
static void close_ended(struct engine_outlets *outlets, enum stream_index stream)
{
	struct outlet *outlet = &outlets->items[stream];

	if (!outlets->is_ending[stream] || !outlets->is_open[stream] || !run_outlet_is_empty(outlet))
		return;
	outlets->is_open[stream] = false;
	run_outlet_done(outlet);
	close_fd(&outlets->sinks[stream]);
}

static void outlets_on_outlet(struct outlet *outlet)
{
	struct engine_outlets *outlets = outlet->owner;
	struct job *job = outlets->job;
	enum stream_index stream = outlet == &outlets->items[STREAM_STDERR] ? STREAM_STDERR : STREAM_STDOUT;

	if (outlet->lost_error && job->run)
		run_output_lost(job->run, outlet->lost_error, stream_words[stream]);
	else if (outlet->lost_error)
		error_set(&job->launch.error, STAGE_OUTPUT, outlet->lost_error, "cannot write the result: %s",
			  strerror(outlet->lost_error));
	for (int i = 0; i < STREAM_COUNT && job->run && !job->is_over && !run_outlet_is_full(outlet); i++)
		if (outlet_of(outlets, (enum stream_index)i) == outlet)
			run_resume(job->run, (enum stream_index)i);
	close_ended(outlets, stream);
	outlets->moved(job);
}

int engine_outlets_open(struct engine_outlets *outlets, const int fds[STREAM_COUNT], bool is_watching,
			struct error *error)
{
	int rc = 0;

	for (int i = 0; i < (outlets->is_shared ? 1 : STREAM_COUNT) && rc == 0; i++) {
		rc = run_outlet_open(&outlets->items[i], outlets->loop, fds[i], is_watching, outlets_on_outlet,
				     outlets);
		outlets->is_open[i] = rc == 0;
	}
	return rc < 0 ? error_set(error, STAGE_ENGINE, -rc, "cannot watch the output: %s", strerror(-rc)) : 0;
}

void engine_outlets_done(struct engine_outlets *outlets)
{
	loop_disarm(&outlets->stall);
	for (int i = 0; i < STREAM_COUNT; i++)
		if (outlets->is_open[i])
			run_outlet_done(&outlets->items[i]);
}

bool engine_outlets_write(struct engine_outlets *outlets, enum stream_index stream, const void *bytes, size_t len)
{
	struct outlet *outlet = outlet_of(outlets, stream);

	run_outlet_write(outlet, bytes, len);
	return run_outlet_is_full(outlet);
}

void engine_outlets_end(struct engine_outlets *outlets, enum stream_index stream)
{
	outlets->is_ending[stream] = true;
	close_ended(outlets, stream);
}

void engine_outlets_hold(struct engine_outlets *outlets, bool is_held)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		if (outlets->is_open[i] && (!is_held || isatty(outlets->items[i].borrowed_fd)))
			run_outlet_hold(&outlets->items[i], is_held);
}

bool engine_outlets_are_empty(const struct engine_outlets *outlets)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		if (outlets->is_open[i] && !run_outlet_is_empty(&outlets->items[i]))
			return false;
	return true;
}

void engine_outlets_drop(struct engine_outlets *outlets)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		if (outlets->is_open[i])
			text_clear(&outlets->items[i].pending);
	outlets->moved(outlets->job);
}

static void outlets_on_stall(struct loop_timer *timer)
{
	engine_outlets_drop(timer->owner);
}

void engine_outlets_drop_later(struct engine_outlets *outlets)
{
	loop_arm(outlets->loop, &outlets->stall, sys_monotonic_ns() + FLUSH_STALL_NS, outlets_on_stall, outlets);
}
