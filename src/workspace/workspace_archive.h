/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_archive.h - what a workspace added and changed, as a tar archive
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_ARCHIVE_H
#define BELLJAR_WORKSPACE_WORKSPACE_ARCHIVE_H

#include "workspace/workspace_changes.h"

/* Write files, directories and links to @fd. What was deleted is not in it, nor is anything else. */
int workspace_archive(const struct workspace_view *view, const struct change_list *list, int fd, struct error *error);

#endif
