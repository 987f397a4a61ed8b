/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_git.h - what git's own files say: who the caller is, and where a `.git` file leads
 *
 * git itself is never run: in a directory that an untrusted command has written it would execute what it finds there.
 */
#ifndef BELLJAR_SURVEY_SURVEY_GIT_H
#define BELLJAR_SURVEY_SURVEY_GIT_H

#include <limits.h>
#include "base/text.h"
#include "survey/survey.h"

/* A configuration file, a `.git` file or a pointer that is longer is not read at all. */
#define GIT_CONFIG_BYTES_MAX (256 << 10)
#define GIT_POINTER_BYTES_MAX 8192
/* A longer value is passed over. */
#define GIT_VALUE_MAX 1024

/* Both names in lower case. */
struct git_config_key {
	const char *section;
	bool is_sub; /* it is in a subsection: [section "name"] */
	const char *name;
};

typedef void git_config_function(void *context, const struct git_config_key *key, const char *value);

/* Is it @section.@name, and in no subsection? */
bool survey_git_config_is(const struct git_config_key *key, const char *section, const char *name);

/*
 * Read the text of a git configuration file. Values are as git understands them, control characters included. Includes
 * are not followed. 0, or -EINVAL for what git would refuse to read too; the values before that have been reported.
 */
int survey_git_config_parse(const char *text, size_t len, git_config_function *each, void *context);

/* The whole of an open file: a regular one of at most @bytes_max, or the null device. -EISDIR: a directory. */
int survey_git_read_open(int fd, size_t bytes_max, struct text *out);
/* The path in a file of one line, behind @prefix and without the line end. -EINVAL: it is not such a file. */
int survey_git_read_pointer(int fd, const char *prefix, struct text *out);

/* The files of the caller's own configuration, as git looks for them; how many. */
#define GIT_GLOBAL_MAX 2
size_t survey_git_global(char *const *environment, const char *home, char paths[GIT_GLOBAL_MAX][PATH_MAX]);
/* user.name and user.email of the caller's own configuration, or NULL in each: not there, or not readable. */
int survey_git_identity(char *const *environment, const char *home, char **name_out, char **email_out);

/*
 * The repository of a directory whose `.git`, @git_file, is a file: a linked worktree or a submodule. It counts only if
 * the repository knows about it too (see survey_git.c). 1 with both paths filled in, 0 if it does not count, -ENOMEM.
 * In a submodule @own_out is PATH_ABSENT.
 */
int survey_git_follow(const char *git_file, struct host_path *git_out, struct host_path *own_out);

/* Does @path, links not followed, belong to @uid or to root? */
bool survey_git_is_of(uid_t uid, const char *path);
/*
 * Return why the jar of @uid may not see the repository @git, with the worktree's part @own or PATH_ABSENT: another
 * user's repository, or a directory that only has the name, would widen the view. NULL: it may.
 */
const char *survey_git_why_unfit(uid_t uid, const struct host_path *git, const struct host_path *own);

#endif
