/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_changes.h - differences between a workspace and its workdir as it is now
 *
 * The cost of the walk depends on the number of changes, not on the size of the workdir: in the workdir it reads only
 * names that a layer has, and directories that were removed.
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_CHANGES_H
#define BELLJAR_WORKSPACE_WORKSPACE_CHANGES_H

#include "workspace/workspace_view.h"

/* More than these are refused. */
#define WORKSPACE_CHANGES_MAX 4000000

enum change_kind {
	CHANGE_ADDED,
	CHANGE_MODIFIED,
	CHANGE_TYPE, /* a file became a directory, a directory a link, ... */
	CHANGE_MODE, /* the permissions or attributes, not the content */
	CHANGE_DELETED,
};

enum change_flag {
	CHANGE_HAS_CONTENT = 1 << 0, /* the content differs */
	CHANGE_HAS_MODE = 1 << 1,
	CHANGE_HAS_XATTRS = 1 << 2,
	CHANGE_IS_CLOSED = 1 << 3,    /* a directory of the layer whose permissions keep us out */
	CHANGE_IS_COPIED_UP = 1 << 4, /* the workdir had it, by this or by another name */
	CHANGE_IS_CONFLICT = 1 << 5,  /* the workdir's was touched since */
	CHANGE_IS_REFUSED = 1 << 6,   /* not applied unless it is named */
	CHANGE_IS_APART = 1 << 7,     /* shown apart: tools run it automatically, or it is a new program */
	CHANGE_IS_CHOSEN = 1 << 8,    /* to be applied */
	CHANGE_IS_DONE = 1 << 9,      /* applied */
	CHANGE_HAS_FAILED = 1 << 10,  /* applying it failed */
	CHANGE_IS_HIDING =
		1 << 13, /* the layer hides the workdir here: files that it lacks are removed, so move none out */
	CHANGE_IS_DROPPED = 1 << 12, /* a conflict that the workdir's side won */
	CHANGE_IS_THEIRS = 1 << 11,  /* a conflict that the workspace's side is to win */
	CHANGE_IS_UNSEEN = 1 << 15,  /* refused because it differs from what was shown */
};

struct change {
	enum change_kind kind;
	unsigned flags;
	unsigned layer;   /* where its new state is; layer_count of the view: in the workdir, below another name */
	char *path;       /* below the workdir; "." is the workdir itself */
	char *layer_path; /* in the layer; NULL: the same */
	struct change_side before, after;
	const struct change *from; /* a rename: the other one of the two, which has the same content; NULL */
	const char *why;           /* why it is refused or shown apart: static words; NULL */
	char *conflict;            /* why it is a conflict, or has failed; NULL */
};

struct change_list {
	struct change *items; /* sorted by path: a directory comes before what is in it */
	size_t count;
	size_t capacity;
	struct string_list
		renamed;   /* directories that root's overlay renamed as a whole: the new path, then the old one */
	bool has_replaced; /* a directory of the workdir became something else */
};

/* The letter of a summary: A, M, T, m, D. */
char workspace_change_letter(enum change_kind kind);
static inline const char *workspace_change_layer_path(const struct change *change)
{
	return change->layer_path ? change->layer_path : change->path;
}

/* Fill @side from the result of lstat(). */
void workspace_change_side_of(const struct stat *status, struct change_side *side);
/* Report whether the change is chosen and can still be applied. */
static inline bool workspace_change_is_due(const struct change *change)
{
	return (change->flags & (CHANGE_IS_CHOSEN | CHANGE_IS_CONFLICT | CHANGE_IS_REFUSED | CHANGE_IS_DONE |
				 CHANGE_HAS_FAILED)) == CHANGE_IS_CHOSEN;
}

/* List all differences, sorted, with conflicts marked. -EBADMSG: the layer is forged. */
int workspace_changes(const struct workspace_view *view, struct change_list *out, struct error *error);
void workspace_change_list_done(struct change_list *list);
/* Keep only changes at or below the paths; no paths: all. Call it before workspace_find_renames(). */
void workspace_change_list_keep(struct change_list *list, const struct string_list *paths);
/* Find files that were deleted here and added there with the same content. */
void workspace_find_renames(const struct workspace_view *view, struct change_list *list);

struct workspace_summary {
	uint64_t added, modified, deleted;
	uint64_t bytes; /* that added and modified files take in the layers */
	bool is_rough;  /* the work limit was reached: some files may be equal, or uncounted */
};

/* Counts only, after bounded work. */
int workspace_summary(const struct workspace_home *home, const struct workspace *workspace,
		      struct workspace_summary *out, struct error *error);
/* Report whether there is any difference. A failure to read counts as one. */
bool workspace_has_changes(const struct workspace_home *home, const struct workspace *workspace);
/* Count when a run has ended, and keep the old versions of texts that it changed, for the patch of a conflict. */
int workspace_run_ended(const struct workspace_home *home, const struct workspace *workspace,
			struct workspace_summary *out, struct error *error);

#endif
