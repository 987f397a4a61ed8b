/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/reap/reap_directory.c - the run's own directory on the host, where there are no mounts to make one
 *
 * The jar's first process makes and removes it, since that process outlives a killed engine. The untrusted command
 * wrote the content: the code follows no symbolic link, and removes a tree of any depth with two descriptors and no
 * recursion, by lifting every directory up to the top before removing it.
 *
 * Its maker holds a lock on it. If engine and first process are killed together, the kernel drops the lock. The next
 * run that ends on this rung removes the directory.
 */
#include "base/reap/reap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/directory.h"
#include "base/sys/calls.h"

#define ENTRY_BYTES 4096
#define NAME_BYTES 32
#define PATH_BYTES 4096
#define NAME_BEGINNING "belljar-"
#define NAME_DIGITS 16
/* More time than it takes to make a directory and lock it. */
#define STALE_SECONDS 60

int reap_make_directory(const char *path)
{
	static const char *const parts[] = {"home", "tmp", "workspace"};
	AUTO_CLOSE int top = -1;

	if (mkdir(path, 0700) < 0)
		return -errno;
	top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (top < 0)
		return -errno;
	/* If the file system has no locks, this fails, and so no other run can lock and remove the directory. */
	flock(top, LOCK_EX | LOCK_NB);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (mkdirat(top, parts[i], 0700) < 0)
			return -errno;
	return take_fd(&top);
}

/* Grant the permissions needed to empty and move a directory. If this fails, removing it fails. */
static void make_removable(int parent, const struct directory_entry *entry)
{
	if (entry->type == DT_DIR && fchmodat(parent, entry->name, 0700, 0) < 0)
		return;
}

/* Empty the directory @fd: files go, directories are lifted into @top under a new name. True if anything changed. */
static bool empty_directory(int top, int fd, unsigned *counter)
{
	_Alignas(struct directory_entry) char entries[ENTRY_BYTES];
	struct directory list = {.fd = fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;
	char name[NAME_BYTES];
	bool has_changed = false;

	lseek(fd, 0, SEEK_SET);
	while ((entry = directory_next(&list))) {
		if (unlinkat(fd, entry->name, 0) == 0 || unlinkat(fd, entry->name, AT_REMOVEDIR) == 0) {
			has_changed = true;
			continue;
		}
		make_removable(fd, entry);
		snprintf(name, sizeof(name), ".belljar-%u", (*counter)++);
		if (renameat(fd, entry->name, top, name) == 0)
			has_changed = true;
	}
	return has_changed;
}

/* Take every directory in @top one level down. True if anything changed. */
static bool sweep_once(int top, unsigned *counter)
{
	_Alignas(struct directory_entry) char entries[ENTRY_BYTES];
	struct directory list = {.fd = top, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;
	bool has_changed = false;

	lseek(top, 0, SEEK_SET);
	while ((entry = directory_next(&list))) {
		AUTO_CLOSE int fd = -1;

		if (unlinkat(top, entry->name, 0) == 0 || unlinkat(top, entry->name, AT_REMOVEDIR) == 0) {
			has_changed = true;
			continue;
		}
		make_removable(top, entry);
		fd = openat(top, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			has_changed |= empty_directory(top, fd, counter);
	}
	return has_changed;
}

int reap_sweep_at(int parent, const char *name)
{
	AUTO_CLOSE int top = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	unsigned counter = 0;

	if (top < 0)
		return -errno;
	/* It ends when a round changes nothing. */
	while (sweep_once(top, &counter))
		;
	return unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

void reap_sweep(const char *path)
{
	reap_sweep_at(AT_FDCWD, path);
}

/* Is @name one that survey_probe() makes? */
static bool is_run_directory_name(const char *name)
{
	const char *digits = name + strlen(NAME_BEGINNING);

	return !strncmp(name, NAME_BEGINNING, strlen(NAME_BEGINNING)) && strlen(digits) == NAME_DIGITS &&
	       strspn(digits, "0123456789abcdef") == NAME_DIGITS;
}

static bool is_abandoned(int parent, const char *name)
{
	AUTO_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
	       status.st_mtime < time(NULL) - STALE_SECONDS && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void reap_sweep_abandoned(const char *run_directory)
{
	_Alignas(struct directory_entry) char entries[ENTRY_BYTES];
	const char *slash = strrchr(run_directory, '/');
	struct directory list = {.buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;
	char path[PATH_BYTES];
	AUTO_CLOSE int parent = -1;

	if (!slash || snprintf(path, sizeof(path), "%.*s", (int)(slash - run_directory), run_directory) >= PATH_BYTES)
		return;
	parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return;
	list.fd = parent;
	while ((entry = directory_next(&list))) {
		if (!is_run_directory_name(entry->name) || !is_abandoned(parent, entry->name))
			continue;
		if (snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - run_directory), run_directory, entry->name) <
		    PATH_BYTES)
			reap_sweep(path);
	}
}
