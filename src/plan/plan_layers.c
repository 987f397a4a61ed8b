/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_layers.c - directories whose changes go to a layer
 *
 * With namespaces the kernel puts a layer over the host's directory, at its own path. Where it cannot, the jar gets a copy of
 * the directory: at the same path if there are mounts, else where the copy is. The host's own directory is in no jar then.
 */
#include "plan/plan_view_stages.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum layer_kind plan_layer_kind(const struct host *host, const struct host_layer *layer)
{
	bool has_mounts = host->has_seccomp && host->has_user_namespaces;
	/* What is mounted in it is locked there for everybody but root. */
	bool is_locked = layer->inner_mount && !(host->uid == 0 && host->has_id_mapped_mounts);

	return has_mounts && !host->lacks_overlay && !is_locked && !layer->is_copied ? LAYER_OVERLAY : LAYER_COPY;
}

/* Trusted ones are for who has privileges outside of the jar's user namespace, as the keeper of root's own ids has. */
bool plan_layer_has_user_xattrs(const struct host *host)
{
	return host->uid != 0 || !host->has_id_mapped_mounts;
}

const char *plan_view_add_layer(struct plan_build *build, struct view *view, const struct host_layer *layer)
{
	bool is_copy = plan_layer_kind(build->host, layer) == LAYER_COPY;
	const char *target = is_copy && build->plan->rung != RUNG_NAMESPACE ? layer->upper.path : layer->path.path;
	struct place *place;

	if (build->plan->rung != RUNG_NAMESPACE) {
		place = plan_view_add_bind(build, view, &layer->upper, target, 0);
	} else {
		place = plan_view_add_bind(build, view, &layer->path, target, STEP_ID_MAPPED);
		place->kind = is_copy ? PLACE_BIND : PLACE_OVERLAY;
		/* What is mounted in it is no part of the layer. */
		place->flags &= ~(unsigned)STEP_RECURSIVE;
	}
	place->layer = layer;
	return place->target;
}

static size_t part_count(const struct host_layer *layer)
{
	return 2 + layer->frozen.count;
}

static void set_part(struct plan_build *build, struct jar_part *part, const struct host_path *path)
{
	part->path = plan_string(build, path->path);
	part->device = path->device;
	part->inode = path->inode;
}

void plan_set_layer(struct plan_build *build, struct plan_step *step, const struct host_layer *layer)
{
	struct jar_part *parts = build->plan->parts;

	if (step->kind != STEP_OVERLAY) {
		step->source = plan_string(build, layer->upper.path);
		step->device = layer->upper.device;
		step->inode = layer->upper.inode;
		return;
	}
	for (const struct host_layer *before = build->host->layers.items; before < layer; before++)
		parts += part_count(before);
	step->as.overlay.parts = parts;
	step->as.overlay.count = part_count(layer);
	set_part(build, parts++, &layer->store);
	for (size_t i = 0; i < layer->frozen.count; i++)
		set_part(build, parts++, &layer->frozen.items[i]);
	set_part(build, parts, &layer->path);
}

/* --- what there is to say ----------------------------------------------------------------------------------- */

static void note_copy(struct plan_build *build, const struct host_layer *layer)
{
	const char *why = build->plan->rung != RUNG_NAMESPACE ? "there are no mounts on this rung"
			  : layer->is_copied                  ? "it was copied when the workspace was made"
			  : layer->inner_mount                ? "something is mounted in it"
							      : "this host refuses an overlay";

	plan_note(build, "workspace",
		  plan_format(build, "the command gets a copy of '%s' instead of a layer over it: %s%s%s",
			      layer->path.path, why, layer->inner_mount ? ": " : "",
			      layer->inner_mount ? layer->inner_mount : ""),
		  "a copy takes time and space; a host that allows overlays in user namespaces needs none");
}

/* The kernel writes nothing for a group that the jar's user namespace does not know. */
static void note_group(struct plan_build *build, const struct host_layer *layer)
{
	const struct host *host = build->host;

	if (host->uid == 0 || layer->group == host->gid)
		return;
	plan_note(
		build, "workspace",
		plan_format(
			build,
			"'%s' belongs to group %u, which a jar does not have: under a layer the command can read and remove files of that group, not write them",
			layer->path.path, layer->group),
		"chgrp the files to your own group, or run without --cow");
}

static void note_boot(struct plan_build *build, const struct host_layer *layer)
{
	if (layer->is_from_before_boot)
		plan_note(
			build, "workspace",
			plan_format(
				build,
				"the host restarted after the layer over '%s' was written: if it crashed, the last writes may be incomplete",
				layer->path.path),
			"look at `belljar diff` before you apply it");
}

bool plan_has_git_above_layer(const struct host *host)
{
	const struct host_workdir *workdir = &host->workdir;

	return host->has_workdir_layer && workdir->git.path && !path_is_within(workdir->git.path, workdir->path.path);
}

int plan_layers(struct plan_build *build)
{
	const struct host_layer_list *layers = &build->host->layers;
	size_t count = 0;

	for (size_t i = 0; i < layers->count; i++) {
		const struct host_layer *layer = &layers->items[i];

		if (part_count(layer) > JAR_PARTS_MAX)
			return error_set(build->error, STAGE_PLAN, E2BIG,
					 "'%s' has %zu layers over it; %d are possible", layer->path.path,
					 layer->frozen.count + 1, JAR_PARTS_MAX - 1);
		count += part_count(layer);
		note_boot(build, layer);
		if (plan_layer_kind(build->host, layer) == LAYER_COPY)
			note_copy(build, layer);
		else if (layer->inner_mount)
			plan_note(build, "workspace",
				  plan_format(build, "the file system mounted at '%s' is not visible under a layer",
					      layer->inner_mount),
				  "show it with --ro or --rw at another place");
		if (plan_layer_kind(build->host, layer) == LAYER_OVERLAY)
			note_group(build, layer);
	}
	if (plan_has_git_above_layer(build->host))
		plan_note(build, "git",
			  plan_format(build,
				      "'%s' lies outside of the work directory and is read-only: it has no layer",
				      build->host->workdir.git.path),
			  "start in the top directory of the repository to commit in a workspace");
	build->plan->parts = count ? calloc(count, sizeof(*build->plan->parts)) : NULL;
	build->has_failed |= count && !build->plan->parts;
	return 0;
}
