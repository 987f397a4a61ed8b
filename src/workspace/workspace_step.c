/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_step.c - change one name of the workdir, whole or not at all, and lose no one's work
 *
 * A step makes the new file under a temporary name beside the target and exchanges the two. It removes the old file
 * only if that is the file that was compared before, and no process has it open to write. Else it exchanges them back.
 * So a program that saves the file at the same moment wins, whether it writes in place or renames over it: if it was
 * first, the step finds its file and restores it; if it was second, it replaced the new file.
 *
 * A lease tests whether a file is open to write, or mapped: the kernel refuses a lease then. Only the file's owner can
 * take one; without a lease, only the comparison protects.
 */
#include "workspace/workspace_step.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "base/sys/calls.h"

#define NOREPLACE 1U
#define EXCHANGE 2U
#define XATTR_LIST_MAX 65536
#define XATTR_LOOK 1024
#define SAVED_ATTEMPTS 100

static int rename_with(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	return syscall(SYS_renameat2, from_fd, from, to_fd, to, flags) < 0 ? -errno : 0;
}

/* --- directories -------------------------------------------------------------------------------------------------- */

static void directory_done(struct step_directory *directory)
{
	free(directory->path);
	directory->path = NULL;
	close_fd(&directory->fd);
}

/* The directory that @path is in, open; *@name_out is the last part. */
static int enter(struct step_directory *directory, int top_fd, const char *path, const char **name_out)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0, before;
	AUTO_FREE char *entered = NULL;
	int fd;

	*name_out = slash ? slash + 1 : path;
	if (directory->path && strlen(directory->path) == len && !memcmp(directory->path, path, len))
		return directory->fd;
	entered = strndup(path, len);
	if (!entered)
		return -ENOMEM;
	/* From the last one, if this one is in it: a deep tree is not walked from its top for each of its names. */
	before = directory->path ? strlen(directory->path) : 0;
	if (before && before < len && !memcmp(directory->path, entered, before) && entered[before] == '/')
		fd = workspace_view_open_directory(directory->fd, entered + before + 1);
	else
		fd = workspace_view_open_directory(top_fd, entered);
	directory_done(directory);
	if (fd < 0)
		return fd;
	directory->path = take_ptr(entered);
	directory->fd = fd;
	return fd;
}

static int enter_workdir(struct stepper *stepper, const char *path, const char **name_out)
{
	return enter(&stepper->workdir, workspace_view_workdir(stepper->view), path, name_out);
}

static int enter_layer(struct stepper *stepper, unsigned layer, const char *path, const char **name_out)
{
	if (stepper->layer_index != layer)
		directory_done(&stepper->layer);
	stepper->layer_index = layer;
	return enter(&stepper->layer, stepper->view->fds[layer], path, name_out);
}

/* --- what came out ------------------------------------------------------------------------------------------------ */

static bool is_side(const struct stat *status, const struct change_side *side)
{
	if (status->st_dev != side->device || status->st_ino != side->inode ||
	    (status->st_mode & S_IFMT) != (side->mode & S_IFMT))
		return false;
	/* Times and sizes of a directory tell of the names in it, which are looked at one by one. */
	return S_ISDIR(status->st_mode) ||
	       ((uint64_t)status->st_size == side->size && workspace_view_modified_ns(status) == side->mtime_ns);
}

static bool is_expected(int directory_fd, const char *name, const struct change_side *side)
{
	struct stat status;

	return fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && is_side(&status, side);
}

/* Remove the old file under the temporary name if it is unchanged and not open to write: -EAGAIN if not. */
static int drop(int directory_fd, const char *name, const struct change_side *side)
{
	AUTO_CLOSE int fd = -1;
	struct stat status;

	if (S_ISREG(side->mode)) {
		fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0 && fcntl(fd, F_SETLEASE, F_RDLCK) < 0 && errno == EAGAIN)
			return -EAGAIN;
		if (fd >= 0 && (fstat(fd, &status) < 0 || !is_side(&status, side)))
			return -EAGAIN;
	}
	if (!is_expected(directory_fd, name, side))
		return -EAGAIN;
	if (unlinkat(directory_fd, name, S_ISDIR(side->mode) ? AT_REMOVEDIR : 0) == 0)
		return 0;
	return errno == ENOTEMPTY || errno == EEXIST ? -EAGAIN : -errno;
}

