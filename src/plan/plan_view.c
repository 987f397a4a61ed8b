/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view.c - collect what the jar will see
 */
#include "plan/plan_view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PRIVATE_WORKDIR "/workspace"

bool view_is_within(const char *path, const char *directory)
{
	size_t len = strlen(directory);

	if (len == 1)
		return true;
	return !strncmp(path, directory, len) && (path[len] == '\0' || path[len] == '/');
}

static struct place *add(struct plan_build *build, struct view *view, enum place_kind kind, const char *target)
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

static struct place *add_bind(struct plan_build *build, struct view *view, const struct host_path *from,
			      const char *target, unsigned flags)
{
	struct place *place = add(build, view, PLACE_BIND, target);

	place->source = plan_string(build, from->path);
	place->device = from->device;
	place->inode = from->inode;
	place->flags = flags | (from->kind == PATH_DIRECTORY ? STEP_RECURSIVE : STEP_ON_FILE);
	/* By default a thing stands where it stands on the host. */
	place->on_host = from->kind;
	return place;
}

/* A host path at its own place, whether it is a symbolic link or the thing itself. */
static void add_same(struct plan_build *build, struct view *view, const struct host_path *from, unsigned flags)
{
	if (from->kind == PATH_SYMLINK)
		add(build, view, PLACE_SYMLINK, from->path)->source = plan_string(build, from->target);
	else if (from->kind != PATH_OTHER)
		add_bind(build, view, from, from->path, flags);
}

static void add_list(struct plan_build *build, struct view *view, const struct host_path_list *list, unsigned flags)
{
	for (size_t i = 0; i < list->count; i++)
		add_same(build, view, &list->items[i], flags);
}

/* --- layers ------------------------------------------------------------------------------------------------- */

static void add_devices(struct plan_build *build, struct view *view)
{
	static const char *const links[][2] = {{"/dev/fd", "/proc/self/fd"},
					       {"/dev/stdin", "/proc/self/fd/0"},
					       {"/dev/stdout", "/proc/self/fd/1"},
					       {"/dev/stderr", "/proc/self/fd/2"},
					       {"/dev/ptmx", "pts/ptmx"}};

	for (size_t i = 0; i < build->host->devices.count; i++)
		add_bind(build, view, &build->host->devices.items[i], build->host->devices.items[i].path,
			 STEP_DEVICE | STEP_NO_EXEC);
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		add(build, view, PLACE_SYMLINK, links[i][0])->source = links[i][1];
	add(build, view, PLACE_DEVPTS, "/dev/pts");
	add(build, view, PLACE_PROC, "/proc");
}

static mode_t private_mode(const struct plan_build *build, const char *path)
{
	static const char *const shared[] = {"/tmp", "/var/tmp", "/dev/shm"};

	for (size_t i = 0; i < ARRAY_LEN(shared); i++)
		if (!strcmp(path, shared[i]))
			return 01777;
	return strcmp(path, build->host->home) ? 0755 : 0700;
}

static void add_private_places(struct plan_build *build, struct view *view)
{
	const struct policy *policy = build->policy;
	bool has_run = false;

	for (size_t i = 0; i < policy->tmpfs.count; i++) {
		const struct policy_tmpfs *tmpfs = &policy->tmpfs.items[i];
		struct place *place = add(build, view, tmpfs->size_bytes == LIMIT_NONE ? PLACE_PRIVATE : PLACE_TMPFS, tmpfs->path);

		place->mode = private_mode(build, tmpfs->path);
		place->size_bytes = tmpfs->size_bytes;
		place->on_host = build->host->tmpfs_places.items[i].kind;
		has_run |= !strcmp(tmpfs->path, "/run");
	}
	if (has_run)
		add(build, view, PLACE_SYMLINK, "/var/run")->source = "/run";
}

