/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_match.h - find what the patterns of a policy match on this host
 *
 * What matches becomes entries of a copy of the policy, host->matched, from which the rest of the survey and the planner work.
 */
#ifndef BELLJAR_SURVEY_SURVEY_MATCH_H
#define BELLJAR_SURVEY_SURVEY_MATCH_H

#include "survey/survey_risky.h"

/* What `ro` and `rw` match, for which only the names count. Sets host->matched if the policy needs it. */
int survey_match_shown(struct host *host, const struct policy *policy, const char *current_directory,
		       struct error *error);
/* What is to be hidden: needs all else that the jar shows. A bound that is met is an error: nothing may stay visible by that. */
int survey_match_hidden(struct host *host, const struct policy *policy, struct error *error);
/* Other names of the files in host->hidden; they are added to host->matched. */
int survey_match_twins(struct host *host, struct error *error);
/* What matches `hide` now, and did not when the jar was made. */
void survey_find_unhidden(const struct host *host, struct risky_list *risky);
void survey_match_done(struct host *host);

/* For doctor: names below @directory that `hide_secrets` would hide, @max at most. */
int survey_find_secret_files(const char *directory, size_t max, struct string_list *found);

#endif
