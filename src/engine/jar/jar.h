/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar.h - a jar that outlives the request that made it: prepared for one run, or a session of many
 *
 * jar_open() begins; runs may start in the jar at once (run_request.jar) and wait until it is ready. A prepared jar
 * (PLAN_PREPARED) takes one run and is gone after it. A session (PLAN_SESSION, PLAN_CALLS) takes runs, also at the same
 * time, until it is closed: each has a minder of its own inside, which starts the command and ends its tree. Minders are
 * made ahead. The limits of a session for commands hold for the sum of its runs.
 *
 * One-shot jars are made of the same record; runs begin those by themselves (jar_slot.h).
 */
#ifndef BELLJAR_ENGINE_JAR_JAR_H
#define BELLJAR_ENGINE_JAR_JAR_H

#include "base/loop.h"
#include "inside/jar.h"
#include "engine/limits/limiter.h"
#include "base/reap/reap.h"
#include "inside/task/task.h"

struct session;

/* A door's callbacks; any may be NULL. Called from within the loop. */
struct session_listener {
	void *owner;
	/* The jar is ready. */
	void (*ready)(void *owner, struct session *jar);
	/*
	 * No process of the jar is left, and every run in it is over. It may be freed now, but not from within
	 * this call. jar_observation() says whether it was ever ready (has_started), and if not, why.
	 */
	void (*gone)(void *owner, struct session *jar);
};

struct session_request {
	const struct plan *plan; /* plan_compile_jar(); must outlive the jar */
	jar_main_function *main; /* of the first process; NULL: as for commands */
	const struct jar_argv_memory *argv_memory;
	struct jar_times *times; /* may be NULL */
	/* Of a jar for calls: the zygote's descriptors from 4 on; borrowed until jar_open() returns. */
	const int *zygote_fds;
	size_t zygote_fd_count;
	/* The engine's, one for all its jars; this jar enters and leaves it by itself. NULL: the engine has no other children. */
	struct reap_family *family;
	struct session_listener listener;
};

/* Start a jar. On failure nothing is running. */
int jar_open(struct loop *loop, const struct session_request *request, struct session **out, struct error *error);
/* Kill the jar's processes and end it; its runs end as cancelled. Calls the listener when the jar is gone. */
void jar_close(struct session *jar);
/* Free a jar without runs. If it is not gone, kill it and wait. */
void jar_free(struct session *jar);

bool jar_is_ready(const struct session *jar);
/* has_started: the jar is or was ready; error, failed_step, steps_done: as of a run. */
const struct observation *jar_observation(const struct session *jar);

unsigned jar_run_count(const struct session *jar);
/* Get the use of the jar as a whole, and its number of runs. */
void jar_usage(const struct session *jar, struct limiter_usage *out, unsigned *run_count_out);

/* engine/gate/engine_gate.h: engine_gate_change(), engine_gate_forget_change(). -ENOTCONN: the jar has no gate. */
struct gate_change;
struct net_rule;
int jar_change_rules(struct session *jar, const struct net_rule *rule, void (*function)(void *owner, int rc),
		     void *owner, struct gate_change **out);
void jar_forget_change(struct gate_change *change);

/* --- jar_tasks.c: tasks that the jar carries out for a caller outside ----------------------------------------- */

struct session_task;

struct session_task_request {
	struct jar_task task;
	const char *path; /* the jar's; a relative one starts at the workdir. NULL: the operation has none */
	const char *to;   /* TASK_RENAME */
};

/* Called from within the loop, never from within jar_begin_task(). */
struct session_task_listener {
	void *owner;
	/* TASK_PROCESSES: one of them. @text has its name, then its arguments, each with its NUL. */
	void (*process)(void *owner, const struct jar_message *message, const char *text, size_t text_len);
	/* The task is over and freed. The receiver owns @fd from here on; -1: nothing was opened. */
	void (*done)(void *owner, const struct jar_message *message, int fd);
};

/* Have the jar carry out a task behind its walls. 0 or a negative errno. */
int jar_begin_task(struct session *jar, const struct session_task_request *request,
		   const struct session_task_listener *listener, struct session_task **out);
/* Drop a task whose answer is not needed any more; the jar stops a long one. */
void jar_drop_task(struct session_task *task);

#endif
