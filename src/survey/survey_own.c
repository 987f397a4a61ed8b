/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_own.c - find Belljar's own files, which run outside of every jar the next time
 *
 * The engine lies wherever it was installed: after `npm install belljar` or `pip install belljar` in a project that is in the work
 * directory. A command that could write there would choose what the next run executes. So the planner makes the items of
 * host->own read-only in every jar: the programs, the packages that they belong to, and the tree that the package manager
 * installed them into. The tree counts as a whole: a new file in site-packages (belljar.pth), a new name in node_modules
 * (belljar.js) or another link in its .bin runs instead of Belljar.
 *
 * A tree that holds the work directory cannot be read-only as a whole; then the parts of it count that lead to Belljar.
 */
#include "survey/survey_own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/start.h"
#include "survey/survey_paths.h"
#include "base/sys/calls.h"

/* Of one package; more are not looked at. Belljar's own have less than 200. */
#define PACKAGE_FILES_MAX 4096
#define PACKAGE_DEPTH_MAX 16
/* "lib/python3.11/site-packages" lies so deep in an environment. */
#define ENVIRONMENT_DEPTH_MAX 4

/* --- the trees ---------------------------------------------------------------------------------------------- */

static bool exists(const char *directory, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return access(path, F_OK) == 0;
}

/* One item for each path, links followed; what is not there is no item. */
static int add(struct host *host, const char *path)
{
	struct host_path found;
	struct host_path *item;
	bool is_known = false;
	int rc = survey_look_through(&found, path);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < host->own.count && !is_known; i++)
		is_known = !strcmp(host->own.items[i].path, found.path);
	item = is_known || (found.kind != PATH_FILE && found.kind != PATH_DIRECTORY) ? NULL : list_add(&host->own);
	if (item) {
		/* The links on the way are those of host->started_by. */
		string_list_done(&found.links);
		found.links = (struct string_list){0};
		found.planted = NULL;
		*item = found;
		return 0;
	}
	survey_path_done(&found);
	return 0;
}

/* The tree @path, or of one that holds the work directory its @parts. */
static int add_tree(struct host *host, const char *path, const char *const *parts)
{
	const char *workdir = host->workdir.path.path;
	AUTO_FREE char *resolved = realpath(path, NULL);
	int rc = 0;

	if (!resolved || !workdir || !path_is_within(workdir, resolved))
		return add(host, path);
	for (; *parts && rc == 0; parts++) {
		char part[2 * PATH_MAX];

		snprintf(part, sizeof(part), "%s/%s", path, *parts);
		rc = add(host, part);
	}
	return rc;
}

static int add_node_tree(struct host *host, const char *path)
{
	static const char *const parts[] = {".bin", "belljar", "@belljar", NULL};
	const char *at = strstr(path, "/node_modules/");
	char top[PATH_MAX], package[2 * PATH_MAX];
	int rc;

	if (!at)
		return 0;
	snprintf(top, sizeof(top), "%.*s/node_modules", (int)(at - path), path);
	rc = add_tree(host, top, parts);
	for (const char *const *part = parts + 1; *part && rc == 0; part++) {
		snprintf(package, sizeof(package), "%s/%s", top, *part);
		rc = add(host, package);
	}
	return rc;
}

/* The environment that @packages is of; empty: it is of none. */
static void find_environment(const char *packages, char top[PATH_MAX])
{
	snprintf(top, PATH_MAX, "%s", packages);
	for (int i = 0; i < ENVIRONMENT_DEPTH_MAX; i++) {
		char *slash = strrchr(top, '/');

		if (!slash || slash == top)
			break;
		*slash = '\0';
		if (exists(top, "pyvenv.cfg"))
			return;
	}
	top[0] = '\0';
}

static int add_python_tree(struct host *host, const char *path)
{
	static const char *const names[] = {"/site-packages/", "/dist-packages/"};
	char packages[PATH_MAX], top[PATH_MAX], script[2 * PATH_MAX];
	const char *no_parts[] = {NULL, "bin", "pyvenv.cfg", NULL};
	const char *at = NULL;
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(names) && !at; i++)
		at = strstr(path, names[i]);
	if (!at)
		return 0;
	snprintf(packages, sizeof(packages), "%.*s", (int)(at - path) + (int)strlen("/site-packages"), path);
	find_environment(packages, top);
	if (top[0]) {
		no_parts[0] = packages + strlen(top) + 1;
		return add_tree(host, top, no_parts);
	}
	/* PREFIX/lib/python3.11/site-packages: the script is PREFIX/bin/belljar. */
	snprintf(script, sizeof(script), "%s/../../../bin/belljar", packages);
	no_parts[0] = "belljar";
	no_parts[1] = NULL;
	rc = add_tree(host, packages, no_parts);
	return rc < 0 ? rc : add(host, script);
}

