/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_job.h - a job is one command from a policy to its end: survey, plan, run, plan again if need be
 *
 * Every door (the command line, the server) has its commands run as jobs. It fills a job in, starts it and hears over()
 * in the end, never from within a call of its own.
 */
#ifndef BELLJAR_ENGINE_ENGINE_JOB_H
#define BELLJAR_ENGINE_ENGINE_JOB_H

#include "engine/engine_guard.h"
#include "engine/engine_launch.h"
#include "engine/engine_search.h"
#include "survey/survey_own.h"
#include "engine/result/result.h"
#include "engine/run/run.h"

/* An existing jar for a job to run in. All borrowed; must outlive the job. */
struct job_jar {
	struct session *session; /* NULL: the job makes a jar of its own */
	const struct plan *plan;
	const struct host *host;
	struct engine_workspaces *workspaces;
	const struct engine_project *project; /* of the jar; NULL: the job has one of its own */
	struct engine_baseline *
		baseline; /* what the search compares with; NULL: what the job's survey found. Held by engine_job_start() */
	struct engine_guard *guard;
	bool is_kept; /* other jobs may follow */
};

/* Requests that came before there was a run. */
struct job_held {
	unsigned cancels;
	int cancel_number, signal_number;
	bool is_input_held;
};

struct job {
	/* --- filled in by the door --- */
	struct loop *loop;
	struct launch launch; /* its first part; engine_job_start() fills in its plan_request */
	/*
	 * The streams and their listener; descriptors are borrowed for the life of the job. The listener's functions
	 * get the job as owner. engine_job_start() sets `plan`, `jar` and the listener's `owner` and `done`.
	 */
	struct run_request request;
	const char *input_name; /* as in struct plan_request */
	const struct host_path *input;
	struct job_jar jar;
	void (*choose)(struct job *job); /* may fill in `jar` after the survey; NULL: no choice */
	void (*over)(struct job *job);   /* always called once, whatever went wrong, from within the loop */
	void *owner;                     /* the door's own */
	/* --- the job's own --- */
	struct string_list argv;
	struct host joined_host; /* a jar of another's: its facts, with the environment of this run; owns nothing */
	struct run *run;
	struct engine_search search;
	struct engine_question question; /* before a run in a jar that stands */
	struct job_held held;
	struct host_own_marks own; /* Belljar's own files before this run */
	struct engine_guard guard; /* of a jar of the job's own */
	struct loop_timer later;   /* to leave a callback before starting anew or telling the end */
	bool is_over;
};

/* Set the words of the command: "/bin/sh -c" before a string for the shell. */
int engine_job_set_command(struct job *job, char *const *command, size_t count, bool is_shell_string,
			   struct error *error);
/* Start the job; over() reports errors. If launch.error is set already, over() reports that alone. */
void engine_job_start(struct job *job);
void engine_job_done(struct job *job);

/* Start the time of a job that was held. */
void engine_job_go(struct job *job);
void engine_job_cancel(struct job *job, int signal_number);
/* Kill it at once, without a grace. */
void engine_job_kill(struct job *job);
void engine_job_signal(struct job *job, int signal_number);
/* As run_answer(), run_hold_input(). */
void engine_job_answer(struct job *job, uint32_t id, enum net_answer answer);
void engine_job_hold_input(struct job *job, bool is_held);
void engine_job_resize(struct job *job, const struct winsize *window);

/* NULL: it never came to a plan, to a run. */
const struct plan *engine_job_plan(const struct job *job);
const struct observation *engine_job_seen(const struct job *job);
/* Get the result. The door fills in everything about streams except the capture. */
struct result_source engine_job_result(const struct job *job);

#endif
