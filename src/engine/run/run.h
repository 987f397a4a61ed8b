/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/run.h - one run, from started to surely gone
 *
 * A run lives in a loop beside others. It reads the command's streams, applies redaction and the cap, keeps deadlines,
 * and ends the jar; the end is always reached: when the jar's first process is gone, nothing of the jar is left, and what
 * is still in the pipes is all that will ever come.
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

/* What a door wants to know; any may be NULL. Called from within the loop. */
struct run_listener {
	void *owner;
	/* The command runs. */
	void (*started)(void *owner, struct run *run);
	/* Bytes that may be seen by others: redacted and within the cap. Return true to be asked to wait: see run_resume(). */
	bool (*output)(void *owner, enum stream_index stream, const void *bytes, size_t len);
	/* No more of @stream comes: it was closed, or the cap is reached. Not told where the command was never started. */
	void (*ended)(void *owner, enum stream_index stream);
	/* A limit was reached for the first time. */
	void (*limit)(void *owner, enum limit_name name, const struct limit_hit *hit);
	/* Something was refused for the first time in this run. */
	void (*denied)(void *owner, const struct denial *denial);
	/* What no rule decides is asked: run_answer(). NULL: nobody answers, and it is refused. Or nobody need answer any more. */
	void (*question)(void *owner, const struct net_question *question);
	void (*withdrawn)(void *owner, uint32_t id);
	/*
	 * No process of the run is left, all output was handed over. The run may be freed now, but not from within this
	 * call. A jar of its own is gone too; one it was given (run_request.jar) has a listener of its own.
	 */
	void (*done)(void *owner, struct run *run);
	/* After done(), of one that has left others running: nothing of them is left either. */
	void (*emptied)(void *owner, struct run *run);
};

struct run_request {
	const struct plan *plan; /* must outlive the run */
	/*
	 * The jar to run in, of plan->jar; it need not be ready yet. A prepared one is used up by it. NULL: a jar of the
	 * run's own. If the jar cannot be made or dies, the run is done too, and its observation says why.
	 */
	struct session *jar;
	const struct jar_argv_memory *argv_memory; /* a jar of its own only */
	struct jar_times *times;                   /* may be NULL; a jar of its own only */
	struct run_listener listener;
	bool is_captured; /* keep output for the result, whether or not a listener hears it too */
	bool is_rest_taken; /* a command that has ended by itself is done although its reader is slow: output() gets the rest */
	bool is_merged;       /* the command's standard error is its standard output */
	bool is_detached;     /* in a session, without a terminal: what the command has started goes on after its end */
	bool is_held;         /* it has nothing to do yet: its time begins with run_go() */
	const int *extra_fds; /* the command has them as 3, 4, ...; borrowed until run_start() returns */
	size_t extra_count;   /* at most JAR_EXTRA_MAX */
	int stdin_fd;         /* for the command as it is, or -1: relayed from @relay_fd, or nothing */
	int relay_fd; /* bytes read here become the command's standard input (or are typed into its terminal); -1: none */
	bool is_relay_terminal;
	bool has_pty;
	struct winsize window;
	/* Children of this process that are nobody's orphans; a jar of the run's own enters and leaves it. NULL: none. */
	struct reap_family *family;
};

/* Begin. On failure nothing is running. */
int run_start(struct loop *loop, const struct run_request *request, struct run **out, struct error *error);
void run_free(struct run *run);

/* One that was held has something to do now. */
void run_go(struct run *run);
/* End the run because someone wants it ended: signal @signal_number, after the grace SIGKILL; at once if called again. */
void run_cancel(struct run *run, int signal_number);
/* Nobody takes the output any more: end the run now. */
void run_output_lost(struct run *run, int errno_value, const char *what);
/* A wall of the jar turned out not to hold, as @error says: end the run if it is not over. It counts as cancelled. */
void run_breach(struct run *run, const struct error *error);
/* Send a signal to every process of the command's tree, and change nothing else. */
void run_signal(struct run *run, int signal_number);
void run_resize(struct run *run, const struct winsize *window);
/* The answer to a question; one that is not there any more is nothing. */
void run_answer(struct run *run, uint32_t id, enum net_answer answer);
/* Take nothing from the caller's standard input for a while: somebody else reads there. */
void run_hold_input(struct run *run, bool is_held);
/* The listener that asked to wait can take more of @stream. */
void run_resume(struct run *run, enum stream_index stream);

/* It is done, but what the command has started goes on. */
bool run_is_left(const struct run *run);
const struct observation *run_observation(const struct run *run);
/* The observation's error once the run is done, for whoever can put it into better words. */
struct error *run_error(struct run *run);
/* NULL where output was not captured. */
const struct capture *run_capture(const struct run *run);
/* Nanoseconds since the command began; before that, since the making of its jar began. */
uint64_t run_elapsed_ns(const struct run *run);

#endif
