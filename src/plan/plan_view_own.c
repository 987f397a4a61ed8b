/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view_own.c - Belljar's own files are read-only in every jar, whatever the policy says
 *
 * The next run executes them outside of every jar: a command that could write one would have left its jar by then. Neither a place
 * that is named writable nor `protect` changes that. What lies in a layer is held too: it would come home with the layer.
 */
#include "plan/plan_view_stages.h"

#include <errno.h>
#include <string.h>

#include "survey/survey_paths.h"

/* Without mounts a part of what is writable cannot be read-only. @cure: what to do, with the writable place behind it. */
static int refuse(struct plan_build *build, const struct view *view, const char *own, const char *cure)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct place *place = &view->items[i];

		if (!plan_place_writes_host(place) ||
		    (!path_is_within(own, place->source) && !path_is_within(place->source, own)))
			continue;
		error_set(build->error, STAGE_HOST, EPERM,
			  "cannot keep Belljar's own '%s' read-only without the rung 'namespace': the command may "
			  "write to '%s'",
			  own, place->source);
		return error_hint(build->error, "%s '%s', or allow user namespaces; `belljar doctor` says how", cure,
				  place->source);
	}
	return 0;
}

static bool is_in_another(const struct plan_build *build, const struct host_path *own)
{
	const struct host_path_list *all = &build->host->own;

	for (size_t i = 0; i < all->count; i++)
		if (&all->items[i] != own && path_is_within(own->path, all->items[i].path))
			return true;
	return false;
}

/*
 * A policy that names it writable does not get what it asks for: people always read that. Commands that install packages into a
 * tree with Belljar in it fail, and their own words do not say why.
 */
static void note_guarded(struct plan_build *build, const struct host_path *own, bool is_named)
{
	const bool is_tree = own->kind == PATH_DIRECTORY;

	if (!is_named && is_in_another(build, own))
		return;
	plan_note_at(
		build,
		is_named  ? REMARK_ALWAYS
		: is_tree ? REMARK_AFTER_FAILURE
			  : REMARK_ON_REQUEST,
		"belljar",
		plan_format(build, "'%s' is read-only in the jar: Belljar itself runs from it%s", own->path,
			    is_tree ? ", and nothing can be installed there" : ""),
		is_tree ? "to install packages in a jar, have Belljar outside the project: `pipx install belljar` or "
			  "`npm install -g belljar`"
			: "install Belljar elsewhere if the command is to write there");
}

static void guard(struct plan_build *build, struct view *view, const struct host_path *own)
{
	const size_t known = build->plan->own.count;
	bool is_named = false;

	for (size_t i = 0; i < view->count && !build->has_failed; i++) {
		struct place *place = &view->items[i];
		const char *target;

		/* The place is Belljar's own, or in it. */
		if (plan_place_writes_host(place) && path_is_within(place->source, own->path)) {
			place->flags |= STEP_READ_ONLY;
			is_named = true;
			build->has_failed |= string_list_add(&build->plan->own, place->target) < 0;
		}
		target = plan_place_writes_host(place) || place->layer
				 ? plan_view_seen_through(build, view, place, own->path)
				 : NULL;
		if (!target)
			continue;
		build->has_failed |= string_list_add(&build->plan->own, target) < 0;
		plan_view_add_bind(build, view, own, target, STEP_READ_ONLY | STEP_ID_MAPPED)->is_protected = true;
	}
	if (build->plan->own.count > known)
		note_guarded(build, own, is_named);
}

int plan_view_guard_own(struct plan_build *build, struct view *view)
{
	const struct host_path_list *own = &build->host->own;
	int rc = 0;

	if (build->plan->rung == RUNG_PROCESS)
		return 0;
	/* The roots of later jars, which may have mounts; it need not be there yet. With mounts it is hidden. */
	if (build->plan->rung == RUNG_LANDLOCK && build->host->skeletons.path)
		rc = refuse(build, view, build->host->skeletons.path, "show less than");
	for (size_t i = 0; i < own->count && rc == 0; i++) {
		/* Nothing can be mounted where nothing is. If a program appears there, the run fails. */
		if (build->plan->rung == RUNG_NAMESPACE && own->items[i].kind != PATH_ABSENT)
			guard(build, view, &own->items[i]);
		else if (build->plan->rung == RUNG_LANDLOCK)
			rc = refuse(build, view, own->items[i].path, "install Belljar outside of");
	}
	return rc;
}
