/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_job.h - one command, from a policy to surely gone: what every door has in common
 *
 * A door says what to run and where the streams go, and hears what comes of it. The end is always told, whatever went
 * wrong, and never from within a call of the door's own.
 */
#ifndef BELLJAR_ENGINE_ENGINE_JOB_H
#define BELLJAR_ENGINE_ENGINE_JOB_H

#include "engine/engine_launch.h"
#include "result/result.h"
#include "run/run.h"

/* The command in a jar that stands already. All borrowed; must outlive the job. */
struct job_jar {
	struct session *jar;
	const struct plan *plan;
	const struct host *host;
};

struct job;

struct job_listener {
	void *owner;
	void (*started)(void *owner);
	bool (*output)(void *owner, enum stream_index stream, const void *bytes,
		       size_t len); /* NULL: nobody hears it */
	void (*limit)(void *owner, enum limit_name name, const struct limit_hit *hit);
	void (*over)(void *owner);
};

struct job_request {
	struct loop *loop;
	struct job_listener listener;
	struct jar_argv_memory area;
	struct jar_times *times;
	bool is_captured;
	bool is_merged;
	bool is_held;
	bool has_pty;
	struct winsize window;
	int stdin_fd; /* as in run_request; descriptors are borrowed as long as the job lives */
	int relay_fd;
	bool is_relay_terminal;
	const int *extra_fds;
	size_t extra_count;
	struct reap_family *family;
	struct job_jar jar; /* .jar NULL: one of its own */
};

struct job {
	struct job_request request;
	struct launch launch; /* those members that are to be filled in, by the door; its plan_request by job_start() */
	struct string_list argv;
	struct host joined_host; /* a jar of another's: its facts, with the environment of this run; owns nothing */
	struct run *run;
	struct watch_list watched; /* what other programs run or obey, before this run */
	struct host_moment start;
	struct risky_list risky;
	struct loop_timer later; /* to leave a callback before starting anew or telling the end */
	bool is_over;
};

/* Set the words of the command: "/bin/sh -c" before a string for the shell. */
int job_set_command(struct job *job, char *const *command, size_t count, bool is_shell_string, struct error *error);
/*
 * Begin; what goes wrong is told by over(). Where launch.error is set already, that is all that comes of it; where
 * launch_survey() was called already, it is not called again.
 */
void job_start(struct job *job);
void job_done(struct job *job);

/* One that was held has something to do now. */
void job_go(struct job *job);
void job_cancel(struct job *job, int signal_number);
/* At once, without a grace. */
void job_kill(struct job *job);
void job_signal(struct job *job, int signal_number);
void job_resize(struct job *job, const struct winsize *window);

/* NULL: it never came to a plan, to a run. */
const struct plan *job_plan(const struct job *job);
const struct observation *job_seen(const struct job *job);
/* Everything about streams is left for the door to fill in, but for the capture. */
struct result_source job_result(const struct job *job);

#endif
