/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_search.h - find one thing in the directories that a command may write, with every link on the way to it
 *
 * For survey_watch.c and survey_git_search.c alone. Everything is looked up beneath directories that were opened before; what lies outside of them is
 * not the command's, and is passed over.
 */
#ifndef BELLJAR_SURVEY_SURVEY_SEARCH_H
#define BELLJAR_SURVEY_SURVEY_SEARCH_H

#include <limits.h>

#include "survey/survey_watch.h"

/* The workdir, its repository, and what other directories the command may write. */
#define SEARCH_OWN_ROOTS 4
#define SEARCH_ROOTS_MAX 20

/* A directory that the command may write in, and how to look into it without being led astray. */
struct search_root {
	const char *path;
	int fd;
	bool is_grant; /* named writable: what is in it is reported, not protected */
};

struct search {
	const struct host *host;
	struct search_root roots[SEARCH_ROOTS_MAX];
	size_t root_count;
	struct watch_list *found;
	struct host_path_list *pinned;
	struct watch_budget *budget;
	int64_t settled_ns;
	bool is_following; /* by what git's files say, and no longer by a table */
	size_t repositories;
	bool has_programs;
	bool has_failed; /* no memory */
};

/* May so much be read? */
bool survey_search_spend_bytes(struct search *search, uint64_t bytes);
/* The innermost root that @path lies in; NULL: none. */
const struct search_root *survey_search_root_of(const struct search *search, const char *path);
/* What is behind the root's own path; "" for the root itself. */
const char *survey_search_beneath(const struct search_root *root, const char *path);
/* Open @name in @root, through no link and without waiting. */
int survey_search_open(const struct search_root *root, const char *name, int flags);

/*
 * In what follows @as has the kind, and who obeys it; without a `who` a thing is only looked at, else it is remembered.
 *
 * Look at @path without following a link in its root; false: there is a link, or it lies in no root.
 */
bool survey_search_find_plain(struct search *search, const char *path, const struct watched *as,
			      enum path_kind *kind_out);
/* Remember every link on the way to @path, which becomes the path of the object itself; false: there is none. */
bool survey_search_resolve(struct search *search, char path[PATH_MAX], const struct watched *as);
/* Both: what is at @path, and every link on the way to it. The kind of the object is returned, @path becomes its own. */
enum path_kind survey_search_find_at(struct search *search, char path[PATH_MAX], const struct watched *as);
enum path_kind survey_search_find(struct search *search, const struct watched *as, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* It is not there yet; @how says what of it will count. */
void survey_search_note_absent(struct search *search, const char *named, const struct watched *as,
			       const struct risk_extra *how);

#endif
