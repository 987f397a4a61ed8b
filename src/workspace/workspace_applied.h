/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_applied.h - record what an apply wrote into the workdir, so that it is no conflict later
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_APPLIED_H
#define BELLJAR_WORKSPACE_WORKSPACE_APPLIED_H

#include "workspace/workspace_changes.h"

/* Record the changes that are done, and their directories. A failure only causes a conflict later. */
void workspace_applied_note(const struct workspace_view *view, const struct workspace *workspace,
			    const struct change_list *changes);
/* Read the record; a damaged one is empty. */
void workspace_applied_read(int store_fd, struct applied_list *out);
void workspace_applied_done(struct applied_list *list);
bool workspace_applied_has(const struct applied_list *list, dev_t device, ino_t inode, int64_t ctime_ns);

#endif
