/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_paths.h - look at paths of the host, for the files of survey/
 */
#ifndef BELLJAR_SURVEY_SURVEY_PATHS_H
#define BELLJAR_SURVEY_SURVEY_PATHS_H

#include <limits.h>

#include "base/paths.h"
#include "survey/survey.h"

/* Return DIRECTORY/NAME, which the caller frees; NULL: out of memory. */
char *survey_path_join(const char *directory, const char *name);
/* Is it absolute, without ".", ".." and repeated slashes? realpath() would change only links in it. */
bool survey_path_is_clean(const char *path);

/* Is it "/", "/usr", "/etc/ssh", ..., which commands must not write? */
bool survey_is_system_directory(const char *path);

/* Return why @path may not be a workdir or be shown as a whole, such as "it is a home directory"; NULL: it may. */
const char *survey_why_unfit(const struct host *host, const char *path);
/*
 * Return @path, or the host directory around it, that commands of this policy write to or earlier ones may have written
 * to; NULL: none. Needs the workdir and host->mounts.
 */
const char *survey_written_around(const struct host *host, const struct policy *policy, const char *path);

/* Look at @path itself (a symbolic link is not followed). A path that does not exist is PATH_ABSENT, not an error. */
int survey_look(struct host_path *path_out, const char *path);
/*
 * Resolve the absolute @path, and list every symbolic link on the way, as far as it goes. Returns -ENOENT, -ELOOP ...
 * on failure. Names can change meanwhile, so the caller must not follow links when it uses @resolved.
 */
int survey_resolve(const char *path, char resolved[PATH_MAX], struct string_list *links);
/*
 * Look at the object at the absolute @path; follow and record symbolic links. If nothing is there, record the error.
 * The common case, no link on the way, takes one system call instead of one for each directory.
 */
int survey_look_through(struct host_path *path_out, const char *path);
/* Is the absolute @path free of symbolic links? Returns 1: yes, it is its own real path; 0: unknown; -ENOENT. */
int survey_is_plain(const char *path);
/*
 * Look at @name below the directory @top_fd, whose path is @top, and follow no symbolic link, so that the object is
 * really in it. Behind a link it is PATH_ABSENT with the error ELOOP. If nothing is there, @path_out has no path.
 */
int survey_look_beneath(struct host_path *path_out, int top_fd, const char *top, const char *name);
/* Open @top for looking beneath it, if it is still the same object. Returns a descriptor or a negative errno. */
int survey_open_top(const struct host_path *top);
void survey_path_done(struct host_path *path);
void survey_path_list_done(struct host_path_list *list);
/* Call survey_look() into a new item of @list; skip a path that does not exist. */
int survey_path_list_look(struct host_path_list *list, const char *path);

int survey_path_list_copy(struct host_path_list *list, const struct host_path *path);

/* Call survey_look_beneath() into a new item of @list. Returns 1, 0 if it does not exist (no item), -ELOOP ... */
int survey_path_list_look_beneath(struct host_path_list *list, int top_fd, const char *top, const char *name);

#endif
