/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_view.c - open what is in layers, read overlay's marks, compare files
 */
#include "workspace/workspace_view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/sys/calls.h"
#include "workspace/workspace_applied.h"
#include "workspace/workspace_intent.h"

#define BENEATH (SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS)
#define PIECE_MAX 3900 /* of a path in one system call */
#define MARK_SIZE 48
#define XATTR_LIST_MAX 65536
#define BLOCK 65536
/* Smaller files are read without asking for holes. */
#define HOLES_FROM ((uint64_t)1 << 20)

/* --- open --------------------------------------------------------------------------------------------------------- */

static int open_workdir(const struct workspace_meta *meta, struct error *error)
{
	AUTO_CLOSE int fd = open(meta->workdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return error_set(error, STAGE_FILES, errno, "cannot open the workdir '%s': %s", meta->workdir,
				 strerror(errno));
	if (status.st_dev != meta->workdir_device || status.st_ino != meta->workdir_inode) {
		error_set(error, STAGE_FILES, ESTALE,
			  "'%s' is not the directory any more that the workspace '%s' was made of", meta->workdir,
			  meta->id);
		return error_hint(error, "move it back, or drop the workspace: `belljar discard %s`", meta->id);
	}
	return take_fd(&fd);
}

int workspace_view_open(const struct workspace_home *home, const struct workspace *workspace,
			struct workspace_view *out, struct error *error)
{
	const struct workspace_meta *meta = &workspace->meta;
	struct workspace_view view = {
		.kind = meta->kind,
		.has_user_xattrs = meta->has_user_xattrs,
		.stamp_ns = meta->stamp_ns,
		.copied_ns = meta->copied_ns,
		.workdir = meta->workdir,
		.workdir_device = meta->workdir_device,
	};
	int rc = 0;

	if (meta->kind == WORKSPACE_COPY && !meta->copied_ns)
		return error_set(error, STAGE_FILES, ENODATA, "the copy of the workspace '%s' is incomplete", meta->id);
	if (!workspace_has_layer(workspace))
		return error_set(error, STAGE_FILES, ENOENT, "the layer of the workspace '%s' is gone: '%s'", meta->id,
				 workspace->parts_path);
	view.fds[view.layer_count++] = fcntl(workspace->upper_fd, F_DUPFD_CLOEXEC, 3);
	for (size_t i = 0; i < meta->layers.count && rc == 0; i++) {
		int fd = workspace_open_layer(home, workspace, i, NULL, error);

		if (fd < 0)
			rc = fd;
		else
			view.fds[view.layer_count++] = fd;
	}
	view.fds[view.layer_count] = rc == 0 ? open_workdir(meta, error) : -1;
	if (rc == 0)
		rc = MIN_OF(view.fds[view.layer_count], 0);
	workspace_applied_read(workspace->fd, &view.applied);
	workspace_intent_read(workspace->fd, &view.intents);
	if (rc < 0)
		workspace_view_done(&view);
	else
		*out = view;
	return rc;
}

void workspace_view_done(struct workspace_view *view)
{
	for (unsigned i = 0; view->layer_count && i <= view->layer_count; i++)
		close_fd(&view->fds[i]);
	workspace_applied_done(&view->applied);
	workspace_intent_done(&view->intents);
	*view = (struct workspace_view){0};
}

bool workspace_view_is_touched_at(const struct workspace_view *view, dev_t device, ino_t inode, int64_t ctime_ns)
{
	return ctime_ns >= view->stamp_ns && !workspace_applied_has(&view->applied, device, inode, ctime_ns);
}

int workspace_view_open_directory(int top_fd, const char *path)
{
	AUTO_CLOSE int at = -1;
	char piece[PIECE_MAX + 1];
	int rc = 0;

	if (!*path)
		path = ".";
	while (*path && rc >= 0) {
		size_t len = strlen(path);

		if (len > PIECE_MAX) {
			len = PIECE_MAX;
			while (len && path[len] != '/')
				len--;
			if (!len)
				return -ENAMETOOLONG;
		}
		memcpy(piece, path, len);
		piece[len] = '\0';
		rc = sys_openat2(at >= 0 ? at : top_fd, piece, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0,
				 BENEATH);
		close_fd(&at);
		at = rc;
		path += len;
		while (*path == '/')
			path++;
	}
	return rc < 0 ? rc : take_fd(&at);
}

int workspace_view_open_parent(int top_fd, const char *path, const char **name_out)
{
	const char *slash = strrchr(path, '/');
	AUTO_FREE char *parent = slash ? strndup(path, (size_t)(slash - path)) : strdup("");

	*name_out = slash ? slash + 1 : path;
	return parent ? workspace_view_open_directory(top_fd, parent) : -ENOMEM;
}

/* --- overlay's marks ---------------------------------------------------------------------------------------------- */

static const char *mark(const struct workspace_view *view, const char *name, char out[MARK_SIZE])
{
	snprintf(out, MARK_SIZE, "%s.overlay.%s", view->has_user_xattrs ? "user" : "trusted", name);
	return out;
}

bool workspace_view_is_whiteout(const struct workspace_view *view, int directory_fd, const char *name,
				const struct stat *status)
{
	char attribute[MARK_SIZE], value[8];
	AUTO_CLOSE int fd = -1;

	if (view->kind == WORKSPACE_COPY)
		return false;
	if (S_ISCHR(status->st_mode))
		return status->st_rdev == 0;
	if (!S_ISREG(status->st_mode) || status->st_size)
		return false;
	/* Its mode may keep its owner from reading it, never from asking by its name. */
	fd = openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	snprintf(value, sizeof(value), "%s", "");
	if (fd >= 0) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		return getxattr(path, mark(view, "whiteout", attribute), value, sizeof(value)) >= 0;
	}
	return false;
}

