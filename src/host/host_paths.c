/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_paths.c - questions about paths
 */
#include "host/host_paths.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "host/host_names.h"

bool path_is_within(const char *path, const char *directory)
{
	size_t len = strlen(directory);

	if (len == 1)
		return true; /* everything lies in / */
	return !strncmp(path, directory, len) && (path[len] == '\0' || path[len] == '/');
}

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

bool host_is_system_directory(const char *path)
{
	if (is_one_of(path, host_system_tops))
		return strcmp(path, "/root") != 0;
	return is_within_any(path, host_system_trees) && !is_within_any(path, host_system_exceptions);
}

static enum path_kind kind_of(mode_t mode)
{
	if (S_ISDIR(mode))
		return PATH_DIRECTORY;
	if (S_ISREG(mode))
		return PATH_FILE;
	return S_ISLNK(mode) ? PATH_SYMLINK : PATH_OTHER;
}

int host_look(struct host_path *path_out, const char *path)
{
	struct host_path found = {.kind = PATH_ABSENT};
	char target[PATH_MAX];
	struct stat status;
	ssize_t len;

	found.path = strdup(path);
	if (!found.path)
		return -ENOMEM;
	if (lstat(path, &status) == 0) {
		found.kind = kind_of(status.st_mode);
		found.device = status.st_dev;
		found.inode = status.st_ino;
	}
	if (found.kind == PATH_SYMLINK) {
		len = readlink(path, target, sizeof(target) - 1);
		found.target = len < 0 ? NULL : strndup(target, (size_t)len);
		if (!found.target)
			found.kind = PATH_ABSENT;
	}
	*path_out = found;
	return 0;
}

void host_path_done(struct host_path *path)
{
	free(path->path);
	free(path->target);
	*path = (struct host_path){0};
}

void host_path_list_done(struct host_path_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		host_path_done(&list->items[i]);
	free(list->items);
	*list = (struct host_path_list){0};
}

int host_path_list_look(struct host_path_list *list, const char *path)
{
	struct host_path found;
	struct host_path *item;
	int rc = host_look(&found, path);

	if (rc < 0 || found.kind == PATH_ABSENT) {
		if (rc == 0)
			host_path_done(&found);
		return rc;
	}
	item = list_add(list);
	if (!item) {
		host_path_done(&found);
		return -ENOMEM;
	}
	*item = found;
	return 0;
}
