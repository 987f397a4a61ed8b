/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_risk.h - which changes are not applied unless they are named, and which are shown apart
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_RISK_H
#define BELLJAR_WORKSPACE_WORKSPACE_RISK_H

#include "workspace/workspace_changes.h"

/*
 * Mark changes as refused or as shown apart, and say why. What lies at or below one of @allowed, paths below the workdir, is
 * not refused.
 */
void workspace_judge(const struct workspace_view *view, struct change_list *list, const struct string_list *allowed);

/* Is @path the same as @top, or below it? "." is above everything. */
bool workspace_change_is_within(const char *path, const char *top);
/* Does the text of a link at @path lead out of the workdir, or may it? */
bool workspace_link_leads_out(const char *workdir, const char *path, const char *text);

#endif
