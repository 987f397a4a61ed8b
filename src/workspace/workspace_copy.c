/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_copy.c - copy a directory whole, if it is not too much
 *
 * It is counted first, so that nothing is copied in vain. Everything is reached by descriptor, from the top, and no
 * link is followed: the directory may be an earlier command's work. Blocks are shared where the file system can.
 *
 * Longer than most files because it knows every kind of file.
 */
#include "workspace/workspace_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/directory.h"
#include "base/list.h"
#include "workspace/workspace_step.h"

#define ENTRY_BYTES 8192
#define DEPTH_MAX 256
#define NAMES_MAX 65536
#define VALUE_MAX 65536
/* Counting ends here: a number for the message, not the work of an hour. */
#define COUNT_MAX 200000

/* A file that has more than one name, and its first one in the copy, from the top. */
struct linked {
	dev_t device;
	ino_t inode;
	char *path;
};

LIST_TYPE(struct linked, linked_list);

struct copy {
	uint64_t entries, bytes;
	struct linked_list linked;
	int top_fd;       /* of the copy */
	struct text path; /* of the directory that is being copied, with a slash at its end; nothing for the top */
	char names[NAMES_MAX], value[VALUE_MAX];
	bool is_root;
};

static uint64_t stored_bytes(const struct stat *status)
{
	return S_ISREG(status->st_mode) ? MIN_OF((uint64_t)status->st_size, (uint64_t)status->st_blocks * 512) : 0;
}

/* --- counting ----------------------------------------------------------------------------------------------- */

