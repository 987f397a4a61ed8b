/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/imagined_host.h - a host that does not exist, for the planner
 *
 * Its files are a list of lines: "/etc/passwd" is a file, "/usr/" a directory, "/bin -> usr/bin" a symbolic link,
 * "/run/x.sock =" something else, "/root/secret !13" a path that answers with errno 13. Directories above what is listed
 * are there too. imagined_survey() finds in them what survey_host() finds on a real host.
 */
#ifndef BELLJAR_TESTS_UNIT_IMAGINED_HOST_H
#define BELLJAR_TESTS_UNIT_IMAGINED_HOST_H

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "survey/survey.h"
#include "survey/survey_names.h"
#include "survey/survey_paths.h"

struct imagined_file {
	char path[512];
	char target[512];
	enum path_kind kind;
	int error;
};

struct imagined_files {
	struct imagined_file items[512];
	size_t count;
};

static inline void imagine_file(struct imagined_files *files, const char *line)
{
	struct imagined_file *file;
	const char *space = strchr(line, ' ');
	size_t len = space ? (size_t)(space - line) : strlen(line);

	if (files->count == ARRAY_LEN(files->items) || len >= sizeof(file->path))
		abort();
	file = &files->items[files->count++];
	*file = (struct imagined_file){.kind = PATH_FILE};
	if (len > 1 && line[len - 1] == '/') {
		file->kind = PATH_DIRECTORY;
		len--;
	}
	memcpy(file->path, line, len);
	if (space && !strncmp(space, " -> ", 4)) {
		file->kind = PATH_SYMLINK;
		snprintf(file->target, sizeof(file->target), "%s", space + 4);
	} else if (space && space[1] == '!') {
		file->kind = PATH_ABSENT;
		file->error = atoi(space + 2);
	} else if (space) {
		file->kind = PATH_OTHER;
	}
}

/* What stands at @path, of which only the last name may be a symbolic link. */
static inline struct imagined_file imagined_look(const struct imagined_files *files, const char *path)
{
	struct imagined_file found = {.kind = PATH_ABSENT, .error = ENOENT};
	size_t len = strlen(path);

	if (!strcmp(path, "/"))
		return (struct imagined_file){.kind = PATH_DIRECTORY};
	for (size_t i = files->count; i-- > 0;) {
		if (!strcmp(files->items[i].path, path))
			return files->items[i];
		if (!strncmp(files->items[i].path, path, len) && files->items[i].path[len] == '/')
			found = (struct imagined_file){.kind = PATH_DIRECTORY};
	}
	return found;
}

/* survey_resolve() in the imagined files; @followed may be NULL. Returns 0 or a positive errno. */
static inline int imagined_follow(const struct imagined_files *files, const char *path, char resolved[PATH_MAX],
				  struct string_list *followed)
{
	char rest[PATH_MAX], next[PATH_MAX];
	int links = 0;

	snprintf(rest, sizeof(rest), "%s", path);
	resolved[0] = '\0';
	for (const char *at = rest; *at;) {
		size_t len = strcspn(at, "/"), done = strlen(resolved);
		struct imagined_file file;

		if (!len || (len == 1 && at[0] == '.')) {
			at += len + (at[len] == '/');
			continue;
		}
		if (len == 2 && !strncmp(at, "..", 2)) {
			char *slash = strrchr(resolved, '/');

			if (slash)
				*slash = '\0';
			at += len + (at[len] == '/');
			continue;
		}
		snprintf(resolved + done, PATH_MAX - done, "/%.*s", (int)len, at);
		file = imagined_look(files, resolved);
		if (file.kind == PATH_ABSENT)
			return file.error;
		at += len;
		if (file.kind == PATH_SYMLINK) {
			if (++links > 40)
				return ELOOP;
			if (followed)
				string_list_add(followed, resolved);
			snprintf(next, sizeof(next), "%s%s", file.target, at);
			snprintf(rest, sizeof(rest), "%s", next);
			resolved[file.target[0] == '/' ? 0 : done] = '\0';
			at = rest;
		} else if (*at && file.kind != PATH_DIRECTORY) {
			return ENOTDIR;
		}
		at += *at == '/' && at != rest;
	}
	if (!resolved[0])
		snprintf(resolved, PATH_MAX, "/");
	return 0;
}

