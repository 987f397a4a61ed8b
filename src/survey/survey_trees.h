/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_trees.h - the trees of all that a command may write: the work directory, its repository, other directories
 */
#ifndef BELLJAR_SURVEY_SURVEY_TREES_H
#define BELLJAR_SURVEY_SURVEY_TREES_H

#include "survey/survey_tree.h"

/* The one used last is the last. */
struct tree_list {
	struct tree **items;
	size_t count;
	size_t capacity;
};

/* Directories to list in one step of a loop: some 60 microseconds. */
#define TREES_STEP 16
/* Trees that an engine keeps for runs to come. */
#define TREES_KEPT_MAX 16
#define TREES_WATCHED_MAX 8

/*
 * Fill @trees for @host. Those that @kept has are taken from it, and the kernel watches them from then on; new ones are added to it. NULL:
 * nothing is kept. Where memory runs out, a tree is missing.
 */
void survey_trees_open(struct tree_list *trees, const struct host *host, struct tree_list *kept);
/* List up to @count directories that were not listed yet. False: there are none left. */
bool survey_trees_grow(struct tree_list *trees, size_t count);
void survey_trees_done(struct tree_list *trees);

#endif
