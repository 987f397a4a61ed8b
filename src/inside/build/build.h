/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/build/build.h - what the files of the builder share: the steps that make a jar
 *
 * All of it runs between clone and exec in a copy of the engine: no allocation, no stdio, no locks.
 */
#ifndef BELLJAR_INSIDE_BUILD_BUILD_H
#define BELLJAR_INSIDE_BUILD_BUILD_H

#include "inside/answer/answer.h"
#include "inside/jar_plan.h"

/* State that the steps share. */
struct jar_build {
	const struct jar_plan *plan;
	int root_fd;    /* the new root while it is built */
	int scratch_fd; /* the tmpfs of the private places */
	int scratch_count;
	pid_t engine_pid;
	pid_t first_pid;                 /* the jar's first process */
	bool has_run_cgroup;             /* a minder has entered the cgroups of its own run */
	pid_t scoped_pid;                /* the process whose signals reach only itself and what it starts; 0: none */
	int user_namespace_fd;           /* root only: where the jar's host id is 0; -1: not made */
	int view_fds[JAR_VIEW_COUNT];    /* for the engine's meter; -1: not asked for */
	int socket_fds[JAR_SOCKETS_MAX]; /* of STEP_SOCKETS, until the engine has them; -1: not there */
	size_t socket_count;
	int run_directory_fd;        /* held as long as the jar's first process lives; -1: there is none */
	struct answer_places places; /* held as long */
	int listener_socket; /* of a child that becomes a command: to its minder, for its filter's listener; else -1 */
	int listener_fd;     /* of the command's filter, if that asks, until no process has it; else -1 */
	int written_fd;      /* counts what this process and all that it reaped wrote; -1: not measured */
};

typedef int jar_step_function(struct jar_build *build, const struct plan_step *step);
#define STEP_DECLARATION(kind, function, ...) jar_step_function function;
JAR_STEPS(STEP_DECLARATION)
/* Check that this is the object that the planner saw; inode 0: any. 0, -ESTALE, another negative errno. */
int build_check_object(int fd, dev_t device, ino_t inode);
/* Carry out STEP_BIND with the detached mount @mount_fd, and close that. */
int build_attach_tree(struct jar_build *build, const struct plan_step *step, int mount_fd);
/* Carry out one step: 0 or a negative errno. */
int build_step(struct jar_build *build, const struct plan_step *step);
/* Make the kernel's out-of-memory killer choose this process and its children before the engine. */
void build_set_oom_score(void);
/* build_steps.c: make a ruleset of the plan's rules. The descriptor, or a negative errno. */
int build_landlock_ruleset(const struct jar_build *build);

/* Put @pid in the place of JAR_PID_PLACEHOLDER(@slot), and of its negative. Returns how many comparisons changed. */
size_t build_set_filter_pid(const struct jar_filter *filter, unsigned slot, pid_t pid);

#endif
