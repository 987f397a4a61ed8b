/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_merge.h - put together what two sides made of the same text
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_MERGE_H
#define BELLJAR_WORKSPACE_WORKSPACE_MERGE_H

#include "base/text.h"

/*
 * Append to @out what both made of @base. 1: merged; 0: both changed the same lines, or lines beside each other, and not in
 * the same way, @out is of no use; -ENOMEM.
 */
int merge_texts(const struct text *base, const struct text *ours, const struct text *theirs, struct text *out);

#endif
