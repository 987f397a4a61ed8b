/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view_notes.c - report which of the caller's tools the jar does not have
 *
 * If a program is missing in the jar, the next one of the same name in PATH runs without a warning. So the result
 * reports which directories of PATH and which virtual environments are missing, with the reason.
 */
#include "plan/plan_view_stages.h"

#include <string.h>

/* More directories of PATH are only counted. */
#define NAMES_MAX 5

/* Does the host's @path show there, or was it hidden on purpose? */
static bool is_accounted_for(const struct view *view, const char *path)
{
	const struct place *place = plan_view_innermost(view, path);

	return place && (plan_place_shows_host(place) || place->kind == PLACE_HIDDEN);
}

static void note_path(struct plan_build *build, const struct view *view)
{
	const struct host_path_list *directories = &build->host->path_directories;
	const char *workdir = build->has_private_workdir ? build->host->workdir.path.path : NULL;
	AUTO_TEXT names = {0};
	size_t count = 0;

	for (size_t i = 0; i < directories->count; i++) {
		const struct host_path *directory = &directories->items[i];
		bool is_repeated = false;

		/* An empty entry means the current directory, which is another one in the jar. */
		if (directory->kind != PATH_DIRECTORY || is_accounted_for(view, directory->path) ||
		    (workdir && !strcmp(directory->path, workdir)))
			continue;
		for (size_t j = 0; j < i && !is_repeated; j++)
			is_repeated = directories->items[j].kind == PATH_DIRECTORY &&
				      !strcmp(directories->items[j].path, directory->path);
		if (!is_repeated && count++ < NAMES_MAX)
			text_append_format(&names, "%s'%s'", names.len ? ", " : "", directory->path);
	}
	if (count > NAMES_MAX)
		text_append_format(&names, " and %zu more", count - NAMES_MAX);
	build->has_failed |= text_failed(&names);
	if (count)
		plan_note_quietly(
			build, "path",
			plan_format(build, "your PATH has %s, which the jar does not show", text_string(&names)),
			"programs there are not found in the jar; --ro shows a directory");
}

static void note_environments(struct plan_build *build, const struct view *view)
{
	for (size_t i = 0; i < build->host->unshown.count; i++) {
		const struct host_unshown *item = &build->host->unshown.items[i];

		if (is_accounted_for(view, item->base ? item->base : item->path))
			continue;
		plan_note(build, "toolchains",
			  plan_format(build, "the jar does not show %sthe virtual environment '%s': %s",
				      item->base ? "the Python of " : "", item->path, item->why),
			  item->base ? "show the installation that it was made from with --ro DIR"
				     : "show it with --ro DIR if you mean it");
	}
}

void plan_view_note_tools(struct plan_build *build, const struct view *view)
{
	if (!build->policy->has_toolchains || build->plan->rung == RUNG_PROCESS)
		return;
	note_path(build, view);
	note_environments(build, view);
}
