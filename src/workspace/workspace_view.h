/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_view.h - a workspace's layers over its workdir, and how their directories are opened
 *
 * Everything in a layer is untrusted. These functions open files beneath the layer's top, never through a link, and
 * read overlay's attributes with bounds.
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_VIEW_H
#define BELLJAR_WORKSPACE_WORKSPACE_VIEW_H

#include <sys/stat.h>

#include "workspace/workspace_store.h"

/* Of a path below the workdir, and of a link's text. */
#define WORKSPACE_PATH_MAX ((size_t)64 << 10)
#define WORKSPACE_LINK_MAX 4096

/* An object of the workdir as an apply left it. Its ctime stays the same until another program changes it. */
struct applied_object {
	uint64_t device, inode;
	int64_t ctime_ns;
};

struct applied_list {
	struct applied_object *items; /* sorted */
	size_t count;
	size_t capacity;
};

/* The state of a name, on one side. */
struct change_side {
	mode_t mode; /* 0: there is none */
	dev_t device;
	ino_t inode;
	nlink_t link_count;
	uint64_t size;
	uint64_t stored; /* bytes that it takes */
	int64_t mtime_ns, ctime_ns;
	uid_t uid;
	gid_t gid;
};

/* A change that an apply set out to make. */
struct intent {
	struct change_side before, after;
	unsigned layer;
	char *path;
};

struct intent_list {
	struct intent *items; /* sorted by path */
	size_t count;
	size_t capacity;
};

struct workspace_view {
	enum workspace_kind kind;
	bool has_user_xattrs;
	int64_t stamp_ns;
	int64_t copied_ns;
	const char *workdir; /* borrowed of the workspace */
	dev_t workdir_device;
	int fds[WORKSPACE_LAYERS_MAX + 2];
	struct applied_list applied;
	struct intent_list intents; /* of an apply that was killed */
	unsigned layer_count;       /* the upper is 0; the workdir stands behind the last layer, at this index */
};

/* Open a view. The workdir's path must lead to the same directory as when the workspace was made. */
int workspace_view_open(const struct workspace_home *home, const struct workspace *workspace,
			struct workspace_view *out, struct error *error);
void workspace_view_done(struct workspace_view *view);

static inline int workspace_view_workdir(const struct workspace_view *view)
{
	return view->fds[view->layer_count];
}

static inline int64_t workspace_view_changed_ns(const struct stat *status)
{
	return (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec;
}

static inline int64_t workspace_view_modified_ns(const struct stat *status)
{
	return (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

/* Report whether another program than an apply touched it since the workspace was made. */
bool workspace_view_is_touched_at(const struct workspace_view *view, dev_t device, ino_t inode, int64_t ctime_ns);
static inline bool workspace_view_is_touched(const struct workspace_view *view, const struct stat *status)
{
	return workspace_view_is_touched_at(view, status->st_dev, status->st_ino, workspace_view_changed_ns(status));
}

/*
 * Open the directory @path below @top_fd, however long the path is, never out of it and through no link. "" is the
 * top. A descriptor or a negative errno.
 */
int workspace_view_open_directory(int top_fd, const char *path);
/* Open the directory that @path is in; *@name_out is its last part. */
int workspace_view_open_parent(int top_fd, const char *path, const char **name_out);

/* Report whether @name in @directory_fd, with @status of lstat(), is a whiteout: a mark for "removed". */
bool workspace_view_is_whiteout(const struct workspace_view *view, int directory_fd, const char *name,
				const struct stat *status);
/* Report whether the open directory of a layer hides the lower layers. */
bool workspace_view_is_opaque(const struct workspace_view *view, int directory_fd);
/* Remove that mark. */
int workspace_view_clear_opaque(const struct workspace_view *view, int directory_fd);
/* Make a renamed directory opaque and remove its redirect, because all of its contents are in the layer now. */
int workspace_view_end_redirect(const struct workspace_view *view, int directory_fd);
/* Report whether overlay copied the file from a lower layer. */
bool workspace_view_was_copied_up(const struct workspace_view *view, int directory_fd, const char *name);
/* Mark an open file so. */
int workspace_view_mark_copied_up(const struct workspace_view *view, int fd);
/*
 * Find the path in the lower layers of the directory @path of a layer: the caller frees *@out, NULL if it is the same
 * path. @lower_parent is the path of its parent there. -EBADMSG: it leads out of the workdir.
 */
int workspace_view_redirect(const struct workspace_view *view, int directory_fd, const char *lower_parent, char **out);

/* Attributes that belong to a file rather than to overlay or to the system: those are compared and applied. */
bool workspace_view_is_own_xattr(const char *name);
bool workspace_view_same_xattrs(int a_fd, int b_fd);
int workspace_view_copy_xattrs(int from_fd, int to_fd);
/* The same, and remove those that @from_fd lacks. */
int workspace_view_replace_xattrs(int from_fd, int to_fd);

/* Compare: 1 the same, 0 not, or -errno. Reads at most *@budget bytes, and lowers it; 0 left counts as different. */
int workspace_view_same_content(int a_fd, int b_fd, uint64_t size, uint64_t *budget);

#endif
