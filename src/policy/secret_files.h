/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/secret_files.h - names of files that usually hold secrets in a project: what `hide_secrets` hides
 */
#ifndef BELLJAR_POLICY_SECRET_FILES_H
#define BELLJAR_POLICY_SECRET_FILES_H

#include "base/json_read.h"
#include "base/json_write.h"

enum secret_file {
	SECRET_NONE,
	SECRET_BY_NAME,
	SECRET_BY_CONTENT, /* it is one if policy_secret_file_has() says so of its first bytes */
};

/* How many bytes to read from the beginning of a file whose content decides. */
#define SECRET_FILE_BYTES 65536
/* Room for a row as a pattern. */
#define SECRET_GLOB_BYTES 64

/* *@glob_out: the row of the table. */
enum secret_file policy_secret_file_of(const char *name, const char **glob_out);
bool policy_secret_file_has(const char *glob, const char *content, size_t len);
/* Is it a directory that tools fill, or a repository's own? Its content is not the project's. */
bool policy_secret_file_is_tools(const char *directory);
/* Of a printed policy. */
#define SECRET_GLOBS_MEMBER "hide_secrets_globs"
/* The list of all of them, an exception with '!' before it, as the member @key. */
void policy_secret_files_write(struct json_writer *writer, const char *key);
bool policy_secret_files_are(const struct json_value *list);

#endif
