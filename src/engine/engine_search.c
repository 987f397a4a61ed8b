/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_search.c - list directories while a command works, and search them when it has ended
 *
 * The loop has nothing to do while a jar is built and while its command works. Listing directories then costs the run nothing
 * that can be measured, and needs no other process. Each step is short, and comes after everything else in the loop.
 */
#include "engine/engine_search.h"

#include "host/host_watch.h"
#include "sys/calls.h"

/* Directories that are listed in one step: some 60 microseconds. */
#define GROW_STEP 16
/* Directories between two looks at the clock, and the time of one step after the run. */
#define LOOK_STEP 32
#define LOOK_STEP_NS 300000

bool engine_may_leave_risks(const struct host *host)
{
	/* Under a layer the command writes to no file of the host's: what changes there meanwhile is other programs' work. */
	return host_is_searched(host) && !(host->has_workdir_layer && !host->mounts.count);
}

static void on_grow(struct loop_timer *timer)
{
	struct engine_search *search = timer->owner;

	if (host_trees_grow(&search->trees, GROW_STEP))
		loop_arm(search->loop, &search->timer, 0, on_grow, search);
}

void engine_search_begin(struct engine_search *search, struct loop *loop, const struct host *host,
			 struct watch_list *watched, struct tree_list *kept)
{
	search->loop = loop;
	if (!engine_may_leave_risks(host))
		return;
	search->host = host;
	if (watched) {
		search->before = *watched;
		*watched = (struct watch_list){0};
	} else {
		host_watch(host, host_settled_ns(), &search->before, NULL);
	}
	host_trees_open(&search->trees, host, kept);
	host_moment_now(&search->start);
	loop_arm(loop, &search->timer, 0, on_grow, search);
}

static void finish(struct engine_search *search)
{
	search->is_looking = false;
	host_look_end(&search->look);
	search->over(search->owner);
}

static void on_look(struct loop_timer *timer)
{
	struct engine_search *search = timer->owner;
	uint64_t until_ns = sys_monotonic_ns() + LOOK_STEP_NS;

	while (host_look_go(&search->look, LOOK_STEP, &search->risky)) {
		if (sys_monotonic_ns() < until_ns)
			continue;
		loop_arm(search->loop, &search->timer, 0, on_look, search);
		return;
	}
	finish(search);
}

void engine_search_end(struct engine_search *search, bool was_protected, void (*over)(void *owner), void *owner)
{
	loop_disarm(&search->timer);
	search->over = over;
	search->owner = owner;
	if (!search->host) {
		over(owner);
		return;
	}
	search->request = (struct risky_request){
		.host = search->host,
		.before = &search->before,
		.start = search->start,
		.was_protected = was_protected,
		.trees = search->trees.items,
		.tree_count = search->trees.count,
	};
	search->is_looking = true;
	host_look_begin(&search->look, &search->request, &search->risky);
	search->timer.owner = search;
	on_look(&search->timer);
}

void engine_search_done(struct engine_search *search)
{
	loop_disarm(&search->timer);
	if (search->is_looking)
		host_look_end(&search->look);
	host_trees_done(&search->trees);
	host_watch_done(&search->before);
	host_risky_done(&search->risky);
	*search = (struct engine_search){0};
}
