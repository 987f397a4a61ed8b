/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_git_named.h - find the files that git runs or reads because of its configuration
 */
#ifndef BELLJAR_SURVEY_SURVEY_GIT_NAMED_H
#define BELLJAR_SURVEY_SURVEY_GIT_NAMED_H

#include "survey/survey_git.h"

struct git_named {
	const char *path;    /* as it is written: absolute, "~/...", or relative ... */
	bool is_beside_file; /* ... to the directory of the configuration, else to the top of the work tree */
	bool is_include;     /* another configuration file */
	bool is_only_file;   /* a word of a command: it counts if a file has that name */
	const char *who;     /* what git does with it */
};

/* False: no more of them. */
typedef bool git_named_function(void *context, const struct git_named *named);

struct git_configured {
	bool has_programs;       /* it makes git run something */
	char worktree[PATH_MAX]; /* where it says that the work tree is, from the repository's own directory; or "" */
};

/* As survey_git_config_parse(), with a call for each file that is named. What is known of @configured stays if there is nothing new. */
int survey_git_config_named(const char *text, size_t len, git_named_function *each, void *context,
			    struct git_configured *configured);

/*
 * Call @each for every word of a command that may be the name of a file. This is no shell: it cuts the command at every
 * character that could end a word, whatever the quoting, so it finds each `dir/file` without spaces in its name. Behind a
 * variable or a substitution ("$PWD/x", "$(...)/x") it reports the rest, for the work tree and for home.
 */
void survey_git_command_named(const char *command, git_named_function *each, void *context);

#endif
