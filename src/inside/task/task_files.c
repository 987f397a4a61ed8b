/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/task/task_files.c - open, look at, make, remove and rename files behind the jar's walls
 *
 * A task follows links on the way to a file as a command would, never out of the jar. It does not follow the last
 * component to write, remove or rename. It never follows magic links of /proc and opens nothing in /proc: that would
 * show this process, not the jar. To make or remove a name, a task opens the directory first and then uses single
 * names in it. So a command that swaps directories meanwhile gains nothing that it could not do itself.
 */
#include "inside/task/task_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/sys/calls.h"

#define MAGIC_PROC 0x9fa0
#define PARENT_MODE 0755
#define WATCHED                                                                                                        \
	(IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO |                \
	 IN_DELETE_SELF | IN_MOVE_SELF)
#define NANOSECONDS 1000000000LL

static int open_path(const char *path, uint64_t flags, mode_t mode)
{
	AUTO_CLOSE int fd = sys_openat2(AT_FDCWD, path, flags | O_CLOEXEC, mode, SYS_RESOLVE_NO_MAGICLINKS);
	struct statfs system;

	if (fd < 0)
		return take_fd(&fd);
	if (fstatfs(fd, &system) < 0)
		return -errno;
	return system.f_type == MAGIC_PROC ? -EACCES : take_fd(&fd);
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/*
 * The directory that the last component of @path is in, and that component, in @buffer. -EINVAL: it has none of its own, as
 * "/" and "a/..".
 */
static int open_parent(const char *path, char buffer[TASK_PATH_MAX], const char **name)
{
	size_t len = strlen(path);
	char *slash;

	if (!len)
		return -ENOENT;
	memcpy(buffer, path, len + 1);
	while (len > 1 && buffer[len - 1] == '/')
		buffer[--len] = '\0';
	slash = strrchr(buffer, '/');
	*name = slash ? slash + 1 : buffer;
	if (!**name || is_dots(*name))
		return -EINVAL;
	if (slash)
		*slash = '\0';
	return open_path(!slash ? "." : slash == buffer ? "/" : buffer, O_PATH | O_DIRECTORY, 0);
}

/* --- making -------------------------------------------------------------------------------------------------- */

static int make_one(const char *path, mode_t mode)
{
	char buffer[TASK_PATH_MAX];
	const char *name;
	AUTO_CLOSE int parent = open_parent(path, buffer, &name);

	if (parent < 0)
		return take_fd(&parent);
	return mkdirat(parent, name, mode) < 0 ? -errno : 0;
}

static int make_parents(const char *path)
{
	char prefix[TASK_PATH_MAX];

	memcpy(prefix, path, strlen(path) + 1);
	for (char *at = prefix; (at = strchr(at, '/')) && at[strspn(at, "/")]; at++) {
		int rc = 0;

		*at = '\0';
		if (at > prefix && at[-1] != '/')
			rc = make_one(prefix, PARENT_MODE);
		*at = '/';
		/* The next component fails if this is not a directory; "." and ".." exist. */
		if (rc < 0 && rc != -EEXIST && rc != -EINVAL)
			return rc;
	}
	return 0;
}

int task_make_directory(const struct task *task, struct task_answer *answer)
{
	bool is_there_fine = task->order.flags & TASK_PARENTS;
	int rc = is_there_fine ? make_parents(task->path) : 0;

	(void)answer;
	if (rc == 0)
		rc = make_one(task->path, task->order.number & 07777);
	if (rc == -EINVAL)
		rc = -EEXIST;
	if (rc == -EEXIST && is_there_fine) {
		AUTO_CLOSE int fd = open_path(task->path, O_PATH | O_DIRECTORY, 0);

		rc = fd >= 0 ? 0 : fd == -ENOTDIR ? -EEXIST : fd;
	}
	return rc;
}

/* --- opening ------------------------------------------------------------------------------------------------- */

static const struct {
	uint64_t flags;
	mode_t type;
} accesses[] = {
	[TASK_READ] = {O_RDONLY, S_IFREG},
	[TASK_WRITE] = {O_WRONLY | O_CREAT | O_NOFOLLOW, S_IFREG},
	[TASK_LIST] = {O_RDONLY | O_DIRECTORY | O_NOFOLLOW, S_IFDIR},
};

/* Never block: open a FIFO or a device without waiting, then refuse it by its type. */
int task_open(const struct task *task, struct task_answer *answer)
{
	uint32_t operation = task->order.operation;
	uint64_t flags = accesses[operation].flags;
	AUTO_CLOSE int fd = -1;
	struct stat status;
	int rc = operation == TASK_WRITE && task->order.flags & TASK_PARENTS ? make_parents(task->path) : 0;

	if (rc < 0)
		return rc;
	fd = open_path(task->path, flags | O_NONBLOCK | O_NOCTTY, flags & O_CREAT ? task->order.number & 07777 : 0);
	if (fd < 0)
		return take_fd(&fd);
	if (fstat(fd, &status) < 0)
		return -errno;
	if ((status.st_mode & S_IFMT) != accesses[operation].type)
		return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
	if (operation == TASK_WRITE && ftruncate(fd, 0) < 0)
		return -errno;
	answer->fd = take_fd(&fd);
	return 0;
}

/* Landlock restricts opening a file, not watching it: so open it first. */
int task_watch(const struct task *task, struct task_answer *answer)
{
	AUTO_CLOSE int fd = open_path(task->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	AUTO_CLOSE int watch = -1;
	char name[32];
	struct stat status;

	if (fd < 0)
		return take_fd(&fd);
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
		return -EINVAL;
	watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch < 0)
		return -errno;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (inotify_add_watch(watch, name, WATCHED) < 0)
		return -errno;
	answer->fd = take_fd(&watch);
	return 0;
}

int task_stat(const struct task *task, struct task_answer *answer)
{
	uint64_t follow = task->order.flags & TASK_FOLLOW ? 0 : O_NOFOLLOW;
	AUTO_CLOSE int fd = open_path(task->path, O_PATH | follow, 0);
	struct stat status;

	if (fd < 0)
		return take_fd(&fd);
	if (fstat(fd, &status) < 0)
		return -errno;
	answer->done.task_done.mode = status.st_mode;
	answer->done.task_done.size = (uint64_t)status.st_size;
	answer->done.task_done.modified_ns = status.st_mtim.tv_sec * NANOSECONDS + status.st_mtim.tv_nsec;
	return 0;
}

/* --- removing and renaming ----------------------------------------------------------------------------------- */

int task_remove(const struct task *task, struct task_answer *answer)
{
	char buffer[TASK_PATH_MAX];
	const char *name;
	AUTO_CLOSE int parent = open_parent(task->path, buffer, &name);
	int rc = 0;

	(void)answer;
	if (parent < 0)
		return take_fd(&parent);
	if (unlinkat(parent, name, 0) < 0)
		rc = -errno;
	if (rc == -EISDIR && task->order.flags & TASK_RECURSIVE)
		rc = task_remove_tree(parent, name, task->reply_fd);
	else if (rc == -EISDIR)
		rc = unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
	return rc;
}

int task_rename(const struct task *task, struct task_answer *answer)
{
	char from_buffer[TASK_PATH_MAX], to_buffer[TASK_PATH_MAX];
	const char *from_name, *to_name;
	AUTO_CLOSE int from = open_parent(task->path, from_buffer, &from_name);
	AUTO_CLOSE int to = -1;

	(void)answer;
	if (from < 0)
		return take_fd(&from);
	to = open_parent(task->to, to_buffer, &to_name);
	if (to < 0)
		return take_fd(&to);
	return renameat(from, from_name, to, to_name) < 0 ? -errno : 0;
}
