/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_calls.c - a jar for calls: what each call has anew, and where a trace of it would show
 *
 * A call has private places, terminals and /proc of its own. What was mounted into a private place is taken along as it
 * stands in the jar; all else that lies there is made again.
 */
#include "plan/plan_build.h"

#include <string.h>

/* What each kind of step means for a call: nothing, if it is not named here. */
enum renewal {
	RENEW_NEVER,
	RENEW_ALWAYS,
	RENEW_PLACE,  /* always; what steps put into it too */
	RENEW_INSIDE, /* if it lies in such a place */
};

static const enum renewal renewals[STEP_KIND_COUNT] = {
	[STEP_SCRATCH] = RENEW_ALWAYS,   [STEP_DEVPTS] = RENEW_ALWAYS,  [STEP_PROC] = RENEW_ALWAYS,
	[STEP_PROC_LOCK] = RENEW_ALWAYS, [STEP_METER] = RENEW_ALWAYS,   [STEP_PRIVATE] = RENEW_PLACE,
	[STEP_TMPFS] = RENEW_PLACE,      [STEP_BIND] = RENEW_INSIDE,    [STEP_FILE] = RENEW_INSIDE,
	[STEP_HIDE] = RENEW_INSIDE,      [STEP_SYMLINK] = RENEW_INSIDE, [STEP_DIRECTORY] = RENEW_INSIDE,
};

static bool is_within(const char *path, const char *place)
{
	size_t len = strlen(place);

	return !strncmp(path, place, len) && path[len] == '/';
}

static bool is_mount(const struct plan_step *step)
{
	return renewals[step->kind] == RENEW_PLACE || step->kind == STEP_BIND;
}

/* The step whose mount @step's target lies in; NULL: the root. */
static const struct plan_step *mount_around(const struct plan_step_list *steps, const struct plan_step *step)
{
	const struct plan_step *found = NULL;

	for (const struct plan_step *at = steps->items; at < step; at++)
		if (is_mount(at) && is_within(step->target, at->target) &&
		    (!found || strlen(at->target) > strlen(found->target)))
			found = at;
	return found;
}

/* What lies in a mount that is taken along as it is comes with it. */
static bool is_anew(const struct plan_step_list *steps, const struct plan_step *step)
{
	const struct plan_step *around;

	if (renewals[step->kind] != RENEW_INSIDE)
		return renewals[step->kind] != RENEW_NEVER;
	around = mount_around(steps, step);
	return around && renewals[around->kind] == RENEW_PLACE;
}

static bool has_step(const struct plan_step_list *steps, enum step_kind kind)
{
	for (size_t i = 0; i < steps->count; i++)
		if (steps->items[i].kind == kind)
			return true;
	return false;
}

static void watch(struct plan_build *build, const char *path, bool has_numbers)
{
	struct plan_watch_list *watched = &build->plan->watched;
	struct plan_watch *added;

	for (size_t i = 0; i < watched->count; i++)
		if (!strcmp(watched->items[i].path, path))
			return;
	added = list_add(watched);
	if (added)
		*added = (struct plan_watch){.path = path, .has_numbers = has_numbers};
	else
		build->has_failed = true;
}

/* What stands in a file system that a call can write to; all others are read-only, or the host's own. */
static void watch_itself(struct plan_build *build, const struct plan_step *step)
{
	/* All private places are in one. */
	if (step->kind == STEP_TMPFS || step->kind == STEP_PRIVATE)
		watch(build, step->target, step->kind == STEP_TMPFS || !has_step(&build->plan->anew, STEP_PRIVATE));
	if (step->kind == STEP_SYMLINK || step->kind == STEP_DIRECTORY || step->kind == STEP_DEVPTS)
		watch(build, step->target, false);
	if (step->kind == STEP_DEVPTS)
		watch(build, plan_format(build, "%s/ptmx", step->target), false);
}

/* The directories between what lies in a place and that. */
static void watch_way(struct plan_build *build, const struct plan_step_list *steps, const struct plan_step *step)
{
	const struct plan_step *around = renewals[step->kind] == RENEW_ALWAYS ? NULL : mount_around(steps, step);

	if (!around)
		return;
	for (size_t len = strlen(around->target) + 1; step->target[len]; len++)
		if (step->target[len] == '/')
			watch(build, plan_format(build, "%.*s", (int)len, step->target), false);
}

void plan_calls(struct plan_build *build)
{
	struct plan *plan = build->plan;

	if (!plan->has_zygote)
		return;
	for (size_t i = 0; i < plan->steps.count; i++) {
		const struct plan_step *step = &plan->steps.items[i];

		if (!is_anew(&plan->steps, step))
			continue;
		watch_itself(build, step);
		watch_way(build, &plan->steps, step);
		*plan_add(build, &plan->anew, step->kind) = *step;
	}
	/*
	 * Some of what stands there belongs to a user who is root inside: the largest pid of this pid namespace, modes of the
	 * network's files, times; some to everybody: the user namespace's map of projects, which can be written once.
	 */
	plan_add(build, &plan->anew, STEP_PROC_LOCK)->target = "/proc";
}
