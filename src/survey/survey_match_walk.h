/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_match_walk.h - the walk of survey_match.c: regions of a jar, and the matches in them
 *
 * For survey_match.c alone.
 */
#ifndef BELLJAR_SURVEY_SURVEY_MATCH_WALK_H
#define BELLJAR_SURVEY_SURVEY_MATCH_WALK_H

#include <limits.h>

#include "survey/survey.h"
#include "survey/survey_globs.h"

/* A directory or a file that the jar shows. */
struct region {
	const char *inner; /* its path in the jar */
	const char *outer; /* where it is, without links */
	bool is_project;   /* the caller's own work, not the operating system's */
};

/* A directory that is still to be listed. */
struct spot {
	char *inner, *outer;
	uint64_t *set;
	bool has_secrets; /* `hide_secrets` applies in it */
};

/* A file whose other names the walk looks for. */
struct twin {
	dev_t device;
	ino_t inode;
	const char *path; /* the name that is known */
};

struct matching {
	const struct host *host;
	const char *key;
	bool is_hiding;
	struct globs globs;
	LIST_TYPE(struct region, region_list) regions;
	LIST_TYPE(struct spot, spot_list) queue;
	LIST_TYPE(struct twin, twin_list) twins;
	struct host_match_list found;
	size_t directories, entries;
	struct error *error;
};

/* Record the error, and return it. */
int survey_matching_no_memory(struct matching *matching);
/* Call survey_resolve() without recording links. */
int survey_matching_resolve(const char *path, char resolved[PATH_MAX]);
bool survey_matching_has_region(const struct matching *matching, const char *inner);
/* Walk from the directory @outer on, which is @inner in the jar, with the set @set. */
int survey_matching_walk(struct matching *matching, const char *inner, const char *outer, const uint64_t *set);
/* The same in all regions; @has_secrets: `hide_secrets` applies in those of the project. */
int survey_matching_walk_regions(struct matching *matching, bool has_secrets);
/* Look in the regions of the project for other names of matching->twins. */
int survey_matching_walk_twins(struct matching *matching);
void survey_matches_done(struct host_match_list *matches);
void survey_matching_done(struct matching *matching);

#endif
