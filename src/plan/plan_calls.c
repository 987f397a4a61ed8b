/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_calls.c - a jar for calls: what each call has anew
 *
 * A call has private places, terminals and /proc of its own. What was mounted into a private place is taken along as it
 * stands in the jar; all else that lies there is made again.
 */
#include "plan/plan_build.h"

#include <string.h>

#include "base/paths.h"
#include "base/sys/calls.h"

static bool is_mount(const struct plan_step *step)
{
	return inside_step_rows[step->kind].traits & STEP_ANEW_PLACE || step->kind == STEP_BIND ||
	       step->kind == STEP_OVERLAY;
}

/* The step whose mount @step's target lies in; NULL: the root. */
static const struct plan_step *mount_around(const struct plan_step_list *steps, const struct plan_step *step)
{
	const struct plan_step *found = NULL;

	for (const struct plan_step *at = steps->items; at < step; at++)
		if (is_mount(at) && path_is_within(step->target, at->target) && strcmp(step->target, at->target) != 0 &&
		    (!found || strlen(at->target) > strlen(found->target)))
			found = at;
	return found;
}

/* What lies in a mount that is taken along as it is comes with it. */
static bool is_anew(const struct plan_step_list *steps, const struct plan_step *step)
{
	const struct plan_step *around;

	if (!(inside_step_rows[step->kind].traits & STEP_ANEW_INSIDE))
		return inside_step_rows[step->kind].traits & (STEP_ANEW | STEP_ANEW_PLACE);
	around = mount_around(steps, step);
	return around && inside_step_rows[around->kind].traits & STEP_ANEW_PLACE;
}

/*
 * Deny ioctl() on a device that no program needs it for. If ioctl() fails on a descriptor, the minder knows that the
 * process that opened it is behind the walls. Before Landlock ABI 5 the kernel does not govern ioctl().
 */
static void choose_probe(struct plan *plan)
{
	static const char probe[] = "/dev/full";

	for (size_t i = 0; i < plan->core.landlock.count; i++) {
		struct plan_landlock_rule *rule = &plan->core.landlock.items[i];

		if (strcmp(rule->path, probe) != 0 || !(rule->access & SYS_LANDLOCK_IOCTL_DEV))
			continue;
		rule->access &= ~(uint64_t)SYS_LANDLOCK_IOCTL_DEV;
		plan->core.zygote.landlock_probe = probe;
	}
}

void plan_calls(struct plan_build *build)
{
	struct plan *plan = build->plan;

	if (!plan_is_for_calls(plan))
		return;
	for (size_t i = 0; i < plan->core.steps.count; i++) {
		const struct plan_step *step = &plan->core.steps.items[i];

		struct plan_step *anew;

		if (!is_anew(&plan->core.steps, step))
			continue;
		anew = plan_add(build, &plan->core.zygote.anew, step->kind);
		*anew = *step;
		/* All calls of a jar share its layers. */
		if (step->kind == STEP_OVERLAY)
			anew->kind = STEP_BIND;
	}
	choose_probe(plan);
	/*
	 * All calls are in one user namespace: its map of projects, which anybody may write once, and its limits,
	 * which belong to a user who is root inside, would be the next call's too.
	 */
	plan_add(build, &plan->core.zygote.anew, STEP_PROC_LOCK)->target = "/proc";
	plan_machine_facts(build, &plan->core.zygote.anew);
}
