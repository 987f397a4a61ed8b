/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_toolchains.c - which parts of the home directory PATH makes visible
 *
 * Virtual environments count wherever they are: survey_python.c.
 *
 * The caller sets PATH, but commands may have written directories in it: with ~/project/.venv/bin in it, a command that
 * ran in ~/project can have put a symbolic link to ~/.ssh there, and every later jar would show that. So a link counts
 * only if it is in a directory that no jar can have written (home itself, those above it, the system's), or if it stays
 * in the tree of one tool (.sdkman/candidates/java/current -> 21).
 *
 * Installers put links to programs into ~/.local/bin. Such a link shows the one program that it leads to, a regular
 * file; with the directory around it only in the tree of a tool.
 */
#include "survey/survey_toolchains.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "survey/survey_names.h"
#include "survey/survey_paths.h"
#include "survey/survey_python.h"

/* Names looked at in a directory of links to programs. */
#define PROGRAMS_MAX 256

/* --- the way to a directory --------------------------------------------------------------------------------- */

/* The tree of a tool below home that @path lies in, if it does: its length, else 0. */
static size_t tool_tree(const struct host *host, const char *path)
{
	size_t home_len = strlen(host->real_home);

	for (const char *const *tree = survey_tool_trees; *tree; tree++) {
		size_t len = strlen(*tree);

		if (path_is_within(path, host->real_home) && path[home_len] == '/' &&
		    !strncmp(path + home_len + 1, *tree, len) &&
		    (path[home_len + 1 + len] == '/' || path[home_len + 1 + len] == '\0'))
			return home_len + 1 + len;
	}
	return 0;
}

/* Everybody may write to /tmp and its like. */
static bool may_hold_any_link(const struct host *host, const char *directory)
{
	struct stat status;

	return (path_is_within(host->real_home, directory) || survey_is_system_directory(directory)) &&
	       lstat(directory, &status) == 0 && S_ISDIR(status.st_mode) && !(status.st_mode & S_IWOTH);
}

static bool counts(const struct host *host, const char *link, const char *resolved)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(link, '/');
	size_t tree = tool_tree(host, link);

	snprintf(directory, sizeof(directory), "%.*s", slash == link ? 1 : (int)(slash - link), link);
	if (may_hold_any_link(host, directory))
		return true;
	/* The tree itself may not be the link: what it is held by must count. */
	return tree && link[tree] == '/' && !strncmp(link, resolved, tree) && resolved[tree] == '/';
}

/*
 * Where @path really is, if every link on the way counts, but for the first @trusted ones; -EXDEV: one does not. The
 * links are what the jar must have too, to find the way.
 */
static int resolve(const struct host *host, const char *path, size_t trusted, char resolved[PATH_MAX],
		   struct string_list *links)
{
	int rc = survey_is_plain(path);

	if (rc == 1)
		rc = snprintf(resolved, PATH_MAX, "%s", path) < PATH_MAX ? 0 : -ENAMETOOLONG;
	else if (rc == 0)
		rc = survey_resolve(path, resolved, links);
	for (size_t i = trusted; i < links->count && rc == 0; i++)
		if (!counts(host, links->items[i], resolved))
			rc = -EXDEV;
	if (rc == 0 && (!path_is_within(resolved, host->real_home) || !strcmp(resolved, host->real_home)))
		rc = -EXDEV;
	return rc;
}

/* --- what to show ------------------------------------------------------------------------------------------- */

bool survey_toolchain_is_shown(const struct host *host, const char *path)
{
	for (size_t i = 0; i < host->toolchains.count; i++)
		if (path_is_within(path, host->toolchains.items[i].path))
			return true;
	return false;
}

/* Add the object at @path, which was resolved before. Skip it if a link has appeared there or on the way since. */
static int add_if(struct host *host, const char *path, bool is_file_only)
{
	struct host_path found;
	struct host_path *item;

	if (survey_toolchain_is_shown(host, path))
		return 0;
	if (survey_look_through(&found, path) < 0)
		return -ENOMEM;
	if (found.kind == PATH_ABSENT || found.links.count || (is_file_only && found.kind != PATH_FILE)) {
		survey_path_done(&found);
		return 0;
	}
	item = list_add(&host->toolchains);
	if (item)
		*item = found;
	else
		survey_path_done(&found);
	return item ? 0 : -ENOMEM;
}

static int add_toolchain(struct host *host, const char *path)
{
	return add_if(host, path, false);
}

int survey_toolchain_add_links(struct host *host, const struct string_list *links, size_t first, const char *within)
{
	for (size_t i = first; i < links->count; i++) {
		struct host_path found;
		struct host_path *item;

		/* The system's own links are in the jar by themselves. */
		if ((within && !path_is_within(links->items[i], within)) ||
		    survey_is_system_directory(links->items[i]) || survey_toolchain_is_shown(host, links->items[i]))
			continue;
		if (survey_look(&found, links->items[i]) < 0)
			return -ENOMEM;
		item = found.kind == PATH_SYMLINK ? list_add(&host->toolchains) : NULL;
		if (item)
			*item = found;
		else
			survey_path_done(&found);
	}
	return 0;
}

