/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_git_named.h - which files a git configuration makes git run or obey
 */
#ifndef BELLJAR_HOST_HOST_GIT_NAMED_H
#define BELLJAR_HOST_HOST_GIT_NAMED_H

#include "host/host_git.h"

struct git_named {
	const char *path;    /* as it is written: absolute, "~/...", or relative ... */
	bool is_beside_file; /* ... to the directory of the configuration, else to the top of the work tree */
	bool is_include;     /* another configuration file */
	bool is_only_file;   /* a word of a command: it counts if a file has that name */
	bool is_pattern;     /* every file counts that it matches (host_git_command.h) */
	bool is_told;        /* it is not named as it is: a change is reported, and nothing is held */
	bool is_only_new;    /* it counts if it appears */
	const char *who;     /* what git does with it */
};

/* False: no more of them. */
typedef bool git_named_function(void *context, const struct git_named *named);

struct git_configured {
	bool has_programs;       /* it makes git run something */
	bool is_cut_off;         /* a command in it is longer than is read */
	size_t hash_bytes;       /* of the repository's objects */
	char worktree[PATH_MAX]; /* where it says that the work tree is, from the repository's own directory; or "" */
};

/* As git_config_parse(), with a call for each file that is named. What is known of @configured stays if there is nothing new. */
int git_config_named(const char *text, size_t len, git_named_function *each, void *context,
		     struct git_configured *configured);

#endif
