/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_workspace.h - the stores of a jar whose changes go to layers
 *
 * A launch has one store for each directory under a layer, locked while the jar may exist. The engine drops
 * stores without changes; the others stay for `belljar diff`, `apply` and `discard`.
 */
#ifndef BELLJAR_ENGINE_ENGINE_WORKSPACE_H
#define BELLJAR_ENGINE_ENGINE_WORKSPACE_H

#include "base/loop.h"
#include "survey/survey.h"
#include "engine/result/result.h"
#include "workspace/workspace_store.h"

struct engine_workspaces {
	struct workspace_home home;
	bool has_home;
	struct workspace *items; /* one for each of host.layers */
	size_t count;
	struct result_workspace_list seen; /* at the last look */
	bool is_over;                      /* nothing can have changed since then */
	struct loop_timer tidying;
	bool keeps_all; /* keep stores without changes too, because a later run uses them */
};

/*
 * Open or make the stores for host->layers, of the kinds that the planner will want, and note their places in
 * @host. The caller calls it again after a failed start, with other facts. @stores are the ids of stores to use
 * again, in the order of the layers; a store that is gone is made anew.
 */
int engine_workspaces_open(struct engine_workspaces *workspaces, struct host *host, const struct policy *policy,
			   const struct string_list *stores, char *const *environment, struct error *error);
/* Remove what an earlier jar left in the stores, a moment later, while the new jar is busy. */
void engine_workspaces_tidy_soon(struct engine_workspaces *workspaces, struct loop *loop);
/* Fill in host facts for a plan that is only printed; makes nothing. */
int engine_workspaces_pretend(struct host *host, char *const *environment);
/* Note the directory of workspaces in @host, so that no jar shows it. 0 or -ENOMEM. */
int engine_workspaces_find(struct host *host, char *const *environment);
/*
 * After a survey, make directories of Belljar that do not exist yet and that commands of this policy could
 * make: a mount can only cover what exists. True: something was made, so survey again.
 */
bool engine_workspaces_guard(const struct host *host, const struct policy *policy, char *const *environment);
/* Read the changes so far into `seen`. With @is_over stores without changes lose their ids: they will be removed. */
void engine_workspaces_look(struct engine_workspaces *workspaces, bool is_over);
/* Remove stores without changes, and unlock the others. */
void engine_workspaces_close(struct engine_workspaces *workspaces);

#endif
