/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_paths.h - paths as people write them: '~', relative ones, PATH:DEST
 *
 * This code does not access the file system. It removes repeated slashes and '.'. A host path keeps '..', whose meaning
 * depends on symbolic links; a path that names a place in the jar may not have one.
 */
#ifndef BELLJAR_POLICY_POLICY_PATHS_H
#define BELLJAR_POLICY_POLICY_PATHS_H

#include "policy/policy_origin.h"

#define POLICY_MAX_PATH_BYTES 4095

enum path_rule {
	PATH_HOST,   /* relative ones start at the source's directory */
	PATH_PLACE,  /* a place in the jar, named by its host path: the same, and no '..' */
	PATH_DEST,   /* a place in the jar: absolute, no '..' */
	PATH_INSIDE, /* in the jar, relative to the workdir: stays relative */
};

/* *@out is owned by the caller. Errors are recorded in the source's error. */
int policy_clean_path(const char *given, enum path_rule rule, const struct policy_origin *origin, char **out);

/*
 * Split "FIRST[:SECOND]", where "\:" is a colon that does not split; *@second_out is NULL if there is none. Both are
 * owned by the caller.
 */
int policy_split_path(const char *given, const struct policy_origin *origin, char **first_out, char **second_out);

/* Escape one part, the reverse of policy_split_path(). */
void policy_escape_path(struct text *text, const char *path);

#endif
