/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_search.h - the search for risky files around a run, in steps between which the loop serves others
 *
 * Before the run it remembers what other programs obey. While the run works it lists directories, and after it compares.
 */
#ifndef BELLJAR_ENGINE_ENGINE_SEARCH_H
#define BELLJAR_ENGINE_ENGINE_SEARCH_H

#include "base/loop.h"
#include "host/host_nested.h"
#include "host/host_risky.h"
#include "host/host_trees.h"

/* What a search compares with. */
struct engine_baseline {
	unsigned users;
	struct watch_list before; /* what other programs ran or obeyed then */
	struct host_moment moment;
};

/* Look now. @watched: what a survey has just found, which is taken over; NULL: look at the host. NULL: no memory. */
struct engine_baseline *engine_baseline_new(const struct host *host, struct watch_list *watched);
struct engine_baseline *engine_baseline_hold(struct engine_baseline *baseline);
/* Accepts NULL. */
void engine_baseline_release(struct engine_baseline *baseline);

struct engine_search {
	struct loop *loop;
	const struct host *host; /* borrowed until the end; NULL: there is nothing to search */
	struct engine_baseline *baseline;
	struct engine_baseline *next; /* what the search has found: for the one after it */
	struct tree_list trees;
	struct loop_timer timer;
	struct risky_request request;
	struct risk_look look;
	struct risky_list risky; /* the result */
	bool is_looking;
	void (*over)(void *owner);
	void *owner;
};

/*
 * A run begins. @baseline: what to compare with, which is taken over; NULL: there is none. @kept: as in host_trees_open().
 * Where nothing can be searched, only engine_search_end() has an effect.
 */
void engine_search_begin(struct engine_search *search, struct loop *loop, const struct host *host,
			 struct engine_baseline *baseline, struct tree_list *kept);
/* The run is over: search, then call over(@owner), from within the loop or at once. */
void engine_search_end(struct engine_search *search, bool was_protected, void (*over)(void *owner), void *owner);
void engine_search_done(struct engine_search *search);

/* Can a command of such a jar leave anything that is searched for? */
bool engine_may_leave_risks(const struct host *host);

#endif
