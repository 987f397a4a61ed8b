/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_match.h - find the paths on this host that match the patterns of a policy
 *
 * The matches become entries of host->matched, a copy of the policy for the rest of the survey and for the planner.
 */
#ifndef BELLJAR_SURVEY_SURVEY_MATCH_H
#define BELLJAR_SURVEY_SURVEY_MATCH_H

#include "survey/survey_risky.h"

/* Find the matches of `ro` and `rw`, for which only names count. Sets host->matched if the policy needs it. */
int survey_match_shown(struct host *host, const struct policy *policy, const char *current_directory,
		       struct error *error);
/* Find the paths to hide; needs all else that the jar shows. Meeting a bound is an error: no path may stay visible. */
int survey_match_hidden(struct host *host, const struct policy *policy, struct error *error);
/* Find other names of the files in host->hidden, and add them to host->matched. */
int survey_match_twins(struct host *host, struct error *error);
/* Find paths that match `hide` now and did not when the jar was made. */
void survey_find_unhidden(const struct host *host, struct risky_list *risky);
void survey_match_done(struct host *host);

/* For doctor: find up to @max names below @directory that `hide_secrets` would hide. */
int survey_find_secret_files(const char *directory, size_t max, struct string_list *found);

#endif
