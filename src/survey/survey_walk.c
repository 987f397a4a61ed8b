/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_walk.c - list directories beneath an open one, and judge the times of what is in them
 *
 * The walk opens everything from its top with openat2(), through no link, since a command made the tree and may want
 * to lead the walk elsewhere. It looks at a name through the directory that lists it, in one call and without a path.
 */
#include "survey/survey_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/directory.h"
#include "survey/survey_paths.h"
#include "base/sys/calls.h"

#define LIST_BYTES 16384
/* A file server's clock may be wrong by so much. */
#define FOREIGN_CLOCK_NS (24 * 3600 * 1000000000LL)

const char *survey_walk_join(struct walk_name *name, const char *directory, const char *entry)
{
	/* cppcheck-suppress ctuuninitvar ; it is written here */
	snprintf(name->text, sizeof(name->text), "%s%s%s", directory, directory[0] ? "/" : "", entry);
	return name->text;
}

int survey_walk_open(const struct walk *walk, const char *name, int flags)
{
	return sys_openat2(walk->fd, name[0] ? name : ".", (uint64_t)flags, 0,
			   SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
}

int64_t survey_walk_changed_at(const struct walk *walk, const char *name)
{
	AUTO_CLOSE int fd = survey_walk_open(walk, name, O_PATH | O_NOFOLLOW);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 ? survey_changed_ns(&status) : 0;
}

static bool is_directory(int fd, const struct directory_entry *entry)
{
	struct stat status;

	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_DIR;
	return fstatat(fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

static bool is_link(int fd, const struct directory_entry *entry)
{
	struct stat status;

	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_LNK;
	return fstatat(fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

void survey_walk_leave_out(struct walk *walk, const char *name)
{
	survey_risky_leave_out(walk->risky, walk->top, name);
}

/* Does the command's user own it? Then the command may have closed it. It cannot enter another user's directory. */
static bool is_closed_by_command(const struct walk *walk, const char *name)
{
	AUTO_CLOSE int fd = survey_walk_open(walk, name, O_PATH | O_DIRECTORY);
	struct stat status;

	return fd < 0 || fstat(fd, &status) < 0 || status.st_uid == walk->request->host->uid;
}

/* One buffer full of entries; false: enough. */
static bool take_entries(struct walk *walk, const struct listed *in, const char *entries, long len, walk_function *each,
			 void *context)
{
	for (long at = 0; at < len;) {
		const struct directory_entry *entry = (const struct directory_entry *)(entries + at);
		unsigned char type = is_directory(in->fd, entry) ? DT_DIR : is_link(in->fd, entry) ? DT_LNK : DT_REG;

		at += entry->len;
		if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
			continue;
		if (++walk->entries > WALK_ENTRIES_MAX || strlen(in->directory) > PATH_MAX) {
			survey_walk_leave_out(walk, in->directory);
			return false;
		}
		each(walk, context, &(struct listed){in->directory, in->fd, entry->name, type});
	}
	return true;
}

bool survey_walk_read(struct walk *walk, const struct listed *in, walk_function *each, void *context)
{
	_Alignas(struct directory_entry) char entries[LIST_BYTES];
	long len;

	while ((len = syscall(SYS_getdents64, in->fd, entries, sizeof(entries))) > 0)
		if (!take_entries(walk, in, entries, len, each, context))
			return false;
	return len == 0;
}

void survey_walk_list(struct walk *walk, const char *name, walk_function *each, void *context)
{
	AUTO_CLOSE int fd = survey_walk_open(walk, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

	if (fd == -EACCES && is_closed_by_command(walk, name))
		survey_walk_leave_out(walk, name);
	if (fd >= 0)
		survey_walk_read(walk, &(struct listed){name, fd, NULL, DT_DIR}, each, context);
}

/* --- what a file's time says -------------------------------------------------------------------------------- */

enum age survey_walk_age(const struct walk *walk, int64_t changed_ns)
{
	if (changed_ns < walk->start.earliest_ns)
		return AGE_OLD;
	return changed_ns > walk->start.latest_ns ? AGE_NEW : AGE_UNCLEAR;
}

bool survey_walk_has_own_clock(unsigned long type, bool *counts_directories)
{
	static const struct {
		unsigned long type;
		bool counts_directories;
	} own_clock[] = {
		{0xef53, true},      /* ext2, ext3, ext4 */
		{0x58465342, true},  /* xfs */
		{0x9123683e, false}, /* btrfs */
		{0x01021994, true},  /* tmpfs */
		{0x794c7630, false}, /* overlayfs */
		{0xf2f52010, false}, /* f2fs */
		{0x2fc12fc1, false}, /* zfs */
		{0xca451a4e, false}, /* bcachefs */
	};

	*counts_directories = false;
	for (size_t i = 0; i < ARRAY_LEN(own_clock); i++)
		if (type == own_clock[i].type) {
			*counts_directories = own_clock[i].counts_directories;
			return true;
		}
	return false;
}

/* Times that this kernel's clock did not make can be compared with it only roughly. */
static void adapt_start(struct walk *walk)
{
	struct statfs status;
	bool counts_directories;

	walk->start = walk->request->start;
	if (fstatfs(walk->fd, &status) < 0 ||
	    survey_walk_has_own_clock((unsigned long)status.f_type, &counts_directories))
		return;
	walk->start.earliest_ns -= FOREIGN_CLOCK_NS;
	walk->start.latest_ns = INT64_MAX;
}

enum age survey_walk_age_of_way(const struct walk *walk, const char *name)
{
	enum age age = AGE_OLD;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", name);
	for (char *slash = strrchr(path, '/'); slash && age == AGE_OLD; slash = strrchr(path, '/')) {
		*slash = '\0';
		age = survey_walk_age(walk, survey_walk_changed_at(walk, path));
	}
	return age;
}

bool survey_walk_begin(struct walk *walk, const struct host_path *top)
{
	walk->fd = top ? survey_open_top(top) : -1;
	if (walk->fd < 0)
		return false;
	walk->top = top->path;
	walk->device = top->device;
	adapt_start(walk);
	return true;
}

const char *survey_walk_below_top(const struct walk *walk, const char *path)
{
	const char *rest = path + strlen(walk->top);

	return rest + strspn(rest, "/");
}
