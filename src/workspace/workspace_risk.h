/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_risk.h - which changes are not applied unless they are named, and which are shown apart
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_RISK_H
#define BELLJAR_WORKSPACE_WORKSPACE_RISK_H

#include "workspace/workspace_changes.h"

/*
 * Mark changes as refused or as shown apart, and set the cause. Changes at or below one of @allowed, paths below the
 * workdir, are not refused.
 */
void workspace_judge(const struct workspace_view *view, struct change_list *list, const struct string_list *allowed);

/* Report whether @path is @top, or below it. "." is above everything. */
bool workspace_change_is_within(const char *path, const char *top);
/* Report whether the text of a link at @path leads, or may lead, out of the workdir. */
bool workspace_link_leads_out(const char *workdir, const char *path, const char *text);

#endif