static inline int imagined_resolve(const struct imagined_files *files, const char *path, char resolved[PATH_MAX])
{
	return imagined_follow(files, path, resolved, NULL);
}

static inline struct host_path imagined_path(const struct imagined_files *files, const char *path)
{
	struct imagined_file file = imagined_look(files, path);
	ino_t inode = 1;

	for (const char *at = path; *at; at++)
		inode = inode * 31 + (unsigned char)*at;
	return (struct host_path){
		.path = strdup(path),
		.target = file.kind == PATH_SYMLINK ? strdup(file.target) : NULL,
		.kind = file.kind,
		.mode = 0644,
		.device = 1,
		.inode = inode,
	};
}

static inline void imagined_add(struct host_path_list *list, const struct imagined_files *files, const char *path)
{
	struct host_path *item;

	if (imagined_look(files, path).kind == PATH_ABSENT)
		return;
	item = list_add(list);
	if (!item)
		abort();
	*item = imagined_path(files, path);
}

static inline void imagined_add_resolved(struct host_path_list *list, const struct imagined_files *files,
					 const char *path)
{
	char resolved[PATH_MAX];
	struct host_path *item = list_add(list);
	struct string_list links = {0};
	int error = imagined_follow(files, path, resolved, &links);

	if (!item)
		abort();
	*item = error ? (struct host_path){.path = strdup(path), .error = error} : imagined_path(files, resolved);
	item->links = links;
}

/* As survey_host() does it: the nearest mount around the place says where it lies on the host. */
static inline void imagined_add_inside(struct host *host, struct host_path_list *list,
				       const struct imagined_files *files, const struct policy *policy,
				       const char *path, size_t skipped)
{
	const struct host_path_list *lists[] = {&host->system, &host->toolchains};
	const struct host_path *single[] = {&host->workdir.path, &host->workdir.top};
	const struct policy_mount *nearest = NULL;
	char on_host[2 * PATH_MAX];
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_LEN(single); i++)
		if (single[i]->path && path_is_within(path, single[i]->path))
			len = MAX_OF(len, strlen(single[i]->path));
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++)
			if (path_is_within(path, lists[i]->items[j].path))
				len = MAX_OF(len, strlen(lists[i]->items[j].path));
	for (size_t i = 0; i < policy->mounts.count; i++) {
		const struct policy_mount *mount = &policy->mounts.items[i];

		if (i == skipped)
			continue;
		if (!strcmp(mount->path, mount->dest)) {
			if (path_is_within(path, host->mounts.items[i].path))
				len = MAX_OF(len, strlen(host->mounts.items[i].path));
		} else if (path_is_within(path, mount->dest) &&
			   (!nearest || strlen(mount->dest) >= strlen(nearest->dest))) {
			nearest = mount;
		}
	}
	if (nearest && strlen(nearest->dest) < len)
		nearest = NULL;
	snprintf(on_host, sizeof(on_host), "%s%s", nearest ? nearest->path : "",
		 nearest && nearest->dest[1] ? path + strlen(nearest->dest) : path);
	imagined_add_resolved(list, files, on_host);
}

