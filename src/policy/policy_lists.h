/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_lists.h - add to and take from the lists of a policy
 *
 * Adding copies its arguments. A new entry replaces an earlier one for the same place or name, so the lists never hold
 * both. Errors: -ENOMEM, and -E2BIG if the list is full.
 */
#ifndef BELLJAR_POLICY_POLICY_LISTS_H
#define BELLJAR_POLICY_POLICY_LISTS_H

#include "policy/policy.h"

#define POLICY_MAX_ENTRIES                                                                                             \
	1000 /* of each list; the same limit as for documents, so that a printed policy can be loaded */

/* Add a mount; it replaces any mount or tmpfs with the same dest. */
int policy_add_mount(struct policy *policy, const char *path, const char *dest, enum mount_access access,
		     bool is_optional);
/* Add a tmpfs; it replaces any mount or tmpfs with the same path. */
int policy_add_tmpfs(struct policy *policy, const char *path, uint64_t size_bytes);
int policy_add_env(struct policy *policy, const char *name, const char *value);
/* For hide, pass_env and redact. */
int policy_add_string(struct string_list *list, const char *string);

void policy_clear_mounts(struct policy *policy, enum mount_access access);
void policy_clear_tmpfs(struct policy *policy);
void policy_clear_env(struct policy *policy);

const struct policy_mount *policy_find_mount(const struct policy *policy, const char *dest);
const struct policy_tmpfs *policy_find_tmpfs(const struct policy *policy, const char *path);
const struct policy_env *policy_find_env(const struct policy *policy, const char *name);
bool policy_string_list_has(const struct string_list *list, const char *string);

#endif
