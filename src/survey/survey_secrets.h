/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_secrets.h - does a path lead to a place of secrets, and may a command have led it there?
 */
#ifndef BELLJAR_SURVEY_SURVEY_SECRETS_H
#define BELLJAR_SURVEY_SURVEY_SECRETS_H

#include <limits.h>

#include "survey/survey.h"

/* Of the place of secrets that @path is or lies in: "it holds passwords"; NULL: it is in none. @home may be NULL. */
const char *survey_secret_at(const char *home, const char *path);
/* The whole path of a name of survey_secret_names that begins with "~/"; false: it is no such name, or there is no home. */
bool survey_secret_in_home(const char *home, const char *name, char path[PATH_MAX]);
/* What is wrong with @path as a workdir: it is in a place of secrets, or around one by name (~/.config); NULL: nothing. */
const char *survey_why_secret(const struct host *host, const char *path);
/*
 * Set path->planted: a link on the way that belongs to the caller and lies where a workdir may be. Commands work in such
 * places as the caller, so one of them may have made it. Links of root, in "/" or in the home directory do not count.
 */
void survey_find_planted(const struct host *host, struct host_path *path);

#endif
