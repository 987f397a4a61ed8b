/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_same.c - compare two surveys
 */
#include "survey/survey_same.h"

#include <string.h>

static bool is_same_text(const char *left, const char *right)
{
	return left && right ? !strcmp(left, right) : left == right;
}

static bool is_same_way(const struct string_list *left, const struct string_list *right)
{
	if (left->count != right->count)
		return false;
	for (size_t i = 0; i < left->count; i++)
		if (strcmp(left->items[i], right->items[i]) != 0)
			return false;
	return true;
}

static bool is_same_path(const struct host_path *left, const struct host_path *right)
{
	return left->kind == right->kind && left->device == right->device && left->inode == right->inode &&
	       left->error == right->error && is_same_text(left->path, right->path) &&
	       is_same_text(left->target, right->target) && is_same_way(&left->links, &right->links);
}

static bool is_same_list(const struct host_path_list *left, const struct host_path_list *right)
{
	if (left->count != right->count)
		return false;
	for (size_t i = 0; i < left->count; i++)
		if (!is_same_path(&left->items[i], &right->items[i]))
			return false;
	return true;
}

/* Small files of it are copied, and stale also where only their content has changed. */
static bool is_same_etc(const struct host_path_list *left, const struct host_path_list *right)
{
	if (!is_same_list(left, right))
		return false;
	for (size_t i = 0; i < left->count; i++)
		if (left->items[i].kind == PATH_FILE && left->items[i].changed_ns != right->items[i].changed_ns)
			return false;
	return true;
}

static bool is_same_workdir(const struct host_workdir *left, const struct host_workdir *right)
{
	return is_same_path(&left->path, &right->path) && is_same_text(left->unfit, right->unfit) &&
	       is_same_path(&left->top, &right->top) && is_same_path(&left->git, &right->git) &&
	       is_same_path(&left->git_own, &right->git_own) && left->has_git_file == right->has_git_file &&
	       is_same_path(&left->refused_git, &right->refused_git) &&
	       is_same_text(left->refused_why, right->refused_why) &&
	       is_same_list(&left->protected, &right->protected) && is_same_list(&left->pinned, &right->pinned);
}

static bool is_same_unshown(const struct host_unshown_list *left, const struct host_unshown_list *right)
{
	if (left->count != right->count)
		return false;
	for (size_t i = 0; i < left->count; i++)
		if (!is_same_text(left->items[i].path, right->items[i].path) ||
		    !is_same_text(left->items[i].base, right->items[i].base) ||
		    !is_same_text(left->items[i].why, right->items[i].why))
			return false;
	return true;
}

static bool is_same_caller(const struct host *left, const struct host *right)
{
	return left->uid == right->uid && left->gid == right->gid && is_same_text(left->home, right->home) &&
	       is_same_text(left->real_home, right->real_home) && is_same_text(left->git_name, right->git_name) &&
	       is_same_text(left->git_email, right->git_email) &&
	       left->is_caller_elsewhere == right->is_caller_elsewhere &&
	       left->argument_bytes_max == right->argument_bytes_max;
}

static bool is_same_kernel(const struct host *left, const struct host *right)
{
	return left->has_user_namespaces == right->has_user_namespaces &&
	       left->has_id_mapped_mounts == right->has_id_mapped_mounts && left->has_seccomp == right->has_seccomp &&
	       left->landlock_abi == right->landlock_abi &&
	       !memcmp(left->speculation, right->speculation, sizeof(left->speculation)) &&
	       left->has_task_clock == right->has_task_clock && left->hides_processes == right->hides_processes &&
	       left->hides_jar == right->hides_jar && left->memory_bytes == right->memory_bytes &&
	       left->inotify_instances == right->inotify_instances && left->inotify_watches == right->inotify_watches;
}

bool survey_is_same(const struct host *left, const struct host *right)
{
	return is_same_kernel(left, right) && is_same_caller(left, right) &&
	       is_same_text(left->uncounted_path, right->uncounted_path) &&
	       is_same_workdir(&left->workdir, &right->workdir) && is_same_list(&left->system, &right->system) &&
	       is_same_etc(&left->etc, &right->etc) && is_same_list(&left->toolchains, &right->toolchains) &&
	       is_same_unshown(&left->unshown, &right->unshown) &&
	       is_same_list(&left->path_directories, &right->path_directories) &&
	       is_same_list(&left->devices, &right->devices) && is_same_list(&left->mounts, &right->mounts) &&
	       is_same_list(&left->nested, &right->nested) && is_same_list(&left->places, &right->places) &&
	       is_same_list(&left->hidden, &right->hidden) && is_same_list(&left->tmpfs_places, &right->tmpfs_places) &&
	       is_same_list(&left->cow_places, &right->cow_places) && is_same_list(&left->own, &right->own) &&
	       is_same_list(&left->stores, &right->stores);
}
