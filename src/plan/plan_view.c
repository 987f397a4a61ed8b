/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view.c - make the view of a jar in three stages
 *
 *   collect   adds places in layers, from what every jar has to what the user named, and looks at none of those before
 *   order     moves each place to where links lead, sorts, and leaves one place at each target: the last layer's
 *   protect   adds what follows from the places that are left: a protected or hidden file is so under every name that
 *             they give it, and no directory above it can be moved away
 *
 * The order of the stages is not free. Who wins at a target can be said only when all layers are there; under which names a
 * host file shows only when it is known who won. What must hold after each stage is checked here, in every build:
 * the mounts are made in this order and nothing looks at it again.
 */
#include "plan/plan_view_stages.h"

#include <assert.h>

struct place *plan_view_add(struct plan_build *build, struct view *view, enum place_kind kind, const char *target)
{
	static struct place spare;
	struct place *place = build->has_failed ? NULL : list_add(view);

	if (!place) {
		build->has_failed = true;
		return &spare;
	}
	place->kind = kind;
	place->target = plan_string(build, target);
	place->order = view->count;
	return place;
}

void plan_view_set_on_host(struct place *place, const struct host_path *path)
{
	place->on_host = path->kind;
	place->place_device = path->device;
	place->place_inode = path->inode;
}

struct place *plan_view_add_bind(struct plan_build *build, struct view *view, const struct host_path *from,
				 const char *target, unsigned flags)
{
	struct place *place = plan_view_add(build, view, PLACE_BIND, target);

	place->source = plan_string(build, from->path);
	place->device = from->device;
	place->inode = from->inode;
	place->flags = flags | (from->kind == PATH_DIRECTORY ? STEP_RECURSIVE : STEP_ON_FILE);
	/* By default a thing stands where it stands on the host. */
	plan_view_set_on_host(place, from);
	return place;
}

const struct place *plan_view_around(const struct view *view, size_t index)
{
	size_t around = view->items[index].around;

	return around == SIZE_MAX ? NULL : &view->items[around];
}

void plan_view_done(struct view *view)
{
	free(view->items);
	*view = (struct view){0};
}

/* --- what must hold after each stage ------------------------------------------------------------------------ */

/* Layers are as they were added, and nothing was taken away yet. */
static bool is_collected(const struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct place *place = &view->items[i];
		bool needs_source =
			plan_place_shows_host(place) || place->kind == PLACE_SYMLINK || place->kind == PLACE_FILE;

		if (place->target[0] != '/' || place->order != i + 1 || (needs_source && !place->source) ||
		    place->kind == PLACE_HIDDEN || place->kind == PLACE_PIN || place->is_dropped)
			return false;
	}
	return true;
}

/* Strictly sorted: no two places at one target, every place after those around it; and `around` names the innermost. */
static bool is_sorted(const struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct place *place = &view->items[i];
		const struct place *around = plan_view_around(view, i);

		if (i && plan_view_compare_paths(view->items[i - 1].target, place->target) >= 0)
			return false;
		if (around ? around >= place || !path_is_within(place->target, around->target)
			   : i && path_is_within(place->target, view->items[i - 1].target))
			return false;
	}
	return true;
}

/* Nothing is made up in a directory of the host: no link, no file, but for what stands on a file of its own. */
static bool is_ordered(const struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct place *around = plan_view_around(view, i);
		enum place_kind kind = view->items[i].kind;

		if (around && plan_place_shows_host(around) && !view->items[i].is_over &&
		    (kind == PLACE_SYMLINK || kind == PLACE_FILE))
			return false;
	}
	return is_sorted(view);
}

/* Does one of @list lead through a link that the command could write? */
static bool has_written_link(const struct view *view, const struct host_path_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		for (size_t j = 0; j < list->items[i].links.count; j++)
			for (size_t k = 0; k < view->count; k++)
				if (plan_place_writes_host(&view->items[k]) && !(view->items[k].flags & STEP_ON_FILE) &&
				    path_is_within(list->items[i].links.items[j], view->items[k].source))
					return true;
	return false;
}

/* What is hidden covers something of the host and has nothing in it; no named path depends on what a command wrote. */
static bool is_protected(const struct plan_build *build, const struct view *view)
{
	const struct host *host = build->host;

	for (size_t i = 0; i < view->count; i++) {
		const struct place *around = plan_view_around(view, i);

		if (view->items[i].is_in_host != (around && plan_place_shows_host(around)))
			return false;
		if (around && around->kind == PLACE_HIDDEN)
			return false;
		if (view->items[i].kind == PLACE_HIDDEN && !view->items[i].is_in_host)
			return false;
	}
	return is_sorted(view) && !has_written_link(view, &host->mounts) && !has_written_link(view, &host->places) &&
	       !has_written_link(view, &host->hidden) && !has_written_link(view, &host->tmpfs_places);
}

/* What the command can write it cannot execute, nor what is protected from it there: an earlier command may have made it. */
static void forbid_execution(struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct place *place = &view->items[i];
		bool is_writable = place->is_protected || place->kind == PLACE_OVERLAY ||
				   place->kind == PLACE_PRIVATE || place->kind == PLACE_TMPFS ||
				   (place->kind == PLACE_BIND && !(place->flags & STEP_READ_ONLY));

		if (is_writable)
			place->flags |= STEP_NO_EXEC;
	}
}

/* --- the three stages --------------------------------------------------------------------------------------- */

int plan_view_make(struct plan_build *build, struct view *view, struct view *pins)
{
	int rc = plan_view_refuse_written_links(build);

	if (rc == 0)
		rc = plan_view_collect(build, view);
	if (rc < 0 || build->has_failed)
		return rc;
	assert(is_collected(view));
	plan_view_order(build, view);
	if (build->has_failed)
		return 0;
	assert(is_ordered(view));
	rc = plan_view_protect(build, view, pins);
	if (rc < 0 || build->has_failed)
		return rc;
	assert(is_protected(build, view));
	if (build->policy->exec == EXEC_TRUSTED)
		forbid_execution(view);
	plan_view_note_tools(build, view);
	return 0;
}