static int count(struct copy *copy, int directory_fd, int depth)
{
	_Alignas(struct directory_entry) char entries[ENTRY_BYTES];
	struct directory list = {.fd = directory_fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;
	int rc = depth > DEPTH_MAX ? -ENAMETOOLONG : 0;

	while (rc == 0 && copy->entries < COUNT_MAX && (entry = directory_next(&list))) {
		AUTO_CLOSE int fd = -1;
		struct stat status;

		copy->entries++;
		if (fstatat(directory_fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		copy->bytes += stored_bytes(&status);
		if (!S_ISDIR(status.st_mode))
			continue;
		fd = openat(directory_fd, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		rc = fd < 0 ? -errno : count(copy, fd, depth + 1);
	}
	return rc;
}

static int refuse(const struct copy *copy, const char *directory, struct error *error)
{
	error_set(error, STAGE_FILES, EFBIG,
		  "'%s' is too large to be copied: %s%" PRIu64 " entries and %" PRIu64 " MB; %d and %d are the limits",
		  directory, copy->entries >= COUNT_MAX ? "more than " : "", copy->entries, copy->bytes >> 20,
		  WORKSPACE_COPY_ENTRIES_MAX, (int)(WORKSPACE_COPY_BYTES_MAX >> 20));
	return error_hint(error,
			  "a layer takes no copy: `belljar doctor` says what this host lacks; or run without --cow");
}

/* --- copying ------------------------------------------------------------------------------------------------ */

static int copy_tree(struct copy *copy, int from, int to, int depth);

/* Attributes of the system's and of a layer's own stay behind. */
static void copy_attributes(struct copy *copy, int from, int to)
{
	ssize_t len = flistxattr(from, copy->names, sizeof(copy->names));

	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(copy->names + at) + 1) {
		const char *name = copy->names + at;
		ssize_t size;

		if (strncmp(name, "user.", 5) != 0 || !strncmp(name, "user.overlay.", 13))
			continue;
		size = fgetxattr(from, name, copy->value, sizeof(copy->value));
		if (size >= 0)
			fsetxattr(to, name, copy->value, (size_t)size, 0);
	}
}

/* Owner first: it takes set-id bits away. Times last: everything else changes them. */
static int finish(struct copy *copy, int from, int to, const struct stat *status)
{
	const struct timespec times[2] = {status->st_atim, status->st_mtim};

	if (copy->is_root && fchown(to, status->st_uid, status->st_gid) < 0)
		return -errno;
	copy_attributes(copy, from, to);
	if (fchmod(to, status->st_mode & 07777) < 0 || futimens(to, times) < 0)
		return -errno;
	return 0;
}

static const struct linked *find_linked(const struct copy *copy, const struct stat *status)
{
	for (size_t i = 0; i < copy->linked.count; i++)
		if (copy->linked.items[i].inode == status->st_ino && copy->linked.items[i].device == status->st_dev)
			return &copy->linked.items[i];
	return NULL;
}

static int remember_linked(struct copy *copy, const struct stat *status, const char *name)
{
	struct linked *linked = list_add(&copy->linked);

	if (!linked)
		return -ENOMEM;
	*linked = (struct linked){.device = status->st_dev, .inode = status->st_ino};
	if (asprintf(&linked->path, "%s%s", text_string(&copy->path), name) < 0)
		linked->path = NULL;
	return linked->path ? 0 : -ENOMEM;
}

static int copy_file(struct copy *copy, int from_directory, int to_directory, const char *name)
{
	AUTO_CLOSE int from = openat(from_directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_CLOSE int to = -1;
	const struct linked *first;
	uint64_t copied = 0;
	struct stat status;
	int rc;

	if (from < 0 || fstat(from, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return 0;
	first = status.st_nlink > 1 ? find_linked(copy, &status) : NULL;
	if (first)
		return linkat(copy->top_fd, first->path, to_directory, name, 0) < 0 ? -errno : 0;
	/* The file may have grown since it was counted. */
	copy->bytes += stored_bytes(&status);
	if (copy->bytes > WORKSPACE_COPY_BYTES_MAX)
		return -EFBIG;
	to = openat(to_directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	rc = workspace_step_copy_data(from, to, (uint64_t)status.st_size, &copied);
	if (rc == 0)
		rc = finish(copy, from, to, &status);
	if (rc == 0 && status.st_nlink > 1)
		rc = remember_linked(copy, &status, name);
	return rc;
}

static int copy_directory(struct copy *copy, int from_directory, int to_directory, const char *name, int depth)
{
	AUTO_CLOSE int from = openat(from_directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int to = -1;
	size_t len = copy->path.len;
	struct stat status;
	int rc;

	if (from < 0 || fstat(from, &status) < 0 || mkdirat(to_directory, name, 0700) < 0)
		return -errno;
	to = openat(to_directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	text_append_format(&copy->path, "%s/", name);
	rc = to < 0 ? -errno : text_failed(&copy->path) ? -ENOMEM : copy_tree(copy, from, to, depth + 1);
	if (!text_failed(&copy->path))
		copy->path.data[copy->path.len = len] = '\0';
	return rc == 0 ? finish(copy, from, to, &status) : rc;
}

static int copy_link(struct copy *copy, int from_directory, int to_directory, const char *name,
		     const struct stat *status)
{
	const struct timespec times[2] = {status->st_atim, status->st_mtim};
	ssize_t len = readlinkat(from_directory, name, copy->value, sizeof(copy->value) - 1);

	if (len < 0)
		return -errno;
	copy->value[len] = '\0';
	if (symlinkat(copy->value, to_directory, name) < 0)
		return -errno;
	if (copy->is_root && fchownat(to_directory, name, status->st_uid, status->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	utimensat(to_directory, name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

static int copy_entry(struct copy *copy, int from, int to, const char *name, int depth)
{
	struct stat status;

	if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno; /* another process removed it just now */
	if (++copy->entries > WORKSPACE_COPY_ENTRIES_MAX)
		return -EFBIG;
	switch (status.st_mode & S_IFMT) {
	case S_IFREG:
		return copy_file(copy, from, to, name);
	case S_IFDIR:
		return copy_directory(copy, from, to, name, depth);
	case S_IFLNK:
		return copy_link(copy, from, to, name, &status);
	case S_IFIFO:
		return mkfifoat(to, name, status.st_mode & 0777) < 0 ? -errno : 0;
	default:
		return 0;
	}
}

static int copy_tree(struct copy *copy, int from, int to, int depth)
{
	_Alignas(struct directory_entry) char entries[ENTRY_BYTES];
	struct directory list = {.fd = from, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;
	int rc = depth > DEPTH_MAX ? -ENAMETOOLONG : 0;

	while (rc == 0 && (entry = directory_next(&list)))
		rc = copy_entry(copy, from, to, entry->name, depth);
	return rc;
}

static void copy_free(struct copy *copy)
{
	for (size_t i = 0; i < copy->linked.count; i++)
		free(copy->linked.items[i].path);
	free(copy->linked.items);
	text_done(&copy->path);
	free(copy);
}

int workspace_copy(struct workspace *workspace, int directory_fd, struct error *error)
{
	AUTO_CLOSE int from = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct copy *copy = calloc(1, sizeof(*copy));
	int rc;

	if (!copy)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	copy->is_root = geteuid() == 0;
	copy->top_fd = workspace->upper_fd;
	rc = from < 0 ? -errno : count(copy, from, 0);
	if (rc == 0 && (copy->entries > WORKSPACE_COPY_ENTRIES_MAX || copy->bytes > WORKSPACE_COPY_BYTES_MAX)) {
		rc = refuse(copy, workspace->meta.workdir, error);
	} else if (rc == 0) {
		copy->entries = copy->bytes = 0;
		if (lseek(from, 0, SEEK_SET) < 0)
			rc = -errno;
		if (rc == 0)
			rc = copy_tree(copy, from, workspace->upper_fd, 0);
	}
	if (rc < 0)
		error_set(error, STAGE_FILES, -rc, "cannot copy '%s': %s", workspace->meta.workdir, strerror(-rc));
	copy_free(copy);
	return rc;
}
