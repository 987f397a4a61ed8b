/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_toolchains.c - which parts of the home directory PATH makes visible
 *
 * PATH is the caller's, but what lies on its way may not be: with ~/project/.venv/bin in it, a command that ran in
 * ~/project can have put a symbolic link there that leads to ~/.ssh, and would see it the next time. So a link counts
 * only if it leads to somewhere in the directory that holds it (.sdkman/candidates/java/current -> 21), which who wrote it
 * could write anyway; or if it is held by a directory that no jar can write: home itself, those above it, the system's.
 */
#include "host/host_toolchains.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "host/host_names.h"
#include "host/host_paths.h"

/* As many links as the kernel follows. */
#define LINKS_MAX 40
/* Names looked at in a directory of links to programs. */
#define PROGRAMS_MAX 256

/* --- the way to a directory --------------------------------------------------------------------------------- */

static bool may_hold_any_link(const struct host *host, const char *directory)
{
	return path_is_within(host->real_home, directory) || host_is_system_directory(directory);
}

/* One step on the way: @name in @resolved, which becomes longer, or if it is a link, @rest is what it says and the rest. */
static int step(const struct host *host, char *resolved, const char *name, char *rest, struct string_list *bounds)
{
	char path[PATH_MAX], target[PATH_MAX];
	size_t done = strlen(resolved), rest_size = strlen(rest) + 1;
	struct stat status;
	ssize_t len;

	if (snprintf(path, sizeof(path), "%s/%s", resolved, name) >= (int)sizeof(path))
		return -ENOENT;
	if (lstat(path, &status) < 0)
		return -ENOENT;
	if (!S_ISLNK(status.st_mode)) {
		memcpy(resolved + done, path + done, strlen(path + done) + 1);
		return 0;
	}
	if (bounds->count == LINKS_MAX)
		return -ELOOP;
	if (string_list_add(bounds, may_hold_any_link(host, done ? resolved : "/") ? "/" : resolved) < 0)
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

/* Where @path really is, if every link on the way counts; both have room for PATH_MAX. */
static int resolve(const struct host *host, const char *path, char *resolved, struct string_list *bounds)
{
	char rest[PATH_MAX], name[NAME_MAX + 1];
	int rc = 0;

	if (path[0] != '/' || snprintf(rest, sizeof(rest), "%s", path) >= (int)sizeof(rest))
		return -EINVAL;
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
			rc = step(host, resolved, name, rest, bounds);
		}
	}
	for (size_t i = 0; i < bounds->count && rc == 0; i++)
		if (!path_is_within(resolved, bounds->items[i]))
			rc = -EXDEV;
	return rc;
}

/* --- what to show ------------------------------------------------------------------------------------------- */

static bool is_shown(const struct host *host, const char *path)
{
	for (size_t i = 0; i < host->toolchains.count; i++)
		if (path_is_within(path, host->toolchains.items[i].path))
			return true;
	return false;
}

static int add(struct host *host, const char *path)
{
	return is_shown(host, path) ? 0 : host_path_list_look(&host->toolchains, path);
}

/* X of X/bin, where X is no directory of everything: home, what holds it, or what holds other programs' secrets. */
static bool root_of(const struct host *host, const char *directory, char root[PATH_MAX])
{
	static const char *const collections[] = {"/.local", "/.local/share", "/.local/state", "/.config", "/.cache"};
	size_t home_len = strlen(host->real_home), len = strlen(directory);

	if (len <= 4 || len >= PATH_MAX || strcmp(directory + len - 4, "/bin") != 0)
		return false;
	memcpy(root, directory, len - 4);
	root[len - 4] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(collections); i++)
		if (path_is_within(root, host->real_home) && !strcmp(root + home_len, collections[i]))
			return false;
	return !path_is_within(host->real_home, root);
}

/* The program behind a link: with all of X if it is in X/bin, else alone. What is not executable is no program. */
static int add_program(struct host *host, const char *link)
{
	AUTO_FREE char *program = realpath(link, NULL);
	char directory[PATH_MAX], root[PATH_MAX];
	struct stat status;
	char *slash;

	if (!program || is_shown(host, program) || !path_is_within(program, host->real_home) ||
	    stat(program, &status) < 0 || !S_ISREG(status.st_mode) || !(status.st_mode & 0111))
		return 0;
	snprintf(directory, sizeof(directory), "%s", program);
	slash = strrchr(directory, '/');
	if (!slash)
		return 0;
	*slash = '\0';
	return add(host, root_of(host, directory, root) ? root : program);
}

/* Installers put links to programs elsewhere below home into one directory, which is nobody's project. */
static int add_linked_programs(struct host *host, const char *directory)
{
	DIR *entries = opendir(directory);
	char path[PATH_MAX];
	int rc = 0;

	for (int i = 0; entries && i < PROGRAMS_MAX && rc == 0; i++) {
		const struct dirent *entry = readdir(entries);

		if (!entry)
			break;
		if ((entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) &&
		    snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) < (int)sizeof(path))
			rc = add_program(host, path);
	}
	if (entries)
		closedir(entries);
	return rc;
}

static int add_known(struct host *host, const struct host_toolchain *toolchain, const char *directory)
{
	char path[PATH_MAX];
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(toolchain->needs) && toolchain->needs[i] && rc == 0; i++)
		if (snprintf(path, sizeof(path), "%s/%s", host->real_home, toolchain->needs[i]) < (int)sizeof(path))
			rc = add(host, path);
	return rc == 0 && toolchain->has_links ? add_linked_programs(host, directory) : rc;
}

static int add_directory(struct host *host, const char *directory)
{
	const char *below = directory + strlen(host->real_home) + 1;
	char root[PATH_MAX];

	for (const struct host_toolchain *toolchain = host_toolchains; toolchain->directory; toolchain++)
		if (!strcmp(below, toolchain->directory))
			return add_known(host, toolchain, directory);
	return add(host, root_of(host, directory, root) ? root : directory);
}

static int add_entry(struct host *host, const char *entry)
{
	struct string_list bounds = {0};
	char resolved[PATH_MAX];
	int rc = host_is_plain(entry);

	if (rc == 1)
		rc = snprintf(resolved, sizeof(resolved), "%s", entry) < (int)sizeof(resolved) ? 0 : -ENAMETOOLONG;
	else if (rc == 0)
		rc = resolve(host, entry, resolved, &bounds);
	string_list_done(&bounds);
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0 || !path_is_within(resolved, host->real_home) || !strcmp(resolved, host->real_home))
		return 0;
	return add_directory(host, resolved);
}

int host_find_toolchains(struct host *host)
{
	const char *path = NULL;
	char entry[PATH_MAX];
	int rc = 0;

	for (char *const *variable = host->environment; variable && *variable; variable++)
		if (!strncmp(*variable, "PATH=", 5))
			path = *variable + 5;
	if (!host->real_home || !strcmp(host->real_home, "/"))
		return 0;
	while (path && rc == 0) {
		size_t len = strcspn(path, ":");

		if (len < sizeof(entry)) {
			memcpy(entry, path, len);
			entry[len] = '\0';
			rc = add_entry(host, entry);
		}
		path = path[len] ? path + len + 1 : NULL;
	}
	return rc;
}
