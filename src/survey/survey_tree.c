/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_tree.c - list directories once, and find out later which of them changed
 *
 * The engine grows a tree while a command runs. A short command ends before that, so the search lists the rest, up to a
 * bound; then it skims: a directory without subdirectories that is older than the run has no new name in it, if the
 * link count tells how many subdirectories there are. A listing opens beneath the top and through no link, because a
 * command may have made the tree. It reads only times and numbers by path: a link shows another object, so a change.
 */
#include "survey/survey_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/directory.h"
#include "survey/survey_names.h"
#include "survey/survey_paths.h"
#include "survey/survey_walk.h"
#include "survey/survey_watch.h"
#include "base/sys/calls.h"

#define LIST_BYTES 32768
/* The most names that a tree remembers of one directory. */
#define NAMES_MAX 1024
#define EVENT_BYTES 16384
/* As in survey_risky.c: a file system's clock ticks at least 100 times in a second. */
#define SETTLING_NS 20000000LL
/* Editors and build tools need watches too, so all trees together take at most one part in this many of the user's. */
#define WATCH_SHARE 4
#define WATCHES_MAX 16384
#define WATCHES_OF_KERNEL "/proc/sys/fs/inotify/max_user_watches"

static const char *const other_repositories[] = {".hg", ".jj", ".sl", ".pijul", "_darcs"};

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcasecmp(name, names[i]))
			return true;
	return false;
}

