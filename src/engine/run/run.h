/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/run.h - one run, from started to surely gone
 *
 * A run lives in a loop beside others. It reads the command's streams, applies redaction and the cap, keeps
 * deadlines, and ends the jar. Every run ends: when the jar's first process is gone, no process of the jar is
 * left, and the run reads the rest from the pipes.
 */
#ifndef BELLJAR_ENGINE_RUN_RUN_H
#define BELLJAR_ENGINE_RUN_RUN_H

#include "base/loop.h"
#include "inside/jar.h"
#include "policy/net_rules.h"
#include "base/reap/reap.h"
#include "engine/run/capture.h"
#include "engine/limits/observation.h"

struct run;
struct session;

/* A door's callbacks; any may be NULL. Called from within the loop. */
struct run_listener {
	void *owner;
	/* The command runs. */
	void (*started)(void *owner, struct run *run);
	/* Bytes after redaction and within the cap. Return true to make the run wait for run_resume(). */
	bool (*output)(void *owner, enum stream_index stream, const void *bytes, size_t len);
	/* @stream has ended or reached the cap. Not called if the command never started. */
	void (*ended)(void *owner, enum stream_index stream);
	/* A limit was reached for the first time. */
	void (*limit)(void *owner, enum limit_name name, const struct limit_hit *hit);
	/* Belljar refused something for the first time in this run. */
	void (*denied)(void *owner, const struct denial *denial);
	/* No rule decides: use run_answer(). NULL: Belljar refuses. withdrawn(): no answer is needed any more. */
	void (*question)(void *owner, const struct net_question *question);
	void (*withdrawn)(void *owner, uint32_t id);
	/*
	 * No process and no output of the run is left. It may be freed now, but not from within this call. The
	 * run's own jar is gone too; a jar that was given (run_request.jar) has its own listener.
	 */
	void (*done)(void *owner, struct run *run);
	/* After done(): the processes that a detached run left are gone too. */
	void (*emptied)(void *owner, struct run *run);
};

struct run_request {
	const struct plan *plan; /* must outlive the run */
	/*
	 * The jar to run in, of plan->jar; it need not be ready yet. The run uses a prepared jar up. NULL: the run
	 * makes its own. If the jar cannot be made or dies, the run is done too, and its observation says why.
	 */
	struct session *jar;
	const struct jar_argv_memory *argv_memory; /* a jar of its own only */
	struct jar_times *times;                   /* may be NULL; a jar of its own only */
	struct run_listener listener;
	bool is_captured;     /* keep output for the result, with or without a listener */
	bool is_rest_taken;   /* do not wait for a slow reader after the command's own end: output() gets the rest */
	bool is_merged;       /* the command's standard error is its standard output */
	bool is_detached;     /* in a session, without a terminal: the command's other processes outlive it */
	bool is_held;         /* its time begins with run_go() */
	const int *extra_fds; /* the command has them as 3, 4, ...; borrowed until run_start() returns */
	size_t extra_count;   /* at most JAR_EXTRA_MAX */
	int stdin_fd;         /* for the command as it is, or -1: relayed from @relay_fd, or nothing */
	int relay_fd; /* bytes read here become the command's standard input (or are typed into its terminal); -1: none */
	bool is_relay_terminal;
	bool has_pty;
	struct winsize window;
	/* Children of this process that are not orphans; the run's own jar enters and leaves it. NULL: none. */
	struct reap_family *family;
};

/* Start a run. On failure nothing is running. */
int run_start(struct loop *loop, const struct run_request *request, struct run **out, struct error *error);
void run_free(struct run *run);

/* Start the time of a run that was held. */
void run_go(struct run *run);
/* Cancel the run: send @signal_number, after the grace SIGKILL; at once if called again. */
void run_cancel(struct run *run, int signal_number);
/* End the run now, because its output cannot be written. */
void run_output_lost(struct run *run, int errno_value, const char *what);
/* End the run if it is not over, because a wall of the jar failed, as @error says. It counts as cancelled. */
void run_breach(struct run *run, const struct error *error);
/* Send a signal to every process of the command's tree, and change nothing else. */
void run_signal(struct run *run, int signal_number);
void run_resize(struct run *run, const struct winsize *window);
/* Answer a question. Ignores a question that is gone. */
void run_answer(struct run *run, uint32_t id, enum net_answer answer);
/* Stop or resume reading the caller's standard input, while Belljar asks the user there. */
void run_hold_input(struct run *run, bool is_held);
/* The listener that asked to wait can take more of @stream. */
void run_resume(struct run *run, enum stream_index stream);

/* Whether the run is done, but other processes of the command continue. */
bool run_is_left(const struct run *run);
const struct observation *run_observation(const struct run *run);
/* The observation's error once the run is done, for a caller that can improve its words. */
struct error *run_error(struct run *run);
/* NULL where output was not captured. */
const struct capture *run_capture(const struct run *run);
/* Nanoseconds since the command began; before that, since the making of its jar began. */
uint64_t run_elapsed_ns(const struct run *run);

#endif
