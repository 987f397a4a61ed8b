/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_document.h - read a policy document, and lay its keys over a policy
 */
#ifndef BELLJAR_POLICY_POLICY_DOCUMENT_H
#define BELLJAR_POLICY_POLICY_DOCUMENT_H

#include <sys/stat.h>

#include "base/json_read.h"
#include "policy/policy_origin.h"

/* A policy file that was read: its bytes, and where its relative paths start. */
struct policy_file {
	struct text bytes;
	char *directory;
	dev_t device; /* device and inode tell it from any other, whatever the path */
	ino_t inode;
};

void policy_file_done(struct policy_file *file);

/* Where the file is that the caller named; a relative name starts at the current directory. */
int policy_file_path(const char *name, const struct policy_context *context, char **path_out, struct error *error);

/*
 * Read the regular file at @path (absolute); anything else is refused, and never waited for. @name stands in messages;
 * @origin is the `extends` that named it, or NULL.
 */
int policy_file_read(const char *path, const char *name, const struct policy_origin *origin, struct policy_file *out,
		     struct error *error);

/* Parse a document that must be an object. */
int policy_document_parse(const char *bytes, size_t len, const char *name, struct json_value *out, struct error *error);

/* The key of a member; unknown ones are refused. */
int policy_document_key(const struct json_member *member, const struct policy_source *source,
			const struct policy_key **out);

/* Lay one member, or all of them, over the policy, and mark them as given. See policy_set_json() for @is_append. */
int policy_document_apply_member(struct policy *policy, const struct policy_key *key, const struct json_member *member,
				 bool is_append, const struct policy_source *source);
int policy_document_apply(struct policy *policy, const struct json_value *document, bool is_append,
			  const struct policy_source *source);

#define AUTO_POLICY_FILE AUTO(policy_file_done) struct policy_file

#endif
