/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_nested.h - a bounded walk through a project after a run, for what no list of names can name
 *
 * Repositories that the command laid out at any depth, instructions for agents in subdirectories, links inside .git. There is
 * no picture of all this from before the run: it would make every start slower. What the run touched is known by times of
 * change, which no command can set. Times that leave it open count against what can run a program, and for what cannot.
 */
#ifndef BELLJAR_HOST_HOST_NESTED_H
#define BELLJAR_HOST_HOST_NESTED_H

#include "host/host_risky.h"

/* @now is what host_watch() finds after the run: it is not reported again. */
void host_find_nested(const struct risky_request *request, const struct watch_list *now, struct risky_list *risky);
/* What has changed in the directory @watched, which itself has not. */
void host_find_changed_inside(const struct risky_request *request, const struct watched *watched,
			      struct risky_list *risky);

#endif
