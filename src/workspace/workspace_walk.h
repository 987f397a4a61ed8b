/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_walk.h - visit every difference between a workspace and its workdir
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_WALK_H
#define BELLJAR_WORKSPACE_WORKSPACE_WALK_H

#include "workspace/workspace_changes.h"

struct walk {
	const struct workspace_view *view;
	/*
	 * Take a change; the walk owns its strings. 0 goes on; a negative errno ends the walk. NULL: compare nothing,
	 * find only @renamed and @borrowed.
	 */
	int (*meet)(struct walk *walk, const struct change *change);
	void *context;
	uint64_t compare_bytes; /* bytes left to compare; at 0, files of the same size count as different */
	uint64_t entry_count, entry_max;
	bool is_count;              /* only count: do not look for renamed files of the workdir */
	struct string_list renamed; /* the caller's to free: the new path, then the old one */
	/* ... renamed directories whose contents the topmost layer lacks: new path, old one, and the layer with it */
	struct string_list borrowed;
	char refused[256]; /* the forged part, for the message */
};

int workspace_walk(struct walk *walk);

#endif
