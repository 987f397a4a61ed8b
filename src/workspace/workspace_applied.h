/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_applied.h - what an apply itself wrote into the workdir, so that it is nobody's conflict later
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_APPLIED_H
#define BELLJAR_WORKSPACE_WORKSPACE_APPLIED_H

#include "workspace/workspace_changes.h"

/* Write down the changes that are done, and the directories that they are in. Failing only makes for a conflict later. */
void workspace_applied_note(const struct workspace_view *view, const struct workspace *workspace,
			    const struct change_list *changes);
/* What was written down; one that is damaged is empty. */
void workspace_applied_read(int store_fd, struct applied_list *out);
void workspace_applied_done(struct applied_list *list);
bool workspace_applied_has(const struct applied_list *list, dev_t device, ino_t inode, int64_t ctime_ns);

#endif
