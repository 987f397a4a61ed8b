/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_paths.h - questions about paths, shared by the files of survey/
 */
#ifndef BELLJAR_SURVEY_SURVEY_PATHS_H
#define BELLJAR_SURVEY_SURVEY_PATHS_H

#include <limits.h>

#include "base/paths.h"
#include "survey/survey.h"

/* DIRECTORY/NAME, to be freed; NULL: no memory. */
char *survey_path_join(const char *directory, const char *name);
/* Absolute, with neither "." nor ".." in it, and one slash between two names: what realpath() would not change but for links. */
bool survey_path_is_clean(const char *path);

/* "/", "/usr", "/etc/ssh", ...: nothing that a command should be able to write. */
bool survey_is_system_directory(const char *path);

/* Why @path may not be a workdir, nor the top of anything shown as a whole: "it is a home directory"; NULL: it may. */
const char *survey_why_unfit(const struct host *host, const char *path);
/*
 * @path itself, or the host directory around it, that commands of this policy write to, or earlier ones may have; NULL: there is none. Needs
 * the workdir and host->mounts.
 */
const char *survey_written_around(const struct host *host, const struct policy *policy, const char *path);

/* Look at @path itself (a symbolic link is not followed). A path that does not exist is PATH_ABSENT, not an error. */
int survey_look(struct host_path *path_out, const char *path);
/*
 * Where the absolute @path really is, and every symbolic link on the way, as far as the way goes. -ENOENT, -ELOOP ...
 * Names can change meanwhile: whoever uses @resolved must follow no link.
 */
int survey_resolve(const char *path, char resolved[PATH_MAX], struct string_list *links);
/*
 * The object at the absolute @path, symbolic links followed and remembered; where there is none, the error. The common
 * case, no link on the way, is one look instead of one at each directory above it.
 */
int survey_look_through(struct host_path *path_out, const char *path);
/* Does the way to the absolute @path lead through no symbolic link? 1: yes, it is its own real path; 0: unknown; -ENOENT. */
int survey_is_plain(const char *path);
/*
 * The same for @name below the directory @top_fd, whose path is @top: no symbolic link is followed on the way there, so
 * that what is found is really in it. What can only be reached through a link is PATH_ABSENT with the error ELOOP.
 */
/* @path_out has no path where nothing is there. */
int survey_look_beneath(struct host_path *path_out, int top_fd, const char *top, const char *name);
/* A descriptor for looking beneath @top, which must still be the object that was seen; a negative errno. */
int survey_open_top(const struct host_path *top);
void survey_path_done(struct host_path *path);
void survey_path_list_done(struct host_path_list *list);
/* survey_look() into a new item of @list; what does not exist is left out. */
int survey_path_list_look(struct host_path_list *list, const char *path);

int survey_path_list_copy(struct host_path_list *list, const struct host_path *path);

/* survey_look_beneath() into a new item of @list; what does not exist is left out: then 0, with an item 1, -ELOOP ... */
int survey_path_list_look_beneath(struct host_path_list *list, int top_fd, const char *top, const char *name);

#endif
