/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_intent.h - what an apply set out to do, so that the next one knows its work if it was killed
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_INTENT_H
#define BELLJAR_WORKSPACE_WORKSPACE_INTENT_H

#include "workspace/workspace_changes.h"

/*
 * Write down those of @changes that are due and that the first steps could disguise, and keep those that an apply @before
 * left. Nothing is written if there is none.
 */
int workspace_intent_write(const struct workspace *workspace, const struct intent_list *before,
			   const struct change_list *changes);
/* The apply is over. */
void workspace_intent_remove(const struct workspace *workspace);
/* What an apply that was killed left; one that is damaged is empty. */
void workspace_intent_read(int store_fd, struct intent_list *out);
void workspace_intent_done(struct intent_list *list);
/* Did that apply find this very change to be no conflict? */
bool workspace_intent_has(const struct intent_list *list, const struct change *change);

#endif
