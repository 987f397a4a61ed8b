/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/call/call_inside.h - what the files of inside/call/ share: all in processes of the jar
 */
#ifndef BELLJAR_INSIDE_CALL_CALL_INSIDE_H
#define BELLJAR_INSIDE_CALL_CALL_INSIDE_H

#include "inside/init/init_session.h"

/* The descriptor of the zygote's request socket in the first process and the minders. */
#define CALL_ZYGOTE_FD (JAR_CONTROL_FD + 1)
/* Places of a jar that each call can have. */
#define CALL_TREES_MAX 512

/* call_first.c: keep only the capabilities in @mask, also over an exec, and leave none to be gained. 0 or a negative errno. */
int call_keep_capabilities(uint32_t mask);

/* call_minder.c: run a minder; as session_kind.minder_main. */
void call_minder_main(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count);

/*
 * call_check.c: check that the fork @pid is behind the walls of @plan and in this process's namespaces.
 * The fork opened @probe_fd to prove that Landlock restricts it; or -1. 0 or a negative errno.
 */
int call_check(const struct jar_plan *plan, pid_t pid, int probe_fd);

#endif