/* The workdir, the repository around it, and what in both other programs would execute later. */
static void add_workdir(struct plan_build *build, struct view *view)
{
	const struct host_workdir *workdir = &build->host->workdir;
	bool is_read_only = build->policy->workdir_mode == WORKDIR_RO;

	if (build->has_private_workdir && build->plan->rung != RUNG_NAMESPACE) {
		build->plan->workdir = plan_format(build, "%s/workspace", build->plan->run_directory);
		return;
	}
	if (build->has_private_workdir) {
		add(build, view, PLACE_PRIVATE, PRIVATE_WORKDIR)->mode = 0755;
		build->plan->workdir = PRIVATE_WORKDIR;
		return;
	}
	build->plan->workdir = plan_string(build, workdir->path.path);
	if (workdir->top.kind == PATH_DIRECTORY) {
		add_bind(build, view, &workdir->top, workdir->top.path, STEP_READ_ONLY | STEP_ID_MAPPED);
		if (!is_read_only)
			add_bind(build, view, &workdir->git, workdir->git.path, STEP_ID_MAPPED);
	}
	add_bind(build, view, &workdir->path, workdir->path.path, STEP_ID_MAPPED | (is_read_only ? STEP_READ_ONLY : 0));
	if (!build->policy->has_protect || is_read_only)
		return;
	for (size_t i = 0; i < workdir->pinned.count; i++)
		if (workdir->pinned.items[i].kind == PATH_DIRECTORY && view_is_within(workdir->pinned.items[i].path, workdir->path.path))
			add_bind(build, view, &workdir->pinned.items[i], workdir->pinned.items[i].path, STEP_ID_MAPPED);
	for (size_t i = 0; i < workdir->guarded.count; i++) {
		const struct host_path *guarded = &workdir->guarded.items[i];

		/* Nothing can be mounted on a symbolic link; if the command replaces it, the result says so. */
		if (guarded->kind == PATH_DIRECTORY || guarded->kind == PATH_FILE)
			add_bind(build, view, guarded, guarded->path, STEP_READ_ONLY | STEP_ID_MAPPED);
	}
}

static int add_named(struct plan_build *build, struct view *view)
{
	const struct policy *policy = build->policy;

	for (size_t i = 0; i < policy->mounts.count; i++) {
		const struct policy_mount *mount = &policy->mounts.items[i];
		const struct host_path *source = &build->host->mounts.items[i];
		bool has_own_place = strcmp(mount->path, mount->dest) != 0;
		struct place *place;

		if (source->kind == PATH_ABSENT) {
			if (mount->is_optional)
				continue;
			error_set(build->error, STAGE_FILES, source->error ? source->error : ENOENT, "cannot show '%s' in the jar: %s",
				  mount->path, strerror(source->error ? source->error : ENOENT));
			return error_hint(build->error, "check the path; in a policy file, \"optional\": true skips what is not there");
		}
		if (source->kind == PATH_OTHER)
			return error_set(build->error, STAGE_FILES, EINVAL,
					 "cannot show '%s' in the jar: it is neither a file nor a directory", mount->path);
		place = add_bind(build, view, source, has_own_place ? mount->dest : source->path,
				 STEP_ID_MAPPED | (mount->access == MOUNT_RO ? STEP_READ_ONLY : 0));
		if (has_own_place)
			place->on_host = build->host->places.items[i].kind;
		else if (strcmp(source->path, mount->path) != 0)
			add(build, view, PLACE_SYMLINK, mount->path)->source = plan_string(build, source->path);
	}
	return 0;
}

/* --- putting them in order ---------------------------------------------------------------------------------- */

static int by_target(const void *left, const void *right)
{
	const struct place *a = left, *b = right;
	int difference = strcmp(a->target, b->target);

	return difference ? difference : (a->order < b->order ? -1 : a->order > b->order);
}

const struct place *view_around(const struct view *view, size_t index)
{
	for (size_t i = index; i-- > 0;)
		if (strcmp(view->items[i].target, view->items[index].target) != 0 &&
		    view_is_within(view->items[index].target, view->items[i].target))
			return &view->items[i];
	return NULL;
}

static void keep_last_of_each(struct view *view)
{
	size_t kept = 0;

	for (size_t i = 0; i < view->count; i++)
		if (i + 1 == view->count || strcmp(view->items[i].target, view->items[i + 1].target) != 0)
			view->items[kept++] = view->items[i];
	view->count = kept;
}

