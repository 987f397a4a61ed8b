/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_store.h - the directories in which workspaces are kept
 *
 * One directory has all stores of a user: $XDG_STATE_HOME/belljar/ws, or ~/.local/state/belljar/ws. It has a store for
 * each workspace, <id>/{meta.json, lock, upper, work}, and an empty one for the next (`.spare`). If this file system
 * cannot be the upper layer of an overlay, upper and work are on another one (`place` of meta.json). Only the user can
 * enter any of them. Everything in `upper` is untrusted.
 *
 * Only the process that has a store's lock writes to the store. A frozen layer is never written to, and stays until no
 * store uses it.
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_STORE_H
#define BELLJAR_WORKSPACE_WORKSPACE_STORE_H

#include "workspace/workspace_meta.h"

#define WORKSPACE_STORES_MAX 4096

/* The directory of all stores. */
struct workspace_home {
	int fd;
	char *path;
};

/* Open the home that XDG_STATE_HOME and HOME of @environment select; make it if it does not exist. */
int workspace_home_open(char *const *environment, struct workspace_home *out, struct error *error);
void workspace_home_done(struct workspace_home *home);
/*
 * List every directory that may be the home of this user's stores: the one of workspace_home_open() first, then those
 * of other environments. Makes none of them.
 */
int workspace_homes(char *const *environment, struct string_list *out);
/* Make the home at @path, as workspace_homes() names it, so that no other user can. 0 or a negative errno. */
int workspace_home_make(const char *path);
/* Report whether the directory has any store, or part of one. */
bool workspace_any_in(const char *directory);
/* Add the other directories in which stores of the home at @home have, or had, their parts. */
int workspace_places(const char *home, struct string_list *out);

struct workspace {
	struct workspace_meta meta;
	int fd;       /* the store */
	int parts_fd; /* where upper and work are */
	int upper_fd;
	int lock_fd; /* -1: not locked, to look only */
	char *path;  /* of the store */
	char *parts_path;
};

struct workspace_request {
	int workdir_fd; /* may be O_PATH */
	const char *workdir;
	const char *name; /* NULL: none */
	enum workspace_kind kind;
	bool has_user_xattrs; /* a layer is mounted with them instead of trusted ones */
	const struct workspace_meta
		*base; /* stand on its layers, with its stamp; NULL: on the workdir alone, from now on */
};

/*
 * Make a store, and lock it. The upper is on the workdir's file system if possible: then applying moves files instead
 * of copying them. It is never inside the workdir. -EEXIST: there is one of that name for this workdir.
 */
int workspace_create(const struct workspace_home *home, const struct workspace_request *request, struct workspace *out,
		     struct error *error);

enum workspace_access {
	WORKSPACE_LOOK,  /* also while another process writes to it */
	WORKSPACE_WRITE, /* -EBUSY: another process writes to it */
	WORKSPACE_DROP,  /* the same, to remove it: its layer may be gone, with the file system that it was on */
};

/* Open a workspace by its id. */
int workspace_open(const struct workspace_home *home, const char *id, enum workspace_access access,
		   struct workspace *out, struct error *error);
void workspace_done(struct workspace *workspace);
/* Report whether the layer exists. If not, it may come back, at parts_path, with its file system. */
static inline bool workspace_has_layer(const struct workspace *workspace)
{
	return workspace->upper_fd >= 0;
}
/* Return what a workspace lacks: "layer", "directory" (its workdir), or NULL. */
const char *workspace_missing(const struct workspace_home *home, const struct workspace_meta *meta);

/* Write meta.json anew, whole or not at all. The caller has the lock. */
int workspace_save(const struct workspace *workspace, struct error *error);
/* WORKSPACE_COPY: the copy is whole; what changes in it from now on is the command's work. Saves. */
int workspace_copy_is_whole(struct workspace *workspace, struct error *error);
/* Remove the store and all in it, and layers that no store uses any more. Closes @workspace in any case. */
int workspace_remove(const struct workspace_home *home, struct workspace *workspace, struct error *error);
/* The same for a store without changes: it may become the spare for the next workspace. Nothing may have it mounted. */
int workspace_put_by(const struct workspace_home *home, struct workspace *workspace, struct error *error);
/* Remove the old contents of a spare. That takes a moment, so do it while the jar is being made. */
void workspace_tidy(const struct workspace *workspace);

/*
 * Freeze what was written so far: it becomes a layer, and the upper is new and empty. Nothing may have it mounted. The
 * id of the new layer is the first of meta.layers. @note is the user's note, or NULL.
 */
int workspace_checkpoint(const struct workspace_home *home, struct workspace *workspace, const char *note,
			 struct error *error);
/* Drop what was written since @layer was frozen. NULL: since the last. */
int workspace_rollback(const struct workspace_home *home, struct workspace *workspace, const char *layer,
		       struct error *error);

/* Open the upper of the layer @index of @workspace, read-only: a descriptor or a negative errno. */
int workspace_open_layer(const struct workspace_home *home, const struct workspace *workspace, size_t index,
			 char **path_out, struct error *error);

struct workspace_list {
	struct workspace_meta *items;
	size_t count;
	size_t capacity;
};

/* List all workspaces, without frozen layers, the newest first. Skip damaged ones, and count them. */
int workspace_list(const struct workspace_home *home, struct workspace_list *out, size_t *damaged_out,
		   struct error *error);
void workspace_list_done(struct workspace_list *list);

/*
 * Find a workspace by @word: an id, or a name, first of this workdir and then of any. NULL: the newest of the workdir
 * (device and inode). -ENOENT: not found.
 */
int workspace_find(const struct workspace_home *home, const char *word, dev_t device, ino_t inode,
		   char id_out[WORKSPACE_ID_SIZE], struct error *error);

/* Remove what killed processes left: unfinished stores, and layers that no store uses. */
void workspace_sweep(const struct workspace_home *home);

#endif
