/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_rules.h - what counts as a risk in one project, besides the tables: what links and git's configuration name
 */
#ifndef BELLJAR_SURVEY_SURVEY_RULES_H
#define BELLJAR_SURVEY_SURVEY_RULES_H

#include "survey/survey_judge.h"

/* Fill rules->extra for the project @workdir. 0 or a negative errno: then nothing is known of it. */
int survey_find_rules(const char *workdir, char *const *environment, struct risk_rules *rules);

#endif
