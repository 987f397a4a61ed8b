/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_tree.h - remember the directories that commands may write in, so that a search after a run costs little
 *
 * A tree lists each directory once. After a run it reads the time of change of each, which no command can set, and
 * lists only those that changed. A long-lived engine also has the kernel watch them, so that a run costs only its
 * changes. The tree lists directories that tools fill (node_modules, target ...), but does not descend into them.
 */
#ifndef BELLJAR_SURVEY_SURVEY_TREE_H
#define BELLJAR_SURVEY_SURVEY_TREE_H

#include "base/text.h"
#include "survey/survey.h"
#include "survey/survey_judge.h"

/* Directories beyond these are left out, and the result says so. */
#define TREE_NODES_MAX 65536
#define TREE_ENTRIES_MAX 32768 /* names in one directory: listing them takes some milliseconds */

enum tree_flag {
	TREE_IS_GONE = 1 << 0,
	TREE_IS_LISTED = 1 << 1,
	TREE_IS_SKIMMED = 1 << 2, /* not listed: no name in it was new, and it contains no directories */
	TREE_IS_FRESH = 1 << 3, /* changed so shortly before it was listed that another change may show the same time */
	TREE_IS_DIRTY = 1 << 4, /* the kernel reported a new name in it */
	TREE_IS_IN_GIT = 1 << 5,   /* in a repository's own directory, or that directory */
	TREE_IS_GIT = 1 << 6,      /* a repository's own directory */
	TREE_IS_IN_OTHER = 1 << 7, /* the same for repositories of other programs */
	TREE_IS_FILLED = 1 << 8,
	TREE_HAS_GIT = 1 << 9,            /* a name that git takes for `.git` is in it */
	TREE_HAS_OTHER_LETTERS = 1 << 10, /* some name in it is not of ASCII letters alone */
	TREE_IS_LEFT_OUT = 1 << 11,       /* it could not be listed, or not whole */
	TREE_IS_ARRIVED =
		1 << 12, /* it was not there when the directory above was listed: made, or moved with all in it */
	TREE_IS_COUNTED = 1 << 13, /* because of its name everything in it counts */
	TREE_IS_CLOSED = 1 << 14, /* its permissions kept the search out; once they do not, its content counts as new */
};

struct tree_node {
	char *path;                      /* below the tree's top; "" for the top itself */
	uint32_t parent, child, sibling; /* indexes; 0: none (the top is no child and no sibling) */
	unsigned flags;
	unsigned bare; /* a bit for each of survey_git_bare_names */
	int watch;     /* the kernel's number for it; 0: none */
	dev_t device;
	ino_t inode;
	int64_t changed_ns;       /* its time of change when it was listed or skimmed */
	struct string_list names; /* names in it that may be judged risky, and links in repositories */
};

LIST_TYPE(struct tree_node, tree_node_list);

struct tree {
	char *path;
	dev_t device;
	ino_t inode;
	int fd;
	unsigned users;
	bool has_own_clock;          /* times are of this kernel's clock */
	bool counts_directories;     /* a directory without others in it has two links, and no other has */
	struct tree_node_list nodes; /* a parent comes before its children */
	size_t next;                 /* all before this one are listed, skimmed or gone */
	size_t skimmed;              /* number of nodes that are only skimmed */
	size_t next_skimmed;         /* none before this one is skimmed */
	size_t gone;                 /* number of nodes whose directory is gone */
	/*
	 * A bit for each node that a search has to look at. Without it: the kernel watches the directory, reported
	 * nothing, and no name in it counts.
	 */
	uint64_t *marks;
	size_t mark_capacity; /* nodes that there is room for */
	bool is_settled;      /* a search has been through all nodes, so the marks hold */
	bool has_left;        /* a directory went since the last search ended */
	int64_t newest_ns;    /* the latest time of change of any node */
	struct risk_names known;
	/* the kernel's watches */
	int watch_fd; /* -1: none */
	bool is_watch_tried;
	uint32_t *by_watch;
	size_t watch_capacity, watch_count, watch_max;
	bool is_lost; /* the kernel dropped events: every directory has to be asked */
};

/* One name in a directory that the tree has just listed. */
struct tree_entry {
	const struct tree_node *node;
	int fd; /* open on the directory */
	const char *name;
	unsigned char type; /* DT_DIR, DT_LNK, or DT_REG, which stands for all others */
};
typedef void tree_function(void *context, const struct tree_entry *entry);

/* Make a tree. @is_git: the top is a repository's own directory. NULL: out of memory, or the top is gone. */
struct tree *survey_tree_new(const struct host_path *top, bool is_git);
/* Take another reference; each holder calls survey_tree_free(). */
struct tree *survey_tree_hold(struct tree *tree);
void survey_tree_free(struct tree *tree);
bool survey_tree_is_of(const struct tree *tree, const struct host_path *top);
/* Are most of its nodes gone? Then a new tree is smaller. */
bool survey_tree_is_worn(const struct tree *tree);
/* Have the kernel watch directories listed from now on, if it can. @taken: the watches of other trees. */
void survey_tree_watch(struct tree *tree, size_t taken);

/* List up to @count directories that were not listed yet. Returns false if none are left. */
bool survey_tree_grow(struct tree *tree, size_t count);
/* Read the kernel's events. Call this before the first survey_tree_check() of a search. */
void survey_tree_take_events(struct tree *tree);
/* After a run: list a directory again if it may have changed since it was listed, with @each name that is in it. */
struct tree_check {
	int64_t old_ns; /* what changed before this changed before the run */
	bool may_skim;  /* a directory that was never listed, in which no name can be new */
	tree_function *each;
	void *context;
};
enum tree_news { TREE_UNCHANGED, TREE_SKIMMED, TREE_LISTED };
enum tree_news survey_tree_check(struct tree *tree, size_t index, const struct tree_check *check);

/* Return the first node from @index on that a search for changes since @old_ns must look at, or nodes.count. */
size_t survey_tree_next_to_look(const struct tree *tree, size_t index, int64_t old_ns);
/* Note that the search has looked at @index; @is_news: something in it counts in every run. */
void survey_tree_looked(struct tree *tree, size_t index, bool is_news);
/* Note that the search has seen all nodes. */
void survey_tree_end_search(struct tree *tree);

/* Is this a directory that tools fill, by its name? */
bool survey_tree_is_filled(const char *name);

#endif
