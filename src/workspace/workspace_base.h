/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_base.h - what texts were before both sides changed them, and merging with that
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_BASE_H
#define BELLJAR_WORKSPACE_WORKSPACE_BASE_H

#include "workspace/workspace_changes.h"

#define BASE_FILE_BYTES_MAX ((size_t)256 << 10)
#define BASE_BYTES_MAX ((uint64_t)64 << 20)
#define BASE_FILES_MAX 4096
/* Of a text that is merged. */
#define MERGE_BYTES_MAX ((size_t)1 << 20)

struct base_keeper {
	const struct workspace_view *view;
	const struct workspace *workspace;
	int fd; /* of the directory of all; -1: it was not opened yet */
	uint64_t bytes;
	size_t count;
};

void base_keeper_init(struct base_keeper *keeper, const struct workspace_view *view, const struct workspace *workspace);
void base_keeper_done(struct base_keeper *keeper);
/*
 * The command changed a file that nobody else has touched: keep what the workdir has. One that is too large, no text, or
 * one too many is not kept, and cannot be merged later; so is one that cannot be written.
 */
void base_keep(struct base_keeper *keeper, const struct change *change);

/* The workdir's file is about to be the workspace's: what was kept is no base any more. */
void base_forget(const struct workspace *workspace, const char *path);
void base_forget_all(const struct workspace *workspace);

/*
 * Merge a conflict of two texts, and put the result into the upper in place of the workspace's side, which @change is about
 * then; with @is_dry_run nothing is written. Nothing may have the workspace mounted. NULL: merged. Else why not, in static
 * words, and nothing is changed.
 */
const char *base_merge(const struct workspace_view *view, const struct workspace *workspace, struct change *change,
		       bool is_dry_run);

#endif