bool survey_tree_is_filled(const char *name)
{
	for (const char *const *row = survey_filled_names; *row; row++)
		if (!strcmp(name, *row))
			return true;
	return false;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- nodes -------------------------------------------------------------------------------------------------- */

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* git alone names objects: two digits of the hash, then the rest. A branch may be called "objects" too. */
static bool is_of_objects(const struct tree_node *parent, const char *name)
{
	return !strcmp(last_name(parent->path), "objects") && strlen(name) == 2 &&
	       strspn(name, "0123456789abcdef") == 2 && !strstr(parent->path, "/refs/") &&
	       !strstr(parent->path, "/logs/");
}

/* Does the directory @name in @parent make all count that lies in it? */
static bool counts_as_a_whole(const struct tree *tree, const struct tree_node *parent, const char *name)
{
	char path[2 * PATH_MAX];

	if (!survey_risk_is_known_name(&tree->known, name, strlen(name)))
		return false;
	snprintf(path, sizeof(path), "%s%s%s", parent->path, parent->path[0] ? "/" : "", name);
	return survey_risk_counts_as_a_whole(path);
}

/* Does the tree descend into @name in @parent? */
static bool is_followed(const struct tree *tree, const struct tree_node *parent, const char *name)
{
	if (parent->flags & TREE_IS_FILLED)
		return !strcasecmp(name, ".git") || counts_as_a_whole(tree, parent, name);
	/* The hooks are watched as a whole, by the search that knows them from before the run. */
	if (parent->flags & TREE_IS_IN_GIT)
		return !(parent->flags & TREE_IS_GIT && !strcmp(name, "hooks")) && !is_of_objects(parent, name);
	if (parent->flags & TREE_IS_IN_OTHER)
		return survey_risk_is_known_name(&tree->known, name, strlen(name));
	return true;
}

static unsigned flags_below(const struct tree *tree, const struct tree_node *parent, const char *name)
{
	static const unsigned inherited = TREE_IS_IN_GIT | TREE_IS_IN_OTHER | TREE_IS_COUNTED;

	if (parent->flags & inherited)
		return parent->flags & inherited;
	if (!strcasecmp(name, ".git"))
		return TREE_IS_IN_GIT | TREE_IS_GIT;
	if (is_one_of(name, other_repositories, ARRAY_LEN(other_repositories)))
		return TREE_IS_IN_OTHER;
	if (survey_tree_is_filled(name))
		return TREE_IS_FILLED;
	return counts_as_a_whole(tree, parent, name) ? TREE_IS_COUNTED : 0;
}

#define MARK_BITS 64

static void mark(struct tree *tree, size_t index)
{
	if (index < tree->mark_capacity)
		tree->marks[index / MARK_BITS] |= (uint64_t)1 << index % MARK_BITS;
}

/* Room for a mark of each node. Without memory nothing is settled, and every node is looked at. */
static void make_marks(struct tree *tree)
{
	size_t capacity = tree->mark_capacity ? tree->mark_capacity : 256;
	uint64_t *grown;

	while (capacity < tree->nodes.count)
		capacity *= 2;
	if (capacity == tree->mark_capacity)
		return;
	grown = reallocarray(tree->marks, capacity / MARK_BITS, sizeof(*grown));
	if (!grown) {
		tree->is_settled = false;
		return;
	}
	memset(grown + tree->mark_capacity / MARK_BITS, 0xff, (capacity - tree->mark_capacity) / CHAR_BIT);
	tree->marks = grown;
	tree->mark_capacity = capacity;
}

/* What is below it is gone too, which the search finds out by looking at all nodes. */
static void set_gone(struct tree *tree, struct tree_node *node)
{
	if (node->flags & TREE_IS_GONE)
		return;
	node->flags |= TREE_IS_GONE;
	tree->gone++;
	tree->has_left = true;
	tree->is_settled = false;
}

static void set_there(struct tree *tree, struct tree_node *node)
{
	tree->gone -= node->flags & TREE_IS_GONE ? 1 : 0;
	node->flags &= ~(unsigned)TREE_IS_GONE;
}

/* The new node, or 0: no memory, or there are too many. Pointers to nodes are void after this. */
static uint32_t add_node(struct tree *tree, uint32_t parent, const char *name)
{
	struct tree_node *node;
	AUTO_FREE char *path = NULL;

	if (tree->nodes.count >= TREE_NODES_MAX)
		return 0;
	path = tree->nodes.items[parent].path[0] ? survey_path_join(tree->nodes.items[parent].path, name)
						 : strdup(name);
	node = path ? list_add(&tree->nodes) : NULL;
	if (!node)
		return 0;
	node->path = take_ptr(path);
	node->parent = parent;
	node->sibling = tree->nodes.items[parent].child;
	node->flags = flags_below(tree, &tree->nodes.items[parent], name);
	make_marks(tree);
	mark(tree, tree->nodes.count - 1);
	tree->nodes.items[parent].child = (uint32_t)(tree->nodes.count - 1);
	return tree->nodes.items[parent].child;
}

/* --- the kernel's watches ----------------------------------------------------------------------------------- */

void survey_tree_watch(struct tree *tree, size_t taken)
{
	AUTO_CLOSE int fd = open(WATCHES_OF_KERNEL, O_RDONLY | O_CLOEXEC);
	unsigned long share;
	char text[32] = {0};

	tree->is_watch_tried = true;
	/* A file system that others change too, or that has layers, does not report everything. */
	if (tree->watch_fd >= 0 || !tree->counts_directories || fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return;
	share = strtoul(text, NULL, 10) / WATCH_SHARE;
	tree->watch_max = MIN_OF(share > taken ? share - taken : 0, (unsigned long)WATCHES_MAX);
	tree->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	/* What was listed before is not watched: it is asked for its time, until it is listed again. */
}

static void forget_watch(struct tree *tree, struct tree_node *node)
{
	if (node->watch) {
		inotify_rm_watch(tree->watch_fd, node->watch);
		tree->by_watch[node->watch] = 0;
		tree->watch_count--;
	}
	node->watch = 0;
}

static bool has_room_for_watch(struct tree *tree, size_t watch)
{
	size_t capacity = tree->watch_capacity ? tree->watch_capacity : 256;
	uint32_t *grown;

	while (capacity <= watch)
		capacity *= 2;
	if (capacity == tree->watch_capacity)
		return true;
	grown = reallocarray(tree->by_watch, capacity, sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + tree->watch_capacity, 0, (capacity - tree->watch_capacity) * sizeof(*grown));
	tree->by_watch = grown;
	tree->watch_capacity = capacity;
	return true;
}

/* Before the directory is listed, so that no name can come in between. */
static void watch_node(struct tree *tree, uint32_t index, int fd)
{
	struct tree_node *node = &tree->nodes.items[index];
	char path[32];
	int watch;

	if (tree->watch_fd < 0 || (!node->watch && tree->watch_count >= tree->watch_max))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	watch = inotify_add_watch(tree->watch_fd, path, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
	if (watch == node->watch)
		return;
	/* Another directory is in its place now. */
	forget_watch(tree, node);
	if (watch <= 0)
		return;
	if (!has_room_for_watch(tree, (size_t)watch)) {
		inotify_rm_watch(tree->watch_fd, watch);
		return;
	}
	/* A directory that moved keeps its watch, and gets it back under its new name. */
	if (tree->by_watch[watch]) {
		tree->nodes.items[tree->by_watch[watch] - 1].watch = 0;
		mark(tree, tree->by_watch[watch] - 1);
	} else {
		tree->watch_count++;
	}
	tree->by_watch[watch] = index + 1;
	node->watch = watch;
}

static void take_event(struct tree *tree, const struct inotify_event *event)
{
	size_t watch = (size_t)event->wd;
	struct tree_node *node;

	if (event->mask & IN_Q_OVERFLOW)
		tree->is_lost = true;
	if (event->wd <= 0 || watch >= tree->watch_capacity || !tree->by_watch[watch])
		return;
	node = &tree->nodes.items[tree->by_watch[watch] - 1];
	node->flags |= TREE_IS_DIRTY;
	mark(tree, tree->by_watch[watch] - 1);
	if (event->mask & IN_IGNORED) {
		node->watch = 0;
		tree->by_watch[watch] = 0;
		tree->watch_count--;
	}
}

void survey_tree_take_events(struct tree *tree)
{
	_Alignas(struct inotify_event) char events[EVENT_BYTES];
	ssize_t len;

	while (tree->watch_fd >= 0 && (len = read(tree->watch_fd, events, sizeof(events))) > 0)
		for (ssize_t at = 0; at < len;) {
			const struct inotify_event *event = (const struct inotify_event *)(events + at);

			at += (ssize_t)(sizeof(*event) + event->len);
			take_event(tree, event);
		}
}

/* --- listing ------------------------------------------------------------------------------------------------ */

/* The directories that were in a directory when it was listed before, by name. */
struct children {
	const struct tree *tree;
	uint32_t *indexes;
	size_t count;
	bool *is_there;
};

static int compare_names(const void *left, const void *right, void *context)
{
	const struct tree *tree = context;

	return strcmp(last_name(tree->nodes.items[*(const uint32_t *)left].path),
		      last_name(tree->nodes.items[*(const uint32_t *)right].path));
}

static int children_init(struct children *children, const struct tree *tree, uint32_t parent)
{
	size_t count = 0;

	*children = (struct children){.tree = tree};
	for (uint32_t at = tree->nodes.items[parent].child; at; at = tree->nodes.items[at].sibling)
		count++;
	if (!count)
		return 0;
	children->indexes = calloc(count, sizeof(*children->indexes));
	children->is_there = calloc(count, sizeof(*children->is_there));
	if (!children->indexes || !children->is_there)
		return -ENOMEM;
	for (uint32_t at = tree->nodes.items[parent].child; at; at = tree->nodes.items[at].sibling)
		children->indexes[children->count++] = at;
	qsort_r(children->indexes, count, sizeof(*children->indexes), compare_names, (void *)tree);
	return 0;
}

static void children_done(struct children *children)
{
	free(children->indexes);
	free(children->is_there);
}

/* The node of @name, or 0; it is marked as still there. */
static uint32_t children_find(struct children *children, const char *name)
{
	size_t first = 0, last = children->count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		int order = strcmp(name, last_name(children->tree->nodes.items[children->indexes[middle]].path));

		if (order == 0) {
			children->is_there[middle] = true;
			return children->indexes[middle];
		}
		if (order < 0)
			last = middle;
		else
			first = middle + 1;
	}
	return 0;
}

struct listing {
	struct tree *tree;
	uint32_t index;
	int fd;
	struct children children;
	const struct tree_check *check; /* NULL: the tree grows, and no run is over */
	size_t entries;
	bool was_listed; /* before: what is new in it was not there then */
};

static struct tree_node *node_of(const struct listing *listing)
{
	return &listing->tree->nodes.items[listing->index];
}

/*
 * A move changes the time of the directory that moves, and of nothing in it. So what is in one that changed during
 * the run, and was not there when the directory above was listed, may be new too.
 */
static void arrive(struct listing *listing, struct tree_node *node, const struct directory_entry *entry)
{
	struct stat status;

	node->inode = entry->inode;
	if (node_of(listing)->flags & TREE_IS_ARRIVED ||
	    (listing->check && listing->was_listed &&
	     fstatat(listing->fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	     survey_changed_ns(&status) >= listing->check->old_ns))
		node->flags |= TREE_IS_ARRIVED;
}

static void take_directory(struct listing *listing, const struct directory_entry *entry)
{
	uint32_t index = children_find(&listing->children, entry->name);
	struct tree_node *node;

	if (!index) {
		index = add_node(listing->tree, listing->index, entry->name);
		if (index)
			arrive(listing, &listing->tree->nodes.items[index], entry);
		else
			node_of(listing)->flags |= TREE_IS_LEFT_OUT;
		return;
	}
	node = &listing->tree->nodes.items[index];
	if (node->flags & TREE_IS_GONE || node->inode != entry->inode) {
		set_there(listing->tree, node);
		node->flags |= TREE_IS_DIRTY;
		mark(listing->tree, index);
		arrive(listing, node, entry);
	}
}

static unsigned char type_of(const struct listing *listing, const struct directory_entry *entry)
{
	struct stat status;

	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_DIR || entry->type == DT_LNK ? entry->type : DT_REG;
	if (fstatat(listing->fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_REG;
	return S_ISDIR(status.st_mode) ? DT_DIR : S_ISLNK(status.st_mode) ? DT_LNK : DT_REG;
}

/* May the name be judged risky in this directory, now or when its time changes? */
static bool is_candidate(const struct listing *listing, const char *name, unsigned char type)
{
	const struct tree_node *node = node_of(listing);

	if (node->flags & TREE_IS_IN_GIT)
		return type == DT_LNK;
	return type != DT_DIR &&
	       (node->flags & TREE_IS_COUNTED || survey_risk_is_known_name(&listing->tree->known, name, strlen(name)));
}

static void take_entry(struct listing *listing, const struct directory_entry *entry)
{
	struct tree_node *node = node_of(listing);
	unsigned char type = type_of(listing, entry);

	if (!survey_is_ascii(entry->name))
		node->flags |= TREE_HAS_OTHER_LETTERS;
	for (size_t i = 0; i < GIT_BARE_NAMES; i++)
		if (!strcasecmp(entry->name, survey_git_bare_names[i]))
			node->bare |= 1U << i;
	if (!strcasecmp(entry->name, ".git"))
		node->flags |= TREE_HAS_GIT;
	if (is_candidate(listing, entry->name, type) &&
	    (node->names.count >= NAMES_MAX || string_list_add(&node->names, entry->name) < 0))
		node->flags |= TREE_IS_LEFT_OUT;
	if (listing->check && listing->check->each)
		listing->check->each(listing->check->context,
				     &(struct tree_entry){node, listing->fd, entry->name, type});
	if (type == DT_DIR && is_followed(listing->tree, node, entry->name))
		take_directory(listing, entry);
}

static void read_entries(struct listing *listing)
{
	_Alignas(struct directory_entry) char entries[LIST_BYTES];
	long len;

	while ((len = syscall(SYS_getdents64, listing->fd, entries, sizeof(entries))) > 0)
		for (long at = 0; at < len;) {
			const struct directory_entry *entry = (const struct directory_entry *)(entries + at);

			at += entry->len;
			if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
				continue;
			if (++listing->entries > TREE_ENTRIES_MAX) {
				node_of(listing)->flags |= TREE_IS_LEFT_OUT;
				return;
			}
			take_entry(listing, entry);
		}
	if (len < 0)
		node_of(listing)->flags |= TREE_IS_LEFT_OUT;
}

static void forget_missing(const struct listing *listing)
{
	for (size_t i = 0; i < listing->children.count; i++)
		if (!listing->children.is_there[i])
			set_gone(listing->tree, &listing->tree->nodes.items[listing->children.indexes[i]]);
}

static void leave(struct tree *tree, struct tree_node *node)
{
	forget_watch(tree, node);
	set_gone(tree, node);
}

static void read_directory(struct listing *listing)
{
	struct tree *tree = listing->tree;
	struct stat status;

	watch_node(tree, listing->index, listing->fd);
	/* Only now: a change after this either shows another time or is reported by the watch. */
	if (fstat(listing->fd, &status) < 0 || children_init(&listing->children, tree, listing->index) < 0) {
		node_of(listing)->flags |= TREE_IS_LEFT_OUT;
		return;
	}
	node_of(listing)->device = status.st_dev;
	node_of(listing)->inode = status.st_ino;
	node_of(listing)->changed_ns = survey_changed_ns(&status);
	tree->newest_ns = MAX_OF(tree->newest_ns, node_of(listing)->changed_ns);
	/* Times of another clock, or of another file system that is mounted here, say too little. */
	if (!tree->has_own_clock || status.st_dev != tree->device ||
	    node_of(listing)->changed_ns > now_ns() - SETTLING_NS)
		node_of(listing)->flags |= TREE_IS_FRESH;
	read_entries(listing);
	forget_missing(listing);
}

/* Without a work tree a repository's own files are in the directory itself. */
static bool becomes_git(struct tree *tree, uint32_t index)
{
	struct tree_node *node = &tree->nodes.items[index];

	if (node->flags & TREE_IS_IN_GIT || !survey_git_is_bare(node->bare))
		return false;
	node->flags |= TREE_IS_IN_GIT | TREE_IS_GIT;
	for (uint32_t at = node->child; at; at = tree->nodes.items[at].sibling) {
		tree->nodes.items[at].flags |= TREE_IS_IN_GIT | TREE_IS_DIRTY;
		mark(tree, at);
	}
	return true;
}

/*
 * No search could look into it, so all that is in it is news; that the host itself opened it shows its time. Without
 * the right to search it only names can be listed, and their times not asked for.
 */
static void see_permissions(struct listing *listing, bool was_closed)
{
	struct tree_node *node = node_of(listing);
	struct stat status;

	if (fstatat(listing->fd, ".", &status, AT_SYMLINK_NOFOLLOW) < 0)
		node->flags |= TREE_IS_CLOSED | TREE_IS_LEFT_OUT;
	else if (was_closed && (!listing->check || survey_changed_ns(&status) >= listing->check->old_ns))
		node->flags |= TREE_IS_ARRIVED;
}

static void list_node(struct tree *tree, uint32_t index, const struct tree_check *check)
{
	static const unsigned kept =
		TREE_IS_IN_GIT | TREE_IS_GIT | TREE_IS_IN_OTHER | TREE_IS_FILLED | TREE_IS_ARRIVED | TREE_IS_COUNTED;
	struct tree_node *node = &tree->nodes.items[index];
	struct listing listing = {.tree = tree, .index = index, .check = check};
	bool was_closed = node->flags & TREE_IS_CLOSED;

	listing.was_listed = node->flags & (TREE_IS_LISTED | TREE_IS_SKIMMED);
	tree->skimmed -= node->flags & TREE_IS_SKIMMED ? 1 : 0;
	set_there(tree, node);
	mark(tree, index);
	node->flags = (node->flags & kept) | TREE_IS_LISTED;
	node->bare = 0;
	string_list_done(&node->names);
	listing.fd = sys_openat2(tree->fd, node->path[0] ? node->path : ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0,
				 SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
	if (listing.fd >= 0) {
		see_permissions(&listing, was_closed);
		read_directory(&listing);
	} else if (listing.fd == -ENOENT || listing.fd == -ENOTDIR || listing.fd == -ELOOP)
		leave(tree, node);
	else
		node->flags |= TREE_IS_LEFT_OUT | (listing.fd == -EACCES ? TREE_IS_CLOSED : 0);
	children_done(&listing.children);
	close_fd(&listing.fd);
	/* Then links in it count, which the listing has passed over. */
	if (becomes_git(tree, index)) {
		tree->nodes.items[index].flags &= ~(unsigned)(listing.was_listed ? 0 : TREE_IS_LISTED);
		list_node(tree, index, check);
	}
}

bool survey_tree_grow(struct tree *tree, size_t count)
{
	for (; count && tree->next < tree->nodes.count; tree->next++) {
		struct tree_node *node = &tree->nodes.items[tree->next];

		if (node->flags & (TREE_IS_GONE | TREE_IS_LISTED | TREE_IS_SKIMMED))
			continue;
		list_node(tree, (uint32_t)tree->next, NULL);
		count--;
	}
	for (; count && tree->skimmed && tree->next_skimmed < tree->nodes.count; tree->next_skimmed++) {
		if (!(tree->nodes.items[tree->next_skimmed].flags & TREE_IS_SKIMMED))
			continue;
		list_node(tree, (uint32_t)tree->next_skimmed, NULL);
		count--;
	}
	return tree->next < tree->nodes.count || (tree->skimmed && tree->next_skimmed < tree->nodes.count);
}

/* --- after a run -------------------------------------------------------------------------------------------- */

/* What is at the node's path now, itself. 0 or -1. */
static int ask(const struct tree *tree, const struct tree_node *node, struct stat *status)
{
	return fstatat(tree->fd, node->path[0] ? node->path : ".", status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT);
}

void survey_tree_end_search(struct tree *tree)
{
	/* What went during this search may be above nodes that it had passed over. */
	tree->is_settled = tree->mark_capacity >= tree->nodes.count && !tree->has_left;
	tree->has_left = false;
	tree->is_lost = false;
}

/*
 * Another search may have listed a directory since this run began: a node that changed later than that is looked at,
 * watched or not.
 */
size_t survey_tree_next_to_look(const struct tree *tree, size_t index, int64_t old_ns)
{
	if (!tree->is_settled || tree->is_lost || tree->newest_ns >= old_ns)
		return index;
	while (index < tree->nodes.count) {
		uint64_t left = tree->marks[index / MARK_BITS] >> index % MARK_BITS;

		if (left)
			return MIN_OF(index + (size_t)__builtin_ctzll(left), tree->nodes.count);
		index += MARK_BITS - index % MARK_BITS;
	}
	return tree->nodes.count;
}

void survey_tree_looked(struct tree *tree, size_t index, bool is_news)
{
	const struct tree_node *node = &tree->nodes.items[index];
	bool is_quiet =
		node->flags & TREE_IS_GONE || (node->watch && node->flags & TREE_IS_LISTED &&
					       !(node->flags & (TREE_IS_DIRTY | TREE_IS_LEFT_OUT | TREE_IS_ARRIVED)));

	if (is_quiet && !is_news && index < tree->mark_capacity)
		tree->marks[index / MARK_BITS] &= ~((uint64_t)1 << index % MARK_BITS);
}

static bool is_unchanged(struct tree *tree, struct tree_node *node)
{
	struct stat status;

	if (!(node->flags & (TREE_IS_LISTED | TREE_IS_SKIMMED)) || node->flags & TREE_IS_LEFT_OUT)
		return false;
	if (node->watch && !tree->is_lost)
		return !(node->flags & TREE_IS_DIRTY);
	if (node->flags & TREE_IS_FRESH)
		return false;
	if (ask(tree, node, &status) < 0)
		return false;
	if (status.st_dev != node->device || status.st_ino != node->inode ||
	    survey_changed_ns(&status) != node->changed_ns)
		return false;
	/* A name that is listed brought us here, but the directory is the one that it was. */
	node->flags &= ~(unsigned)TREE_IS_DIRTY;
	return true;
}

/*
 * A directory that was never listed, and is not listed now: its time and its link count say that no name in it is
 * new. Its number is the one that the directory above has listed, so that no link on the way shows another one.
 */
static bool is_skimmed(struct tree *tree, struct tree_node *node, const struct tree_check *check)
{
	struct stat status;

	if (!check->may_skim || !tree->counts_directories || node->flags & (TREE_IS_LISTED | TREE_IS_FILLED) ||
	    ask(tree, node, &status) < 0)
		return false;
	if (!S_ISDIR(status.st_mode) || status.st_nlink != 2 || status.st_ino != node->inode ||
	    status.st_dev != tree->device || survey_changed_ns(&status) >= check->old_ns)
		return false;
	tree->skimmed += node->flags & TREE_IS_SKIMMED ? 0 : 1;
	tree->next_skimmed = 0;
	node->flags |= TREE_IS_SKIMMED;
	node->device = status.st_dev;
	node->changed_ns = survey_changed_ns(&status);
	return true;
}

enum tree_news survey_tree_check(struct tree *tree, size_t index, const struct tree_check *check)
{
	struct tree_node *node = &tree->nodes.items[index];

	tree->next = MAX_OF(tree->next, index + 1);
	if (index && tree->nodes.items[node->parent].flags & TREE_IS_GONE)
		leave(tree, node);
	if (node->flags & TREE_IS_GONE)
		return TREE_UNCHANGED;
	/* Another search may have listed it since this run began: what is new for this one is still to be seen. */
	if (is_unchanged(tree, node) && node->changed_ns < check->old_ns)
		return node->flags & TREE_IS_SKIMMED ? TREE_SKIMMED : TREE_UNCHANGED;
	if (is_skimmed(tree, node, check))
		return TREE_SKIMMED;
	list_node(tree, (uint32_t)index, check);
	return TREE_LISTED;
}

/* --- the tree ----------------------------------------------------------------------------------------------- */

bool survey_tree_is_of(const struct tree *tree, const struct host_path *top)
{
	return tree->device == top->device && tree->inode == top->inode && !strcmp(tree->path, top->path);
}

bool survey_tree_is_worn(const struct tree *tree)
{
	return tree->nodes.count >= TREE_NODES_MAX / 4 && tree->gone > tree->nodes.count / 2;
}

/* File systems whose times are of this kernel's clock, and of them those that count directories in the link count. */
static void ask_file_system(struct tree *tree)
{
	struct statfs status;

	if (fstatfs(tree->fd, &status) < 0)
		return;
	tree->has_own_clock = survey_walk_has_own_clock((unsigned long)status.f_type, &tree->counts_directories);
}

struct tree *survey_tree_new(const struct host_path *top, bool is_git)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	struct tree_node *node;

	if (!tree)
		return NULL;
	tree->watch_fd = -1;
	tree->device = top->device;
	tree->inode = top->inode;
	tree->fd = survey_open_top(top);
	tree->path = strdup(top->path);
	survey_risk_names_init(&tree->known);
	tree->users = 1;
	node = tree->path && tree->fd >= 0 ? list_add(&tree->nodes) : NULL;
	if (node)
		node->path = strdup("");
	if (!node || !node->path) {
		survey_tree_free(tree);
		return NULL;
	}
	node->flags = is_git ? TREE_IS_IN_GIT | TREE_IS_GIT : 0;
	ask_file_system(tree);
	return tree;
}

struct tree *survey_tree_hold(struct tree *tree)
{
	tree->users++;
	return tree;
}

void survey_tree_free(struct tree *tree)
{
	if (!tree || (tree->users && --tree->users))
		return;
	for (size_t i = 0; i < tree->nodes.count; i++) {
		free(tree->nodes.items[i].path);
		string_list_done(&tree->nodes.items[i].names);
	}
	free(tree->nodes.items);
	free(tree->by_watch);
	free(tree->marks);
	free(tree->path);
	close_fd(&tree->fd);
	close_fd(&tree->watch_fd);
	free(tree);
}
