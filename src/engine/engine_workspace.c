/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_workspace.c - make, find and leave the stores of a jar's layers
 *
 * Everything here is done as the caller, before the jar is made and after it is gone. The jar gets the directories as
 * facts, by device and inode, and none of our descriptors.
 */
#include "engine/engine_workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "survey/survey_cgroup.h"
#include "survey/survey_layers.h"
#include "survey/survey_paths.h"
#include "plan/plan.h"
#include "base/reap/reap.h"
#include "base/sys/calls.h"
#include "workspace/workspace_changes.h"
#include "workspace/workspace_copy.h"

/* A jar takes longer to be made; its first process begins on this one's processor. */
#define TIDY_AFTER_NS 1000000

static int out_of_memory(struct error *error)
{
	return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
}

/* --- a layer that was used before --------------------------------------------------------------------------- */

/*
 * Whether the host was rebooted since the last use of this store: then data that was not on disk may be lost.
 * The locked file has the boot id, because making another file would take longer than everything else here.
 */
static bool is_from_before_boot(const struct workspace *workspace)
{
	char now[HOST_BOOT_ID_BYTES], then[HOST_BOOT_ID_BYTES] = "";
	size_t len = survey_boot_id(now);

	return len && pread(workspace->lock_fd, then, sizeof(then), 0) > 0 && memcmp(now, then, len) != 0;
}

/* Remember the boot. If that fails, Belljar cannot warn after a crash; the run continues all the same. */
static void remember_boot(const struct workspace *workspace)
{
	char now[HOST_BOOT_ID_BYTES];
	size_t len = survey_boot_id(now);

	if (len && pwrite(workspace->lock_fd, now, len, 0) < 0)
		return;
}

/*
 * The kernel marks a layer that was mounted without syncs, and refuses it the next time, since it cannot know whether the
 * host crashed in between. We do: is_from_before_boot().
 */
static int drop_mark(const struct workspace *workspace, struct error *error)
{
	/* All of `work` is the kernel's own, and of no use to the next mount. */
	reap_sweep_at(workspace->parts_fd, "work");
	/* If a jar of a killed engine still has it, mounting fails, and the caller tries again. */
	if (mkdirat(workspace->parts_fd, "work", 0700) == 0 || errno == EEXIST)
		return 0;
	return error_set(error, STAGE_FILES, errno, "cannot make '%s/work' anew: %s", workspace->parts_path,
			 strerror(errno));
}

/* --- open or make one --------------------------------------------------------------------------------------- */

static bool is_of(const struct workspace *workspace, const struct host_layer *layer)
{
	return workspace->meta.workdir_device == layer->path.device &&
	       workspace->meta.workdir_inode == layer->path.inode;
}

/* Would the layer be mounted as it was before? The kernel does not see marks of the other kind. */
static bool is_mounted_so(const struct workspace_meta *meta, const struct host *host, const struct host_layer *layer)
{
	return meta->kind == WORKSPACE_COPY || (plan_layer_kind(host, layer) == LAYER_OVERLAY &&
						meta->has_user_xattrs == plan_layer_has_user_xattrs(host));
}

static int check_found(const struct workspace *found, struct host *host, const struct host_layer *layer,
		       struct error *error)
{
	const struct workspace_meta *meta = &found->meta;

	/* The run that made it found that this file system has no id-mapped mounts. */
	if (host->uid == 0 && layer->may_lack_maps && meta->kind == WORKSPACE_OVERLAY && meta->has_user_xattrs)
		host->has_id_mapped_mounts = false;

	if (!is_of(found, layer)) {
		error_set(error, STAGE_FILES, EINVAL, "the workspace '%s' belongs to another directory: '%s'",
			  meta->name ? meta->name : meta->id, meta->workdir);
		return error_hint(error, "start there, or choose another name");
	}
	if (!is_mounted_so(meta, host, layer)) {
		error_set(error, STAGE_HOST, EOPNOTSUPP,
			  "the workspace '%s' is a layer over '%s', which this host does not mount now",
			  meta->name ? meta->name : meta->id, meta->workdir);
		return error_hint(error, "use another name; `belljar diff` and `belljar apply` still work on this one");
	}
	return 0;
}

/* Without its lock, which another jar may have. */
static bool is_of_another(const struct workspace_home *home, const char *id, const struct host_layer *layer)
{
	AUTO(workspace_done) struct workspace found = {0};

	return workspace_open(home, id, WORKSPACE_LOOK, &found, NULL) == 0 && !is_of(&found, layer);
}

