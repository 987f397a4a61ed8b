/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/explain/plan_shows.c - does a jar show this file of the host?
 *
 * A file may have other names in the jar than on the host, so directories are compared by device and inode. Modes do not count: a
 * command may be able to change them.
 */
#include "plan/explain/plan_explain.h"

#include <stdio.h>
#include <string.h>

#include "base/paths.h"
#include "base/sys/calls.h"

static bool is_mount(const struct plan_step *step)
{
	return step->target && (step->kind == STEP_BIND || step->kind == STEP_OVERLAY || step->kind == STEP_PRIVATE ||
				step->kind == STEP_TMPFS || step->kind == STEP_HIDE || step->kind == STEP_FILE ||
				step->kind == STEP_COPY);
}

/* Is what the step shows the directory or file @node? */
static bool shows_node(const struct plan_step *step, const struct plan_node *node)
{
	const struct jar_part *own =
		step->kind == STEP_OVERLAY ? &step->as.overlay.parts[step->as.overlay.count - 1] : NULL;
	const char *source = step->source ? step->source : step->target;

	if (step->kind != STEP_BIND && step->kind != STEP_COPY && step->kind != STEP_OVERLAY)
		return false;
	if (own)
		return own->inode ? own->inode == node->inode && own->device == node->device
				  : !strcmp(own->path, node->path);
	return step->inode ? step->inode == node->inode && step->device == node->device : !strcmp(source, node->path);
}

/* Does a later step put something else over @path? */
static bool is_covered(const struct plan_step_list *steps, size_t from, const char *path)
{
	for (size_t i = from; i < steps->count; i++)
		if (is_mount(&steps->items[i]) && path_is_within(path, steps->items[i].target))
			return true;
	return false;
}

static const char *find_in_steps(const struct plan_step_list *steps, const struct plan_node *way, size_t count)
{
	char path[2 * PATH_MAX];

	for (size_t i = 0; i < steps->count; i++)
		for (size_t j = 0; j < count && is_mount(&steps->items[i]); j++) {
			const char *rest = way[0].path + (way[j].path[1] ? strlen(way[j].path) : 0);

			if (!shows_node(&steps->items[i], &way[j]))
				continue;
			snprintf(path, sizeof(path), "%s%s", steps->items[i].target, rest);
			if (!is_covered(steps, i + 1, path))
				return steps->items[i].target;
		}
	return NULL;
}

static const char *find_in_rules(const struct plan *plan, const struct plan_node *way, size_t count)
{
	if (!(plan->core.landlock_files & SYS_LANDLOCK_READ_FILE))
		return "/";
	for (size_t i = 0; i < plan->core.landlock.count; i++)
		for (size_t j = 0; j < count; j++) {
			const struct plan_landlock_rule *rule = &plan->core.landlock.items[i];
			bool is_same = rule->inode ? rule->inode == way[j].inode && rule->device == way[j].device
						   : !strcmp(rule->path, way[j].path);

			if (is_same && rule->access & SYS_LANDLOCK_READ_FILE)
				return rule->path;
		}
	return NULL;
}

const char *plan_shows(const struct plan *plan, const struct plan_node *way, size_t count)
{
	const char *found;

	if (plan->rung != RUNG_NAMESPACE)
		return find_in_rules(plan, way, count);
	found = find_in_steps(&plan->skeleton, way, count);
	return found ? found : find_in_steps(&plan->core.steps, way, count);
}
