/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_shown.h - apply only changes that the user has seen
 *
 * A user reviews a workspace and applies it afterwards. A process that still has a file of the layer open can change
 * it in between. So the store records, for each kind of viewer, what was shown.
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_SHOWN_H
#define BELLJAR_WORKSPACE_WORKSPACE_SHOWN_H

#include "workspace/workspace_changes.h"

/* The store records each door apart: a user of one door has not seen what the other showed. */
enum workspace_viewer {
	VIEWER_TERMINAL, /* the command line */
	VIEWER_PROGRAM,  /* clients of the engine */
	VIEWER_COUNT,
};

/* Record @list, the changes below @paths (none: all of them). Call it before workspace_find_renames(). */
int workspace_shown_note(const struct workspace_view *view, const struct workspace *workspace,
			 const struct change_list *list, const struct string_list *paths, enum workspace_viewer viewer,
			 struct error *error);

/*
 * Refuse each change of @list that differs from what the viewer was shown, and each file that a process can still
 * write to. A viewer that was shown nothing has agreed to everything. The changes are judged already; allowed paths do
 * not lift this.
 */
int workspace_shown_check(const struct workspace_view *view, const struct workspace *workspace,
			  struct change_list *list, enum workspace_viewer viewer, struct error *error);

/* Remove the record, because the workspace begins anew. */
void workspace_shown_forget(const struct workspace *workspace);

#endif
