/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_view.h - a workspace's layers over its workdir, and how their directories are opened
 *
 * Everything in a layer is a stranger's work. It is opened beneath the layer's top, through no link, and what overlay wrote
 * into attributes is read with bounds.
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_VIEW_H
#define BELLJAR_WORKSPACE_WORKSPACE_VIEW_H

#include <sys/stat.h>

#include "workspace/workspace_store.h"

/* Of a path below the workdir, and of a link's text. */
#define WORKSPACE_PATH_MAX ((size_t)64 << 10)
#define WORKSPACE_LINK_MAX 4096

/* An object of the workdir as an apply left it: its time of change is ours until somebody else changes it. */
struct applied_object {
	uint64_t device, inode;
	int64_t ctime_ns;
};

struct applied_list {
	struct applied_object *items; /* sorted */
	size_t count;
	size_t capacity;
};

/* What a name is, on one side. */
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

/* Opens the workdir by its path: it must be the same directory as when the workspace was made. */
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

/* Was it touched since the workspace was made, by somebody else than an apply of it? */
bool workspace_view_is_touched_at(const struct workspace_view *view, dev_t device, ino_t inode, int64_t ctime_ns);
static inline bool workspace_view_is_touched(const struct workspace_view *view, const struct stat *status)
{
	return workspace_view_is_touched_at(view, status->st_dev, status->st_ino, workspace_view_changed_ns(status));
}

/*
 * Open the directory @path below @top_fd, however long the path is, never out of it and through no link. "" is the top. A
 * descriptor or a negative errno.
 */
int workspace_view_open_directory(int top_fd, const char *path);
/* The directory that @path is in; *@name_out is its last part. */
int workspace_view_open_parent(int top_fd, const char *path, const char **name_out);

/* Does @name in @directory_fd, of which lstat() says @status, stand for "nothing is here"? */
bool workspace_view_is_whiteout(const struct workspace_view *view, int directory_fd, const char *name,
				const struct stat *status);
/* Does the open directory of a layer hide what is below it? */
bool workspace_view_is_opaque(const struct workspace_view *view, int directory_fd);
/* Take that mark away. */
int workspace_view_clear_opaque(const struct workspace_view *view, int directory_fd);
/* Everything of a renamed directory is in the layer: it hides what is below, and leads nowhere any more. */
int workspace_view_end_redirect(const struct workspace_view *view, int directory_fd);
/* Was the file copied from a lower layer by overlay? */
bool workspace_view_was_copied_up(const struct workspace_view *view, int directory_fd, const char *name);
/* Say so of an open one. */
int workspace_view_mark_copied_up(const struct workspace_view *view, int fd);
/*
 * Where the lower layers have what the directory @path of a layer shows: *@out is the caller's to free, NULL if it is the
 * same path. @lower_parent is where they have its parent. -EBADMSG: it leads out of the workdir.
 */
int workspace_view_redirect(const struct workspace_view *view, int directory_fd, const char *lower_parent, char **out);

/* Attributes that belong to a file rather than to overlay or to the system: those are compared and applied. */
bool workspace_view_is_own_xattr(const char *name);
bool workspace_view_same_xattrs(int a_fd, int b_fd);
int workspace_view_copy_xattrs(int from_fd, int to_fd);
/* The same, and those that @from_fd has not are removed. */
int workspace_view_replace_xattrs(int from_fd, int to_fd);

/* 1 the same, 0 not, a negative errno. Looks at no more than *@budget bytes, which it lowers; 0 left counts as different. */
int workspace_view_same_content(int a_fd, int b_fd, uint64_t size, uint64_t *budget);

#endif