/* 1: it was there; 0: there is none of that name. */
static int find_named(const struct workspace_home *home, const char *name, struct host *host,
		      const struct host_layer *layer, struct workspace *out, struct error *error)
{
	struct error ignored = {0};
	char id[WORKSPACE_ID_SIZE];
	int rc = workspace_find(home, name, layer->path.device, layer->path.inode, id, &ignored);

	if (rc == -ENOENT && !workspace_id_is_valid(name))
		return 0;
	if (rc < 0) {
		*error = ignored;
		return rc;
	}
	/* Another directory's of that name is not ours; an id leaves no doubt what is meant. */
	if (strcmp(id, name) != 0 && is_of_another(home, id, layer))
		return 0;
	rc = workspace_open(home, id, WORKSPACE_WRITE, out, error);
	if (rc < 0)
		return rc;
	/* The engine that made the copy was killed before it was complete. */
	if (out->meta.kind == WORKSPACE_COPY && !out->meta.copied_ns) {
		workspace_remove(home, out, NULL);
		return 0;
	}
	rc = check_found(out, host, layer, error);
	if (rc == 0)
		return 1;
	workspace_done(out);
	return rc;
}

/* Find a store. 1: found; 0: it is gone, because all its changes were applied or dropped. */
static int find_store(const struct workspace_home *home, const char *id, struct host *host,
		      const struct host_layer *layer, struct workspace *out, struct error *error)
{
	struct error why = {0};
	int rc = workspace_open(home, id, WORKSPACE_WRITE, out, &why);

	if (rc == -ENOENT)
		return 0;
	if (rc < 0) {
		*error = why;
		return rc;
	}
	rc = check_found(out, host, layer, error);
	if (rc == 0)
		return 1;
	workspace_done(out);
	return rc;
}

static int make_one(const struct workspace_home *home, const char *name, struct host *host,
		    const struct host_layer *layer, struct workspace *out, struct error *error)
{
	bool is_copy = plan_layer_kind(host, layer) == LAYER_COPY;
	AUTO_CLOSE int fd = survey_open_top(&layer->path);
	struct workspace_request request = {.workdir_fd = fd,
					    .workdir = layer->path.path,
					    .name = name,
					    .kind = is_copy ? WORKSPACE_COPY : WORKSPACE_OVERLAY,
					    .has_user_xattrs = plan_layer_has_user_xattrs(host)};
	struct error why = {0};
	int rc;

	if (fd < 0)
		return error_set(error, STAGE_FILES, -fd, "cannot open '%s': %s", layer->path.path, strerror(-fd));
	rc = workspace_create(home, &request, out, &why);
	/* No file system keeps what a layer needs; a copy needs less. */
	if (rc == -EOPNOTSUPP && !is_copy) {
		host->lacks_overlay = true;
		return make_one(home, name, host, layer, out, error);
	}
	if (rc < 0)
		*error = why;
	if (rc < 0 || !is_copy)
		return rc;
	rc = workspace_copy(out, fd, error);
	if (rc == 0)
		rc = workspace_copy_is_whole(out, error);
	if (rc < 0)
		workspace_remove(home, out, NULL);
	return rc;
}

static int open_one(struct engine_workspaces *workspaces, struct host *host, struct host_layer *layer, const char *name,
		    const char *store, struct workspace *out, struct error *error)
{
	int rc = store ? find_store(&workspaces->home, store, host, layer, out, error) : 0;

	/* The policy named it by its id, and no workspace has that any more. */
	if (rc == 0 && store && name && workspace_id_is_valid(name))
		name = NULL;
	if (rc == 0 && name)
		rc = find_named(&workspaces->home, name, host, layer, out, error);
	if (rc == 0)
		return make_one(&workspaces->home, name, host, layer, out, error);
	if (rc < 0)
		return rc;
	layer->is_found = true;
	layer->is_copied = out->meta.kind == WORKSPACE_COPY;
	layer->is_from_before_boot = is_from_before_boot(out);
	rc = layer->is_copied ? 0 : drop_mark(out, error);
	if (rc < 0)
		workspace_done(out);
	return rc;
}

/* --- host facts --------------------------------------------------------------------------------------------- */

static int look_at(struct host_path *out, const char *directory, const char *name)
{
	AUTO_FREE char *path = survey_path_join(directory, name);

	return path ? survey_look(out, path) : -ENOMEM;
}

/* Hide the common directory of workspaces, and this store's other directories, from the jar. */
static int hide_store(struct host *host, const struct workspace *workspace)
{
	return workspace->meta.place ? survey_path_list_look(&host->stores, workspace->meta.place) : 0;
}