/* The Python package around @path, wherever it was unpacked. */
static int add_package(struct host *host, const char *path)
{
	char directory[PATH_MAX];
	char *slash;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (!slash)
		return 0;
	*slash = '\0';
	slash = strrchr(directory, '/');
	if (!slash || strcmp(slash, "/_bin") != 0)
		return 0;
	*slash = '\0';
	return exists(directory, "__init__.py") ? add(host, directory) : 0;
}

/* --- the files ---------------------------------------------------------------------------------------------- */

/* A program or package at @path, with what it belongs to; outer ones first. */
static int add_with_trees(struct host *host, const char *path)
{
	int rc;

	/* What the distribution installed is no command's to write. */
	if (path[0] != '/' || strlen(path) >= PATH_MAX - NAME_MAX || survey_is_system_directory(path))
		return 0;
	rc = add_node_tree(host, path);
	if (rc == 0)
		rc = add_python_tree(host, path);
	if (rc == 0)
		rc = add_package(host, path);
	return rc < 0 ? rc : add(host, path);
}

/* The path that the kernel was given when this program was started. */
static bool path_of_start(char path[PATH_MAX])
{
	const char *name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	char directory[PATH_MAX];
	int len;

	if (!name || !strncmp(name, "/dev/fd/", 8) || !strncmp(name, "/proc/", 6))
		return false;
	if (name[0] == '/')
		len = snprintf(path, PATH_MAX, "%s", name);
	else
		len = getcwd(directory, sizeof(directory)) ? snprintf(path, PATH_MAX, "%s/%s", directory, name) : -1;
	return len > 0 && len < PATH_MAX;
}

/* The path counts only if it still leads to the program that runs: the current directory may be another one by now. */
static int find_start(struct host *host, const char *program)
{
	char path[PATH_MAX];
	int rc;

	if (!path_of_start(path))
		return 0;
	rc = survey_look_through(&host->started_by, path);
	if (rc < 0)
		return rc;
	if (strcmp(host->started_by.path, program) != 0) {
		survey_path_done(&host->started_by);
		return 0;
	}
	return host->started_by.links.count ? add_with_trees(host, path) : 0;
}

/* A program that is not there yet: the program that makes it chooses what the next run with secrets executes. */
static int add_absent(struct host *host, const char *path)
{
	struct host_path item = {.kind = PATH_ABSENT};
	struct host_path *added;

	if (path[0] != '/' || access(path, F_OK) == 0)
		return 0;
	item.path = strdup(path);
	added = item.path ? list_add(&host->own) : NULL;
	if (!added) {
		survey_path_done(&item);
		return -ENOMEM;
	}
	*added = item;
	return 0;
}

/* belljar-prove and belljar, each beside the other: the one starts the other by its own path with or without PROVE_SUFFIX. */
static int add_prove(struct host *host, const char *program)
{
	size_t len = strlen(program), suffix = strlen(PROVE_SUFFIX);
	bool is_prove = len > suffix && !strcmp(program + len - suffix, PROVE_SUFFIX);
	char beside[PATH_MAX + sizeof(PROVE_SUFFIX)];
	int rc;

	if (survey_is_system_directory(program))
		return 0;
	snprintf(beside, sizeof(beside), "%.*s%s", (int)(is_prove ? len - suffix : len), program,
		 is_prove ? "" : PROVE_SUFFIX);
	rc = add(host, beside);
	return rc < 0 ? rc : add_absent(host, beside);
}

static int add_gate(struct host *host, const char *program)
{
	const char *named = survey_variable(host->environment, "BELLJAR_GATE");
	const char *slash = strrchr(program, '/');
	char beside[2 * PATH_MAX];
	int rc = named ? add_with_trees(host, named) : 0;

	if (rc == 0 && named)
		rc = add_absent(host, named);
	if (rc < 0 || survey_is_system_directory(program))
		return rc;
	snprintf(beside, sizeof(beside), "%.*s/belljar-gate", (int)(slash - program), program);
	rc = add(host, beside);
	return rc < 0 ? rc : add_absent(host, beside);
}

