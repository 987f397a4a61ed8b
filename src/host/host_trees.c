/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_trees.c - choose the trees that a search after a run needs, and keep them for the next run
 *
 * Of a repository above the work directory, or elsewhere, the command may write only in its own directory. A tree inside
 * another one would be searched twice.
 */
#include "host/host_trees.h"

#include <string.h>

#include "host/host_paths.h"

static bool is_covered(const struct tree_list *trees, const struct host_path *top)
{
	for (size_t i = 0; i < trees->count; i++)
		if (path_is_within(top->path, trees->items[i]->path))
			return true;
	return false;
}

/* It becomes the last one. NULL: there is none. */
static struct tree *find_kept(struct tree_list *kept, const struct host_path *top)
{
	for (size_t i = 0; kept && i < kept->count; i++) {
		struct tree *tree = kept->items[i];

		if (!tree_is_of(tree, top))
			continue;
		memmove(kept->items + i, kept->items + i + 1, (kept->count - i - 1) * sizeof(struct tree *));
		if (!tree_is_worn(tree)) {
			kept->items[kept->count - 1] = tree;
			return tree;
		}
		kept->count--;
		tree_free(tree);
		return NULL;
	}
	return NULL;
}

static void keep(struct tree_list *kept, struct tree *tree)
{
	struct tree **place;

	if (kept->count >= TREES_KEPT_MAX) {
		tree_free(kept->items[0]);
		memmove(kept->items, kept->items + 1, --kept->count * sizeof(struct tree *));
	}
	place = list_add(kept);
	if (!place)
		return;
	*place = tree_hold(tree);
	tree_watch(tree);
}

static void add(struct tree_list *trees, const struct host_path *top, bool is_git, struct tree_list *kept)
{
	struct tree *tree, **place;

	if (top->kind != PATH_DIRECTORY || is_covered(trees, top))
		return;
	tree = find_kept(kept, top);
	if (tree)
		tree_hold(tree);
	else
		tree = tree_new(top, is_git);
	if (!tree)
		return;
	place = list_add(trees);
	if (!place) {
		tree_free(tree);
		return;
	}
	*place = tree;
	if (kept && tree->users == 1)
		keep(kept, tree);
}

void host_trees_open(struct tree_list *trees, const struct host *host, struct tree_list *kept)
{
	const struct host_workdir *workdir = &host->workdir;

	if (workdir->is_searched) {
		add(trees, &workdir->path, false, kept);
		add(trees, &workdir->git, true, kept);
		add(trees, &workdir->git_own, true, kept);
	}
	for (size_t i = 0; i < host->grants.count; i++)
		add(trees, &host->grants.items[i], false, kept);
}

bool host_trees_grow(struct tree_list *trees, size_t count)
{
	for (size_t i = 0; i < trees->count; i++)
		if (tree_grow(trees->items[i], count))
			return true;
	return false;
}

void host_trees_done(struct tree_list *trees)
{
	for (size_t i = 0; i < trees->count; i++)
		tree_free(trees->items[i]);
	free(trees->items);
	*trees = (struct tree_list){0};
}
