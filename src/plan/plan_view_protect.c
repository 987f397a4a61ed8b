/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view_protect.c - third stage of a view: what must be read-only, absent or fixed wherever it shows
 *
 * A protected or hidden file is a host object, not a name: a mount elsewhere, or a link, may show it under other names. Which
 * names those are is known only when each target has its one place, so this stage comes after the order.
 *
 * Protection comes before hiding, because hiding wins: what is hidden may be a protected file, or lie around one. Both
 * add places, and put the view in order again. Then every place in a host directory must have something to stand on, since
 * Belljar creates nothing there. Directories are pinned at the end: those that a place already stands on need no pin.
 */
#include "plan/plan_view_stages.h"

#include <errno.h>
#include <string.h>

#include "survey/survey_paths.h"
#include "policy/policy_patterns.h"

const char *plan_view_seen_through(struct plan_build *build, const struct view *view, const struct place *place,
				   const char *path)
{
	const char *target;

	if (!plan_place_shows_host(place) || !path_is_within(path, place->source) || !strcmp(path, place->source))
		return NULL;
	target = plan_format(build, "%s%s", place->target,
			     path + (strcmp(place->source, "/") ? strlen(place->source) : 0));
	return plan_view_innermost(view, target) == place ? target : NULL;
}

/* --- protected files --------------------------------------------------------------------------------------------- */

/* Protected files are protected under every name that a writable mount gives them. */
static void protect(struct plan_build *build, struct view *view, const struct host_path_list *protected)
{
	for (size_t i = 0; i < protected->count; i++) {
		const struct host_path *path = &protected->items[i];

		/* Nothing can be mounted on a symbolic link; if the command replaces it, the result says so. */
		if (path->kind != PATH_DIRECTORY && path->kind != PATH_FILE)
			continue;
		for (size_t j = 0; j < view->count && !build->has_failed; j++) {
			const char *target = plan_place_writes_host(&view->items[j])
						     ? plan_view_seen_through(build, view, &view->items[j], path->path)
						     : NULL;

			if (target)
				plan_view_add_bind(build, view, path, target, STEP_READ_ONLY | STEP_ID_MAPPED)
					->is_protected = true;
		}
	}
}

/* Without mounts they cannot be held. */
static void note_policy_files(struct plan_build *build)
{
	const struct host_path_list *files = &build->host->policy_files;

	for (size_t i = 0; i < files->count; i++)
		if (files->items[i].kind != PATH_ABSENT &&
		    survey_written_around(build->host, build->policy, files->items[i].path))
			plan_note(build, "policy",
				  plan_format(build,
					      "the command can change '%s', from which later runs take their policy",
					      files->items[i].path),
				  "keep the file outside of what the command may write");
}

/* What the policy was read from is what the next run begins with, so it is protected whatever the policy says. */
static int add_protection(struct plan_build *build, struct view *view)
{
	size_t count = view->count;
	int rc = plan_view_guard_own(build, view);

	if (build->plan->rung == RUNG_NAMESPACE)
		protect(build, view, &build->host->policy_files);
	else
		note_policy_files(build);
	if (build->policy->has_protect && !build->has_private_workdir)
		protect(build, view, &build->host->workdir.protected);
	if (view->count != count)
		plan_view_sort(build, view);
	return rc;
}

/*
 * A file that is named writable, in a directory that is writable and shows it already, needs no mount; and as a mount
 * point it could not be replaced, which is how git config and editors save. Naming it has lifted its protection.
 */
static void drop_idle_files(struct plan_build *build, struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct place *place = &view->items[i];
		const struct place *around = plan_view_around(view, i);
		bool is_writable_file = plan_place_writes_host(place) && place->flags & STEP_ON_FILE;

		if (is_writable_file && around && plan_place_writes_host(around))
			place->is_dropped = !strcmp(
				plan_format(build, "%s%s", around->source, place->target + strlen(around->target)),
				place->source);
	}
	plan_view_remove_dropped(view);
}

/* --- hidden files ------------------------------------------------------------------------------------------------ */

static void remove_within(struct view *view, const char *path)
{
	size_t kept = 0;

	for (size_t i = 0; i < view->count; i++)
		if (!path_is_within(view->items[i].target, path))
			view->items[kept++] = view->items[i];
	view->count = kept;
}

