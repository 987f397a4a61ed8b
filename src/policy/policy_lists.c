/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_lists.c - the lists of a policy: adding, taking away, copying, freeing
 *
 * Adding an entry applies "same path twice: the last wins". So the order of the parts does not matter once a policy is
 * complete, and a printed policy keeps its meaning.
 */
#include "policy/policy_lists.h"

#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "policy/policy_build.h"

static void mount_done(struct policy_mount *mount)
{
	free(mount->path);
	free(mount->dest);
}

static void env_done(struct policy_env *env)
{
	free(env->name);
	free(env->value);
}

#define REMOVE_AT(list, index)                                                                                         \
	memmove(&(list)->items[index], &(list)->items[(index) + 1],                                                    \
		(--(list)->count - (index)) * sizeof(*(list)->items))

static void remove_mount_at(struct policy *policy, size_t index)
{
	mount_done(&policy->mounts.items[index]);
	REMOVE_AT(&policy->mounts, index);
}

static void remove_tmpfs_at(struct policy *policy, size_t index)
{
	free(policy->tmpfs.items[index].path);
	REMOVE_AT(&policy->tmpfs, index);
}

static void remove_place(struct policy *policy, const char *dest)
{
	const struct policy_mount *mount = policy_find_mount(policy, dest);
	const struct policy_tmpfs *tmpfs = policy_find_tmpfs(policy, dest);

	if (mount)
		remove_mount_at(policy, (size_t)(mount - policy->mounts.items));
	if (tmpfs)
		remove_tmpfs_at(policy, (size_t)(tmpfs - policy->tmpfs.items));
}

static size_t count_mounts(const struct policy *policy, enum mount_access access)
{
	size_t count = 0;

	for (size_t i = 0; i < policy->mounts.count; i++)
		count += policy->mounts.items[i].access == access;
	return count;
}

int policy_add_mount(struct policy *policy, const char *path, const char *dest, enum mount_access access,
		     bool is_optional)
{
	AUTO_FREE char *own_path = strdup(path), *own_dest = strdup(dest);
	const struct policy_mount *earlier = policy_find_mount(policy, dest);
	unsigned order = policy->mounts.count ? policy->mounts.items[policy->mounts.count - 1].order + 1 : 0;
	size_t count = count_mounts(policy, access) - (earlier && earlier->access == access);

	if (count >= POLICY_MAX_ENTRIES)
		return -E2BIG;
	if (!own_path || !own_dest || !list_add(&policy->mounts))
		return -ENOMEM;
	policy->mounts.count--; /* the room exists; nothing can fail from here on */
	remove_place(policy, own_dest);
	policy->mounts.items[policy->mounts.count++] = (struct policy_mount){
		.path = take_ptr(own_path),
		.dest = take_ptr(own_dest),
		.access = access,
		.is_optional = is_optional,
		.order = order,
	};
	return 0;
}

int policy_add_tmpfs(struct policy *policy, const char *path, uint64_t size_bytes)
{
	AUTO_FREE char *own_path = strdup(path);

	if (policy->tmpfs.count - (policy_find_tmpfs(policy, path) != NULL) >= POLICY_MAX_ENTRIES)
		return -E2BIG;
	if (!own_path || !list_add(&policy->tmpfs))
		return -ENOMEM;
	policy->tmpfs.count--; /* the room exists; nothing can fail from here on */
	remove_place(policy, own_path);
	policy->tmpfs.items[policy->tmpfs.count++] = (struct policy_tmpfs){
		.path = take_ptr(own_path),
		.size_bytes = size_bytes,
	};
	return 0;
}

int policy_add_env(struct policy *policy, const char *name, const char *value)
{
	AUTO_FREE char *own_name = strdup(name), *own_value = strdup(value);
	const struct policy_env *earlier = policy_find_env(policy, name);
	struct policy_env *env;

	if (!own_name || !own_value)
		return -ENOMEM;
	if (earlier) {
		env = &policy->env.items[earlier - policy->env.items];
		env_done(env);
	} else {
		if (policy->env.count >= POLICY_MAX_ENTRIES)
			return -E2BIG;
		env = list_add(&policy->env);
		if (!env)
			return -ENOMEM;
	}
	env->name = take_ptr(own_name);
	env->value = take_ptr(own_value);
	return 0;
}

int policy_add_string(struct string_list *list, const char *string)
{
	if (policy_string_list_has(list, string))
		return 0;
	if (list->count >= POLICY_MAX_ENTRIES)
		return -E2BIG;
	return string_list_add(list, string);
}

void policy_clear_mounts(struct policy *policy, enum mount_access access)
{
	for (size_t i = policy->mounts.count; i-- > 0;) {
		if (policy->mounts.items[i].access == access)
			remove_mount_at(policy, i);
	}
}

