/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_place.h - on which file system a workspace's layer is kept
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_PLACE_H
#define BELLJAR_WORKSPACE_WORKSPACE_PLACE_H

#include "workspace/workspace_store.h"

/*
 * Choose where upper and work of a new store go. *@place_out is NULL for the store itself, else the path of a
 * directory of the user's, in which to make a directory for the store; the caller frees it.
 */
int workspace_choose_place(const struct workspace_home *home, const struct workspace_request *request, char **place_out,
			   struct error *error);

/* Open the directory @name, which belongs to this user and which only this user can enter: a descriptor or -errno. */
int workspace_open_private(int parent_fd, const char *name);
/* The same, but make it first if it does not exist. */
int workspace_make_private(int parent_fd, const char *name);

#endif
