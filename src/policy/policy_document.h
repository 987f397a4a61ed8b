/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_document.h - read a policy document, and lay its keys over a policy
 */
#ifndef BELLJAR_POLICY_POLICY_DOCUMENT_H
#define BELLJAR_POLICY_POLICY_DOCUMENT_H

#include <sys/stat.h>

#include "base/json_read.h"
#include "policy/policy_origin.h"

/* A policy file in memory: its bytes, and the base of its relative paths. */
struct policy_file {
	struct text bytes;
	char *directory;
	dev_t device; /* device and inode identify it, independent of the path */
	ino_t inode;
};

void policy_file_done(struct policy_file *file);

/* Find the file that the caller named; a relative name starts at the current directory. */
int policy_file_path(const char *name, const struct policy_context *context, char **path_out, struct error *error);

/*
 * Read the regular file at @path (absolute); refuse anything else, without waiting for it. @name is for messages;
 * @origin is the `extends` that named it, or NULL.
 */
int policy_file_read(const char *path, const char *name, const struct policy_origin *origin, struct policy_file *out,
		     struct error *error);

/* Parse a document that must be an object. */
int policy_document_parse(const char *bytes, size_t len, const char *name, struct json_value *out, struct error *error);

/* Find the key of a member; refuse unknown ones. */
int policy_document_key(const struct json_member *member, const struct policy_source *source,
			const struct policy_key **out);

/* Lay one member, or all of them, over the policy, and mark them as given. See policy_set_json() for @is_append. */
int policy_document_apply_member(struct policy *policy, const struct policy_key *key, const struct json_member *member,
				 bool is_append, const struct policy_source *source);
int policy_document_apply(struct policy *policy, const struct json_value *document, bool is_append,
			  const struct policy_source *source);

#define AUTO_POLICY_FILE AUTO(policy_file_done) struct policy_file

#endif