static int tell_host(struct host *host, struct host_layer *layer, const struct workspace_home *home,
		     const struct workspace *workspace, struct error *error)
{
	int rc = survey_look(&layer->store, workspace->parts_path);

	if (rc == 0)
		rc = look_at(&layer->upper, workspace->parts_path, "upper");
	if (rc == 0)
		rc = hide_store(host, workspace);
	for (size_t i = 0; i < workspace->meta.layers.count && rc == 0; i++) {
		AUTO_FREE char *path = NULL;
		AUTO_CLOSE int fd = workspace_open_layer(home, workspace, i, &path, error);

		if (fd < 0)
			return fd;
		rc = survey_path_list_look(&layer->frozen, path);
	}
	return rc < 0 ? out_of_memory(error) : 0;
}

static int note_held(struct host *host, const char *directory)
{
	return workspace_any_in(directory) ? survey_path_list_look(&host->held_stores, directory) : 0;
}

static int find_places(struct host *host, const char *home)
{
	AUTO(string_list_done) struct string_list places = {0};
	int rc = workspace_places(home, &places);

	for (size_t i = 0; i < places.count && rc == 0; i++) {
		rc = survey_path_list_look(&host->stores, places.items[i]);
		if (rc == 0)
			rc = note_held(host, places.items[i]);
	}
	return rc == -ENOMEM ? rc : 0;
}

int engine_workspaces_find(struct host *host, char *const *environment)
{
	AUTO(string_list_done) struct string_list homes = {0};
	int rc = workspace_homes(environment, &homes);

	for (size_t i = 0; i < homes.count && rc == 0; i++) {
		struct host_path *item = list_add(&host->stores);

		rc = item ? survey_look_through(item, homes.items[i]) : -ENOMEM;
		if (rc == 0 && item->kind == PATH_DIRECTORY)
			rc = note_held(host, item->path);
		if (rc == 0 && item->kind == PATH_DIRECTORY)
			rc = find_places(host, homes.items[i]);
	}
	return rc;
}

bool engine_workspaces_guard(const struct host *host, const struct policy *policy, char *const *environment)
{
	AUTO(string_list_done) struct string_list homes = {0};
	bool has_made = false;

	if (workspace_homes(environment, &homes) < 0)
		return false;
	for (size_t i = 0; i < host->stores.count; i++) {
		const struct host_path *path = &host->stores.items[i];

		for (size_t k = 0; k < homes.count && path->kind == PATH_ABSENT && path->path; k++)
			has_made |= !strcmp(homes.items[k], path->path) &&
				    survey_written_around(host, policy, path->path) &&
				    workspace_home_make(path->path) == 0;
	}
	return has_made;
}

int engine_workspaces_pretend(struct host *host, char *const *environment)
{
	AUTO(string_list_done) struct string_list homes = {0};
	int rc = workspace_homes(environment, &homes);

	for (size_t i = 0; i < host->layers.count && rc == 0; i++) {
		struct host_layer *layer = &host->layers.items[i];
		AUTO_FREE char *store = survey_path_join(homes.count ? homes.items[0] : "", "NEW");

		layer->store = (struct host_path){.path = store ? strdup(store) : NULL, .kind = PATH_DIRECTORY};
		layer->upper = (struct host_path){.path = store ? survey_path_join(store, "upper") : NULL,
						  .kind = PATH_DIRECTORY};
		if (!layer->store.path || !layer->upper.path)
			return -ENOMEM;
	}
	return 0;
}

/* --- all of them -------------------------------------------------------------------------------------------- */

/* Not if a start before this one failed, and the planner wants copies now, or layers of the other kind. */
static bool are_right(const struct engine_workspaces *workspaces, const struct host *host)
{
	for (size_t i = 0; i < workspaces->count; i++)
		if (!is_mounted_so(&workspaces->items[i].meta, host, &host->layers.items[i]))
			return false;
	return workspaces->count == host->layers.count;
}

/* A moment later; longer each time, and less than a second in all. */
static int try_again(struct engine_workspaces *workspaces, const struct host *host, struct error *error)
{
	struct timespec moment = {.tv_nsec = 10000000L << host->overlay_attempts};
	int rc = 0;

	nanosleep(&moment, NULL);
	for (size_t i = 0; i < workspaces->count && rc == 0; i++)
		if (host->layers.items[i].is_found && !host->layers.items[i].is_copied)
			rc = drop_mark(&workspaces->items[i], error);
	return rc;
}

