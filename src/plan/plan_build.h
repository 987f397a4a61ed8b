/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_build.h - what the files of plan/ share while a plan is made
 *
 * Memory running out is remembered and reported once, at the end of plan_compile(), so that adding steps reads as the
 * list it is.
 */
#ifndef BELLJAR_PLAN_PLAN_BUILD_H
#define BELLJAR_PLAN_PLAN_BUILD_H

#include "plan/plan.h"

struct plan_build {
	struct plan *plan;
	const struct policy *policy;
	const struct host *host;
	const struct plan_request *request;
	struct error *error;
	bool has_failed;   /* out of memory */
	bool is_id_mapped; /* root, with an unprivileged host id of the jar's own */
	bool has_private_workdir;
	bool has_process_rlimit; /* RLIMIT_NPROC holds the process count */
};

/* The plan is one of a jar without a command. */
static inline bool plan_is_jar(const struct plan *plan)
{
	return plan->kind == PLAN_PREPARED || plan_has_minders(plan);
}

/* A new step; never NULL (after a failure a spare one that nobody reads). */
struct plan_step *plan_add(struct plan_build *build, struct plan_step_list *list, enum step_kind kind);
/* A copy of @string that lives as long as the plan; never NULL. */
const char *plan_string(struct plan_build *build, const char *string);
const char *plan_format(struct plan_build *build, const char *format, ...) PRINTF_LIKE(2, 3);
void plan_note(struct plan_build *build, const char *name, const char *why, const char *hint);
void plan_note_at(struct plan_build *build, enum remark_time time, const char *name, const char *why, const char *hint);
/* What most callers need not hear of: see struct plan_remark. */
void plan_note_quietly(struct plan_build *build, const char *name, const char *why, const char *hint);
void plan_missing(struct plan_build *build, const char *name, const char *why, const char *hint);
/* Refuse: @what cannot be had on this rung. */
int plan_needs_namespace(struct plan_build *build, const char *what);

/* plan_git.c: the content of the private home's .gitconfig; the plan's workdir must be known. */
const char *plan_gitconfig(struct plan_build *build);

/* plan.c: argv, environment and redaction. */
int plan_command(struct plan_build *build);

int plan_layers(struct plan_build *build); /* plan_layers.c: what is to be said of layers, and room for their parts */
/* Does the workdir lie in a repository of git, and a layer over the workdir alone? */
bool plan_has_git_above_layer(const struct host *host);
int plan_environment(struct plan_build *build);   /* plan_environment.c: env, and what of it is redacted */
void plan_candidates(struct plan_build *build);   /* plan_candidates.c: which files may be the command */
int plan_check_network(struct plan_build *build); /* plan_gate.c: what is asked for can be had, and makes sense */
int plan_gate(struct plan_build *build);          /* plan_gate.c: a network with a gate */
/* Cover what /proc shows of the machine, as far as the policy says. The caller's steps renew no part of /proc afterwards. */
void plan_machine_facts(struct plan_build *build, struct plan_step_list *steps);
int plan_mounts(struct plan_build *build);    /* plan_mounts.c: the file system, as mounts and as Landlock rules */
int plan_back_ends(struct plan_build *build); /* plan_limits.c: what holds each limit, and what cannot be held here */
void plan_meter(struct plan_build *build);    /* plan_limits.c: the engine's view of the jar */
void plan_limits(struct plan_build *build);   /* plan_limits.c: rlimits of the jar */
/* plan_limits.c: those of the command; after its walls, whose making needs descriptors that `fds` may not leave. */
void plan_process_limits(struct plan_build *build);
void plan_user_limits(
	struct plan_build *build); /* plan_limits.c: a jar's share of what the kernel counts for the user */
int plan_run_back_ends(struct plan_build *build);           /* plan_limits.c: the same for one run in a kept jar */
bool plan_keeps_core_limit(const struct plan_build *build); /* plan_limits.c: nobody may change it later */
void plan_run_walls(
	struct plan_build *build);         /* plan_walls.c: what of them a command in a standing jar puts up itself */
void plan_calls(struct plan_build *build); /* plan_calls.c: what each call has anew, after all other steps are known */
int plan_walls(struct plan_build *build);  /* plan_walls.c: privileges, Landlock, seccomp: in which process */

#endif
