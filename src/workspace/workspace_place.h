/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_place.h - on which file system a workspace's layer is kept
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_PLACE_H
#define BELLJAR_WORKSPACE_WORKSPACE_PLACE_H

#include "workspace/workspace_store.h"

/*
 * Where upper and work of a new store go: *@place_out is NULL for the store itself, else the path of a directory of the
 * user's in which a directory for the store is to be made; the caller's to free.
 */
int workspace_choose_place(const struct workspace_home *home, const struct workspace_request *request, char **place_out,
			   struct error *error);

/* Open the directory @name, which belongs to this user and nobody else can enter: a descriptor or a negative errno. */
int workspace_open_private(int parent_fd, const char *name);
/* Make it first, unless it is there. */
int workspace_make_private(int parent_fd, const char *name);

#endif