static inline void imagined_guards(struct host_workdir *workdir, const struct imagined_files *files, const char *top)
{
	char path[PATH_MAX], parent[PATH_MAX];

	snprintf(path, sizeof(path), "%s/.git", top);
	if (imagined_look(files, path).kind == PATH_FILE)
		imagined_add(&workdir->protected, files, path);
	for (const struct host_name *name = survey_protected_names; name->name; name++) {
		size_t count = workdir->protected.count;

		snprintf(path, sizeof(path), "%s/%s", top, name->name);
		imagined_add(&workdir->protected, files, path);
		if (workdir->protected.count == count)
			continue;
		for (const char *slash = strchr(path + strlen(top) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
			bool is_known = false;

			snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
			for (size_t i = 0; i < workdir->pinned.count; i++)
				is_known |= !strcmp(workdir->pinned.items[i].path, parent);
			if (!is_known)
				imagined_add(&workdir->pinned, files, parent);
		}
	}
}

/* @unfit as in struct host_workdir; a repository is looked for above the workdir, up to the home directory. */
static inline void imagined_workdir(struct host *host, const struct imagined_files *files, const char *path,
				    const char *unfit)
{
	struct host_workdir *workdir = &host->workdir;
	char directory[PATH_MAX], git[PATH_MAX + 8];

	struct string_list links = {0};

	if (imagined_follow(files, path, directory, &links) != 0)
		abort();
	workdir->path = imagined_path(files, directory);
	workdir->path.links = links;
	workdir->unfit = unfit;
	imagined_guards(workdir, files, workdir->path.path);
	while (directory[0] && strcmp(directory, host->real_home ? host->real_home : "/") != 0) {
		snprintf(git, sizeof(git), "%s/.git", directory);
		if (imagined_look(files, git).kind == PATH_DIRECTORY) {
			workdir->git = imagined_path(files, git);
			if (strcmp(directory, workdir->path.path) != 0) {
				workdir->top = imagined_path(files, directory);
				imagined_guards(workdir, files, directory);
			}
			return;
		}
		*strrchr(directory, '/') = '\0';
	}
}

static inline void imagined_names(struct host_path_list *list, const struct imagined_files *files, const char *prefix,
				  const char *const *names)
{
	char path[PATH_MAX];

	for (; *names; names++) {
		snprintf(path, sizeof(path), "%s%s", prefix, *names);
		imagined_add(list, files, path);
	}
}

/* As survey_host() does it: the directories between @root and @path, and @path itself. */
static inline void imagined_pin(struct host *host, const struct imagined_files *files, const struct host_path *root,
				const struct host_path *path)
{
	char part[PATH_MAX];

	if (root->kind != PATH_DIRECTORY || path->kind == PATH_ABSENT || !path_is_within(path->path, root->path))
		return;
	for (size_t len = root->path[1] ? strlen(root->path) + 1 : 1; len <= strlen(path->path); len++) {
		bool is_known = false;

		if (path->path[len] && path->path[len] != '/')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)len, path->path);
		for (size_t i = 0; i < host->nested.count; i++)
			is_known |= !strcmp(host->nested.items[i].path, part);
		if (!is_known && imagined_look(files, part).kind == PATH_DIRECTORY && strcmp(part, root->path) != 0)
			imagined_add(&host->nested, files, part);
	}
}

static inline void imagined_pin_all(struct host *host, const struct imagined_files *files, const struct host_path *root)
{
	const struct host_workdir *workdir = &host->workdir;
	const struct host_path *single[] = {&host->skeletons, &workdir->path, &workdir->top, &workdir->git_own,
					    &workdir->git};
	bool has_own_git = workdir->git.path && !path_is_within(workdir->git.path, workdir->path.path);
	const struct host_path_list *lists[] = {&host->mounts,       &host->places, &host->hidden,
						&host->tmpfs_places, &host->system, &host->etc};

	for (size_t i = 0; i < ARRAY_LEN(single) - !has_own_git; i++)
		imagined_pin(host, files, root, single[i]);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++)
			imagined_pin(host, files, root, &lists[i]->items[j]);
	for (size_t i = 0; i < host->own.count; i++)
		if (!i || !path_is_within(host->own.items[i].path, host->own.items[0].path))
			imagined_pin(host, files, root, &host->own.items[i]);
}

