/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_risky.c - what the command left where other programs will execute it
 */
#include "host/host_risky.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "host/host_names.h"
#include "host/host_paths.h"

static const struct host_path *known(const struct host_path_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].path, path))
			return &list->items[i];
	return NULL;
}

static void check(const struct host *host, const char *top, const char *name, struct risky_list *risky)
{
	char path[PATH_MAX];
	struct host_path now;
	const struct host_path *before;
	struct risky_path *item;
	const char *why = NULL;

	if (snprintf(path, sizeof(path), "%s/%s", top, name) >= (int)sizeof(path) || host_look(&now, path) < 0)
		return;
	before = known(&host->workdir.guarded, path);
	if (now.kind != PATH_ABSENT && !before)
		why = "it appeared during the run; other programs execute or obey it later";
	else if (now.kind != PATH_ABSENT && (before->inode != now.inode || before->device != now.device))
		why = "it was replaced during the run; other programs execute or obey it later";
	host_path_done(&now);
	item = why ? list_add(risky) : NULL;
	if (item)
		*item = (struct risky_path){strdup(path), why};
}

/* A .git directory is watched by its parts; as a file or a link it says where host programs find a repository. */
static void check_git_file(const struct host *host, const char *top, struct risky_list *risky)
{
	char path[PATH_MAX];
	struct stat status;

	if (snprintf(path, sizeof(path), "%s/.git", top) < (int)sizeof(path) && lstat(path, &status) == 0 &&
	    !S_ISDIR(status.st_mode))
		check(host, top, ".git", risky);
}

/* A repository that is no .git directory: there the names of what is in one stand by themselves. */
static void check_git(const struct host *host, const struct host_path *git, struct risky_list *risky)
{
	for (const char *const *name = host_protected_names; git->kind == PATH_DIRECTORY && *name; name++)
		if (!strncmp(*name, ".git/", 5))
			check(host, git->path, *name + 5, risky);
}

void host_find_risky(const struct host *host, struct risky_list *risky)
{
	const char *tops[] = {host->workdir.path.path, host->workdir.top.kind == PATH_DIRECTORY ? host->workdir.top.path : NULL};

	if (host->workdir.unfit)
		return;
	for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
		for (const char *const *name = host_protected_names; tops[i] && *name; name++)
			check(host, tops[i], *name, risky);
		if (tops[i])
			check_git_file(host, tops[i], risky);
	}
	if (host->workdir.has_git_file) {
		check_git(host, &host->workdir.git, risky);
		check_git(host, &host->workdir.git_own, risky);
	}
}

void host_risky_done(struct risky_list *risky)
{
	for (size_t i = 0; i < risky->count; i++)
		free(risky->items[i].path);
	free(risky->items);
	*risky = (struct risky_list){0};
}