bool survey_is_collection(const struct host *host, const char *path)
{
	static const char *const collections[] = {"/.local", "/.local/share", "/.local/state", "/.config", "/.cache"};

	for (size_t i = 0; host->real_home && i < ARRAY_LEN(collections); i++)
		if (path_is_within(path, host->real_home) && !strcmp(path + strlen(host->real_home), collections[i]))
			return true;
	return false;
}

/* X of X/bin, where X is no directory of everything: home, what holds it, or what holds other programs' secrets. */
static bool root_of(const struct host *host, const char *directory, char root[PATH_MAX])
{
	size_t len = strlen(directory);

	if (len <= 4 || len >= PATH_MAX || strcmp(directory + len - 4, "/bin") != 0)
		return false;
	memcpy(root, directory, len - 4);
	root[len - 4] = '\0';
	return !survey_is_collection(host, root) && !path_is_within(host->real_home, root);
}

static int add_program_directory(struct host *host, const struct policy *policy, const char *program)
{
	char directory[PATH_MAX], root[PATH_MAX];
	struct stat status;
	char *slash;

	/* What is not executable is no program. */
	if (lstat(program, &status) < 0 || !S_ISREG(status.st_mode) || !(status.st_mode & 0111))
		return 0;
	snprintf(directory, sizeof(directory), "%s", program);
	slash = strrchr(directory, '/');
	if (!slash)
		return 0;
	*slash = '\0';
	if (root_of(host, directory, root) && tool_tree(host, root)) {
		int rc = add_toolchain(host, root);

		return rc == 0 ? survey_add_environment_of(host, policy, directory) : rc;
	}
	return add_if(host, program, true);
}

/* The program behind @link, which is held by a directory of links and counts for that. */
static int add_program(struct host *host, const struct policy *policy, const char *link)
{
	struct string_list links = {0};
	char program[PATH_MAX];
	int rc = resolve(host, link, 1, program, &links);

	/* A file that is no link is shown with its directory. */
	if (rc == 0 && links.count && !strcmp(links.items[0], link)) {
		rc = add_program_directory(host, policy, program);
		if (rc == 0)
			rc = survey_toolchain_add_links(host, &links, 1, host->real_home);
	}
	string_list_done(&links);
	return rc == -ENOMEM ? rc : 0;
}

/* Installers put links to programs elsewhere below home into one directory, where users do not work. */
static int add_linked_programs(struct host *host, const struct policy *policy, const char *directory)
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
			rc = add_program(host, policy, path);
	}
	if (entries)
		closedir(entries);
	return rc;
}

/* With the links on the way to it, so that it is found in the jar under the same name. */
static int add_need(struct host *host, const char *path)
{
	struct string_list links = {0};
	char resolved[PATH_MAX];
	int rc = resolve(host, path, 0, resolved, &links);

	if (rc == 0)
		rc = add_toolchain(host, resolved);
	if (rc == 0)
		rc = survey_toolchain_add_links(host, &links, 0, host->real_home);
	string_list_done(&links);
	return rc == -ENOMEM ? rc : 0;
}

int survey_toolchain_add_needs(struct host *host, const char *const *needs)
{
	char path[PATH_MAX];
	int rc = 0;

	for (; host->real_home && *needs && rc == 0; needs++)
		if (snprintf(path, sizeof(path), "%s/%s", host->real_home, *needs) < (int)sizeof(path))
			rc = add_need(host, path);
	return rc;
}

static int add_known(struct host *host, const struct policy *policy, const struct host_toolchain *toolchain,
		     const char *directory)
{
	int rc = survey_toolchain_add_needs(host, toolchain->needs);

	return rc == 0 && toolchain->has_links ? add_linked_programs(host, policy, directory) : rc;
}

static int add_directory(struct host *host, const struct policy *policy, const char *directory)
{
	const char *below = directory + strlen(host->real_home) + 1;
	char root[PATH_MAX];

	for (const struct host_toolchain *toolchain = survey_toolchains; toolchain->directory; toolchain++)
		if (!strcmp(below, toolchain->directory))
			return add_known(host, policy, toolchain, directory);
	return add_toolchain(host, root_of(host, directory, root) ? root : directory);
}

static int add_entry(struct host *host, const struct policy *policy, const char *entry)
{
	bool has_home = host->real_home && strcmp(host->real_home, "/") != 0;
	struct string_list links = {0};
	char resolved[PATH_MAX];
	int rc = has_home ? resolve(host, entry, 0, resolved, &links) : -EXDEV;

	if (rc == 0)
		rc = add_directory(host, policy, resolved);
	if (rc == 0)
		rc = survey_toolchain_add_links(host, &links, 0, host->real_home);
	string_list_done(&links);
	return rc == -ENOMEM ? rc : survey_add_environment_of(host, policy, entry);
}

int survey_find_toolchains(struct host *host, const struct policy *policy)
{
	const char *path = NULL;
	char entry[PATH_MAX];
	int rc = 0;

	for (char *const *variable = host->environment; variable && *variable; variable++)
		if (!strncmp(*variable, "PATH=", 5))
			path = *variable + 5;
	while (path && rc == 0) {
		size_t len = strcspn(path, ":");

		if (len < sizeof(entry)) {
			memcpy(entry, path, len);
			entry[len] = '\0';
			rc = add_entry(host, policy, entry);
		}
		path = path[len] ? path + len + 1 : NULL;
	}
	return rc == 0 ? survey_add_named_pythons(host, policy) : rc;
}
