/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_call.h - a jar for calls: the zygote, and keepers whose command is a fork of it
 *
 * The zygote is a program of the host's choice that stands in the jar and forks on request: an interpreter with everything
 * loaded. The keeper of a call has a pid, mount, IPC and network namespace of its own, with fresh private places, made
 * ahead; a fork of the zygote enters them, puts the walls up and waits. Nothing that runs in a call can see the zygote or
 * another call.
 *
 * What the zygote and its forks are told and tell is in docs/protocol.md.
 */
#ifndef BELLJAR_JAR_JAR_CALL_H
#define BELLJAR_JAR_JAR_CALL_H

#include "jar/jar_inside.h"

/* Where the first process and the keepers have the socket on which the zygote takes requests. */
#define JAR_ZYGOTE_FD (JAR_CONTROL_FD + 1)

/* The first process: start it. The zygote's pid, or a negative errno. */
pid_t jar_start_zygote(struct jar_inside *inside);
/* The first process: fork a keeper with namespaces of its own. As fork(), or a negative errno. */
pid_t jar_fork_call_keeper(void);

/*
 * The keeper: fresh places, then a fork of the zygote that waits behind its walls and in those cgroups, whose files of
 * members are closed. 0 or a negative errno.
 */
int jar_call_prepare(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count);
/* The keeper: let the fork begin with what was sent. 0, or a negative errno with the report filled in. */
int jar_call_begin(struct jar_inside *inside);
/* The keeper: the zygote says how the fork ended; or it is gone itself, and the fork with it. */
void jar_call_note_end(struct jar_inside *inside);
/* The keeper, with everything killed: wait until the zygote has reaped the fork. */
void jar_call_bury(struct jar_inside *inside);

#endif