/* Nothing shows at the place any more; it stays a place, so that what it stood on does not show either. */
static void blank(struct place *place)
{
	place->kind = PLACE_HIDDEN;
	place->source = NULL;
	place->flags = place->on_host == PATH_DIRECTORY ? 0 : STEP_ON_FILE;
	place->is_protected = false;
}

/* What is at @path or in it, and wherever the host's object @hidden or part of it was mounted. True: there was something. */
static bool blank_places(struct view *view, const char *path, const struct host_path *hidden)
{
	size_t kept = 0;
	bool has_found = false;

	for (size_t i = 0; i < view->count; i++) {
		struct place place = view->items[i];
		bool shows_hidden = plan_place_shows_host(&place) && hidden->kind != PATH_ABSENT &&
				    path_is_within(place.source, hidden->path);

		has_found |= shows_hidden || path_is_within(place.target, path);
		if (path_is_within(place.target, path) &&
		    (strcmp(place.target, path) != 0 || place.kind == PLACE_SYMLINK))
			continue;
		if (shows_hidden || !strcmp(place.target, path))
			blank(&place);
		view->items[kept++] = place;
	}
	view->count = kept;
	return has_found;
}

/* Wherever the host's object @hidden can be reached through a host directory of the view: put nothing there. */
static void cover(struct plan_build *build, struct view *view, const struct host_path *hidden)
{
	struct string_list targets = {0};

	for (size_t i = 0; i < view->count; i++) {
		const char *target = plan_view_seen_through(build, view, &view->items[i], hidden->path);

		if (target && string_list_add(&targets, target) < 0)
			build->has_failed = true;
	}
	for (size_t i = 0; i < targets.count; i++) {
		struct place *place;

		remove_within(view, targets.items[i]);
		place = plan_view_add(build, view, PLACE_HIDDEN, targets.items[i]);
		plan_view_set_on_host(place, hidden);
		place->flags = hidden->kind == PATH_DIRECTORY ? 0 : STEP_ON_FILE;
	}
	string_list_done(&targets);
}

/* The place of a host directory that shows the store @path, or something in it; NULL: there is none. */
static const struct place *find_showing(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct place *place = &view->items[i];

		if (plan_place_shows_host(place) && !place->layer &&
		    (path_is_within(path, place->source) || path_is_within(place->source, path)))
			return place;
	}
	return NULL;
}

/*
 * What workspaces keep is for the user who decides about it, not for a command, which could change what was reviewed. Without mounts
 * nothing is hidden in a directory that shows: then one that shows a workspace is refused.
 */
static int hide_stores(struct plan_build *build, struct view *view)
{
	const struct host_path_list *stores = &build->host->stores;
	/* A jar with a layer has a store of its own there, from now on. */
	const struct host_path_list *held = build->host->layers.count ? stores : &build->host->held_stores;

	for (size_t i = 0; i < stores->count && build->plan->rung == RUNG_NAMESPACE && !build->has_failed; i++) {
		if (stores->items[i].kind != PATH_DIRECTORY)
			continue;
		blank_places(view, stores->items[i].path, &stores->items[i]);
		cover(build, view, &stores->items[i]);
	}
	for (size_t i = 0; i < held->count && build->plan->rung == RUNG_LANDLOCK; i++) {
		const struct place *showing = find_showing(view, held->items[i].path);

		if (!showing)
			continue;
		error_set(build->error, STAGE_HOST, EPERM,
			  "cannot hide the workspaces in '%s' from the command, which is shown '%s', without the rung "
			  "'namespace'",
			  held->items[i].path, showing->source);
		return error_hint(build->error,
				  "show less than '%s', or apply or remove them: `belljar workspace list`",
				  showing->source);
	}
	return 0;
}

/* Many programs read "{pem,key}" as two words. Where such a pattern hides nothing, something stays visible that was meant. */
static void note_braces(struct plan_build *build)
{
	const struct host *host = build->host;

	for (size_t i = 0; i < host->hide_patterns.count; i++) {
		const char *said = host->hide_patterns.items[i], *brace = strchr(said, '{');
		bool has_match = !brace || !strchr(brace, ',') || !strchr(brace, '}') || !policy_pattern_is(said);

		for (size_t j = 0; j < host->matches.count && !has_match; j++)
			has_match = !strcmp(host->matches.items[j].pattern, said);
		if (!has_match)
			plan_note(build, "hide",
				  plan_format(build,
					      "'%s' matches nothing: braces have no special meaning in a pattern",
					      said),
				  "give one pattern for each of the words");
	}
}

