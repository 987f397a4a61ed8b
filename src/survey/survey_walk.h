/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_walk.h - walk through directories that a command has written, and separate old names from new ones
 *
 * For the files of survey/ that search a project after a run. A walk opens everything beneath one directory, through no
 * link, up to a bound. Times of change, which no command can set, show which files the run touched.
 */
#ifndef BELLJAR_SURVEY_SURVEY_WALK_H
#define BELLJAR_SURVEY_SURVEY_WALK_H

#include <limits.h>
#include <sys/types.h>

#include <sys/stat.h>

#include "survey/survey_risky.h"
#include "survey/survey_watch.h"

/* The most names that one walk lists. */
#define WALK_ENTRIES_MAX 16384

/* The time of the last change, which no command can set. */
static inline int64_t survey_changed_ns(const struct stat *status)
{
	return (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec;
}

static inline bool survey_is_ascii(const char *name)
{
	while (*name && !(*name & 0x80))
		name++;
	return !*name;
}

struct walk {
	const struct risky_request *request;
	const struct watch_list *now;
	struct risky_list *risky;
	struct host_moment start;
	bool is_protected; /* these directories were read-only in the jar */
	const char *top;   /* its path */
	dev_t device;      /* ... and the file system that it is on */
	int fd;
	size_t entries, repositories;
	const struct tree *tree;    /* the one to search; NULL: none */
	struct watch_budget budget; /* for repositories */
};

/* One name in a directory that is being listed. */
struct listed {
	const char *directory; /* its path, below the walk's top */
	int fd;                /* open on it: the name can be looked at without a second way there */
	const char *name;
	unsigned char type; /* DT_DIR, DT_LNK or DT_REG, which stands for all others */
};

typedef void walk_function(struct walk *walk, void *context, const struct listed *entry);

/* A path, made only for the few entries that count. */
struct walk_name {
	char text[PATH_MAX + NAME_MAX + 2]; /* below the walk's top; one that is too long is not found there */
};

/* Whether something changed before the run, or during it; UNCLEAR: the file system's clock ticks too slowly to tell. */
enum age { AGE_OLD, AGE_UNCLEAR, AGE_NEW };

/* Does a file system of this type take times from this kernel's clock? *@counts_directories: as in struct tree. */
bool survey_walk_has_own_clock(unsigned long type, bool *counts_directories);
/* Open the directory to walk through; walk->fd is the caller's to close. */
bool survey_walk_begin(struct walk *walk, const struct host_path *top);
/* Return the part of @path below the top. */
const char *survey_walk_below_top(const struct walk *walk, const char *path);
const char *survey_walk_join(struct walk_name *name, const char *directory, const char *entry);

/* Call @each for the names in the directory @name, except "." and "..". Report a directory that the command closed. */
void survey_walk_list(struct walk *walk, const char *name, walk_function *each, void *context);
/* The same for an open directory. Returns false if not all names were read. */
bool survey_walk_read(struct walk *walk, const struct listed *in, walk_function *each, void *context);
/* Report that @name below the walk's top was not searched, or only in part. */
void survey_walk_leave_out(struct walk *walk, const char *name);
/* Open @name beneath the walk's top, through no link. */
int survey_walk_open(const struct walk *walk, const char *name, int flags);

/* Return when @name below the walk's top itself last changed; 0: it does not exist. */
int64_t survey_walk_changed_at(const struct walk *walk, const char *name);
enum age survey_walk_age(const struct walk *walk, int64_t changed_ns);
/* Judge the directories on the way to @name: a command may have renamed one, with all that is in it. */
enum age survey_walk_age_of_way(const struct walk *walk, const char *name);

#endif
