/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/call/call_inside.h - what the files of inside/call/ share: all in processes of the jar
 */
#ifndef BELLJAR_INSIDE_CALL_CALL_INSIDE_H
#define BELLJAR_INSIDE_CALL_CALL_INSIDE_H

#include "inside/init/init_session.h"

/* Where the first process and the minders have the socket on which the zygote takes requests. */
#define CALL_ZYGOTE_FD (JAR_CONTROL_FD + 1)
/* So many places of a jar can be taken along into each call. */
#define CALL_TREES_MAX 512

/* call_first.c: keep only the capabilities in @mask, also over an exec, and leave none to be gained. 0 or a negative errno. */
int call_keep_capabilities(uint32_t mask);

/* call_minder.c: the life of a minder; as session_kind.minder_main. */
void call_minder_main(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count);

/*
 * call_check.c: is the fork @pid behind the walls of @plan, and in this process's namespaces? @probe_fd is what it has opened to
 * show that Landlock holds it, or -1. 0 or a negative errno.
 */
int call_check(const struct jar_plan *plan, pid_t pid, int probe_fd);

#endif
