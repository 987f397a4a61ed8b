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

static bool is_same(const struct host_path *before, const struct host_path *now)
{
	/* Whatever is no link was held by a mount; of a link, a new one may have got the old one's number. */
	return before->inode == now->inode && before->device == now->device && before->kind == now->kind &&
	       (now->kind != PATH_SYMLINK || before->changed_ns == now->changed_ns);
}

static void check(const struct host *host, int top_fd, const char *top, const char *name, struct risky_list *risky)
{
	struct host_path now = {0};
	const struct host_path *before;
	struct risky_path *item;
	const char *why = NULL;

	if (host_look_beneath(&now, top_fd, top, name) < 0 || now.kind == PATH_ABSENT)
		goto done;
	before = known(&host->workdir.guarded, now.path);
	if (!before)
		why = "it appeared during the run; other programs execute or obey it later";
	else if (!is_same(before, &now))
		why = "it was replaced during the run; other programs execute or obey it later";
	item = why ? list_add(risky) : NULL;
	if (item)
		*item = (struct risky_path){take_ptr(now.path), why};
done:
	host_path_done(&now);
}

/* A .git directory is watched by its parts; as a file or a link it says where host programs find a repository. */
static void check_git_file(const struct host *host, int top_fd, const char *top, struct risky_list *risky)
{
	struct host_path git = {0};

	if (host_look_beneath(&git, top_fd, top, ".git") == 0 && git.kind != PATH_DIRECTORY)
		check(host, top_fd, top, ".git", risky);
	host_path_done(&git);
}

static void check_project(const struct host *host, const struct host_path *top, struct risky_list *risky)
{
	AUTO_CLOSE int fd = top->kind == PATH_DIRECTORY ? host_open_top(top) : -1;
	const char *absent = NULL;

	if (fd < 0)
		return;
	for (const char *const *name = host_protected_names; *name; name++)
		if (!host_is_in_absent(fd, *name, &absent))
			check(host, fd, top->path, *name, risky);
	check_git_file(host, fd, top->path, risky);
}

/* A repository that is no .git directory: there the names of what is in one stand by themselves. */
static void check_git(const struct host *host, const struct host_path *git, struct risky_list *risky)
{
	AUTO_CLOSE int fd = git->kind == PATH_DIRECTORY ? host_open_top(git) : -1;

	for (const char *const *name = host_protected_names; fd >= 0 && *name; name++)
		if (!strncmp(*name, ".git/", 5))
			check(host, fd, git->path, *name + 5, risky);
}

void host_find_risky(const struct host *host, struct risky_list *risky)
{
	if (host->workdir.unfit)
		return;
	check_project(host, &host->workdir.path, risky);
	check_project(host, &host->workdir.top, risky);
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
