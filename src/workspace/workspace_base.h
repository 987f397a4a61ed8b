/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_base.h - keep the common base of texts that the command and the host may both change
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_BASE_H
#define BELLJAR_WORKSPACE_WORKSPACE_BASE_H

#include "workspace/workspace_changes.h"

#define BASE_FILE_BYTES_MAX ((size_t)256 << 10)
#define BASE_BYTES_MAX ((uint64_t)64 << 20)
#define BASE_FILES_MAX 4096

struct base_keeper {
	const struct workspace_view *view;
	const struct workspace *workspace;
	int fd; /* of the directory of all; -1: it was not opened yet */
	uint64_t bytes;
	size_t count;
};

void workspace_base_keeper_init(struct base_keeper *keeper, const struct workspace_view *view,
				const struct workspace *workspace);
void workspace_base_keeper_done(struct base_keeper *keeper);
/*
 * Keep the workdir's version of a file that the command changed and the host has not touched. Skip a file that is too
 * large or binary, and files beyond the maximum count.
 */
void workspace_base_keep(struct base_keeper *keeper, const struct change *change);

/* Call it before the workdir's file becomes the workspace's. */
void workspace_base_forget(const struct workspace *workspace, const char *path);
void workspace_base_forget_all(const struct workspace *workspace);

/* Open the version of @path before both sides changed it; @status has its mode. Negative: it was not kept. */
int workspace_base_open(const struct workspace *workspace, const char *path, struct stat *status);
bool workspace_base_is_known(const struct workspace *workspace, const char *path);

#endif
