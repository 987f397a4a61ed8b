/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_borrow.h - copy the contents of renamed directories from lower layers into the upper
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_BORROW_H
#define BELLJAR_WORKSPACE_WORKSPACE_BORROW_H

#include "workspace/workspace_view.h"

/* Does nothing without such directories. The workspace shows the same as before. */
int workspace_borrow(const struct workspace_view *view, const struct workspace *workspace, struct error *error);

#endif
