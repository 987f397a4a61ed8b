/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_apply.h - put a workspace's changes into its workdir
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_APPLY_H
#define BELLJAR_WORKSPACE_WORKSPACE_APPLY_H

#include "workspace/workspace_changes.h"

/* What to apply; paths are below the workdir, and stand for all that is in them. */
struct apply_choice {
	const struct string_list *paths;  /* empty: everything */
	const struct string_list *theirs; /* in a conflict the workspace's side wins */
	const struct string_list *ours;   /* ... the workdir's: the change is dropped */
};

struct apply_outcome {
	size_t applied;
	size_t conflicts;
	size_t refused;
	size_t failed;
	size_t dropped;           /* by choice.ours */
	size_t left;              /* changes that were not chosen */
	struct string_list saved; /* what both sides had changed in the same moment, and where it is now */
};

struct apply_request {
	const struct workspace_view *view;
	const struct workspace *workspace; /* locked */
	struct change_list *changes;       /* of workspace_changes(), judged; what became of each is in its flags */
	struct apply_choice choice;
	bool is_dry_run;
	/* Nothing has the workspace mounted, and nothing else needs it: files may be moved out of the upper. */
	bool may_move;
	void (*progress)(void *context, size_t done, size_t total); /* NULL: nobody wants to know */
	void *context;
};

/*
 * Before the changes are listed: finish or undo what an apply that was killed left behind, and take into the upper what of
 * renamed directories only the workdir has. Nothing may have the workspace mounted.
 */
int workspace_settle(const struct workspace_view *view, const struct workspace *workspace, struct error *error);

/*
 * Apply what is chosen, neither a conflict nor refused. Each name appears whole or not at all. Conflicts and refusals are
 * counted, and are no failure of the call; a full disk is: what was applied until then stays, and the next call goes on.
 */
int workspace_apply(const struct apply_request *request, struct apply_outcome *out, struct error *error);
void workspace_apply_outcome_done(struct apply_outcome *outcome);

/*
 * Take the changes below @paths out of the upper, without a trace in the workdir. What a frozen layer has, or what a directory
 * that was replaced as a whole hides, stays: list again to see it.
 */
int workspace_drop(const struct workspace_view *view, const struct workspace *workspace,
		   const struct change_list *changes, const struct string_list *paths, struct error *error);

/* Begin anew after everything was applied: an empty upper, no layers, a stamp of now. */
int workspace_reset(const struct workspace_home *home, struct workspace *workspace, struct error *error);

#endif