/* A destination that leads through one of the system's own links (/bin/x) means the place behind the link. */
static void resolve_links(struct plan_build *build, struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		for (size_t j = 0; j < view->count; j++) {
			const struct place *link = &view->items[j];
			size_t len = strlen(link->target);

			if (link->kind == PLACE_SYMLINK && view->items[i].target[len] == '/' &&
			    view_is_within(view->items[i].target, link->target))
				view->items[i].target =
					plan_format(build, "%s%s%s", link->source[0] == '/' ? "" : "/", link->source,
						    view->items[i].target + len);
		}
	}
}

/* A symbolic link that lies in another place is that place's own affair. */
static void drop_inner_links(struct view *view)
{
	size_t kept = 0;

	for (size_t i = 0; i < view->count; i++) {
		const struct place *around = view_around(view, i);

		if (view->items[i].kind == PLACE_SYMLINK && around && around->kind == PLACE_BIND)
			continue;
		view->items[kept] = view->items[i];
		kept++;
	}
	view->count = kept;
}

static void hide(struct plan_build *build, struct view *view, const char *path, const struct host_path *on_host)
{
	size_t kept = 0;
	struct place *place;

	for (size_t i = 0; i < view->count; i++)
		if (!view_is_within(view->items[i].target, path))
			view->items[kept++] = view->items[i];
	view->count = kept;
	if (on_host->kind == PATH_ABSENT)
		return;
	place = add(build, view, PLACE_HIDDEN, path);
	place->on_host = on_host->kind;
	place->flags = on_host->kind == PATH_DIRECTORY ? 0 : STEP_ON_FILE;
}

/* Outside of host directories there is nothing to hide once the places themselves are gone. */
static void drop_idle_hidings(struct view *view)
{
	size_t kept = 0;

	for (size_t i = 0; i < view->count; i++) {
		const struct place *around = view_around(view, i);

		if (view->items[i].kind != PLACE_HIDDEN || (around && around->kind == PLACE_BIND))
			view->items[kept++] = view->items[i];
	}
	view->count = kept;
}

static int check_places(struct plan_build *build, struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct place *place = &view->items[i];
		const struct place *around = view_around(view, i);
		bool wants_file = place->flags & STEP_ON_FILE;

		place->is_in_host = around && around->kind == PLACE_BIND;
		if (!place->is_in_host)
			continue;
		if (place->on_host == PATH_ABSENT || place->on_host == PATH_SYMLINK ||
		    wants_file == (place->on_host == PATH_DIRECTORY)) {
			error_set(build->error, STAGE_PLAN, ENOENT, "nothing can be placed at '%s': there is no %s of that name in '%s'",
				  place->target, wants_file ? "file" : "directory", around->target);
			return error_hint(build->error, "Belljar creates nothing on the host; make it first, or choose another place");
		}
	}
	return 0;
}

int view_collect(struct plan_build *build, struct view *view)
{
	int rc;

	add_devices(build, view);
	add_list(build, view, &build->host->system, STEP_READ_ONLY);
	add_list(build, view, &build->host->etc, STEP_READ_ONLY);
	add_private_places(build, view);
	add_list(build, view, &build->host->toolchains, STEP_READ_ONLY | STEP_ID_MAPPED);
	add_workdir(build, view);
	rc = add_named(build, view);
	if (rc < 0 || build->has_failed)
		return rc;
	resolve_links(build, view);
	for (size_t i = 0; i < build->policy->hide.count; i++)
		hide(build, view, build->policy->hide.items[i], &build->host->hidden.items[i]);
	if (build->has_failed)
		return 0;
	qsort(view->items, view->count, sizeof(*view->items), by_target);
	keep_last_of_each(view);
	drop_inner_links(view);
	drop_idle_hidings(view);
	return check_places(build, view);
}

void view_done(struct view *view)
{
	free(view->items);
	*view = (struct view){0};
}
