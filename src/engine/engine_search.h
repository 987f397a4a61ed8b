/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_search.h - the search for risky files around a run, which a helper does
 *
 * Before a run the helper remembers files that other programs run. It lists directories meanwhile and compares after.
 */
#ifndef BELLJAR_ENGINE_ENGINE_SEARCH_H
#define BELLJAR_ENGINE_ENGINE_SEARCH_H

#include "engine/engine_helper.h"
#include "survey/survey_risky.h"

/* The state that a search compares with; the helper remembers it. */
struct engine_baseline {
	unsigned users;
	struct engine_helper *helper;
	uint64_t number;
};

/*
 * Have the helper look now. It answers @question with what is protected (HELPER_LOOK); @question may be NULL.
 * Returns NULL without memory, or if @project has no helper.
 */
struct engine_baseline *engine_baseline_new(const struct engine_project *project, struct engine_question *question);
/* The same for a directory that was empty before the run (survey_is_empty()): the helper need not look. */
struct engine_baseline *engine_baseline_empty(const struct engine_project *project);
struct engine_baseline *engine_baseline_hold(struct engine_baseline *baseline);
/* Accepts NULL. */
void engine_baseline_release(struct engine_baseline *baseline);

struct engine_search {
	struct engine_project project;    /* borrowed */
	struct engine_baseline *baseline; /* NULL: there is nothing to search */
	struct engine_baseline *next;     /* what this search found, for the next one */
	struct engine_question question;
	struct risky_list risky; /* the result */
	void (*over)(void *owner);
	void *owner;
};

/*
 * Begin the search of a run. Takes over @baseline; NULL: there is nothing to compare with, and only
 * engine_search_end() has an effect. @project outlives the search.
 */
void engine_search_begin(struct engine_search *search, const struct engine_project *project,
			 struct engine_baseline *baseline);
/* Search after the run, then call over(@owner), from within the loop or at once. */
void engine_search_end(struct engine_search *search, bool was_protected, void (*over)(void *owner), void *owner);
void engine_search_done(struct engine_search *search);

/* Whether a command of such a jar can leave risky files. */
bool engine_may_leave_risks(const struct host *host);

#endif