bool workspace_view_is_opaque(const struct workspace_view *view, int directory_fd)
{
	char attribute[MARK_SIZE], value[4];

	return view->kind == WORKSPACE_OVERLAY &&
	       fgetxattr(directory_fd, mark(view, "opaque", attribute), value, sizeof(value)) == 1 && value[0] == 'y';
}

int workspace_view_clear_opaque(const struct workspace_view *view, int directory_fd)
{
	char attribute[MARK_SIZE];

	if (!workspace_view_is_opaque(view, directory_fd))
		return 0;
	/* A killed process may have left a redirect mark beside this one; without this one, it would take effect. */
	if (fremovexattr(directory_fd, mark(view, "redirect", attribute)) < 0 && errno != ENODATA)
		return -errno;
	return fremovexattr(directory_fd, mark(view, "opaque", attribute)) < 0 && errno != ENODATA ? -errno : 0;
}

int workspace_view_end_redirect(const struct workspace_view *view, int directory_fd)
{
	char attribute[MARK_SIZE];

	/* In this order: with both marks, the first of them counts. */
	if (fsetxattr(directory_fd, mark(view, "opaque", attribute), "y", 1, 0) < 0)
		return -errno;
	return fremovexattr(directory_fd, mark(view, "redirect", attribute)) < 0 && errno != ENODATA ? -errno : 0;
}

int workspace_view_mark_copied_up(const struct workspace_view *view, int fd)
{
	char attribute[MARK_SIZE];

	/* Without a value: it is not known which one it was. */
	return fsetxattr(fd, mark(view, "origin", attribute), "", 0, 0) < 0 ? -errno : 0;
}

