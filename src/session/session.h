/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/session.h - a jar that outlives the request that made it: prepared for one run, or a session of many
 *
 * session_open() begins; runs may be started in the jar at once (run_request.jar) and wait until it stands. A prepared jar
 * (PLAN_PREPARED) takes one run and is gone after it. A session (PLAN_SESSION, PLAN_CALLS) takes runs, also at the same
 * time, until it is closed: each has a minder of its own inside, which starts the command and ends its tree. Minders are
 * made ahead. The limits of a session for commands hold for the sum of its runs.
 *
 * One-shot jars are made of the same record; runs begin those by themselves (session_slot.h).
 */
#ifndef BELLJAR_SESSION_SESSION_H
#define BELLJAR_SESSION_SESSION_H

#include "base/loop.h"
#include "jar/jar.h"
#include "limits/observation.h"
#include "reap/reap.h"
#include "session/session_send.h"

struct session;

/* What a door wants to know; any may be NULL. Called from within the loop. */
struct session_listener {
	void *owner;
	/* The jar stands. */
	void (*ready)(void *owner, struct session *jar);
	/*
	 * No process of it is left, and every run in it is over. It may be freed now, but not from within this
	 * call. session_observation() says whether it ever stood (has_started), and if not, why.
	 */
	void (*gone)(void *owner, struct session *jar);
};

struct session_request {
	const struct plan *plan; /* plan_compile_jar(); must outlive the jar */
	jar_main_function *main; /* of the first process; NULL: as for commands */
	const struct jar_argv_memory *argv_memory;
	struct jar_times *times; /* may be NULL */
	/* Of a jar for calls: what the zygote has from 4 on; borrowed until session_open() is back. */
	const int *zygote_fds;
	size_t zygote_fd_count;
	/* The engine's, one for all its jars; this jar enters and leaves it by itself. NULL: the engine has no other children. */
	struct reap_family *family;
	struct session_listener listener;
};

/* Begin. On failure nothing is running. */
int session_open(struct loop *loop, const struct session_request *request, struct session **out, struct error *error);
/* Kill what is left and take the jar down; runs in it end as cancelled. The listener is called when it is gone. */
void session_close(struct session *jar);
/* One that is gone; or kill it and wait until it is. No run may be in it. */
void session_free(struct session *jar);

bool session_is_ready(const struct session *jar);
/* has_started: it stands or stood; error, failed_step, steps_done: as of a run. */
const struct observation *session_observation(const struct session *jar);

/* @fd is the receiver's from here on; -1: it could not be opened, for the reason @errno_value. */
typedef void session_file_function(void *owner, int fd, int errno_value);

/*
 * Open a file behind the jar's walls. @path is the jar's; a relative one starts at the workdir. @mode is for a file that
 * is made. The answer comes from within the loop, never from within this call. 0 or a negative errno.
 */
int session_open_file(struct session *jar, const char *path, enum session_access access, mode_t mode,
		      session_file_function *function, void *owner);
/* @owner does not wait for its answers any more. */
void session_forget_files(struct session *jar, const void *owner);

#endif
