/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_reaper.h - the end of a jar's first process: reap it, and do what it could not do
 */
#ifndef BELLJAR_ENGINE_JAR_JAR_REAPER_H
#define BELLJAR_ENGINE_JAR_JAR_REAPER_H

#include <sys/resource.h>

#include "base/loop.h"
#include "base/reap/reap.h"

/* Nothing is left of the jar. @usage and @status are its first process's. */
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
	bool is_sweeping; /* what the helper does, or did last; else it hunts */
	struct rusage usage;
	int status;
	reaper_function *function; /* NULL: it has not begun, or is over */
	void *owner;
};

/*
 * A jar's first process is dead, or nearly. *@reaper says which, and what it may have left: all but `loop` to `run_directory`,
 * `function` and `owner` is zero. @function is called in this call, or later.
 */
void jar_reaper_begin(struct reaper *reaper);
/* Wait for it: the engine leaves. */
void jar_reaper_finish(struct reaper *reaper);

#endif
