/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer_places.c - the places that a command may write, and whether an object lies in one of them
 *
 * For a rung without mounts, where Landlock holds the places but does not govern everything in them. As Landlock does, this
 * goes by objects and not by names: an object lies in a place if the walk up from a directory that it has a name in comes
 * to the place. The command can move things about in its places only, so it cannot make anything outside come to lie in
 * one; and a name that another process changes meanwhile makes the walk fail, not succeed.
 *
 * The places are held open from before the command starts: a number that were free could be given to something else.
 */
#include "inside/answer/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/sys/calls.h"

/* Deeper than the longest path; a walk from further down, which takes its time, is refused. */
#define DEPTH_MAX 2048
/* Attempts, because other processes may rename the object during the look. */
#define TRIES_MAX 16
#define DELETED " (deleted)"

/* --- holding them ------------------------------------------------------------------------------------------- */

int answer_add_place(struct answer_places *places, const char *path, dev_t device, ino_t inode)
{
	AUTO_CLOSE int fd = sys_open(path, O_PATH);
	struct stat status;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (inode && (status.st_dev != device || status.st_ino != inode))
		return -ESTALE;
	places->items[places->count++] = (struct answer_place){status.st_dev, status.st_ino};
	take_fd(&fd); /* to stay open as long as this process lives */
	return 0;
}

/* In a child: what is loaded cannot be taken off again. */
int answer_try_listener(void)
{
	static const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(answer_listen(&allow, 1) < 0);
	}
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	return status ? -EBUSY : 0;
}

int answer_open_places(struct answer_places *places, size_t max)
{
	void *room = mmap(NULL, max * sizeof(struct answer_place) + 1, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return -ENOMEM;
	*places = (struct answer_places){.items = room};
	return 0;
}

/* --- looking ------------------------------------------------------------------------------------------------ */

static bool is_place(const struct answer_places *places, const struct stat *status)
{
	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].device == status->st_dev && places->items[i].inode == status->st_ino)
			return true;
	return false;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Whether the directory is a place, or lies in one. */
static bool is_beneath(const struct answer_places *places, int directory_fd)
{
	AUTO_CLOSE int fd = -1;
	struct stat status, above;

	if (fstat(directory_fd, &status) < 0)
		return false;
	for (int depth = 0; depth < DEPTH_MAX && !is_place(places, &status); depth++) {
		int next = openat(fd < 0 ? directory_fd : fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		close_fd(&fd);
		fd = next;
		/* The root is its own parent. */
		if (fd < 0 || fstat(fd, &above) < 0 || is_same(&above, &status))
			return false;
		status = above;
	}
	return is_place(places, &status);
}

enum location { LIES_OUTSIDE, LIES_INSIDE, HAS_MOVED };

/* @path is what the kernel calls the object; found there, it lies in the directory that is walked up from. */
static enum location locate(const struct answer_places *places, char *path, const struct stat *object)
{
	char *name = strrchr(path, '/') + 1;
	AUTO_CLOSE int directory_fd = -1;
	struct stat found;
	char first = *name;

	*name = '\0';
	directory_fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
				   SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
	*name = first;
	if (directory_fd < 0)
		return directory_fd == -EACCES ? LIES_OUTSIDE : HAS_MOVED;
	if (fstatat(directory_fd, name, &found, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 || !is_same(&found, object))
		return HAS_MOVED;
	return is_beneath(places, directory_fd) ? LIES_INSIDE : LIES_OUTSIDE;
}

/* Only its holders can reach a temporary file that never had a name, or has lost it. */
static bool is_nameless(const char *path, size_t len, const struct stat *object)
{
	size_t suffix = sizeof(DELETED) - 1;

	return object->st_nlink == 0 && len > suffix && !strcmp(path + len - suffix, DELETED);
}

bool answer_is_in_place(const struct answer_places *places, int fd, const struct stat *object)
{
	char link[64], path[PATH_MAX];

	/* A device is the host's, wherever its name is. */
	if (S_ISCHR(object->st_mode) || S_ISBLK(object->st_mode))
		return false;
	if (is_place(places, object))
		return true;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	for (int i = 0; i < TRIES_MAX; i++) {
		ssize_t len = readlink(link, path, sizeof(path) - 1);
		enum location location;

		/* An object without a path is a pipe or a socket, not a file. */
		if (len <= 1 || path[0] != '/')
			return false;
		path[len] = '\0';
		location = locate(places, path, object);
		if (location != HAS_MOVED)
			return location == LIES_INSIDE;
		if (is_nameless(path, (size_t)len, object))
			return true;
	}
	return false;
}
