/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/burial.h - the end of a jar's first process: reap it, and do what it could not do
 */
#ifndef BELLJAR_RUN_BURIAL_H
#define BELLJAR_RUN_BURIAL_H

#include <sys/resource.h>

#include "base/loop.h"
#include "jar/jar.h"

/* Nothing is left of the jar. @usage and @status are its first process's. */
typedef void burial_function(void *owner, const struct rusage *usage, int status);

struct burial {
	struct loop *loop;
	const struct plan *plan;
	struct jar_family *family;
	pid_t pid; /* 0: it is reaped */
	struct loop_timer timer;
	unsigned rounds;
	pid_t helper_pid; /* 0: none */
	bool is_sweeping; /* what the helper does, or did last; else it hunts */
	struct rusage usage;
	int status;
	burial_function *function; /* NULL: it has not begun, or is over */
	void *owner;
};

/* The first process @pid of the jar of @plan is dead, or nearly. @function is called in this call, or later. */
void burial_begin(struct burial *burial, struct loop *loop, const struct plan *plan, struct jar_family *family,
		  pid_t pid, burial_function *function, void *owner);
/* Wait for it: the engine leaves. */
void burial_finish(struct burial *burial);

#endif
