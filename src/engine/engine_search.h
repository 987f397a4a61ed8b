/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_search.h - the search for risky files around a run, which a helper does
 *
 * Before the run the helper remembers what other programs obey. While the run works it lists directories, and after it compares.
 */
#ifndef BELLJAR_ENGINE_ENGINE_SEARCH_H
#define BELLJAR_ENGINE_ENGINE_SEARCH_H

#include "engine/engine_helper.h"
#include "survey/survey_risky.h"

/* What a search compares with: the helper remembers it. */
struct engine_baseline {
	unsigned users;
	struct engine_helper *helper;
	uint64_t number;
};

/*
 * Have the helper look now. It answers @question with what is protected (HELPER_LOOK); NULL: nobody asks. NULL: no memory, or
 * @project is none.
 */
struct engine_baseline *engine_baseline_new(const struct engine_project *project, struct engine_question *question);
/* The same where nothing was there before the run (survey_is_empty()): the helper need not have looked. */
struct engine_baseline *engine_baseline_empty(const struct engine_project *project);
struct engine_baseline *engine_baseline_hold(struct engine_baseline *baseline);
/* Accepts NULL. */
void engine_baseline_release(struct engine_baseline *baseline);

struct engine_search {
	struct engine_project project;    /* borrowed */
	struct engine_baseline *baseline; /* NULL: there is nothing to search */
	struct engine_baseline *next;     /* what the search has found: for the one after it */
	struct engine_question question;
	struct risky_list risky; /* the result */
	void (*over)(void *owner);
	void *owner;
};

/*
 * A run begins. @baseline: what to compare with, which is taken over; NULL: there is none, and only engine_search_end() has an
 * effect. @project outlives the search.
 */
void engine_search_begin(struct engine_search *search, const struct engine_project *project,
			 struct engine_baseline *baseline);
/* The run is over: search, then call over(@owner), from within the loop or at once. */
void engine_search_end(struct engine_search *search, bool was_protected, void (*over)(void *owner), void *owner);
void engine_search_done(struct engine_search *search);

/* Can a command of such a jar leave anything that is searched for? */
bool engine_may_leave_risks(const struct host *host);

#endif
