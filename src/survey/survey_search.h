/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_search.h - find one thing in the directories that a command may write, with every link on the way to it
 *
 * For survey_watch.c and survey_git_search.c alone. The search looks beneath directories that were opened before, and
 * ignores everything outside them, which the command cannot write.
 */
#ifndef BELLJAR_SURVEY_SURVEY_SEARCH_H
#define BELLJAR_SURVEY_SURVEY_SEARCH_H

#include <limits.h>

#include "survey/survey_watch.h"

/* The workdir, its repository, and the other directories that the command may write. */
#define SEARCH_OWN_ROOTS 4
#define SEARCH_ROOTS_MAX 20

/* A directory that the command may write in, and the descriptor for looking beneath it. */
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
	bool is_following; /* guided by git's own files instead of a table */
	size_t repositories;
	bool has_programs;
	bool has_failed; /* no memory */
};

/* Take @bytes from the budget. Returns false if it has fewer. */
bool survey_search_spend_bytes(struct search *search, uint64_t bytes);
/* Return the innermost root that contains @path, or NULL. */
const struct search_root *survey_search_root_of(const struct search *search, const char *path);
/* Return the part of @path behind the root's own; "" for the root itself. */
const char *survey_search_beneath(const struct search_root *root, const char *path);
/* Open @name in @root, through no link and without waiting. */
int survey_search_open(const struct search_root *root, const char *name, int flags);

/*
 * In the functions below @as has the kind and the `who` that uses the file; without a `who` they record nothing.
 *
 * Look at @path without following a link in its root. Returns false if there is a link, or if no root contains it.
 */
bool survey_search_find_plain(struct search *search, const char *path, const struct watched *as,
			      enum path_kind *kind_out);
/* Record every link on the way to @path, and set @path to the object's own. Returns false if nothing is there. */
bool survey_search_resolve(struct search *search, char path[PATH_MAX], const struct watched *as);
/* Record the object at @path and every link on the way. Returns the object's kind, and sets @path to its own. */
enum path_kind survey_search_find_at(struct search *search, char path[PATH_MAX], const struct watched *as);
enum path_kind survey_search_find(struct search *search, const struct watched *as, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Record a file that does not exist yet; @how: what of it will count. */
void survey_search_note_absent(struct search *search, const char *named, const struct watched *as,
			       const struct risk_extra *how);

#endif
