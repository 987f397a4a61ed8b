/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_workspace.h - the stores of a jar whose changes go to layers
 *
 * A launch has one store for each directory under a layer, locked as long as the jar may be there. What was not changed is
 * dropped; the rest stays for `belljar diff`, `apply` and `discard`.
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
	struct result_workspace_list seen; /* when somebody last looked */
	bool is_over;                      /* nothing can have changed since then */
	struct loop_timer tidying;
	bool keeps_all; /* also those without changes stay: somebody goes on with them */
};

/*
 * Open or make the stores for host->layers, of the kinds that the planner will want, and tell the host facts where they are.
 * After a failed start it is called again, with other facts. @stores are the ids of those to go on with, in the order of the
 * layers; one that is not there any more is made anew.
 */
int engine_workspaces_open(struct engine_workspaces *workspaces, struct host *host, const struct policy *policy,
			   const struct string_list *stores, char *const *environment, struct error *error);
/* The jar is being made: in a moment, when it keeps itself busy, remove what an earlier one left in the stores. */
void engine_workspaces_tidy_soon(struct engine_workspaces *workspaces, struct loop *loop);
/* Host facts for a plan that is only printed: nothing is made. */
int engine_workspaces_pretend(struct host *host, char *const *environment);
/* Where workspaces are kept, as a host fact, so that no jar shows it. 0 or -ENOMEM. */
int engine_workspaces_find(struct host *host, char *const *environment);
/*
 * After a survey: make what is kept nowhere yet, if commands of this policy could make it, since nothing can be mounted on what
 * is not there. True: something was made, and has to be surveyed.
 */
bool engine_workspaces_guard(const struct host *host, const struct policy *policy, char *const *environment);
/* What was changed so far, into `seen`. With @is_over those without changes lose their ids: nobody will find them. */
void engine_workspaces_look(struct engine_workspaces *workspaces, bool is_over);
/* Remove those without changes, and let go of the others. */
void engine_workspaces_close(struct engine_workspaces *workspaces);

#endif