void policy_clear_tmpfs(struct policy *policy)
{
	for (size_t i = 0; i < policy->tmpfs.count; i++)
		free(policy->tmpfs.items[i].path);
	policy->tmpfs.count = 0;
}

void policy_clear_env(struct policy *policy)
{
	for (size_t i = 0; i < policy->env.count; i++)
		env_done(&policy->env.items[i]);
	policy->env.count = 0;
}

const struct policy_mount *policy_find_mount(const struct policy *policy, const char *dest)
{
	for (size_t i = 0; i < policy->mounts.count; i++) {
		if (strcmp(policy->mounts.items[i].dest, dest) == 0)
			return &policy->mounts.items[i];
	}
	return NULL;
}

const struct policy_tmpfs *policy_find_tmpfs(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->tmpfs.count; i++) {
		if (strcmp(policy->tmpfs.items[i].path, path) == 0)
			return &policy->tmpfs.items[i];
	}
	return NULL;
}

const struct policy_env *policy_find_env(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->env.count; i++) {
		if (strcmp(policy->env.items[i].name, name) == 0)
			return &policy->env.items[i];
	}
	return NULL;
}

bool policy_string_list_has(const struct string_list *list, const char *string)
{
	for (size_t i = 0; i < list->count; i++) {
		if (strcmp(list->items[i], string) == 0)
			return true;
	}
	return false;
}

void policy_done(struct policy *policy)
{
	if (!policy)
		return;
	policy_clear_mounts(policy, MOUNT_RO);
	policy_clear_mounts(policy, MOUNT_RW);
	policy_clear_tmpfs(policy);
	policy_clear_env(policy);
	free(policy->mounts.items);
	free(policy->tmpfs.items);
	free(policy->env.items);
	string_list_done(&policy->hide);
	string_list_done(&policy->cow_dirs);
	string_list_done(&policy->allow_net);
	string_list_done(&policy->publish);
	string_list_done(&policy->secrets);
	string_list_done(&policy->pass_env);
	string_list_done(&policy->redact);
	string_list_done(&policy->files);
	free(policy->workdir);
	free(policy->cd);
	free(policy->hostname);
	free(policy->workspace_name);
	*policy = (struct policy){0};
}

static int copy_lists(const struct policy *from, struct policy *to)
{
	int rc = 0;

	for (size_t i = 0; i < from->mounts.count && rc == 0; i++) {
		const struct policy_mount *mount = &from->mounts.items[i];

		rc = policy_add_mount(to, mount->path, mount->dest, mount->access, mount->is_optional);
		if (rc == 0)
			to->mounts.items[i].order = mount->order, to->mounts.items[i].is_pattern = mount->is_pattern;
	}
	for (size_t i = 0; i < from->tmpfs.count && rc == 0; i++)
		rc = policy_add_tmpfs(to, from->tmpfs.items[i].path, from->tmpfs.items[i].size_bytes);
	for (size_t i = 0; i < from->env.count && rc == 0; i++)
		rc = policy_add_env(to, from->env.items[i].name, from->env.items[i].value);
	if (rc == 0)
		rc = string_list_copy(&to->hide, &from->hide);
	if (rc == 0)
		rc = string_list_copy(&to->cow_dirs, &from->cow_dirs);
	if (rc == 0)
		rc = string_list_copy(&to->allow_net, &from->allow_net);
	if (rc == 0)
		rc = string_list_copy(&to->publish, &from->publish);
	if (rc == 0)
		rc = string_list_copy(&to->secrets, &from->secrets);
	if (rc == 0)
		rc = string_list_copy(&to->pass_env, &from->pass_env);
	if (rc == 0)
		rc = string_list_copy(&to->redact, &from->redact);
	if (rc == 0)
		rc = string_list_copy(&to->files, &from->files);
	return rc;
}

static int copy_string(const char *from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

int policy_copy(const struct policy *from, struct policy *out)
{
	AUTO(policy_done) struct policy copy = *from;
	int rc;

	/* Owned members start empty; the assignment has copied the rest. */
	memset(&copy.mounts, 0, sizeof(copy.mounts));
	memset(&copy.tmpfs, 0, sizeof(copy.tmpfs));
	memset(&copy.env, 0, sizeof(copy.env));
	copy.hide = copy.cow_dirs = copy.allow_net = copy.secrets = copy.publish = copy.pass_env = copy.redact =
		copy.files = (struct string_list){0};
	copy.workdir = copy.cd = copy.hostname = copy.workspace_name = NULL;

	rc = copy_lists(from, &copy);
	if (rc == 0)
		rc = copy_string(from->workdir, &copy.workdir);
	if (rc == 0)
		rc = copy_string(from->cd, &copy.cd);
	if (rc == 0)
		rc = copy_string(from->hostname, &copy.hostname);
	if (rc == 0)
		rc = copy_string(from->workspace_name, &copy.workspace_name);
	if (rc < 0)
		return rc;
	*out = copy;
	copy = (struct policy){0};
	return 0;
}
