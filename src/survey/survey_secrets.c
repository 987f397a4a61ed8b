/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_secrets.c - places of secrets, and links that may have been put on the way to one
 *
 * A directory that a command works in is shown and written as a whole. So no place of secrets is a workdir, by whatever path it was
 * named. A command that puts a link in the place of a directory of its own project chooses what the next `-C build` means; no
 * path to a workdir leads through such a link.
 */
#include "survey/survey_secrets.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "survey/survey_names.h"
#include "survey/survey_paths.h"

bool survey_secret_in_home(const char *home, const char *name, char path[PATH_MAX])
{
	return home && !strncmp(name, "~/", 2) && snprintf(path, PATH_MAX, "%s%s", home, name + 1) < PATH_MAX;
}

/* Is @path a place of that name below some directory, or in one? */
static bool is_in_named(const char *path, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = strstr(path, name); at; at = strstr(at + 1, name))
		if (at > path && at[-1] == '/' && (!at[len] || at[len] == '/'))
			return true;
	return false;
}

const char *survey_secret_at(const char *home, const char *path)
{
	char place[PATH_MAX];

	for (const struct host_name *secret = survey_secret_names; secret->name; secret++) {
		bool is_in = false;

		if (secret->name[0] == '/')
			is_in = path_is_within(path, secret->name);
		else if (survey_secret_in_home(home, secret->name, place))
			is_in = path_is_within(path, place);
		else
			is_in = is_in_named(path, secret->name);
		if (is_in)
			return secret->who;
	}
	return NULL;
}

static bool has(const char *directory, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return access(path, F_OK) == 0;
}

/* Does @path end with the first names of @name, and hold the rest? */
static bool is_around_named(const char *path, const char *name)
{
	size_t len = strlen(path);

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t part = (size_t)(slash - name);

		if (part < len && path[len - part - 1] == '/' && !strncmp(path + len - part, name, part) &&
		    has(path, slash + 1))
			return true;
	}
	return false;
}

const char *survey_why_secret(const struct host *host, const char *path)
{
	/* What lies there is mostly no secret, and system directories are refused by themselves. */
	bool is_shared = path_is_within(path, "/dev/shm") || path_is_within(path, "/run/user");
	const char *who = is_shared ? NULL : survey_secret_at(host->real_home, path);

	for (const struct host_name *secret = survey_secret_names; secret->name && !who && strstr(path, "/."); secret++)
		if (secret->name[0] != '/' && secret->name[0] != '~' && is_around_named(path, secret->name))
			who = secret->who;
	return who;
}

/* May commands of the caller's have worked in @directory, or above it? */
static bool may_be_worked_in(const struct host *host, const char *directory)
{
	char path[PATH_MAX];
	char *slash;

	if (snprintf(path, sizeof(path), "%s", directory) >= (int)sizeof(path))
		return true;
	for (slash = strrchr(path, '/'); slash && slash != path; slash = strrchr(path, '/')) {
		if (!survey_why_unfit(host, path))
			return true;
		*slash = '\0';
	}
	return false;
}

void survey_find_planted(const struct host *host, struct host_path *path)
{
	for (size_t i = 0; i < path->links.count && !path->planted; i++) {
		const char *link = path->links.items[i];
		char directory[PATH_MAX];
		struct stat status;

		snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(link, '/') - link), link);
		if ((lstat(link, &status) < 0 || status.st_uid == host->uid) && may_be_worked_in(host, directory))
			path->planted = link;
	}
}