/*
 * A path is hidden by what it is, not only by its name: the host's object behind it is shown nowhere in the jar, under
 * whatever name a mount elsewhere or a symbolic link would give it.
 */
static int hide(struct plan_build *build, struct view *view)
{
	const struct string_list *paths = &build->policy->hide;
	const struct host_path *hidden = build->host->hidden.items;

	for (size_t i = 0; i < paths->count; i++) {
		bool has_found;

		/* What cannot be looked at may become visible: the command may be able to change the modes above it. */
		if (hidden[i].kind == PATH_ABSENT && hidden[i].error && hidden[i].error != ENOENT &&
		    hidden[i].error != ENOTDIR)
			return error_set(build->error, STAGE_FILES, hidden[i].error, "cannot hide '%s': %s",
					 paths->items[i], strerror(hidden[i].error));
		has_found = blank_places(view, plan_view_through_links(build, view, paths->items[i]), &hidden[i]);
		has_found |= blank_places(view, paths->items[i], &hidden[i]);
		if (hidden[i].kind == PATH_ABSENT && !has_found)
			plan_note(
				build, "hide",
				plan_format(
					build,
					"'%s' does not exist: nothing is hidden, and the command sees what appears there",
					paths->items[i]),
				"check the path; if it was moved, hide its new name");
	}
	for (size_t i = 0; i < paths->count && !build->has_failed; i++)
		if (hidden[i].kind != PATH_ABSENT)
			cover(build, view, &hidden[i]);
	note_braces(build);
	/* Skeletons are later jars' too: no command has them, even if the policy names them. */
	if (build->host->skeletons.kind == PATH_DIRECTORY && build->plan->rung == RUNG_NAMESPACE &&
	    !build->has_failed) {
		blank_places(view, build->host->skeletons.path, &build->host->skeletons);
		cover(build, view, &build->host->skeletons);
	}
	return hide_stores(build, view);
}

/* Outside of host directories there is nothing to hide, and in what is hidden nothing can stand. */
static void drop_idle_hidings(struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct place *place = &view->items[i];
		const struct place *around = plan_view_standing_around(view, i);

		if (place->kind == PLACE_HIDDEN)
			place->is_dropped = !around || !plan_place_shows_host(around);
		else
			place->is_dropped = around && around->kind == PLACE_HIDDEN;
	}
	plan_view_remove_dropped(view);
}

/* --- what places stand on ---------------------------------------------------------------------------------------- */

static int check_workdir_is_there(struct plan_build *build, const struct view *view)
{
	const char *workdir = build->plan->core.workdir;
	const struct place *around = plan_view_innermost(view, workdir);
	/* Where a private directory is around it, nothing had to be put there to hide it. */
	bool is_there = around && around->kind != PLACE_HIDDEN &&
			(plan_place_shows_host(around) || !strcmp(around->target, workdir));

	if (build->plan->rung != RUNG_NAMESPACE || is_there)
		return 0;
	error_set(build->error, STAGE_PLAN, EINVAL, "the work directory '%s' is hidden", workdir);
	return error_hint(build->error, "hide what is in it instead, or use -C none for a private one");
}

static int check_places(struct plan_build *build, struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct place *place = &view->items[i];
		const struct place *around = plan_view_around(view, i);
		bool wants_file = place->flags & STEP_ON_FILE;

		place->is_in_host = around && plan_place_shows_host(around);
		if (!place->is_in_host)
			continue;
		/* In a layer every object is another than on the host, and a command before may have removed it. */
		if (around->layer) {
			place->place_inode = 0;
			place->flags |= place->is_protected ? STEP_MAY_BE_GONE : 0;
		}
		if (place->on_host == PATH_ABSENT || place->on_host == PATH_SYMLINK ||
		    wants_file == (place->on_host == PATH_DIRECTORY)) {
			error_set(build->error, STAGE_PLAN, ENOENT,
				  "cannot put anything at '%s': there is no %s of that name in '%s'", place->target,
				  wants_file ? "file" : "directory", around->target);
			return error_hint(
				build->error,
				"Belljar creates nothing on the host; make it first, or choose another place");
		}
	}
	return 0;
}

