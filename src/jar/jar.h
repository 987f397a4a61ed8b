/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar.h - carry a plan out: make the jar, start the command in it, watch over it from inside
 *
 * The jar's first process is made by jar_start(). It carries the plan's steps out, starts the command, reaps, and holds
 * one end of the control socket. On the namespace rung it is process 1 of a pid namespace, so its end is the end of
 * everything in the jar; elsewhere it is a subreaper and hunts its descendants down before it leaves. When the other end
 * of the control socket closes, because the engine closed it or died, it ends the jar by itself: nothing outlives the
 * engine.
 */
#ifndef BELLJAR_JAR_JAR_H
#define BELLJAR_JAR_JAR_H

#include <sys/ioctl.h>

#include "base/error.h"
#include "control/control_message.h"
#include "jar/jar_plan.h"
#include "reap/reap_time.h"

/* So many descriptors beside the three streams can be given to a command. */
#define JAR_EXTRA_MAX 64

/* Descriptors for the command, borrowed, and its time. With a pty only @stdin_fd etc. are -1, and the master comes with JAR_TERMINAL. */
struct jar_streams {
	int stdin_fd;
	int stdout_fd;
	int stderr_fd;
	const int *extra_fds; /* the command has them as 3, 4, ... */
	size_t extra_count;   /* at most JAR_EXTRA_MAX */
	bool has_pty;
	struct winsize window;
	struct reap_time time; /* then its minder ends it, though the engine has not said so */
};

struct jar_inside;
/* What the jar's first process does when everything stands. Never returns. */
typedef void jar_main_function(struct jar_inside *inside);

/* Memory of this process that /proc shows as command line and environment; the jar's first process wipes its copy. */
struct jar_argv_memory {
	char *start;
	size_t len;
};

struct jar {
	pid_t pid;
	int pidfd;
	int control_fd;
};

/* When each step was done, for --timing; in memory shared with the jar's first process. */
#define JAR_TIMES_MAX 512
struct jar_times {
	uint64_t begun_ns;
	uint64_t step_ns[JAR_TIMES_MAX];
	uint64_t entry_ns[JAR_TIMES_MAX];
	uint64_t started_ns;
};

/*
 * Make the jar of @plan. With @main NULL its first process starts the plan's command and leaves with it; else it goes on with
 * @main once everything stands, and @streams may be NULL. So may @times.
 */
int jar_start(const struct jar_plan *plan, jar_main_function *main, const struct jar_streams *streams,
	      const struct jar_argv_memory *argv_memory, struct jar_times *times, struct jar *jar, struct error *error);

#endif