/* Keep a file that has lost its place under a visible name. */
static void save_aside(struct stepper *stepper, int directory_fd, const char *temporary, const char *name)
{
	for (int i = 0; i < SAVED_ATTEMPTS; i++) {
		char saved[NAME_MAX + 32];

		snprintf(saved, sizeof(saved), "%.200s.belljar-saved-%d", name, i);
		if (rename_with(directory_fd, temporary, directory_fd, saved, NOREPLACE) == 0) {
			string_list_add_format(&stepper->saved, "%s/%s",
					       stepper->workdir.path ? stepper->workdir.path : "", saved);
			return;
		}
	}
}

/* --- undoing ------------------------------------------------------------------------------------------------------ */

/* What a step may have changed of the upper's own file before it took it. */
static void restore_file(struct stepper *stepper, const struct journal_record *record)
{
	const char *name;
	int upper = enter_layer(stepper, 0, record->upper_path, &name);
	AUTO_CLOSE int fd = upper < 0 ? -1 : openat(upper, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || status.st_ino != record->new_inode)
		return;
	if (record->is_copied_up)
		workspace_view_mark_copied_up(stepper->view, fd);
	if ((status.st_mode ^ record->new_mode) & 07777)
		fchmod(fd, record->new_mode & 07777);
}

/* What is new, and not used, goes back where it came from. */
static void give_back(struct stepper *stepper, int directory_fd, const struct journal_record *record)
{
	const char *name;
	struct stat status;

	if (record->is_moved) {
		int upper = enter_layer(stepper, 0, record->upper_path, &name);

		if (upper >= 0 && rename_with(directory_fd, record->temporary, upper, name, NOREPLACE) == 0) {
			restore_file(stepper, record);
			return;
		}
		/* It was moved, and its place is gone: never lose it. */
		save_aside(stepper, directory_fd, record->temporary,
			   strrchr(record->path, '/') ? strrchr(record->path, '/') + 1 : record->path);
		return;
	}
	if (fstatat(directory_fd, record->temporary, &status, AT_SYMLINK_NOFOLLOW) == 0)
		unlinkat(directory_fd, record->temporary, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
}

static bool has_inode(int directory_fd, const char *name, uint64_t inode)
{
	struct stat status;

	return fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_ino == inode;
}

/* The two have changed places, and what came out is not what was looked at: change back. Always -EAGAIN. */
static int change_back(struct stepper *stepper, int directory_fd, const char *name, const struct journal_record *record)
{
	int rc = rename_with(directory_fd, record->temporary, directory_fd, name, EXCHANGE);

	if (rc == -ENOENT && rename_with(directory_fd, record->temporary, directory_fd, name, NOREPLACE) == 0)
		return -EAGAIN; /* the target was removed meanwhile: theirs is back, ours went with it */
	if (rc == 0 && has_inode(directory_fd, record->temporary, record->new_inode)) {
		give_back(stepper, directory_fd, record);
		return -EAGAIN;
	}
	/* Saved twice while we looked: the later one belongs at the target, the earlier one aside. */
	if (rc == 0)
		rc = rename_with(directory_fd, record->temporary, directory_fd, name, EXCHANGE);
	save_aside(stepper, directory_fd, record->temporary, name);
	return -EAGAIN;
}

/* After the exchange: let what came out go, or undo. */
static int settle_exchange(struct stepper *stepper, int directory_fd, const char *name,
			   const struct journal_record *record)
{
	int rc = drop(directory_fd, record->temporary, &record->old);

	return rc == 0 ? 0 : change_back(stepper, directory_fd, name, record);
}

static int settle_remove(struct stepper *stepper, int directory_fd, const char *name,
			 const struct journal_record *record)
{
	int rc = drop(directory_fd, record->temporary, &record->old);

	if (rc == 0)
		return 0;
	if (rename_with(directory_fd, record->temporary, directory_fd, name, NOREPLACE) < 0)
		save_aside(stepper, directory_fd, record->temporary, name);
	return -EAGAIN;
}

/* Finish or undo the step of a process that was killed in it. */
static void recover(struct stepper *stepper, const struct journal_record *record)
{
	const char *name;
	int directory_fd = enter_workdir(stepper, record->path, &name);
	struct stat status;

	if (directory_fd < 0 || fstatat(directory_fd, record->temporary, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		if (record->is_moved)
			restore_file(stepper, record);
		return;
	}
	if (record->kind == JOURNAL_REMOVE)
		settle_remove(stepper, directory_fd, name, record);
	else if (record->kind == JOURNAL_EXCHANGE && record->new_inode && status.st_ino != record->new_inode)
		settle_exchange(stepper, directory_fd, name, record);
	else
		give_back(stepper, directory_fd, record);
}

/* --- making what is new ------------------------------------------------------------------------------------------- */

int workspace_step_copy_data(int from, int to, uint64_t size, uint64_t *copied)
{
	off_t at = 0;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	if (ftruncate(to, (off_t)size) < 0)
		return -errno;
	while ((uint64_t)at < size) {
		off_t data = lseek(from, at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0)
			data = at;
		hole = lseek(from, data, SEEK_HOLE);
		if (hole < 0)
			hole = (off_t)size;
		for (at = data; at < hole;) {
			off_t in = at, out = at;
			ssize_t count = copy_file_range(from, &in, to, &out, (size_t)MIN_OF(hole - at, 1 << 30), 0);

			if (count < 0 &&
			    (errno == EXDEV || errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS)) {
				char block[65536];

				count = pread(from, block, (size_t)MIN_OF(hole - at, (off_t)sizeof(block)), at);
				if (count > 0)
					count = pwrite(to, block, (size_t)count, at);
			}
			if (count < 0)
				return -errno;
			if (!count)
				return 0;
			at += count;
			*copied += (uint64_t)count;
		}
	}
	return 0;
}

/* A file that replaces another belongs to whom that belonged, where we may say so. */
static void keep_owner(int fd, const struct change *change)
{
	struct stat status;

	if (!change->before.mode || fstat(fd, &status) < 0 ||
	    (status.st_uid == change->before.uid && status.st_gid == change->before.gid))
		return;
	if (fchown(fd, change->before.uid, change->before.gid) < 0 && fchown(fd, (uid_t)-1, change->before.gid) < 0)
		return;
}

static int copy_file(struct stepper *stepper, int source, int directory_fd, const struct change *change)
{
	AUTO_CLOSE int to =
		openat(directory_fd, stepper->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_NOW},
		{.tv_sec = change->after.mtime_ns / 1000000000, .tv_nsec = change->after.mtime_ns % 1000000000},
	};
	struct stat status;
	int rc;

	if (to < 0)
		return -errno;
	if (fstat(source, &status) < 0 || !S_ISREG(status.st_mode))
		return -EBADMSG;
	rc = workspace_step_copy_data(source, to, (uint64_t)status.st_size, &stepper->copied_bytes);
	if (rc == 0)
		rc = workspace_view_copy_xattrs(source, to);
	if (rc < 0)
		return rc;
	keep_owner(to, change);
	if (fchmod(to, change->after.mode & 07777) < 0 || futimens(to, times) < 0)
		return -errno;
	return 0;
}

/* Overlay's own marks, and a capability that a file might bring along. */
static bool stays_behind(const char *xattr)
{
	return !strncmp(xattr, "user.overlay.", 13) || !strncmp(xattr, "trusted.overlay.", 16) ||
	       !strcmp(xattr, "security.capability");
}

static int strip_xattrs(int fd)
{
	AUTO_FREE char *names = malloc(XATTR_LIST_MAX);
	ssize_t len = names ? flistxattr(fd, names, XATTR_LIST_MAX) : -1;

	if (len < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
		if (stays_behind(names + at) && fremovexattr(fd, names + at) < 0 && errno != ENODATA)
			return -errno;
	return 0;
}

/* Is there nothing to take off it? What cannot be seen in one look counts as something. */
static bool is_bare(int directory_fd, const char *name)
{
	char path[NAME_MAX + 64], names[XATTR_LOOK];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", directory_fd, name);
	len = llistxattr(path, names, sizeof(names));
	if (len < 0)
		return errno == EOPNOTSUPP;
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
		if (stays_behind(names + at))
			return false;
	return true;
}

/* Take the upper's own file. -EXDEV and the like: it has to be copied. */
static int move_file(int source, int upper, const char *upper_name, int directory_fd, const char *temporary,
		     const struct change *change)
{
	int rc = strip_xattrs(source);

	if (rc == 0)
		rc = rename_with(upper, upper_name, directory_fd, temporary, NOREPLACE);
	if (rc < 0)
		return rc;
	keep_owner(source, change);
	/* Changing the owner takes set-id bits away, which were allowed by now. */
	return fchmod(source, change->after.mode & 07777) < 0 ? -errno : 0;
}

static int make_link_like(int source_fd, const char *name, int directory_fd, const char *temporary)
{
	char text[WORKSPACE_LINK_MAX + 1];
	ssize_t len = readlinkat(source_fd, name, text, sizeof(text) - 1);

	if (len < 0)
		return -errno;
	text[len] = '\0';
	return symlinkat(text, directory_fd, temporary) < 0 ? -errno : 0;
}

static int make_directory_like(int source_fd, const char *name, int directory_fd, const char *temporary, mode_t mode)
{
	AUTO_CLOSE int from = openat(source_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int to = -1;

	/* Until all is in it, its owner may write to it. */
	if (mkdirat(directory_fd, temporary, 0700) < 0)
		return -errno;
	to = openat(directory_fd, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0 || fchmod(to, (mode & 07777) | 0700) < 0)
		return -errno;
	return from < 0 ? 0 : workspace_view_copy_xattrs(from, to);
}

static bool can_move(const struct stepper *stepper, const struct change *change)
{
	return stepper->may_move && change->layer == 0 && !change->layer_path && change->after.link_count == 1 &&
	       !(change->flags & CHANGE_IS_HIDING) && change->after.device == stepper->view->workdir_device;
}

/*
 * A file of a layer, to be copied or moved. Its mode may keep even its owner from reading it, and then its owner may
 * read it for a moment. Not where a jar has the layer, or several workspaces: nothing of theirs is changed.
 */
static int open_source(const struct stepper *stepper, const struct change *change, int directory_fd, const char *name)
{
	int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_CLOSE int handle = -1;
	struct stat status;
	char path[64];

	if (fd >= 0)
		return fd;
	if (errno != EACCES || !stepper->is_free || change->layer != 0)
		return -errno;
	handle = openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (handle < 0 || fstat(handle, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_ino != change->after.inode)
		return -EBADMSG;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	if (chmod(path, (status.st_mode & 07777) | 0400) < 0)
		return -errno;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	chmod(path, status.st_mode & 07777);
	return fd;
}

static int make_file(struct stepper *stepper, const struct change *change, int source_fd, const char *source_name,
		     int directory_fd, struct journal_record *record)
{
	AUTO_CLOSE int source = open_source(stepper, change, source_fd, source_name);
	int rc;

	if (source < 0)
		return source;
	if (record->is_moved) {
		rc = move_file(source, source_fd, source_name, directory_fd, stepper->temporary, change);
		/* Another file system, or a directory of the layer that may not be written to. */
		if (rc != -EXDEV && rc != -EINVAL && rc != -EACCES && rc != -EPERM)
			return rc;
		record->is_moved = false;
		record->new_inode = 0;
		rc = workspace_journal_write(stepper->journal_fd, record);
		if (rc < 0)
			return rc;
	}
	return copy_file(stepper, source, directory_fd, change);
}

/* The new one, whole, under the temporary name. */
static int make_new(struct stepper *stepper, const struct change *change, int directory_fd,
		    struct journal_record *record)
{
	const char *name, *temporary = stepper->temporary;
	int source_fd = enter_layer(stepper, change->layer, workspace_change_layer_path(change), &name);
	mode_t mode = change->after.mode;

	if (source_fd < 0)
		return source_fd;
	if (S_ISREG(mode))
		return make_file(stepper, change, source_fd, name, directory_fd, record);
	if (S_ISLNK(mode))
		return make_link_like(source_fd, name, directory_fd, temporary);
	if (S_ISDIR(mode))
		return make_directory_like(source_fd, name, directory_fd, temporary, mode);
	/* Named by the user, one by one: neither is opened, only made. */
	if (S_ISFIFO(mode) || S_ISSOCK(mode))
		return mknodat(directory_fd, temporary, mode, 0) < 0 ? -errno : 0;
	return -EPERM;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static void fill_record(struct stepper *stepper, const struct change *change, enum journal_kind kind,
			struct journal_record *record)
{
	*record = (struct journal_record){
		.kind = kind,
		.old = change->before,
		.path = change->path,
		.upper_path = change->path,
	};
	memcpy(record->temporary, stepper->temporary, sizeof(record->temporary));
}

/* It stands under the temporary name: into its place with it. */
static int place(struct stepper *stepper, int directory_fd, const char *name, struct journal_record *record)
{
	struct stat status;
	int rc = fstatat(directory_fd, record->temporary, &status, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;

	if (rc == 0 && record->new_inode != status.st_ino) {
		record->new_inode = status.st_ino;
		rc = workspace_journal_write(stepper->journal_fd, record);
	}
	if (rc == 0 && record->kind == JOURNAL_NEW)
		rc = rename_with(directory_fd, record->temporary, directory_fd, name, NOREPLACE);
	else if (rc == 0)
		rc = rename_with(directory_fd, record->temporary, directory_fd, name, EXCHANGE);
	if (rc < 0) {
		give_back(stepper, directory_fd, record);
		return rc == -EEXIST || rc == -ENOENT ? -EAGAIN : rc;
	}
	return record->kind == JOURNAL_NEW ? 0 : settle_exchange(stepper, directory_fd, name, record);
}

/*
 * A new file of the upper that is to be as it is goes into its place at once. There is no state in between, so no
 * record, and twenty thousand of them take two system calls each. 1: it has to go the long way.
 */
static int move_straight(struct stepper *stepper, const struct change *change, int directory_fd, const char *name)
{
	const char *source_name;
	int source_fd, rc;

	if (change->before.mode || !S_ISREG(change->after.mode) || !can_move(stepper, change))
		return 1;
	source_fd = enter_layer(stepper, 0, change->path, &source_name);
	if (source_fd < 0 || !is_bare(source_fd, source_name))
		return 1;
	rc = rename_with(source_fd, source_name, directory_fd, name, NOREPLACE);
	if (rc == -EXDEV || rc == -EINVAL || rc == -EACCES || rc == -EPERM)
		return 1;
	stepper->is_gone = rc == 0;
	return rc == -EEXIST ? -EAGAIN : rc;
}

static int put(struct stepper *stepper, const struct change *change, const char *linked_path, ino_t linked_inode)
{
	struct journal_record record;
	const char *name, *linked_name;
	int directory_fd = enter_workdir(stepper, change->path, &name), rc;
	struct stat status;
	bool is_there;

	if (directory_fd < 0)
		return directory_fd;
	if (!linked_path) {
		rc = move_straight(stepper, change, directory_fd, name);
		if (rc <= 0)
			return rc;
	}
	is_there = fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
	if (change->before.mode ? !is_there || !is_side(&status, &change->before) : is_there)
		return -EAGAIN;
	fill_record(stepper, change, is_there ? JOURNAL_EXCHANGE : JOURNAL_NEW, &record);
	record.is_moved = !linked_path && S_ISREG(change->after.mode) && can_move(stepper, change);
	record.new_inode = record.is_moved ? change->after.inode : 0;
	record.new_mode = change->after.mode;
	record.is_copied_up = record.is_moved && (is_there || change->flags & CHANGE_IS_COPIED_UP);
	rc = workspace_journal_write(stepper->journal_fd, &record);
	if (rc < 0)
		return rc;
	if (linked_path) {
		AUTO_CLOSE int linked_fd =
			workspace_view_open_parent(workspace_view_workdir(stepper->view), linked_path, &linked_name);

		if (linked_fd < 0 || !has_inode(linked_fd, linked_name, linked_inode))
			return -ESTALE;
		rc = linkat(linked_fd, linked_name, directory_fd, stepper->temporary, 0) < 0 ? -errno : 0;
		if (rc == 0 && !has_inode(directory_fd, stepper->temporary, linked_inode))
			rc = -ESTALE;
	} else {
		rc = make_new(stepper, change, directory_fd, &record);
	}
	if (rc < 0) {
		give_back(stepper, directory_fd, &record);
		return rc;
	}
	return place(stepper, directory_fd, name, &record);
}

int workspace_step_put(struct stepper *stepper, const struct change *change)
{
	return put(stepper, change, NULL, 0);
}

int workspace_step_link(struct stepper *stepper, const struct change *change, const char *linked_path, ino_t inode)
{
	return put(stepper, change, linked_path, inode);
}

int workspace_step_remove(struct stepper *stepper, const struct change *change)
{
	struct journal_record record;
	const char *name;
	int directory_fd = enter_workdir(stepper, change->path, &name), rc;

	if (directory_fd < 0)
		return directory_fd == -ENOENT || directory_fd == -ENOTDIR ? 0 : directory_fd;
	if (S_ISDIR(change->before.mode)) {
		if (unlinkat(directory_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		return errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR ? -EAGAIN : -errno;
	}
	if (!is_expected(directory_fd, name, &change->before))
		return faccessat(directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT ? 0 : -EAGAIN;
	fill_record(stepper, change, JOURNAL_REMOVE, &record);
	rc = workspace_journal_write(stepper->journal_fd, &record);
	if (rc == 0)
		rc = rename_with(directory_fd, name, directory_fd, stepper->temporary, NOREPLACE);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	return settle_remove(stepper, directory_fd, name, &record);
}

int workspace_step_set_mode(struct stepper *stepper, const struct change *change)
{
	const char *name = ".", *source_name;
	bool is_top = !strcmp(change->path, ".");
	int directory_fd = is_top ? workspace_view_workdir(stepper->view) : enter_workdir(stepper, change->path, &name);
	AUTO_CLOSE int fd = -1;
	struct stat status;
	char path[64];

	if (directory_fd < 0)
		return directory_fd;
	/* A descriptor that opens nothing needs no permission to read. */
	fd = openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) < 0 || (status.st_mode & S_IFMT) != (change->after.mode & S_IFMT))
		return -EAGAIN;
	/* Another file is there now, which was not compared. */
	if (change->kind == CHANGE_MODE &&
	    (status.st_ino != change->before.inode || status.st_dev != change->before.device))
		return -EAGAIN;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (change->flags & CHANGE_HAS_XATTRS) {
		int source_fd = enter_layer(stepper, change->layer, workspace_change_layer_path(change), &source_name);
		AUTO_CLOSE int source =
			source_fd < 0 ? -1
				      : openat(source_fd, source_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		AUTO_CLOSE int to = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		int rc = source < 0 || to < 0 ? -errno : workspace_view_replace_xattrs(source, to);

		if (rc < 0)
			return rc;
	}
	return chmod(path, change->after.mode & 07777) < 0 ? -errno : 0;
}

void workspace_step_forget(struct stepper *stepper, const struct change *change)
{
	const char *name;
	int upper;

	if (stepper->is_gone) {
		stepper->is_gone = false;
		return;
	}
	/* Other layers are frozen, and the workdir's own mode is no file of the upper's. */
	if (!stepper->may_move || change->layer != 0 || change->layer_path || !strcmp(change->path, "."))
		return;
	if (change->flags & CHANGE_IS_HIDING)
		return;
	/* A directory that both have may hide some of the workdir's: its mark must not be lost. */
	if (S_ISDIR(change->after.mode) && change->kind == CHANGE_MODE)
		return;
	upper = enter_layer(stepper, 0, change->path, &name);
	/* A directory that still has something in it stays: the same on both sides is no change. */
	if (upper >= 0)
		unlinkat(upper, name, S_ISDIR(change->after.mode) ? AT_REMOVEDIR : 0);
}

int workspace_step_unhide(struct stepper *stepper, const struct change *change)
{
	AUTO_CLOSE int fd = -1;

	if (!stepper->may_move || change->layer != 0 || change->layer_path || change->flags & CHANGE_IS_HIDING)
		return 0;
	if (!(change->after.mode & 0200))
		return 0; /* the walk took it for one that hides */
	fd = workspace_view_open_directory(stepper->view->fds[0], change->path);
	return fd < 0 ? fd : workspace_view_clear_opaque(stepper->view, fd);
}

/* --- begin and end ------------------------------------------------------------------------------------------------ */

int workspace_step_begin(struct stepper *stepper, const struct workspace_view *view, const struct workspace *workspace,
			 bool may_move, struct error *error)
{
	struct journal_record record = {0};
	uint64_t random;
	int rc;

	*stepper = (struct stepper){
		.view = view,
		/* Above a frozen layer, what leaves the upper would show what the layer has. */
		.may_move = may_move && view->kind == WORKSPACE_OVERLAY && view->layer_count == 1,
		.is_free = may_move,
		.workdir.fd = -1,
		.layer.fd = -1,
	};
	/* The kernel sends it when a process opens a file with our lease; the default would end this process. */
	sigaction(SIGIO, &(struct sigaction){.sa_handler = SIG_IGN}, &stepper->before);
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = sys_monotonic_ns();
	snprintf(stepper->temporary, sizeof(stepper->temporary), ".belljar-apply-%016llx", (unsigned long long)random);
	stepper->journal_fd = openat(workspace->fd, WORKSPACE_JOURNAL, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (stepper->journal_fd < 0)
		return error_set(error, STAGE_FILES, errno, "cannot open the journal of the workspace '%s': %s",
				 workspace->meta.id, strerror(errno));
	rc = workspace_journal_read(stepper->journal_fd, &record);
	if (rc == 0)
		recover(stepper, &record);
	else if (rc != -ENODATA)
		rc = error_set(error, STAGE_FILES, -rc, "the journal of the workspace '%s' is damaged",
			       workspace->meta.id);
	workspace_journal_record_done(&record);
	return rc == -ENODATA ? 0 : rc;
}

void workspace_step_end(struct stepper *stepper, const struct workspace *workspace)
{
	directory_done(&stepper->workdir);
	directory_done(&stepper->layer);
	close_fd(&stepper->journal_fd);
	string_list_done(&stepper->saved);
	sigaction(SIGIO, &stepper->before, NULL);
	unlinkat(workspace->fd, WORKSPACE_JOURNAL, 0);
}
