/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_value.h - check one value, from a flag or a document, and put it into a policy
 */
#ifndef BELLJAR_POLICY_POLICY_VALUE_H
#define BELLJAR_POLICY_POLICY_VALUE_H

#include "base/json_read.h"
#include "policy/policy_origin.h"

#define POLICY_TYPE_COUNT (POLICY_EXTENDS + 1)
#define POLICY_FORMAT_VERSION 1
#define POLICY_MIN_REDACT_BYTES 4
#define POLICY_MAX_HOSTNAME_BYTES 64

/* Set the key from the word after a flag; append to a list. A failure leaves the policy unchanged. */
int policy_set_text(struct policy *policy, const char *text, const struct policy_origin *origin);

/* Set @origin->key from a document; a list replaces the policy's list, or with @is_append extends it. */
int policy_set_json(struct policy *policy, const struct json_value *value, bool is_append,
		    const struct policy_origin *origin);

/* Does the pattern of pass_env, or the narrower pattern, match? "LC_*" matches "LC_ALL" and "LC_A*". */
bool policy_name_matches(const char *pattern, const char *name);

/* Return the member of @policy for @key. */
static inline void *policy_member(struct policy *policy, const struct policy_key *key)
{
	return (char *)policy + key->offset;
}

static inline const void *policy_const_member(const struct policy *policy, const struct policy_key *key)
{
	return (const char *)policy + key->offset;
}

/* `ro` and `rw` are one list; which half of it a key stands for is in its name. */
static inline enum mount_access policy_key_access(const struct policy_key *key)
{
	return key->name[1] == 'w' ? MOUNT_RW : MOUNT_RO;
}

#endif