bool workspace_view_was_copied_up(const struct workspace_view *view, int directory_fd, const char *name)
{
	char attribute[MARK_SIZE], path[NAME_MAX + 64];

	if (view->kind != WORKSPACE_OVERLAY)
		return false;
	/* By its name: this is asked of every new file, and to open it would take three system calls. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", directory_fd, name);
	return lgetxattr(path, mark(view, "origin", attribute), NULL, 0) >= 0;
}

/* Relative, no empty part, no "." and no "..". */
static bool is_plain_path(const char *path)
{
	while (*path) {
		size_t len = strcspn(path, "/");

		if (!len || len > NAME_MAX || (len == 1 && path[0] == '.') ||
		    (len == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += len;
		if (*path && !*++path)
			return false;
	}
	return true;
}

int workspace_view_redirect(const struct workspace_view *view, int directory_fd, const char *lower_parent, char **out)
{
	char attribute[MARK_SIZE], value[PATH_MAX];
	ssize_t len;

	*out = NULL;
	/* Only a mount by root writes it, and only in attributes that no other user can set. */
	if (view->kind == WORKSPACE_COPY || view->has_user_xattrs)
		return 0;
	len = fgetxattr(directory_fd, mark(view, "redirect", attribute), value, sizeof(value) - 1);
	if (len < 0)
		return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -EBADMSG;
	value[len] = '\0';
	if (!len || strlen(value) != (size_t)len)
		return -EBADMSG;
	if (value[0] == '/') {
		if (!value[1] || !is_plain_path(value + 1))
			return -EBADMSG;
		*out = strdup(value + 1);
		return *out ? 0 : -ENOMEM;
	}
	if (strchr(value, '/') || !is_plain_path(value))
		return -EBADMSG;
	if (asprintf(out, "%s%s%s", lower_parent, *lower_parent ? "/" : "", value) < 0) {
		*out = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

bool workspace_view_is_own_xattr(const char *name)
{
	static const char user[] = "user.", overlay[] = "user.overlay.";

	if (!strncmp(name, user, strlen(user)))
		return strncmp(name, overlay, strlen(overlay)) != 0;
	return !strcmp(name, "system.posix_acl_access") || !strcmp(name, "system.posix_acl_default");
}

/* The names of own attributes, one behind the other, each ended by a NUL: their length, or a negative errno. */
static ssize_t own_xattrs(int fd, char *names)
{
	ssize_t len = flistxattr(fd, names, XATTR_LIST_MAX), kept = 0;

	if (len < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (ssize_t at = 0; at < len;) {
		size_t name_len = strnlen(names + at, (size_t)(len - at)) + 1;

		if (workspace_view_is_own_xattr(names + at)) {
			memmove(names + kept, names + at, name_len);
			kept += (ssize_t)name_len;
		}
		at += (ssize_t)name_len;
	}
	return kept;
}

static bool same_xattr(int a_fd, int b_fd, const char *name)
{
	AUTO_FREE char *a = malloc(XATTR_LIST_MAX), *b = malloc(XATTR_LIST_MAX);
	ssize_t a_len = a ? fgetxattr(a_fd, name, a, XATTR_LIST_MAX) : -1;
	ssize_t b_len = b ? fgetxattr(b_fd, name, b, XATTR_LIST_MAX) : -1;

	return a_len >= 0 && a_len == b_len && !memcmp(a, b, (size_t)a_len);
}

bool workspace_view_same_xattrs(int a_fd, int b_fd)
{
	AUTO_FREE char *a = malloc(XATTR_LIST_MAX), *b = malloc(XATTR_LIST_MAX);
	ssize_t a_len = a ? own_xattrs(a_fd, a) : -1, b_len = b ? own_xattrs(b_fd, b) : -1;

	/* The same names, in whatever order, are as long. */
	if (a_len < 0 || a_len != b_len)
		return false;
	for (ssize_t at = 0; at < a_len; at += (ssize_t)strlen(a + at) + 1)
		if (!same_xattr(a_fd, b_fd, a + at))
			return false;
	return true;
}

int workspace_view_copy_xattrs(int from_fd, int to_fd)
{
	AUTO_FREE char *names = malloc(XATTR_LIST_MAX), *value = malloc(XATTR_LIST_MAX);
	ssize_t len = names && value ? own_xattrs(from_fd, names) : -ENOMEM;

	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t value_len = fgetxattr(from_fd, names + at, value, XATTR_LIST_MAX);

		if (value_len < 0 || fsetxattr(to_fd, names + at, value, (size_t)value_len, 0) < 0)
			return -errno;
	}
	return len < 0 ? (int)len : 0;
}

int workspace_view_replace_xattrs(int from_fd, int to_fd)
{
	AUTO_FREE char *names = malloc(XATTR_LIST_MAX);
	ssize_t len = names ? own_xattrs(to_fd, names) : -ENOMEM;

	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
		if (fgetxattr(from_fd, names + at, NULL, 0) < 0 && fremovexattr(to_fd, names + at) < 0 &&
		    errno != ENODATA)
			return -errno;
	return len < 0 ? (int)len : workspace_view_copy_xattrs(from_fd, to_fd);
}

/* --- content ------------------------------------------------------------------------------------------------------ */

static uint64_t next_data(int fd, uint64_t at, uint64_t size)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? size : at;
	return MAX_OF((uint64_t)data, at);
}

/* As much as there is, up to @len. */
static ssize_t read_block(int fd, char *out, size_t len, uint64_t at)
{
	size_t done = 0;

	while (done < len) {
		ssize_t count = pread(fd, out + done, len - done, (off_t)(at + done));

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (!count)
			break;
		done += (size_t)count;
	}
	return (ssize_t)done;
}

int workspace_view_same_content(int a_fd, int b_fd, uint64_t size, uint64_t *budget)
{
	AUTO_FREE char *a = malloc(BLOCK), *b = malloc(BLOCK);
	uint64_t at = 0;

	if (!a || !b)
		return -ENOMEM;
	while (at < size) {
		ssize_t a_len, b_len;

		if (size >= HOLES_FROM) {
			uint64_t a_data = next_data(a_fd, at, size), b_data = next_data(b_fd, at, size);

			at = MIN_OF(a_data, b_data);
			if (at >= size)
				break;
		}
		if (*budget < BLOCK)
			return 0;
		*budget -= BLOCK;
		a_len = read_block(a_fd, a, (size_t)MIN_OF(size - at, (uint64_t)BLOCK), at);
		b_len = read_block(b_fd, b, (size_t)MIN_OF(size - at, (uint64_t)BLOCK), at);
		if (a_len < 0 || b_len < 0)
			return (int)MIN_OF(a_len, b_len);
		if (a_len != b_len || memcmp(a, b, (size_t)a_len) != 0)
			return 0;
		if (!a_len)
			break;
		at += (uint64_t)a_len;
	}
	return 1;
}