/* The store of the layer @number, as if one had just been made; with @frozen_count checkpoints below it. */
static inline void imagined_layer(struct host *host, const struct imagined_files *files, const char *path,
				  size_t frozen_count)
{
	struct host_layer *layer = list_add(&host->layers);
	size_t number = host->layers.count;
	char store[64];

	if (!layer)
		abort();
	layer->path = imagined_path(files, path);
	layer->group = host->gid;
	snprintf(store, sizeof(store), "/home/u/.local/state/belljar/ws/%zu", number);
	layer->store = (struct host_path){.path = strdup(store), .kind = PATH_DIRECTORY, .inode = 1000 + number};
	snprintf(store, sizeof(store), "/home/u/.local/state/belljar/ws/%zu/upper", number);
	layer->upper = (struct host_path){.path = strdup(store), .kind = PATH_DIRECTORY, .inode = 2000 + number};
	for (size_t i = 0; i < frozen_count; i++) {
		struct host_path *frozen = list_add(&layer->frozen);

		if (!frozen)
			abort();
		snprintf(store, sizeof(store), "/home/u/.local/state/belljar/ws/%zu-%zu/upper", number, i);
		*frozen = (struct host_path){.path = strdup(store), .kind = PATH_DIRECTORY, .inode = 3000 + i};
	}
}

/* What survey_layers() finds, and a store for each. */
static inline void imagined_layers(struct host *host, const struct imagined_files *files, const struct policy *policy,
				   size_t frozen_count)
{
	struct host_path *stores;

	if (policy->workspace == WORKSPACE_COW && host->workdir.path.path && policy->workdir_mode == WORKDIR_RW) {
		imagined_layer(host, files, host->workdir.path.path, frozen_count);
		host->has_workdir_layer = true;
	}
	for (size_t i = 0; i < policy->cow_dirs.count; i++) {
		imagined_add_resolved(&host->cow_places, files, policy->cow_dirs.items[i]);
		imagined_layer(host, files, policy->cow_dirs.items[i], 0);
	}
	stores = host->layers.count ? list_add(&host->stores) : NULL;
	if (stores)
		*stores = (struct host_path){
			.path = strdup("/home/u/.local/state/belljar/ws"), .kind = PATH_DIRECTORY, .inode = 999};
}

/* Everything but toolchains, which need the caller's PATH and are given by name. */
static inline void imagined_survey(struct host *host, const struct imagined_files *files, const struct policy *policy,
				   const char *current_directory, const char *unfit)
{
	if (policy->workdir_choice != WORKDIR_PRIVATE)
		imagined_workdir(host, files, policy->workdir ? policy->workdir : current_directory, unfit);
	if (policy->has_system) {
		imagined_names(&host->system, files, "", survey_system_names);
		imagined_names(&host->etc, files, "/etc/", survey_etc_names);
	}
	for (const char *const *name = survey_device_names; *name; name++) {
		struct host_path *device = list_add(&host->devices);
		char path[64];

		if (!device)
			abort();
		snprintf(path, sizeof(path), "/dev/%s", *name);
		*device = imagined_path(files, path);
		device->kind = PATH_OTHER;
	}
	for (size_t i = 0; i < policy->mounts.count; i++)
		imagined_add_resolved(&host->mounts, files, policy->mounts.items[i].path);
	for (size_t i = 0; i < policy->mounts.count; i++)
		imagined_add_inside(host, &host->places, files, policy, policy->mounts.items[i].dest, i);
	for (size_t i = 0; i < policy->hide.count; i++)
		imagined_add_inside(host, &host->hidden, files, policy, policy->hide.items[i], SIZE_MAX);
	for (size_t i = 0; i < policy->tmpfs.count; i++)
		imagined_add_inside(host, &host->tmpfs_places, files, policy, policy->tmpfs.items[i].path, SIZE_MAX);
	for (size_t i = 0; i < policy->files.count; i++)
		imagined_add_resolved(&host->policy_files, files, policy->files.items[i]);
	imagined_pin_all(host, files, &host->workdir.path);
	imagined_pin_all(host, files, &host->workdir.git);
	for (size_t i = 0; i < policy->mounts.count; i++)
		if (policy->mounts.items[i].access == MOUNT_RW)
			imagined_pin_all(host, files, &host->mounts.items[i]);
}

#endif
