/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_paths.c - look at paths of the host: what is there, which object, by way of which links
 *
 * A path is only a name: between a look and a mount, another process may replace the object. So the survey records
 * its device and inode, for the jar to compare. It records every link on the way too, because a command may have put
 * it there (plan/plan_view_links.c refuses those). In a directory that commands write to, it looks beneath a
 * descriptor of that directory, through no link.
 */
#include "survey/survey_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "survey/survey_names.h"
#include "survey/survey_secrets.h"
#include "base/sys/calls.h"

/* As many links as the kernel follows. */
#define LINKS_MAX 40

static bool is_within_any(const char *path, const char *const *directories)
{
	for (; *directories; directories++)
		if (path_is_within(path, *directories))
			return true;
	return false;
}

static bool is_one_of(const char *path, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(path, *names))
			return true;
	return false;
}

bool survey_is_system_directory(const char *path)
{
	if (is_one_of(path, survey_system_tops))
		return strcmp(path, "/root") != 0;
	return is_within_any(path, survey_system_trees) && !is_within_any(path, survey_system_exceptions);
}

static bool is_home_directory(const struct host *host, const char *path)
{
	const char *name;

	if (host->real_home && !strcmp(path, host->real_home))
		return true;
	if (!strcmp(path, "/root"))
		return true;
	name = strncmp(path, "/home/", 6) ? NULL : path + 6;
	return name && *name && !strchr(name, '/');
}

const char *survey_why_unfit(const struct host *host, const char *path)
{
	if (!strcmp(path, "/"))
		return "it is the root directory";
	if (is_home_directory(host, path))
		return "it is a home directory";
	if ((host->real_home && path_is_within(host->real_home, path)) || !strcmp(path, "/home"))
		return "it contains a home directory";
	if (survey_is_system_directory(path))
		return "it is a system directory";
	return survey_why_secret(host, path);
}

const char *survey_written_around(const struct host *host, const struct policy *policy, const char *path)
{
	const struct host_workdir *workdir = &host->workdir;
	const struct host_path *own[] = {&workdir->path, &workdir->git, &workdir->git_own};

	/* An unfit workdir is replaced by a private one, unless it is named writable. */
	for (size_t i = 0; i < ARRAY_LEN(own) && !workdir->unfit; i++)
		if (own[i]->kind == PATH_DIRECTORY && path_is_within(path, own[i]->path))
			return own[i]->path;
	for (size_t i = 0; i < host->mounts.count; i++) {
		const struct host_path *mount = &host->mounts.items[i];

		if (policy->mounts.items[i].access == MOUNT_RW && mount->kind != PATH_ABSENT &&
		    path_is_within(path, mount->path))
			return mount->path;
	}
	return NULL;
}

static enum path_kind kind_of_mode(mode_t mode)
{
	if (S_ISDIR(mode))
		return PATH_DIRECTORY;
	if (S_ISREG(mode))
		return PATH_FILE;
	return S_ISLNK(mode) ? PATH_SYMLINK : PATH_OTHER;
}

static void describe(struct host_path *path, const struct stat *status)
{
	path->kind = kind_of_mode(status->st_mode);
	path->device = status->st_dev;
	path->inode = status->st_ino;
	path->mode = status->st_mode & 07777;
	path->size_bytes = (uint64_t)status->st_size;
	path->changed_ns = (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec;
}

/* @name below @directory_fd, or "" for the link @directory_fd itself. */
static void read_target(struct host_path *path, int directory_fd, const char *name)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(directory_fd, name, target, sizeof(target) - 1);

	path->target = len < 0 ? NULL : strndup(target, (size_t)len);
	if (!path->target)
		path->kind = PATH_ABSENT;
}

int survey_look(struct host_path *path_out, const char *path)
{
	struct host_path found = {.kind = PATH_ABSENT};
	struct stat status;

	found.path = strdup(path);
	if (!found.path)
		return -ENOMEM;
	if (lstat(path, &status) == 0)
		describe(&found, &status);
	if (found.kind == PATH_SYMLINK)
		read_target(&found, AT_FDCWD, path);
	*path_out = found;
	return 0;
}

