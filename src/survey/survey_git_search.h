/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_git_search.h - where git's own files lead: what its configuration names, and the repositories that it looks into
 *
 * For survey_watch.c alone, which says where to begin.
 */
#ifndef BELLJAR_SURVEY_SURVEY_GIT_SEARCH_H
#define BELLJAR_SURVEY_SURVEY_GIT_SEARCH_H

#include "survey/survey_search.h"

/* A repository: what is in a .git directory, wherever it is and whatever it is called. */
struct git_repository {
	const char *git;      /* its directory */
	const char *own;      /* where its index is: another one in a linked work tree */
	const char *worktree; /* NULL: it has none */
	int depth;            /* in how many others */
};

/* What the tables name in a .git directory, at @git. @who NULL: the table says it. */
void survey_git_find_names(struct search *search, const char *git, enum watch_kind kind, const char *who);
/* What the files of a repository lead to. */
void survey_git_find_repository(struct search *search, const struct git_repository *repository);
/* The repository in @directory, which is the work tree of one that git looks into. */
void survey_git_find_nested(struct search *search, const char *directory, int depth, const char *who);
/* What the caller's own configuration and variables make git run. */
void survey_git_find_callers(struct search *search);

#endif
