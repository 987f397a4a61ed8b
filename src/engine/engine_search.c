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

/* Directories between two looks at the clock, and the time of one step after the run. */
#define LOOK_STEP 32
#define LOOK_STEP_NS 300000
/*
 * While directories are opened, the jar's process cannot cut its mounts off: that takes as long as the listing lasts. It is
 * over within this time.
 */
#define MOUNTS_NS 1000000

bool engine_may_leave_risks(const struct host *host)
{
	/* Under a layer the command writes to no file of the host's: what changes there meanwhile is other programs' work. */
	return host_is_searched(host) && !(host->has_workdir_layer && !host->mounts.count);
}

static void on_grow(struct loop_timer *timer)
{
	struct engine_search *search = timer->owner;

	if (host_trees_grow(&search->trees, TREES_STEP))
		loop_arm(search->loop, &search->timer, 0, on_grow, search);
}

/* --- what to compare with ----------------------------------------------------------------------------------- */

struct engine_baseline *engine_baseline_new(const struct host *host, struct watch_list *watched)
{
	struct engine_baseline *baseline = engine_may_leave_risks(host) ? calloc(1, sizeof(*baseline)) : NULL;

	if (!baseline)
		return NULL;
	baseline->users = 1;
	if (watched) {
		baseline->before = *watched;
		*watched = (struct watch_list){0};
	} else {
		host_watch(host, host_settled_ns(), &baseline->before, NULL);
	}
	host_moment_now(&baseline->moment);
	return baseline;
}

struct engine_baseline *engine_baseline_hold(struct engine_baseline *baseline)
{
	baseline->users++;
	return baseline;
}

void engine_baseline_release(struct engine_baseline *baseline)
{
	if (!baseline || --baseline->users)
		return;
	host_watch_done(&baseline->before);
	free(baseline);
}

/* --- the search --------------------------------------------------------------------------------------------- */

void engine_search_begin(struct engine_search *search, struct loop *loop, const struct host *host,
			 struct engine_baseline *baseline, struct tree_list *kept)
{
	search->loop = loop;
	if (!baseline)
		return;
	search->host = host;
	search->baseline = baseline;
	host_trees_open(&search->trees, host, kept);
	loop_arm(loop, &search->timer, sys_monotonic_ns() + MOUNTS_NS, on_grow, search);
}

/* What it has found is what the next search compares with. */
static void finish(struct engine_search *search)
{
	search->is_looking = false;
	if (search->next) {
		search->next->before = search->look.now;
		search->look.now = (struct watch_list){0};
	}
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
		.before = &search->baseline->before,
		.start = search->baseline->moment,
		.was_protected = was_protected,
		.trees = search->trees.items,
		.tree_count = search->trees.count,
	};
	search->is_looking = true;
	search->next = calloc(1, sizeof(*search->next));
	if (search->next) {
		search->next->users = 1;
		host_moment_now(&search->next->moment);
	}
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
	engine_baseline_release(search->baseline);
	engine_baseline_release(search->next);
	host_risky_done(&search->risky);
	*search = (struct engine_search){0};
}
