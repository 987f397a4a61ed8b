/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_trees.c - choose the trees that a search after a run needs, and keep them for the next run
 *
 * Of a repository above the work directory, or elsewhere, the command may write only in its own directory. A tree inside
 * another one would be searched twice.
 */
#include "survey/survey_trees.h"

#include <string.h>

#include "survey/survey_paths.h"

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

		if (!survey_tree_is_of(tree, top))
			continue;
		memmove(kept->items + i, kept->items + i + 1, (kept->count - i - 1) * sizeof(struct tree *));
		if (!survey_tree_is_worn(tree)) {
			kept->items[kept->count - 1] = tree;
			return tree;
		}
		kept->count--;
		survey_tree_free(tree);
		return NULL;
	}
	return NULL;
}

static size_t watched_count(const struct tree_list *kept)
{
	size_t count = 0;

	for (size_t i = 0; i < kept->count; i++)
		count += kept->items[i]->watch_fd >= 0;
	return count;
}

static size_t watches_taken(const struct tree_list *kept)
{
	size_t count = 0;

	for (size_t i = 0; i < kept->count; i++)
		count += kept->items[i]->watch_count;
	return count;
}

/*
 * To let go of watches takes the kernel some 10 ms, in which nothing else is served. So a tree that is watched stays, and only
 * one that is used again is watched: many runs are the only one in their directory.
 */
static void make_room(struct tree_list *kept)
{
	size_t at = 0;

	if (kept->count < TREES_KEPT_MAX)
		return;
	while (at + 1 < kept->count && kept->items[at]->watch_fd >= 0)
		at++;
	survey_tree_free(kept->items[at]);
	memmove(kept->items + at, kept->items + at + 1, (--kept->count - at) * sizeof(struct tree *));
}

static void keep(struct tree_list *kept, struct tree *tree)
{
	struct tree **place;

	make_room(kept);
	place = list_add(kept);
	if (place)
		*place = survey_tree_hold(tree);
}

/* The tree that was found, which is the last of @kept; or one that is watched from its first listing on, in its place. */
static struct tree *watch_from_now(struct tree_list *kept, struct tree *tree, const struct host_path *top, bool is_git)
{
	struct tree *made;

	if (tree->is_watch_tried || watched_count(kept) >= TREES_WATCHED_MAX)
		return tree;
	made = survey_tree_new(top, is_git);
	if (!made)
		return tree;
	survey_tree_watch(made, watches_taken(kept));
	kept->items[kept->count - 1] = made;
	survey_tree_free(tree);
	return made;
}

static void add(struct tree_list *trees, const struct host_path *top, bool is_git, struct tree_list *kept)
{
	struct tree *tree, **place;

	if (top->kind != PATH_DIRECTORY || is_covered(trees, top))
		return;
	tree = find_kept(kept, top);
	if (tree)
		tree = survey_tree_hold(watch_from_now(kept, tree, top, is_git));
	else
		tree = survey_tree_new(top, is_git);
	if (!tree)
		return;
	place = list_add(trees);
	if (!place) {
		survey_tree_free(tree);
		return;
	}
	*place = tree;
	if (kept && tree->users == 1)
		keep(kept, tree);
}

void survey_trees_open(struct tree_list *trees, const struct host *host, struct tree_list *kept)
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

bool survey_trees_grow(struct tree_list *trees, size_t count)
{
	for (size_t i = 0; i < trees->count; i++)
		if (survey_tree_grow(trees->items[i], count))
			return true;
	return false;
}

void survey_trees_done(struct tree_list *trees)
{
	for (size_t i = 0; i < trees->count; i++)
		survey_tree_free(trees->items[i]);
	free(trees->items);
	*trees = (struct tree_list){0};
}
