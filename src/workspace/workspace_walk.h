/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_walk.h - meet every difference between a workspace and its workdir
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_WALK_H
#define BELLJAR_WORKSPACE_WORKSPACE_WALK_H

#include "workspace/workspace_changes.h"

struct walk {
	const struct workspace_view *view;
	/*
	 * Called with a change whose strings are the walk's. 0 goes on; a negative errno ends the walk. NULL: nothing is
	 * compared, only @renamed and @borrowed are wanted.
	 */
	int (*meet)(struct walk *walk, const struct change *change);
	void *context;
	uint64_t compare_bytes; /* so many may be compared; beyond, same size counts as different */
	uint64_t entry_count, entry_max;
	bool is_count;              /* nobody asks of a new file whether the workdir had it under another name */
	struct string_list renamed; /* the caller's to free: the new path, then the old one */
	/* ... what of a directory that the topmost layer renamed is not in it: its new path, its old one, and which layer has that */
	struct string_list borrowed;
	char refused[256]; /* what was forged, for the message */
};

int workspace_walk(struct walk *walk);

#endif
