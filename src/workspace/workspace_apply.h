/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_apply.h - put a workspace's changes into its workdir
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_APPLY_H
#define BELLJAR_WORKSPACE_WORKSPACE_APPLY_H

#include "workspace/workspace_changes.h"

/* The changes to apply; paths are below the workdir, and include everything below them. */
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
	struct string_list saved; /* files that both sides changed in the same moment: where they are now */
};

struct apply_request {
	const struct workspace_view *view;
	const struct workspace *workspace; /* locked */
	struct change_list *changes;       /* of workspace_changes(), judged; their flags get the outcome */
	struct apply_choice choice;
	bool is_dry_run;
	/* Nothing has the workspace mounted, and nothing else needs it: files may be moved out of the upper. */
	bool may_move;
	void (*progress)(void *context, size_t done, size_t total); /* NULL: do not report progress */
	void *context;
};

/*
 * Prepare for listing the changes: finish or undo the steps of an apply that was killed, and copy the contents of
 * renamed directories from the workdir into the upper. Nothing may have the workspace mounted.
 */
int workspace_settle(const struct workspace_view *view, const struct workspace *workspace, struct error *error);

/*
 * Apply the chosen changes, except conflicts and refused ones. Each name appears whole or not at all. Conflicts and
 * refusals are counted and do not fail the call. A full disk does; applied changes stay.
 */
int workspace_apply(const struct apply_request *request, struct apply_outcome *out, struct error *error);
void workspace_apply_outcome_done(struct apply_outcome *outcome);

/*
 * Remove the changes below @paths from the upper; the workdir stays as it is. Changes in a frozen layer stay, and so
 * does what a replaced directory hides: list again to see them.
 */
int workspace_drop(const struct workspace_view *view, const struct workspace *workspace,
		   const struct change_list *changes, const struct string_list *paths, struct error *error);

/* Begin anew after everything was applied: an empty upper, no layers, a stamp of now. */
int workspace_reset(const struct workspace_home *home, struct workspace *workspace, struct error *error);

#endif
