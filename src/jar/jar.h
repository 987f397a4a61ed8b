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
#include <sys/resource.h>

#include "base/error.h"
#include "jar/jar_plan.h"

/* So many descriptors beside the three streams can be given to a command. */
#define JAR_EXTRA_MAX 64

/* A path that is opened in a kept jar is shorter than this. */
#define JAR_PATH_MAX 4095

/* How a file in a kept jar is opened. */
enum jar_access {
	JAR_READ,  /* a regular file, to read */
	JAR_WRITE, /* a regular file, made or emptied, to write; the last component is not followed if it is a link */
	JAR_LIST,  /* a directory; likewise */
};

/* Descriptors for the command, borrowed. With a pty only @stdin_fd etc. are -1, and the master comes with JAR_TERMINAL. */
struct jar_streams {
	int stdin_fd;
	int stdout_fd;
	int stderr_fd;
	const int *extra_fds; /* the command has them as 3, 4, ... */
	size_t extra_count;   /* at most JAR_EXTRA_MAX */
	bool has_pty;
	struct winsize window;
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

enum jar_message_kind {
	/* from the jar */
	JAR_STEP_FAILED = 1, /* step number in `step`, of the entry list if `is_entry`; nothing has run */
	JAR_EXEC_FAILED,
	JAR_VIEW,     /* attached: the descriptor that `step`, an enum jar_view, names; before JAR_STARTED */
	JAR_TERMINAL, /* attached: the master of the command's pty; before JAR_STARTED */
	JAR_STARTED,
	JAR_WRITTEN, /* all that was waited for has written `written_bytes` */
	JAR_EXITED,  /* wait status of the command in `status` */
	JAR_READY, /* of a first process with a main function, or a minder: a command can be sent, or a minder asked for; the sender's pid inside: `status` */
	JAR_EMPTY, /* likewise: every process but the sender is dead and reaped; `self` is what they used. `step` is 1 if
	              JAR_RENEW is waited for. With `has_ended` it stands for JAR_EXITED too */
	JAR_MINDER_GONE, /* the minder numbered `step` and all it started are dead and reaped */
	JAR_OPENED,      /* the answer to one JAR_OPEN, in order; attached: the file, or `error` says why not */
	/* to the jar */
	JAR_SIGNAL, /* send `status` to every process of the command's tree */
	JAR_KILL,   /* end the jar now, or only the minder numbered `step` if that is not 0 */
	JAR_RUN, /* a specification (jar_spec.h) follows, or is attached if `has_file`; attached: the command's descriptors */
	JAR_MINDER, /* make minder number `step`; attached: its own control socket, and cgroups to enter */
	JAR_RENEW,  /* to a minder whose run is over: be ready for another; attached: cgroups for that to enter */
	JAR_OPEN,   /* open the path that follows, `status` an enum jar_access, with the mode `error` */
};

/* What the engine's meter looks at. */
enum jar_view {
	JAR_VIEW_PROC,   /* the jar's /proc */
	JAR_VIEW_ROOT,   /* the jar's root directory (O_PATH), for its private places */
	JAR_VIEW_SHARED, /* the lists of what System V keeps for the jar: shared memory ... */
	JAR_VIEW_QUEUES,
	JAR_VIEW_SEMAPHORES,
	JAR_VIEW_CLOCK, /* a clock of all CPU time of the jar */
	JAR_VIEW_COUNT,
};

struct jar_message {
	int32_t kind;
	int32_t step;
	int32_t is_entry;
	int32_t error; /* positive errno */
	int32_t status;
	int32_t has_ended; /* JAR_EMPTY: so has the command; its wait status is in `status` */
	int32_t has_file;
	int32_t interpreter_missing; /* JAR_EXEC_FAILED with ENOENT: the file is there, what it names on its first line is not */
	uint32_t steps_done, entry_done;
	uint64_t begun_ns; /* JAR_STARTED: when the command's process was made */
	uint64_t ended_ns; /* JAR_EXITED: when its end was seen */
	uint64_t written_bytes;
	uint64_t clock_ns;  /* JAR_VIEW_CLOCK: what it showed before the command began */
	struct rusage self; /* what making the jar cost, to be taken off the tree's usage */
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
	      const struct jar_argv_memory *area, struct jar_times *times, struct jar *jar, struct error *error);

/* Receive one message; *@fd_out is a descriptor that came with it, or -1. 1, 0 at the end, -EAGAIN, a negative errno. */
int jar_receive(int control_fd, struct jar_message *message, int *fd_out);
/* All sending is without waiting: -EAGAIN if the other side has left too much unread. */
int jar_send(int control_fd, const struct jar_message *message, int fd);

/* Two ends of a control socket. */
int jar_socket_pair(int *engine_end, int *jar_end);

#endif
