/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_nested.h - the search after a run for changes that make other programs run or use something
 *
 * First what was known before the run is compared (survey_watch()). Then the trees of what the command may write are searched
 * for repositories at any depth, instructions for agents, links inside .git. What the run touched is known by times of change,
 * which no command can set. If a time is ambiguous, files that can run programs are reported and others are not. The search
 * executes nothing, and follows no link that the command may have made. Where memory runs out, the list is shorter.
 */
#ifndef BELLJAR_SURVEY_SURVEY_NESTED_H
#define BELLJAR_SURVEY_SURVEY_NESTED_H

#include "survey/survey_risky.h"
#include "survey/survey_walk.h"

/* A search that goes on a step at a time, so that an engine serves other runs between two steps. */
struct risk_look {
	struct walk walk;
	struct watch_list now; /* what survey_watch() found after the run */
	size_t tree, index;    /* the next directory */
	bool is_begun;         /* ... of a tree that has been opened */
	size_t listed;         /* directories */
};

/* Compare what was known before. @request is borrowed until survey_look_end(). */
void survey_look_begin(struct risk_look *look, const struct risky_request *request, struct risky_list *risky);
/* Look at up to @count directories. False: there are none left. */
bool survey_look_go(struct risk_look *look, size_t count, struct risky_list *risky);
void survey_look_end(struct risk_look *look);

/* What has changed in the directory @watched, which itself has not. */
void survey_find_changed_inside(const struct risky_request *request, const struct watched *watched,
				struct risky_list *risky);

#endif
