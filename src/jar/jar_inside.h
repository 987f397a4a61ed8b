/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_inside.h - what the files of jar/ share: the child's side
 *
 * Everything declared here runs between clone and exec in a copy of the engine: no allocation, no stdio, no locks.
 */
#ifndef BELLJAR_JAR_JAR_INSIDE_H
#define BELLJAR_JAR_JAR_INSIDE_H

#include "jar/jar.h"

/* What the steps leave for one another. */
struct jar_build {
	const struct plan *plan;
	int root_fd;    /* the new root while it is built */
	int scratch_fd; /* the tmpfs of the private places */
	int scratch_count;
	pid_t engine_pid;
	struct jar_network *network;  /* being made beside the other steps; NULL: none */
	int user_namespace_fd;        /* see jar_user_namespace(); -1: not looked for yet */
	int view_fds[JAR_VIEW_COUNT]; /* for the engine's meter; -1: not asked for */
	int written_fd; /* what this process and all it has waited for have written; -1: nobody wants to know */
};

typedef int jar_step_function(struct jar_build *build, const struct plan_step *step);

/* Root only: the user namespace in which the jar's host id is 0, when it is made; or a negative errno. */
int jar_user_namespace(struct jar_build *build);

/* Carry out one step: 0 or a negative errno. */
int jar_step(struct jar_build *build, const struct plan_step *step);

/* Bytes that this process and all it has waited for have written, less what was taken back before it was stored. */
uint64_t jar_written_bytes(const struct jar_build *build);

/* When the host runs out of memory, this process and all it starts go before the engine does. */
void jar_volunteer(void);

/* Kill every descendant of this process, a subreaper, until none is left; all but the child @spared_pid (0: none). */
void jar_hunt(pid_t spared_pid);
/* Remove the run's own directory and all in it. */
void jar_sweep(const char *path);
/* Send a signal to every descendant once. */
void jar_signal_tree(int signal_number);

/* The life of the jar's first process. Never returns. */
void jar_inside(const struct plan *plan, const struct jar_streams *streams, struct jar_times *times, int control_fd)
	__attribute__((noreturn));

#endif