/* --- directories that stay where they are ------------------------------------------------------------------------ */

/* Does place @index stand on the host's directory @path? Then it cannot be renamed already. */
static bool stands_on(const struct view *view, size_t index, const char *path)
{
	const struct place *place = &view->items[index], *around = plan_view_around(view, index);
	size_t len = place->is_in_host && around->source[1] ? strlen(around->source) : 0;

	return place->is_in_host && path_is_within(path, around->source) &&
	       !strcmp(place->target + strlen(around->target), path + len);
}

/* The place that lets a command rename the host's directory @path, since it can write to what is around it; NULL: none. */
static const struct place *find_mover(const struct view *view, const char *path)
{
	const struct place *found = NULL;

	for (size_t i = 0; i < view->count; i++)
		if (stands_on(view, i, path))
			return NULL;
	for (size_t i = 0; i < view->count; i++) {
		const struct place *place = &view->items[i];
		bool is_writable = plan_place_writes_host(place) || place->layer;

		/* The host's own directory comes before the one that shows in a layer. */
		if (is_writable && !(place->flags & STEP_ON_FILE) && path_is_within(path, place->source) &&
		    strcmp(path, place->source) != 0 && (!found || found->layer))
			found = place;
	}
	return found;
}

static bool is_pinned(const struct view *pins, const char *path)
{
	for (size_t i = 0; i < pins->count; i++)
		if (!strcmp(pins->items[i].target, path))
			return true;
	return false;
}

static int add_pins(struct plan_build *build, const struct view *view, const struct host_path_list *list,
		    struct view *pins)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct host_path *path = &list->items[i];
		const struct place *mover = is_pinned(pins, path->path) ? NULL : find_mover(view, path->path);
		struct place *pin;

		if (!mover)
			continue;
		if (path->kind != PATH_DIRECTORY) {
			error_set(
				build->error, STAGE_FILES, path->error ? path->error : ENOTDIR,
				"cannot keep '%s' in its place: another program changed it while Belljar planned the jar",
				path->path);
			return error_hint(build->error, "try again when no program moves directories there");
		}
		pin = plan_view_add(build, pins, PLACE_PIN, path->path);
		pin->flags = STEP_RECURSIVE | STEP_READ_ONLY;
		if (mover->layer) {
			/* So that it is found there the next time, and what is hidden in it cannot come to light. */
			pin->target = plan_format(build, "%s%s", mover->target, path->path + strlen(mover->source));
			pin->flags |= STEP_MAY_BE_GONE;
			pin->is_in_host = true;
			continue;
		}
		pin->device = path->device;
		pin->inode = path->inode;
	}
	return 0;
}

/*
 * What is protected, and everything else that has a place of its own, is found by its path again the next time. A command
 * that could rename a directory above it would choose what is found, so these directories stay where they are.
 */
static int add_all_pins(struct plan_build *build, const struct view *view, struct view *pins)
{
	const struct host *host = build->host;
	int rc = build->plan->rung == RUNG_NAMESPACE ? add_pins(build, view, &host->nested, pins) : 0;

	if (rc < 0 || build->plan->rung != RUNG_NAMESPACE || !build->policy->has_protect || build->has_private_workdir)
		return rc;
	return add_pins(build, view, &host->workdir.pinned, pins);
}

int plan_view_protect(struct plan_build *build, struct view *view, struct view *pins)
{
	int rc = add_protection(build, view);

	drop_idle_files(build, view);
	if (rc == 0)
		rc = hide(build, view);
	if (rc < 0 || build->has_failed)
		return rc;
	if (build->policy->hide.count || build->host->stores.count || build->host->skeletons.path) {
		plan_view_sort(build, view);
		drop_idle_hidings(view);
	}
	rc = check_workdir_is_there(build, view);
	if (rc == 0)
		rc = check_places(build, view);
	return rc < 0 ? rc : add_all_pins(build, view, pins);
}
