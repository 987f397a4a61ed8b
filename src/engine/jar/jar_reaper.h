/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_reaper.h - after the end of a jar's first process: reap it, and finish its work
 */
#ifndef BELLJAR_ENGINE_JAR_JAR_REAPER_H
#define BELLJAR_ENGINE_JAR_JAR_REAPER_H

#include <sys/resource.h>

#include "base/loop.h"
#include "base/reap/reap.h"

/* The jar is gone. @usage and @status are its first process's. */
typedef void reaper_function(void *owner, const struct rusage *usage, int status);

struct reaper {
	struct loop *loop;
	bool ends_with_first;      /* the kernel ends all of the jar with its first process */
	const char *run_directory; /* NULL: there is none */
	struct reap_family *family;
	pid_t pid; /* 0: it is reaped */
	struct loop_timer timer;
	unsigned rounds;
	pid_t helper_pid; /* 0: none */
	bool is_sweeping; /* the helper sweeps, or did last; else it kills orphans */
	struct rusage usage;
	int status;
	reaper_function *function; /* NULL: it has not begun, or is over */
	void *owner;
};

/*
 * Reap a first process that has ended or is about to, and clean up after it. The caller sets `loop` to `pid`,
 * `function` and `owner`; the rest is zero. Calls @function in this call, or later.
 */
void jar_reaper_begin(struct reaper *reaper);
/* Wait for the end of the reaper, because the engine leaves. */
void jar_reaper_finish(struct reaper *reaper);

#endif
