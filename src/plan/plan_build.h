/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_build.h - shared by the files of plan/ while they make a plan
 *
 * If memory runs out, plan_compile() reports it once, at its end. So code that adds steps needs no checks and reads as
 * a list.
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

/* Is it the plan of a jar without a command? */
static inline bool plan_is_jar(const struct plan *plan)
{
	return plan->kind == PLAN_PREPARED || plan_has_minders(plan);
}

/* Add a step; never NULL (after a failure a spare one that is never read). */
struct plan_step *plan_add(struct plan_build *build, struct plan_step_list *list, enum step_kind kind);
/* Copy @string for the lifetime of the plan; never NULL. */
const char *plan_string(struct plan_build *build, const char *string);
const char *plan_format(struct plan_build *build, const char *format, ...) PRINTF_LIKE(2, 3);
void plan_note(struct plan_build *build, const char *name, const char *why, const char *hint);
void plan_note_at(struct plan_build *build, enum remark_time time, const char *name, const char *why, const char *hint);
/* Add a note that most callers do not need: see struct plan_remark. */
void plan_note_quietly(struct plan_build *build, const char *name, const char *why, const char *hint);
void plan_missing(struct plan_build *build, const char *name, const char *why, const char *hint);
/* Refuse: @what needs the rung namespace. */
int plan_needs_namespace(struct plan_build *build, const char *what);

/* plan_git.c: return the content of the private home's .gitconfig; needs the plan's workdir. */
const char *plan_gitconfig(struct plan_build *build);

/* plan.c: argv, environment and redaction. */
int plan_command(struct plan_build *build);

int plan_layers(struct plan_build *build); /* plan_layers.c: notes about layers, and room for their parts */
/* Is the workdir inside a git repository, with a layer over the workdir alone? */
bool plan_has_git_above_layer(const struct host *host);
int plan_environment(struct plan_build *build);   /* plan_environment.c: env, and what of it is redacted */
void plan_candidates(struct plan_build *build);   /* plan_candidates.c: which files may be the command */
int plan_check_network(struct plan_build *build); /* plan_gate.c: refuse an impossible or inconsistent network */
int plan_gate(struct plan_build *build);          /* plan_gate.c: a network with a gate */
/* Cover the facts about the machine in /proc, as the policy requires. Later steps must not remount parts of /proc. */
void plan_machine_facts(struct plan_build *build, struct plan_step_list *steps);
int plan_mounts(struct plan_build *build);    /* plan_mounts.c: the file system, as mounts and as Landlock rules */
int plan_back_ends(struct plan_build *build); /* plan_limits.c: what holds each limit, and what cannot be held here */
void plan_meter(struct plan_build *build);    /* plan_limits.c: the engine's view of the jar */
void plan_limits(struct plan_build *build);   /* plan_limits.c: rlimits of the jar */
/* plan_limits.c: the command's rlimits; after its walls, which need descriptors that `fds` may forbid. */
void plan_process_limits(struct plan_build *build);
void plan_user_limits(
	struct plan_build *build); /* plan_limits.c: a jar's share of what the kernel counts for the user */
int plan_run_back_ends(struct plan_build *build);           /* plan_limits.c: the same for one run in a kept jar */
bool plan_keeps_core_limit(const struct plan_build *build); /* plan_limits.c: no process may change it later */
void plan_run_walls(
	struct plan_build *build);         /* plan_walls.c: what of them a command in a standing jar puts up itself */
void plan_calls(struct plan_build *build); /* plan_calls.c: what each call has anew, after all other steps are known */
int plan_walls(struct plan_build *build);  /* plan_walls.c: privileges, Landlock, seccomp: in which process */

#endif