int engine_workspaces_open(struct engine_workspaces *workspaces, struct host *host, const struct policy *policy,
			   const struct string_list *stores, char *const *environment, struct error *error)
{
	int rc = 0;

	if (!host->layers.count)
		return 0;
	if (are_right(workspaces, host))
		return host->overlay_attempts ? try_again(workspaces, host, error) : 0;
	engine_workspaces_close(workspaces);
	survey_forget_stores(host);
	rc = workspace_home_open(environment, &workspaces->home, error);
	if (rc < 0)
		return rc;
	workspaces->has_home = true;
	if (engine_workspaces_find(host, environment) < 0)
		return out_of_memory(error);
	workspaces->items = calloc(host->layers.count, sizeof(*workspaces->items));
	if (!workspaces->items)
		return out_of_memory(error);
	for (size_t i = 0; i < host->layers.count && rc == 0; i++) {
		struct host_layer *layer = &host->layers.items[i];
		struct workspace *item = &workspaces->items[i];

		rc = open_one(workspaces, host, layer, policy->workspace_name,
			      i < stores->count ? stores->items[i] : NULL, item, error);
		if (rc < 0)
			break;
		workspaces->count++;
		remember_boot(item);
		rc = tell_host(host, layer, &workspaces->home, item, error);
	}
	/* One of several found no file system for a layer: then all are copies. */
	if (rc == 0 && !are_right(workspaces, host))
		return engine_workspaces_open(workspaces, host, policy, stores, environment, error);
	if (rc == 0 && policy->limits.disk_bytes != LIMIT_NONE && survey_find_uncounted(host, policy) < 0)
		rc = out_of_memory(error);
	return rc;
}

static void tidy(struct loop_timer *timer)
{
	const struct engine_workspaces *workspaces = timer->owner;

	for (size_t i = 0; i < workspaces->count; i++)
		workspace_tidy(&workspaces->items[i]);
}

void engine_workspaces_tidy_soon(struct engine_workspaces *workspaces, struct loop *loop)
{
	if (workspaces->count)
		loop_arm(loop, &workspaces->tidying, sys_monotonic_ns() + TIDY_AFTER_NS, tidy, workspaces);
}

/* With checkpoints there is something to go back to, even if nothing differs now. */
static bool is_changed(const struct workspace *workspace, const struct workspace_summary *summary)
{
	return workspace->meta.layers.count || summary->added || summary->modified || summary->deleted ||
	       summary->is_rough;
}

static void forget_seen(struct engine_workspaces *workspaces)
{
	free(workspaces->seen.items);
	workspaces->seen = (struct result_workspace_list){0};
}

void engine_workspaces_look(struct engine_workspaces *workspaces, bool is_over)
{
	forget_seen(workspaces);
	workspaces->is_over = is_over;
	for (size_t i = 0; i < workspaces->count; i++) {
		const struct workspace *workspace = &workspaces->items[i];
		struct result_workspace *seen = list_add(&workspaces->seen);
		struct workspace_summary summary;

		if (!seen)
			return;
		*seen = (struct result_workspace){.id = workspace->meta.id,
						  .path = workspace->meta.workdir,
						  .is_copy = workspace->meta.kind == WORKSPACE_COPY};
		if (workspace_run_ended(&workspaces->home, workspace, &summary, NULL) < 0) {
			seen->is_rough = true;
			continue;
		}
		seen->added = summary.added;
		seen->modified = summary.modified;
		seen->deleted = summary.deleted;
		seen->bytes = summary.bytes;
		seen->is_rough = summary.is_rough;
		if (is_over && !is_changed(workspace, &summary))
			seen->id = NULL;
	}
}

/* Whether the store has changes; an unreadable one counts as changed, so that it stays. */
static bool has_changes(const struct engine_workspaces *workspaces, size_t index)
{
	const struct workspace *workspace = &workspaces->items[index];

	if (workspaces->is_over && index < workspaces->seen.count)
		return workspaces->seen.items[index].id != NULL;
	return workspace->meta.layers.count || workspace_has_changes(&workspaces->home, workspace);
}

void engine_workspaces_close(struct engine_workspaces *workspaces)
{
	loop_disarm(&workspaces->tidying);
	for (size_t i = 0; i < workspaces->count; i++) {
		struct workspace *workspace = &workspaces->items[i];

		if (workspaces->keeps_all || has_changes(workspaces, i))
			workspace_done(workspace);
		else
			workspace_put_by(&workspaces->home, workspace, NULL);
	}
	forget_seen(workspaces);
	free(workspaces->items);
	if (workspaces->has_home)
		workspace_home_done(&workspaces->home);
	*workspaces = (struct engine_workspaces){0};
}
