/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_archive.h - write the additions and changes of a workspace as a tar archive
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_ARCHIVE_H
#define BELLJAR_WORKSPACE_WORKSPACE_ARCHIVE_H

#include "workspace/workspace_changes.h"

/* Write added and changed files, directories and links to @fd. The archive does not record deletions. */
int workspace_archive(const struct workspace_view *view, const struct change_list *list, int fd, struct error *error);

#endif