bool survey_path_is_clean(const char *path)
{
	if (path[0] != '/')
		return false;
	for (const char *at = path; *at; at++) {
		if (at[0] != '/')
			continue;
		if (at[1] == '/' || (at[1] == '\0' && at != path))
			return false;
		if (at[1] == '.' &&
		    (at[2] == '/' || at[2] == '\0' || (at[2] == '.' && (at[3] == '/' || at[3] == '\0'))))
			return false;
	}
	return true;
}

static int open_plain(const char *path)
{
	return survey_path_is_clean(path) ? sys_openat2(AT_FDCWD, path, O_PATH, 0, SYS_RESOLVE_NO_SYMLINKS) : -ELOOP;
}

int survey_is_plain(const char *path)
{
	AUTO_CLOSE int fd = open_plain(path);

	return fd >= 0 ? 1 : fd == -ENOENT || fd == -ENOTDIR ? -ENOENT : 0;
}

/* One name of a way: @name in @resolved, which becomes longer; of a link, what it says comes before @rest. */
static int step(char *resolved, const char *name, char *rest, struct string_list *links)
{
	char path[PATH_MAX], target[PATH_MAX];
	size_t done = strlen(resolved), rest_size = strlen(rest) + 1;
	struct stat status;
	ssize_t len;

	if (snprintf(path, sizeof(path), "%s/%s", resolved, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (lstat(path, &status) < 0)
		return -errno;
	if (!S_ISLNK(status.st_mode)) {
		memcpy(resolved + done, path + done, strlen(path + done) + 1);
		return !S_ISDIR(status.st_mode) && rest[strspn(rest, "/")] ? -ENOTDIR : 0;
	}
	if (links->count == LINKS_MAX)
		return -ELOOP;
	if (string_list_add(links, path) < 0)
		return -ENOMEM;
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return -errno;
	if ((size_t)len + 1 + rest_size > PATH_MAX)
		return -ENAMETOOLONG;
	memmove(rest + len + 1, rest, rest_size);
	memcpy(rest, target, (size_t)len);
	rest[len] = '/';
	if (target[0] == '/')
		resolved[0] = '\0';
	return 0;
}

int survey_resolve(const char *path, char resolved[PATH_MAX], struct string_list *links)
{
	char rest[PATH_MAX], name[NAME_MAX + 1];
	int rc = 0;

	if (path[0] != '/' || strlen(path) >= sizeof(rest))
		return path[0] != '/' ? -EINVAL : -ENAMETOOLONG;
	memcpy(rest, path, strlen(path) + 1);
	resolved[0] = '\0';
	while (rc == 0) {
		size_t skipped = strspn(rest, "/"), len = strcspn(rest + skipped, "/");

		if (!len)
			break;
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, rest + skipped, len);
		name[len] = '\0';
		memmove(rest, rest + skipped + len, strlen(rest + skipped + len) + 1);
		if (!strcmp(name, "..")) {
			char *slash = strrchr(resolved, '/');

			if (slash)
				*slash = '\0';
		} else if (strcmp(name, ".") != 0) {
			rc = step(resolved, name, rest, links);
		}
	}
	if (rc == 0 && !resolved[0])
		memcpy(resolved, "/", 2);
	return rc;
}

/* The object at @path; -ELOOP: there is a link on the way. */
static int look_plain(struct host_path *found, const char *path)
{
	AUTO_CLOSE int fd = open_plain(path);
	struct stat status;

	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	describe(found, &status);
	return 0;
}

/* The same for a resolved path. Before Linux 5.6 no jar is built from mounts, so this is only for the report. */
static int look_resolved(struct host_path *found, const char *path)
{
	int rc = look_plain(found, path);
	struct stat status;

	if (rc != -ENOSYS)
		return rc;
	if (lstat(path, &status) < 0)
		return -errno;
	describe(found, &status);
	return 0;
}

int survey_look_through(struct host_path *path_out, const char *path)
{
	struct host_path found = {.kind = PATH_ABSENT};
	char resolved[PATH_MAX];
	int rc = look_plain(&found, path);

	/* A link that appears between the two looks causes an error; this code never follows it. */
	if (rc == -ELOOP || rc == -ENOSYS) {
		rc = survey_resolve(path, resolved, &found.links);
		if (rc == 0)
			rc = look_resolved(&found, resolved);
		if (rc == 0)
			path = resolved;
	}
	found.error = -rc;
	found.path = rc == -ENOMEM ? NULL : strdup(path);
	if (!found.path) {
		survey_path_done(&found);
		return -ENOMEM;
	}
	*path_out = found;
	return 0;
}

int survey_open_top(const struct host_path *top)
{
	AUTO_CLOSE int fd = sys_open(top->path, O_PATH | O_DIRECTORY);
	struct stat status;

	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (status.st_dev != top->device || status.st_ino != top->inode)
		return -ESTALE;
	return take_fd(&fd);
}

char *survey_path_join(const char *directory, const char *name)
{
	size_t directory_len = strlen(directory), name_size = strlen(name) + 1;
	char *path = malloc(directory_len + 1 + name_size);
	char *end = path;

	if (!path)
		return NULL;
	end = mempcpy(end, directory, directory_len);
	*end++ = '/';
	memcpy(end, name, name_size);
	return path;
}

int survey_look_beneath(struct host_path *path_out, int top_fd, const char *top, const char *name)
{
	struct host_path found = {.kind = PATH_ABSENT};
	AUTO_CLOSE int fd = sys_openat2(top_fd, name, O_PATH | O_NOFOLLOW, 0,
					SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
	struct stat status;

	if (fd == -ENOENT) {
		found.error = ENOENT;
		*path_out = found;
		return 0;
	}
	found.path = survey_path_join(top, name);
	if (!found.path)
		return -ENOMEM;
	/* Before Linux 5.6 no jar is built from mounts; there this is only for the report. */
	if (fd == -ENOSYS ? lstat(found.path, &status) == 0 : fd >= 0 && fstat(fd, &status) == 0)
		describe(&found, &status);
	else
		found.error = fd < 0 ? -fd : errno;
	if (found.kind == PATH_SYMLINK)
		read_target(&found, fd >= 0 ? fd : AT_FDCWD, fd >= 0 ? "" : found.path);
	*path_out = found;
	return 0;
}

void survey_path_done(struct host_path *path)
{
	free(path->path);
	free(path->target);
	string_list_done(&path->links);
	*path = (struct host_path){0};
}

void survey_path_list_done(struct host_path_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		survey_path_done(&list->items[i]);
	free(list->items);
	*list = (struct host_path_list){0};
}

int survey_path_list_look(struct host_path_list *list, const char *path)
{
	struct host_path found;
	struct host_path *item;
	int rc = survey_look(&found, path);

	if (rc < 0 || found.kind == PATH_ABSENT) {
		if (rc == 0)
			survey_path_done(&found);
		return rc;
	}
	item = list_add(list);
	if (!item) {
		survey_path_done(&found);
		return -ENOMEM;
	}
	*item = found;
	return 0;
}

int survey_path_list_look_beneath(struct host_path_list *list, int top_fd, const char *top, const char *name)
{
	struct host_path found;
	struct host_path *item;
	int rc = survey_look_beneath(&found, top_fd, top, name);

	if (rc < 0)
		return rc;
	if (found.kind == PATH_ABSENT) {
		rc = found.error == ELOOP ? -ELOOP : 0;
		survey_path_done(&found);
		return rc;
	}
	item = list_add(list);
	if (!item) {
		survey_path_done(&found);
		return -ENOMEM;
	}
	*item = found;
	return 1;
}

int survey_path_list_copy(struct host_path_list *list, const struct host_path *path)
{
	struct host_path *item = list_add(list);

	if (!item)
		return -ENOMEM;
	*item = *path;
	item->links = (struct string_list){0};
	item->planted = NULL;
	item->path = strdup(path->path);
	item->target = path->target ? strdup(path->target) : NULL;
	return item->path && (item->target || !path->target) ? 0 : -ENOMEM;
}
