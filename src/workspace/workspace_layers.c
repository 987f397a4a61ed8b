/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_layers.c - checkpoints: freeze the upper as a layer, and go back to one
 *
 * A frozen layer is a store of its own, so that several workspaces can use it: a fork copies a list of ids and no
 * file. meta.json names the new layer before the upper is moved there. If the process is killed in between, the next
 * one that opens the store sees a layer without an upper, and finishes the move. No state in between loses data.
 */
#include "workspace/workspace_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/reap/reap.h"
#include "workspace/workspace_base.h"
#include "workspace/workspace_place.h"

#define DROPPED ".dropped"

static bool has_upper(int parts_fd)
{
	struct stat status;

	return fstatat(parts_fd, "upper", &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_layer_store(const struct workspace_home *home, const char *id, struct workspace *out,
			    struct error *error)
{
	int rc = workspace_open(home, id, WORKSPACE_LOOK, out, error);

	if (rc == 0 && !out->meta.is_frozen) {
		workspace_done(out);
		rc = error_set(error, STAGE_FILES, EBADMSG, "the workspace '%s' is not a frozen layer", id);
	}
	return rc;
}

/* The directory of the layer's parts, whether or not it has an upper yet. */
static int open_layer_parts(const struct workspace_home *home, const struct workspace *above, const char *id)
{
	AUTO_CLOSE int parent = above->meta.place ? workspace_open_private(AT_FDCWD, above->meta.place)
						  : openat(home->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return parent < 0 ? -ENOENT : workspace_open_private(parent, id);
}

int workspace_store_finish(const struct workspace_home *home, struct workspace *workspace)
{
	AUTO_CLOSE int layer = -1;
	struct stat status;
	mode_t mode = 0755;

	if (workspace->meta.is_frozen)
		return 0;
	if (fstatat(workspace->parts_fd, "upper", &status, AT_SYMLINK_NOFOLLOW) == 0)
		mode = status.st_mode;
	if (workspace->meta.layers.count && has_upper(workspace->parts_fd)) {
		layer = open_layer_parts(home, workspace, workspace->meta.layers.items[0]);
		if (layer >= 0 && !has_upper(layer) && renameat(workspace->parts_fd, "upper", layer, "upper") < 0)
			return -errno;
	}
	if (!has_upper(workspace->parts_fd)) {
		int rc = workspace_store_make_upper(workspace, mode);

		close_fd(&workspace->upper_fd);
		if (rc < 0)
			return rc;
	}
	if (faccessat(workspace->parts_fd, DROPPED, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		reap_sweep_at(workspace->parts_fd, DROPPED);
	return 0;
}

static int may_have_layers(const struct workspace *workspace, struct error *error)
{
	if (workspace->lock_fd < 0)
		return error_set(error, STAGE_FILES, EBUSY, "the workspace '%s' is not locked", workspace->meta.id);
	if (workspace->meta.kind == WORKSPACE_COPY) {
		error_set(error, STAGE_FILES, EOPNOTSUPP, "the workspace '%s' is a copy, which has no layers",
			  workspace->meta.id);
		return error_hint(error, "checkpoints need an overlay; `belljar doctor` says whether this host has it");
	}
	return 0;
}

/* A frozen store beside that of @workspace, still without an upper. */
static int make_layer(const struct workspace_home *home, const struct workspace *workspace, const char *note,
		      struct workspace *layer, struct error *error)
{
	const struct workspace_meta *from = &workspace->meta;
	struct workspace_meta *meta = &layer->meta;
	AUTO_CLOSE int place = -1;
	int rc = workspace_store_make_directory(home, layer);

	if (rc == 0 && asprintf(&layer->path, "%s/%s", home->path, meta->id) < 0) {
		layer->path = NULL;
		rc = -ENOMEM;
	}
	if (rc < 0)
		return rc;
	meta->kind = from->kind;
	meta->workdir = strdup(from->workdir);
	meta->place = from->place ? strdup(from->place) : NULL;
	meta->note = note ? strdup(note) : NULL;
	meta->workdir_device = from->workdir_device;
	meta->workdir_inode = from->workdir_inode;
	meta->created_ns = from->created_ns;
	meta->stamp_ns = from->stamp_ns;
	meta->has_user_xattrs = from->has_user_xattrs;
	meta->is_frozen = true;
	if (!meta->workdir || (from->place && !meta->place) || (note && !meta->note) ||
	    string_list_copy(&meta->layers, &from->layers) < 0)
		return -ENOMEM;
	if (meta->place) {
		place = workspace_open_private(AT_FDCWD, meta->place);
		if (place < 0 || mkdirat(place, meta->id, 0700) < 0)
			return place < 0 ? place : -errno;
	}
	return workspace_save(layer, error);
}

/* @id in front of the layers. */
static int push_layer(struct workspace_meta *meta, const char *id)
{
	struct string_list layers = {0};
	int rc = string_list_add(&layers, id);

	for (size_t i = 0; rc == 0 && i < meta->layers.count; i++)
		rc = string_list_add(&layers, meta->layers.items[i]);
	if (rc < 0) {
		string_list_done(&layers);
		return rc;
	}
	string_list_done(&meta->layers);
	meta->layers = layers;
	return 0;
}

int workspace_checkpoint(const struct workspace_home *home, struct workspace *workspace, const char *note,
			 struct error *error)
{
	AUTO_CLOSE int lock = -1;
	AUTO(workspace_done) struct workspace layer;
	int rc = may_have_layers(workspace, error);

	workspace_store_clear(&layer);
	if (rc == 0 && workspace->meta.layers.count >= WORKSPACE_LAYERS_MAX)
		rc = error_set(error, STAGE_LIMITS, E2BIG, "the workspace '%s' has %d layers already",
			       workspace->meta.id, WORKSPACE_LAYERS_MAX);
	if (rc < 0)
		return rc;
	lock = workspace_store_lock_home(home, error);
	if (lock < 0)
		return lock;
	rc = make_layer(home, workspace, note, &layer, error);
	if (rc == 0)
		rc = push_layer(&workspace->meta, layer.meta.id);
	if (rc == 0)
		rc = workspace_save(workspace, error);
	close_fd(&workspace->upper_fd);
	if (rc == 0)
		rc = workspace_store_finish(home, workspace);
	if (rc == 0)
		rc = workspace_store_open_upper(workspace);
	if (rc < 0)
		error_set(error, STAGE_FILES, -rc, "cannot freeze the workspace '%s': %s", workspace->meta.id,
			  strerror(-rc));
	return rc;
}

int workspace_rollback(const struct workspace_home *home, struct workspace *workspace, const char *layer,
		       struct error *error)
{
	AUTO_CLOSE int lock = -1;
	struct string_list *layers = &workspace->meta.layers;
	struct string_list kept = {0};
	size_t index = 0;
	struct stat status;
	int rc = may_have_layers(workspace, error);

	while (rc == 0 && layer && index < layers->count && strcmp(layers->items[index], layer) != 0)
		index++;
	if (rc == 0 && layer && index == layers->count) {
		error_set(error, STAGE_USAGE, ENOENT, "the workspace '%s' has no checkpoint '%s'", workspace->meta.id,
			  layer);
		return error_hint(error, "`belljar workspace show` lists its checkpoints");
	}
	if (rc < 0)
		return rc;
	lock = workspace_store_lock_home(home, error);
	if (lock < 0)
		return lock;
	/* What leaves the layers shows the workdir's files again, as they are now. */
	workspace_base_forget_all(workspace);
	for (size_t i = index; rc == 0 && i < layers->count; i++)
		rc = string_list_add(&kept, layers->items[i]);
	if (rc == 0 && (fstat(workspace->upper_fd, &status) < 0 ||
			renameat(workspace->parts_fd, "upper", workspace->parts_fd, DROPPED) < 0))
		rc = -errno;
	close_fd(&workspace->upper_fd);
	if (rc == 0) {
		string_list_done(layers);
		*layers = kept;
		kept = (struct string_list){0};
		rc = workspace_save(workspace, error);
	}
	string_list_done(&kept);
	if (rc == 0)
		rc = workspace_store_make_upper(workspace, status.st_mode);
	if (rc == 0)
		rc = workspace_store_finish(home, workspace);
	workspace_store_hide_useless(home);
	close_fd(&lock);
	workspace_store_remove_hidden(home);
	if (rc < 0)
		error_set(error, STAGE_FILES, -rc, "cannot roll back the workspace '%s': %s", workspace->meta.id,
			  strerror(-rc));
	return rc;
}

int workspace_open_layer(const struct workspace_home *home, const struct workspace *workspace, size_t index,
			 char **path_out, struct error *error)
{
	AUTO(workspace_done) struct workspace layer;
	char *path = NULL;
	int rc;

	workspace_store_clear(&layer);
	rc = open_layer_store(home, workspace->meta.layers.items[index], &layer, error);
	if (rc < 0)
		return rc;
	if (path_out && asprintf(&path, "%s/upper", layer.parts_path) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	if (path_out)
		*path_out = path;
	return take_fd(&layer.upper_fd);
}
