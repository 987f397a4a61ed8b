/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/scratch_tree.h - a directory of the test program's own, with whatever its tests make in it
 */
#ifndef BELLJAR_TESTS_UNIT_SCRATCH_TREE_H
#define BELLJAR_TESTS_UNIT_SCRATCH_TREE_H

#include "test.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Where it is. */
static char top[PATH_MAX];

/* @name below it; good until seven more have been asked for. */
static inline const char *at(const char *name)
{
	static char paths[8][PATH_MAX * 2];
	static int next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s%s", top, name);
	return path;
}

/* With all directories above it. */
static inline void make_directory(const char *name)
{
	char path[PATH_MAX * 2];

	snprintf(path, sizeof(path), "%s/", at(name));
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
}

static inline int scratch_remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

/* What main() does: @prepare, unless it is NULL, then the tests, then the tree, which is in @place, is removed. */
static inline int scratch_main_in(const char *place, const struct test *tests, size_t count, void (*prepare)(void))
{
	char made[64];
	int rc;

	snprintf(made, sizeof(made), "%s/belljar-unit-XXXXXX", place);
	if (!mkdtemp(made) || !realpath(made, top))
		return 1;
	if (prepare)
		prepare();
	rc = test_main(tests, count);
	nftw(top, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return rc;
}

static inline int scratch_main(const struct test *tests, size_t count, void (*prepare)(void))
{
	return scratch_main_in("/tmp", tests, count, prepare);
}

#endif
