/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_shown.h - apply what was shown, and nothing else
 *
 * A user who looks at a workspace and applies it afterwards means what was looked at. A process that still has a file of the
 * layer open can change it in between. So the store remembers, for each kind of viewer, what was shown.
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_SHOWN_H
#define BELLJAR_WORKSPACE_WORKSPACE_SHOWN_H

#include "workspace/workspace_changes.h"

/* A look through one door says nothing about what a user saw through the other. */
enum workspace_viewer {
	VIEWER_TERMINAL, /* the command line */
	VIEWER_PROGRAM,  /* clients of the engine */
	VIEWER_COUNT,
};

/* Remember what @list, the changes below @paths (none: all of them), is now. Before renames are looked for. */
int workspace_shown_note(const struct workspace_view *view, const struct workspace *workspace,
			 const struct change_list *list, const struct string_list *paths, enum workspace_viewer viewer,
			 struct error *error);

/*
 * Refuse each change of @list that is not what the viewer was shown, and each file that a process can still write to. A viewer
 * that was shown nothing has agreed to everything. The changes are judged; nothing that was allowed lifts this.
 */
int workspace_shown_check(const struct workspace_view *view, const struct workspace *workspace,
			  struct change_list *list, enum workspace_viewer viewer, struct error *error);

/* The workspace begins anew. */
void workspace_shown_forget(const struct workspace *workspace);

#endif
