/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/task/task_remove.c - remove a directory and all in it, however deep, while other processes change it
 *
 * One directory is open at a time, so that the depth costs no descriptors. The way up is "..", taken only if it leads to the
 * directory that the way down came from. If a process moves a directory away meanwhile, the removal stops and touches
 * nothing outside the tree. It removes links and never follows them.
 */
#include "inside/task/task_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/directory.h"

#define DEPTH_MAX 16384
#define LIST_BYTES 32768
/* A command may make files as fast as this removes them, so stop here. */
#define ENTRIES_MAX 10000000UL
/* Entries between two checks whether the requester still waits. */
#define LOOK_ENTRIES 256

struct place {
	dev_t device;
	ino_t inode;
};

struct removal {
	int fd; /* the directory that is being emptied */
	int reply_fd;
	unsigned long entry_count;
	size_t depth;
	struct place above[DEPTH_MAX];
};

static int place_of(int fd, struct place *out)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	*out = (struct place){status.st_dev, status.st_ino};
	return 0;
}

static int open_directory(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static bool is_awaited(const struct removal *removal)
{
	struct pollfd other = {.fd = removal->reply_fd};

	return poll(&other, 1, 0) <= 0;
}

/* 0: it is gone; 1: it is a directory with something in it; a negative errno. */
static int remove_entry(struct removal *removal, const char *name)
{
	int rc;

	if (++removal->entry_count > ENTRIES_MAX)
		return -E2BIG;
	if (removal->entry_count % LOOK_ENTRIES == 0 && !is_awaited(removal))
		return -ECANCELED;
	if (unlinkat(removal->fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	rc = -errno;
	if (rc != -EISDIR && rc != -EPERM)
		return rc;
	if (unlinkat(removal->fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno == ENOTEMPTY || errno == EEXIST)
		return 1;
	/* It was a directory a moment ago: the next look finds what it is now. */
	return errno == ENOTDIR ? (rc == -EPERM ? rc : 0) : -errno;
}

/* Remove what is in the directory, up to a directory with something in it, which is opened. -ENOENT: there is none. */
static int empty_directory(struct removal *removal)
{
	_Alignas(struct directory_entry) static char entries[LIST_BYTES];
	struct directory list = {.fd = removal->fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;

	while ((entry = directory_next(&list))) {
		int rc = remove_entry(removal, entry->name);
		int fd = rc == 1 ? open_directory(removal->fd, entry->name) : -ENOENT;

		if (rc < 0)
			return rc;
		/* Swapped since: the next look finds what is there now. */
		if (fd >= 0 || (fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP))
			return fd;
	}
	return list.len < 0 ? -EIO : -ENOENT;
}

static int go_down(struct removal *removal, int fd)
{
	int rc = removal->depth < DEPTH_MAX ? place_of(removal->fd, &removal->above[removal->depth]) : -ENAMETOOLONG;

	if (rc < 0) {
		close(fd);
		return rc;
	}
	removal->depth++;
	close(removal->fd);
	removal->fd = fd;
	return 0;
}

static int go_up(struct removal *removal)
{
	const struct place *expected = &removal->above[removal->depth - 1];
	struct place found = {0};
	AUTO_CLOSE int fd = open_directory(removal->fd, "..");
	int rc = fd < 0 ? fd : place_of(fd, &found);

	if (rc < 0)
		return rc;
	if (found.device != expected->device || found.inode != expected->inode)
		return -ESTALE;
	removal->depth--;
	close(removal->fd);
	removal->fd = take_fd(&fd);
	return 0;
}

int task_remove_tree(int parent_fd, const char *name, int reply_fd)
{
	static struct removal removal; /* in a child that was made for it */
	int rc;

	removal = (struct removal){.fd = open_directory(parent_fd, name), .reply_fd = reply_fd};
	rc = removal.fd < 0 ? removal.fd : 0;
	while (rc == 0) {
		int fd = empty_directory(&removal);

		if (fd >= 0)
			rc = go_down(&removal, fd);
		else if (fd != -ENOENT)
			rc = fd;
		else if (removal.depth)
			rc = go_up(&removal);
		else if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			break;
		else if (errno != ENOTEMPTY && errno != EEXIST)
			rc = -errno;
		else if (lseek(removal.fd, 0, SEEK_SET) < 0 || ++removal.entry_count > ENTRIES_MAX)
			rc = -ENOTEMPTY;
	}
	close_fd(&removal.fd);
	return rc;
}
