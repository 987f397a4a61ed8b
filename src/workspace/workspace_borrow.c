/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_borrow.c - copy the contents of renamed directories from lower layers into the upper
 *
 * Root's overlay renames a directory by a mark that names its old path in the lower layers. Two directories can be
 * swapped that way, and applying the one would destroy the contents of the other. So this file copies everything into
 * the upper first, and then changes the mark to "opaque". The workspace shows the same at every moment; if the process
 * is killed, the next one continues. This runs before a layer is frozen too, so that no mark in a frozen layer refers to
 * another path.
 */
#include "workspace/workspace_borrow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workspace/workspace_step.h"
#include "workspace/workspace_walk.h"

#define TEMPORARY ".borrowed"

static int copy_file(int from, int to, const struct stat *status)
{
	const struct timespec times[2] = {status->st_atim, status->st_mtim};
	uint64_t copied = 0;
	int rc = workspace_step_copy_data(from, to, (uint64_t)status->st_size, &copied);

	if (rc == 0)
		rc = workspace_view_copy_xattrs(from, to);
	if (rc == 0 && (fchown(to, status->st_uid, status->st_gid) < 0 || fchmod(to, status->st_mode & 07777) < 0 ||
			futimens(to, times) < 0))
		rc = -errno;
	return rc;
}

/* Whole, under a temporary name in the store. */
static int make_copy(int store, int old_parent, const char *name, const struct stat *status)
{
	AUTO_CLOSE int from = -1;
	AUTO_CLOSE int to = -1;

	if (S_ISLNK(status->st_mode)) {
		char text[WORKSPACE_LINK_MAX + 1];
		ssize_t len = readlinkat(old_parent, name, text, sizeof(text) - 1);

		if (len < 0)
			return -errno;
		text[len] = '\0';
		return symlinkat(text, store, TEMPORARY) < 0 ? -errno : 0;
	}
	if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode))
		return mknodat(store, TEMPORARY, status->st_mode, status->st_rdev) < 0 ? -errno : 0;
	from = openat(old_parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (from < 0)
		return -errno;
	if (S_ISDIR(status->st_mode)) {
		if (mkdirat(store, TEMPORARY, 0700) < 0)
			return -errno;
		to = openat(store, TEMPORARY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (to < 0 || fchown(to, status->st_uid, status->st_gid) < 0 || fchmod(to, status->st_mode & 07777) < 0)
			return -errno;
		return workspace_view_copy_xattrs(from, to);
	}
	to = openat(store, TEMPORARY, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return to < 0 ? -errno : copy_file(from, to, status);
}

static int borrow_one(const struct workspace_view *view, int store, const char *path, const char *old_path,
		      unsigned long layer)
{
	const char *name, *old_name;
	AUTO_CLOSE int parent = workspace_view_open_parent(view->fds[0], path, &name);
	AUTO_CLOSE int old_parent = workspace_view_open_parent(view->fds[layer], old_path, &old_name);
	struct stat status;
	int rc;

	if (parent < 0 || old_parent < 0)
		return MIN_OF(parent, old_parent);
	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		return 0; /* taken before */
	if (fstatat(old_parent, old_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	unlinkat(store, TEMPORARY, 0);
	unlinkat(store, TEMPORARY, AT_REMOVEDIR);
	rc = make_copy(store, old_parent, old_name, &status);
	if (rc == 0 && renameat(store, TEMPORARY, parent, name) < 0)
		rc = -errno;
	return rc;
}

static int end_redirect(const struct workspace_view *view, const char *path)
{
	AUTO_CLOSE int fd = workspace_view_open_directory(view->fds[0], path);

	return fd < 0 ? fd : workspace_view_end_redirect(view, fd);
}

int workspace_borrow(const struct workspace_view *view, const struct workspace *workspace, struct error *error)
{
	struct walk walk = {.view = view, .entry_max = WORKSPACE_CHANGES_MAX};
	int rc = 0;

	/* Only root's overlay renames so. */
	if (view->kind != WORKSPACE_OVERLAY || view->has_user_xattrs)
		return 0;
	rc = workspace_walk(&walk);
	for (size_t i = 0; rc == 0 && i + 2 < walk.borrowed.count; i += 3)
		rc = borrow_one(view, workspace->parts_fd, walk.borrowed.items[i], walk.borrowed.items[i + 1],
				strtoul(walk.borrowed.items[i + 2], NULL, 10));
	/* From the inside out: a mark can be relative to where the directory above it leads. */
	for (size_t i = walk.renamed.count; rc == 0 && i >= 2; i -= 2)
		rc = end_redirect(view, walk.renamed.items[i - 2]);
	string_list_done(&walk.renamed);
	string_list_done(&walk.borrowed);
	return rc < 0 ? error_set(error, STAGE_FILES, -rc,
				  "cannot take renamed directories into the workspace '%s': %s", workspace->meta.id,
				  strerror(-rc))
		      : 0;
}