int survey_find_own(struct host *host)
{
	const char *package = getenv(HOST_PACKAGE_VARIABLE);
	char program[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	int rc;

	if (len <= 0 || program[0] != '/')
		return 0;
	program[len] = '\0';
	rc = add_with_trees(host, program);
	if (rc == 0)
		rc = find_start(host, program);
	if (rc == 0)
		rc = add_gate(host, program);
	if (rc == 0)
		rc = add_prove(host, program);
	if (rc == 0 && package)
		rc = add_with_trees(host, package);
	return rc;
}

/* --- whether they changed ----------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t number, uint64_t value)
{
	for (int i = 0; i < 64; i += 8)
		number = (number ^ (value >> i & 0xff)) * 1099511628211U;
	return number;
}

/* What no command can set: which object it is, and when it last changed. */
static uint64_t mark_of(const struct stat *status)
{
	const uint64_t facts[] = {status->st_dev, status->st_ino, (uint64_t)status->st_size,
				  (uint64_t)status->st_ctim.tv_sec, (uint64_t)status->st_ctim.tv_nsec};
	uint64_t mark = 14695981039346656037U;

	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		mark = mix(mark, facts[i]);
	return mark;
}

struct package_walk {
	size_t count, depth;
	uint64_t mark; /* a sum: the order of names in a directory does not count */
};

/* What Python compiles while a client runs is no change. */
static void walk_package(struct package_walk *walk, int fd)
{
	DIR *directory = fdopendir(fd);
	const struct dirent *entry;
	struct stat status;

	if (!directory) {
		close(fd);
		return;
	}
	while ((entry = readdir(directory)) && walk->count < PACKAGE_FILES_MAX) {
		int inner;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    !strcmp(entry->d_name, "__pycache__") ||
		    fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		walk->count++;
		if (!S_ISDIR(status.st_mode)) {
			walk->mark += mark_of(&status);
			continue;
		}
		if (walk->depth == PACKAGE_DEPTH_MAX)
			continue;
		inner = openat(dirfd(directory), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner < 0)
			continue;
		walk->depth++;
		walk_package(walk, inner);
		walk->depth--;
	}
	closedir(directory);
}

static bool is_package(const char *path)
{
	const char *name = strrchr(path, '/') + 1;

	return !strcmp(name, "belljar") || !strcmp(name, "@belljar");
}

/* Package managers link the same file into many projects: then a command may have another name of it. */
static bool has_other_names(const struct host *host)
{
	struct stat status;

	for (size_t i = 0; i < host->own.count; i++)
		if (host->own.items[i].kind == PATH_FILE && lstat(host->own.items[i].path, &status) == 0 &&
		    status.st_nlink > 1)
			return true;
	return false;
}

static uint64_t look(const struct host_path *own, bool is_whole)
{
	struct package_walk walk = {0};
	struct stat status;
	int fd;

	/* A link that led nowhere counts once it leads to something. */
	if (own->kind == PATH_ABSENT)
		return stat(own->path, &status) == 0 ? mark_of(&status) : 0;
	if (own->kind == PATH_FILE)
		return lstat(own->path, &status) == 0 ? mark_of(&status) : 0;
	/* Of the trees around the packages other programs may change the rest. */
	if (!is_whole || !is_package(own->path))
		return 0;
	fd = open(own->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 1;
	walk_package(&walk, fd);
	return walk.mark;
}

static bool is_whole(const struct host *host, const struct policy *policy, const struct host_path *own)
{
	return own->kind == PATH_DIRECTORY && is_package(own->path) &&
	       (survey_written_around(host, policy, own->path) || has_other_names(host));
}

int survey_own_look(const struct host *host, const struct policy *policy, struct host_own_marks *out)
{
	struct host_own_marks marks = {.items = calloc(host->own.count + 1, sizeof(*marks.items))};

	if (!marks.items)
		return -ENOMEM;
	for (; marks.count < host->own.count; marks.count++) {
		const struct host_path *own = &host->own.items[marks.count];

		marks.items[marks.count] = look(own, is_whole(host, policy, own));
	}
	*out = marks;
	return 0;
}

const char *survey_own_changed(const struct host *host, const struct policy *policy,
			       const struct host_own_marks *before)
{
	AUTO(survey_own_marks_done) struct host_own_marks now = {0};

	if (!before->items || before->count != host->own.count || survey_own_look(host, policy, &now) < 0)
		return NULL;
	for (size_t i = 0; i < now.count; i++) {
		const struct host_path *own = &host->own.items[i];
		/* Of a kept jar's first survey: no later run takes it for what was always there. */
		bool is_new =
			own->kind == PATH_ABSENT && now.items[i] && survey_written_around(host, policy, own->path);

		if (is_new || (own->kind != PATH_ABSENT && now.items[i] != before->items[i]))
			return own->path;
	}
	return NULL;
}

void survey_own_marks_done(struct host_own_marks *marks)
{
	free(marks->items);
	*marks = (struct host_own_marks){0};
}
