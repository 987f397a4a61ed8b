/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/jar.h - what the engine gives the first process of a jar, beside the plan
 *
 * jar_start_process() makes the jar's first process. It carries the plan's steps out, starts the command,
 * reaps, and holds one end of the control socket. On the namespace rung it is process 1 of a pid
 * namespace, so the kernel ends every process of the jar with it. Elsewhere it is a subreaper and ends
 * its descendants before it leaves. When the engine closes the other end of the control socket, or dies,
 * the first process ends the jar by itself: no process outlives the engine.
 */
#ifndef BELLJAR_INSIDE_JAR_H
#define BELLJAR_INSIDE_JAR_H

#include <sys/ioctl.h>

#include "base/error.h"
#include "inside/control.h"
#include "inside/jar_plan.h"
#include "base/reap/reap_time.h"

/* The most descriptors that a command can get beside its three streams. */
#define JAR_EXTRA_MAX 64

/* Descriptors for the command, borrowed, and its time. With a pty the three are -1; JAR_TERMINAL brings the master. */
struct jar_streams {
	int stdin_fd;
	int stdout_fd;
	int stderr_fd;
	const int *extra_fds; /* the command has them as 3, 4, ... */
	size_t extra_count;   /* at most JAR_EXTRA_MAX */
	bool has_pty;
	struct winsize window;
	struct reap_time time; /* after it the minder ends the command by itself */
};

struct jar_inside;
/* Run the jar's first process once all steps are done. Never returns. */
typedef void jar_main_function(struct jar_inside *inside);

/* Memory of this process that /proc shows as command line and environment; the jar's first process wipes its copy. */
struct jar_argv_memory {
	char *start;
	size_t len;
};

/* When each step was done, for --timing; in memory shared with the jar's first process. */
#define JAR_TIMES_MAX 512
struct jar_times {
	uint64_t begun_ns;
	uint64_t step_ns[JAR_TIMES_MAX];
	uint64_t entry_ns[JAR_TIMES_MAX];
	uint64_t started_ns;
};

#define JAR_STREAM_FDS 3
/* A command to start: the plan's own, or one that was sent. */
struct jar_command {
	char *const *argv;
	size_t argv_count;
	char *const *env;
	size_t env_count;
	char *const *candidates; /* as in struct jar_plan */
	size_t candidate_count;
	struct plan_step_list entry;
	int fds[JAR_STREAM_FDS + JAR_EXTRA_MAX]; /* become 0, 1, 2, ... in it; higher numbers than these */
	size_t fd_count;
	bool has_pty;
	bool is_metered; /* of one that was sent: the engine measures it */
	struct winsize window;
	struct reap_time time; /* as in struct jar_streams */
	/* Of one that was sent: the memory behind the other members. */
	void *spec, *lists;
	size_t spec_len, lists_len;
};

#endif
