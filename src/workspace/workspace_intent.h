/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_intent.h - record the plan of an apply, so that the next one can continue it after a kill
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_INTENT_H
#define BELLJAR_WORKSPACE_WORKSPACE_INTENT_H

#include "workspace/workspace_changes.h"

/*
 * Record those of @changes that are due and that could look different after the first steps. Keep those that an
 * earlier apply left in @before. Write nothing if there are none.
 */
int workspace_intent_write(const struct workspace *workspace, const struct intent_list *before,
			   const struct change_list *changes);
/* Remove the record when the apply is over. */
void workspace_intent_remove(const struct workspace *workspace);
/* Read the record of an apply that was killed; a damaged one is empty. */
void workspace_intent_read(int store_fd, struct intent_list *out);
void workspace_intent_done(struct intent_list *list);
/* Report whether that apply planned exactly this change, so that it was not a conflict. */
bool workspace_intent_has(const struct intent_list *list, const struct change *change);

#endif
