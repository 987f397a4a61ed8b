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

#include "plan/plan.h"

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

/* Children of this process that are nobody's orphans: see jar_end_orphans(). */
struct jar_family {
	pid_t *items;
	size_t count;
	size_t capacity;
	unsigned hunters; /* of these, so many are at work: see jar_start_hunter() */
};
/* 0 or -ENOMEM; both accept NULL, for a process that has no other children. */
int jar_family_add(struct jar_family *family, pid_t pid);
void jar_family_remove(struct jar_family *family, pid_t pid);

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

/* What the jar's first process does when everything stands. */
enum jar_mode {
	JAR_MODE_ONCE,  /* start the plan's command, and leave with it */
	JAR_MODE_WAIT,  /* wait for one command to be sent, and leave with it */
	JAR_MODE_SERVE, /* make keepers, each for one command, until told to leave */
};

/* Memory of this process that /proc shows as command line and environment; the jar's first process wipes its copy. */
struct jar_area {
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
	JAR_READY, /* not JAR_MODE_ONCE: a command can be sent, or a keeper asked for; the sender's pid inside: `status` */
	JAR_EMPTY, /* likewise: every process but the sender is dead and reaped; `self` is what they used. `step` is 1 if
	              JAR_RENEW is waited for. With `has_ended` it stands for JAR_EXITED too */
	JAR_KEEPER_GONE, /* the keeper numbered `step` and all it started are dead and reaped */
	JAR_OPENED,      /* the answer to one JAR_OPEN, in order; attached: the file, or `error` says why not */
	/* to the jar */
	JAR_SIGNAL, /* send `status` to every process of the command's tree */
	JAR_KILL,   /* end the jar now, or only the keeper numbered `step` if that is not 0 */
	JAR_RUN, /* a specification (jar_spec.h) follows, or is attached if `has_file`; attached: the command's descriptors */
	JAR_KEEPER, /* make keeper number `step`; attached: its own control socket, and cgroups to enter */
	JAR_RENEW,  /* to a keeper whose run is over: be ready for another; attached: cgroups for that to enter */
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

/* @streams may be NULL where @mode is not JAR_MODE_ONCE; so may @times. */
int jar_start(const struct plan *plan, enum jar_mode mode, const struct jar_streams *streams,
	      const struct jar_area *area, struct jar_times *times, struct jar *jar, struct error *error);
/*
 * The jar's first process was killed before it could do its work, on a rung without a pid namespace: what it left are
 * children of this process now (jar_start() has made it a subreaper). None of these three waits for anything.
 *
 * Reap those children that have ended, and kill the others; all but the @spared. True: there was none, and so nothing
 * below any either. Those that were killed and not reaped, @max at most, are in @found. @is_patient: not those that are
 * dead and traced by somebody else, who may take his time.
 */
bool jar_end_orphans(const struct jar_family *spared, bool is_patient, pid_t *found, size_t max, size_t *count_out);
/*
 * Make a process that ends all that is below @roots, which are children of this process: a tree that grows in its depth
 * outruns who kills only children. Until it has left, nothing may be reaped that is not in the family. It must be reaped
 * itself. Its pid or a negative errno.
 */
pid_t jar_start_hunter(const pid_t *roots, size_t count);
/* The same, to remove a directory and all in it. */
pid_t jar_start_sweeper(const char *directory);

/* Receive one message; *@fd_out is a descriptor that came with it, or -1. 1, 0 at the end, -EAGAIN, a negative errno. */
int jar_receive(int control_fd, struct jar_message *message, int *fd_out);
/* All sending is without waiting: -EAGAIN if the other side has left too much unread. */
int jar_send(int control_fd, const struct jar_message *message, int fd);

/* Send @plan's command to a first process or keeper that waits for one. It may be sent before that is ready. */
int jar_send_run(int control_fd, const struct plan *plan, const struct jar_streams *streams);
/* Two ends of a control socket. */
int jar_socket_pair(int *engine_end, int *jar_end);
/*
 * Ask for keeper @number, which is not 0, with the control socket @keeper_end. It enters the cgroups whose files of
 * members are @cgroup_fds, then says JAR_READY or JAR_STEP_FAILED there. Its end is told with JAR_KEEPER_GONE on
 * @control_fd, in every case.
 */
int jar_send_keeper(int control_fd, uint32_t number, int keeper_end, const int *cgroup_fds, size_t cgroup_count);
/* Ask a keeper whose run is over to be ready for another one. It answers as a new one does. */
int jar_send_renew(int control_fd, const int *cgroup_fds, size_t cgroup_count);
int jar_send_open(int control_fd, const char *path, enum jar_access access, mode_t mode);

#endif
