/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_nested.c - walk, breadth first, through one directory after the other, as far as the bounds go
 */
#include "host/host_nested.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/text.h"
#include "host/host_names.h"
#include "host/host_paths.h"
#include "host/host_watch.h"
#include "sys/calls.h"

/* As far as a walk goes. The nearer to the top, the sooner somebody runs git there. */
#define DIRECTORIES_MAX 512
#define ENTRIES_MAX 16384
#define REPOSITORIES_MAX 128
#define INSIDE_MAX 512
#define INSIDE_LOOKS_MAX 8192
#define LIST_BYTES 16384
/* A file server's clock may be wrong by so much. */
#define FOREIGN_CLOCK_NS (24 * 3600 * 1000000000LL)

struct directory_entry {
	uint64_t inode;
	int64_t offset;
	unsigned short len;
	unsigned char type;
	char name[];
};

struct walk {
	const struct risky_request *request;
	const struct watch_list *now;
	struct risky_list *risky;
	struct host_moment start;
	bool counts_directories; /* here a directory without others in it has two links, and no other has */
	const char *top;         /* its path */
	int fd;
	size_t directories, entries, repositories;
	struct watch_budget budget; /* for repositories */
};

/* One name in a directory that is being listed. */
struct listed {
	const char *directory; /* its path, below the walk's top */
	int fd;                /* open on it: the name itself can be looked at without a second way there */
	const char *name;
	unsigned char type; /* DT_DIR, DT_LNK or DT_REG, which stands for all others */
};

typedef void entry_function(struct walk *walk, void *context, const struct listed *entry);

/* Most entries are nobody's business, so paths are made only of those that are. */
struct name {
	char text[PATH_MAX + NAME_MAX + 2]; /* below the walk's top; one that is too long is not found there */
};

static const char *join(struct name *name, const char *directory, const char *entry)
{
	/* cppcheck-suppress ctuuninitvar ; it is written here */
	snprintf(name->text, sizeof(name->text), "%s%s%s", directory, directory[0] ? "/" : "", entry);
	return name->text;
}

static int open_in(const struct walk *walk, const char *name, int flags)
{
	return sys_openat2(walk->fd, name[0] ? name : ".", (uint64_t)flags, 0,
			   SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
}

static int64_t changed_ns(const struct stat *status)
{
	return (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec;
}

/* When a name in a directory that is being listed last changed; 0: it is not there any more. */
static int64_t changed_entry(const struct listed *entry)
{
	struct stat status;

	return fstatat(entry->fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? changed_ns(&status) : 0;
}

/* When @name below the walk's top, itself, last changed; 0: it is not there. */
static int64_t changed_at(const struct walk *walk, const char *name)
{
	AUTO_CLOSE int fd = open_in(walk, name, O_PATH | O_NOFOLLOW);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 ? changed_ns(&status) : 0;
}

static bool is_directory(int fd, const struct directory_entry *entry)
{
	struct stat status;

	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_DIR;
	return fstatat(fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

static bool is_link(int fd, const struct directory_entry *entry)
{
	struct stat status;

	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_LNK;
	return fstatat(fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

static bool is_name(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void cut_off(struct walk *walk)
{
	walk->risky->unsearched =
		"not all of the work directory could be searched: where it was not, the command may have left repositories whose "
		"configuration git would obey, and instructions for agents";
}

/* Its owner is who the command runs as, and may have closed it. What is another user's the command cannot enter either. */
static bool is_closed_by_command(const struct walk *walk, const char *name)
{
	AUTO_CLOSE int fd = open_in(walk, name, O_PATH | O_DIRECTORY);
	struct stat status;

	return fd < 0 || fstat(fd, &status) < 0 || status.st_uid == walk->request->host->uid;
}

/* The entries of the directory @name; @each for those that are neither "." nor "..". */
static void list(struct walk *walk, const char *name, entry_function *each, void *context)
{
	AUTO_CLOSE int fd = open_in(walk, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	_Alignas(struct directory_entry) char entries[LIST_BYTES];
	long len;

	if (fd == -EACCES && is_closed_by_command(walk, name))
		cut_off(walk);
	if (fd < 0)
		return;
	while ((len = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < len;) {
			const struct directory_entry *entry = (const struct directory_entry *)(entries + at);
			unsigned char type = is_directory(fd, entry) ? DT_DIR : is_link(fd, entry) ? DT_LNK : DT_REG;

			at += entry->len;
			if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
				continue;
			if (++walk->entries > ENTRIES_MAX || strlen(name) > PATH_MAX) {
				cut_off(walk);
				return;
			}
			each(walk, context, &(struct listed){name, fd, entry->name, type});
		}
	}
}

/* --- what a file's time says -------------------------------------------------------------------------------- */

enum age { AGE_OLD, AGE_UNCLEAR, AGE_NEW };

static enum age age_of(const struct walk *walk, int64_t changed_ns)
{
	if (changed_ns < walk->start.earliest_ns)
		return AGE_OLD;
	return changed_ns > walk->start.latest_ns ? AGE_NEW : AGE_UNCLEAR;
}

/* Times that this kernel's clock did not make can be compared with it only roughly. */
static void adapt_start(struct walk *walk)
{
	static const struct {
		unsigned long type;
		bool counts_directories;
	} own_clock[] = {
		{0xef53, true},     /* ext2, ext3, ext4 */
		{0x58465342, true}, /* xfs */
		{0x9123683e},       /* btrfs */
		{0x01021994, true}, /* tmpfs */
		{0x794c7630},       /* overlayfs */
		{0xf2f52010},       /* f2fs */
		{0x2fc12fc1},       /* zfs */
		{0xca451a4e},       /* bcachefs */
	};
	struct statfs status;

	walk->start = walk->request->start;
	if (fstatfs(walk->fd, &status) < 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(own_clock); i++)
		if ((unsigned long)status.f_type == own_clock[i].type) {
			walk->counts_directories = own_clock[i].counts_directories;
			return;
		}
	walk->start.earliest_ns -= FOREIGN_CLOCK_NS;
	walk->start.latest_ns = INT64_MAX;
}

/* The directories on the way to @name: one of them may have been renamed, with all that is in it. */
static enum age age_of_way(const struct walk *walk, const char *name)
{
	enum age age = AGE_OLD;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", name);
	for (char *slash = strrchr(path, '/'); slash && age == AGE_OLD; slash = strrchr(path, '/')) {
		*slash = '\0';
		age = age_of(walk, changed_at(walk, path));
	}
	return age;
}

/* --- directories whose content counts ----------------------------------------------------------------------- */

struct inside {
	const struct watched *watched;
	struct string_list queue;
	size_t seen;
	bool has_active; /* something in it is no sample */
	enum age age;
};

static void look_inside(struct walk *walk, void *context, const struct listed *entry)
{
	struct inside *inside = context;
	struct name whole;
	const char *name = join(&whole, entry->directory, entry->name), *end = strrchr(entry->name, '.');
	struct stat status;
	enum age age;
	char path[2 * PATH_MAX];

	inside->has_active |= !end || strcmp(end, ".sample") != 0;
	if (++inside->seen > INSIDE_MAX || ++walk->risky->looks > INSIDE_LOOKS_MAX) {
		cut_off(walk);
		return;
	}
	if (entry->type == DT_DIR && string_list_add(&inside->queue, name) < 0)
		cut_off(walk);
	if (fstatat(entry->fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	age = age_of(walk, changed_ns(&status));
	inside->age = MAX_OF(inside->age, age);
	/* In a mount that is read-only nothing changes but through a second name elsewhere. */
	if (age == AGE_OLD || (age == AGE_UNCLEAR && walk->request->is_held && status.st_nlink < 2))
		return;
	snprintf(path, sizeof(path), "%s/%s", walk->top, name);
	if (inside->watched)
		risky_add(walk->risky, path, "appeared or was changed", inside->watched->who);
}

/* All of the directory @name, a few levels deep; what is new is told if inside->watched says whose it is. */
static void walk_inside(struct walk *walk, const char *name, struct inside *inside)
{
	if (walk->risky->looks > INSIDE_LOOKS_MAX)
		return;
	list(walk, name, look_inside, inside);
	for (size_t i = 0; i < inside->queue.count && inside->seen <= INSIDE_MAX; i++)
		list(walk, inside->queue.items[i], look_inside, inside);
	string_list_done(&inside->queue);
}

/* The directory of the workdir or its repository that @path lies in. */
static const struct host_path *top_of(const struct host *host, const char *path)
{
	const struct host_path *tops[] = {&host->workdir.path, &host->workdir.top, &host->workdir.git_own,
					  &host->workdir.git};

	for (size_t i = 0; i < ARRAY_LEN(tops); i++)
		if (tops[i]->kind == PATH_DIRECTORY && path_is_within(path, tops[i]->path))
			return tops[i];
	return NULL;
}

static bool begin(struct walk *walk, const struct host_path *top)
{
	walk->fd = top ? host_open_top(top) : -1;
	if (walk->fd < 0)
		return false;
	walk->top = top->path;
	adapt_start(walk);
	return true;
}

static const char *below_top(const struct walk *walk, const char *path)
{
	const char *rest = path + strlen(walk->top);

	return rest + strspn(rest, "/");
}

void host_find_changed_inside(const struct risky_request *request, const struct watched *watched,
			      struct risky_list *risky)
{
	/* Those are repositories and parts of them: what in them is obeyed is watched by itself. */
	static const char *const whole_repositories[] = {"modules", "worktrees"};
	struct walk walk = {.request = request, .risky = risky};
	struct inside inside = {.watched = watched};
	const char *name = strrchr(watched->path.path, '/') + 1;

	if (is_name(name, whole_repositories, ARRAY_LEN(whole_repositories)))
		return;
	if (begin(&walk, top_of(request->host, watched->path.path)))
		walk_inside(&walk, below_top(&walk, watched->path.path), &inside);
	close_fd(&walk.fd);
}

/* --- links inside .git -------------------------------------------------------------------------------------- */

static void tell_link(struct walk *walk, const struct listed *link)
{
	char path[2 * PATH_MAX];
	struct name name;

	if (age_of(walk, changed_entry(link)) == AGE_OLD)
		return;
	snprintf(path, sizeof(path), "%s/%s", walk->top, join(&name, link->directory, link->name));
	risky_add(walk->risky, path, "appeared or was changed",
		  "git writes to files of such names, and through this link it would write where the link leads");
}

static void queue_directory(struct walk *walk, struct string_list *queue, const char *directory, const char *name)
{
	struct name whole;

	if (string_list_add(queue, join(&whole, directory, name)) < 0)
		cut_off(walk);
}

/*
 * Nothing can be linked into a directory without changing it, and where a link leads cannot be changed: in one that is older
 * than the run no link is new, so that of it only the directories in it matter. Most have none.
 */
static void queue_for_links(struct walk *walk, struct string_list *queue, const struct listed *entry)
{
	/* Objects have names that nobody else chooses. */
	static const char *const in_objects[] = {"objects/info", "objects/pack"};
	struct stat status;
	bool is_old = fstatat(entry->fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		      age_of(walk, changed_ns(&status)) == AGE_OLD;

	if (is_old && walk->counts_directories && status.st_nlink == 2)
		return;
	if (!is_old || strcmp(entry->name, "objects") != 0) {
		queue_directory(walk, queue, entry->directory, entry->name);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(in_objects); i++)
		queue_directory(walk, queue, entry->directory, in_objects[i]);
}

static void look_for_link(struct walk *walk, void *context, const struct listed *entry)
{
	/* Repositories of their own, and what is watched as a whole. */
	static const char *const skipped[] = {"modules", "worktrees", "hooks"};
	static const char *const in_objects[] = {"info", "pack"};
	const char *last = strrchr(entry->directory, '/');
	bool is_in_objects = !strcmp(last ? last + 1 : entry->directory, "objects");

	if (entry->type == DT_LNK)
		tell_link(walk, entry);
	else if (entry->type == DT_DIR && !is_name(entry->name, skipped, ARRAY_LEN(skipped)) &&
		 (!is_in_objects || is_name(entry->name, in_objects, ARRAY_LEN(in_objects))))
		queue_for_links(walk, context, entry);
}

/* @git: the path of a repository's own directory. */
static void find_links(struct walk *walk, const char *git)
{
	struct string_list queue = {0};

	if (string_list_add(&queue, below_top(walk, git)) < 0)
		cut_off(walk);
	for (size_t i = 0; i < queue.count; i++) {
		if (++walk->directories > DIRECTORIES_MAX) {
			cut_off(walk);
			break;
		}
		list(walk, queue.items[i], look_for_link, &queue);
	}
	string_list_done(&queue);
}

static void find_links_of_host(const struct risky_request *request, const struct watch_list *now,
			       struct risky_list *risky)
{
	const struct host_workdir *workdir = &request->host->workdir;
	const struct host_path *tops[] = {&workdir->path, &workdir->top, &workdir->git, &workdir->git_own};

	for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
		struct walk walk = {.request = request, .now = now, .risky = risky};
		char git[PATH_MAX];

		if (tops[i]->kind != PATH_DIRECTORY || (i >= 2 && !workdir->has_git_file) ||
		    snprintf(git, sizeof(git), i < 2 ? "%s/.git" : "%s", tops[i]->path) >= (int)sizeof(git))
			continue;
		if (begin(&walk, tops[i]))
			find_links(&walk, git);
		close_fd(&walk.fd);
	}
}

/* --- repositories in subdirectories ------------------------------------------------------------------------- */

static bool is_known(const struct walk *walk, const char *path)
{
	for (size_t i = 0; i < walk->now->count; i++)
		if (!strcmp(walk->now->items[i].path.path, path))
			return true;
	return false;
}

/* Of a repository nobody knows about yet. */
struct repository {
	bool can_run; /* it has what makes git run a program */
	bool is_unclear;
	bool is_told; /* part of it was told, or was compared with what was there before */
};

static void look_at_part(struct walk *walk, const struct watched *part, struct repository *repository)
{
	static const char *const harmless[] = {"config", "hooks", "HEAD"};
	const char *name = strrchr(part->path.path, '/') + 1;
	struct inside inside = {0};
	enum age age = age_of(walk, part->path.changed_ns);

	repository->can_run |= !is_name(name, harmless, ARRAY_LEN(harmless));
	if (!strcmp(name, "hooks") && part->path.kind == PATH_DIRECTORY) {
		walk_inside(walk, below_top(walk, part->path.path), &inside);
		repository->can_run |= inside.has_active;
		age = MAX_OF(age, inside.age);
	}
	repository->is_told |= is_known(walk, part->path.path) || age == AGE_NEW;
	repository->is_unclear |= age != AGE_OLD;
	if (age == AGE_NEW && !is_known(walk, part->path.path))
		risky_add(walk->risky, part->path.path, "appeared or was changed", part->who);
}

static void look_at_repository(struct walk *walk, const char *directory, bool is_bare)
{
	struct watch_list parts = {0};
	struct repository repository = {0};
	char path[2 * PATH_MAX], git[2 * PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/%s", walk->top, directory);
	snprintf(git, sizeof(git), "%s%s", path, is_bare ? "" : "/.git");
	if (++walk->repositories > REPOSITORIES_MAX) {
		cut_off(walk);
		return;
	}
	if (host_watch_nested(walk->request->host, path, is_bare, &walk->budget, &parts, &repository.can_run) < 0 ||
	    parts.is_cut_off)
		cut_off(walk);
	for (size_t i = 0; i < parts.count; i++)
		look_at_part(walk, &parts.items[i], &repository);
	repository.is_unclear |= age_of_way(walk, below_top(walk, git)) != AGE_OLD ||
				 age_of(walk, changed_at(walk, below_top(walk, git))) != AGE_OLD;
	if (!repository.is_told && repository.is_unclear && repository.can_run && !is_known(walk, git))
		risky_add(
			walk->risky, git, "may have appeared or been moved here",
			"git obeys this repository's configuration and hooks, which run programs, when it is used in or "
			"above the directory");
	host_watch_done(&parts);
	find_links(walk, git);
}

/* .hg, .jj, .sl: what of the table of names begins with @name. */
static void look_at_other(struct walk *walk, const char *path, const char *entry)
{
	size_t len = strlen(entry);

	for (const struct host_name *row = host_protected_names; row->name; row++) {
		char name[2 * PATH_MAX], whole[3 * PATH_MAX];

		if (strncmp(row->name, entry, len) != 0 || row->name[len] != '/')
			continue;
		snprintf(name, sizeof(name), "%s%s", path, row->name + len);
		snprintf(whole, sizeof(whole), "%s/%s", walk->top, name);
		if (changed_at(walk, name) &&
		    (age_of(walk, changed_at(walk, name)) != AGE_OLD || age_of_way(walk, name) != AGE_OLD))
			risky_add(walk->risky, whole, "appeared or was changed", row->who);
	}
}

/* Is it a name of the table of instructions, and by whom are they obeyed? NULL: it is none. */
static const char *who_obeys(const char *entry)
{
	for (const struct host_name *row = host_instruction_names; row->name; row++)
		if (row->name[0] == entry[0] && !strcmp(row->name, entry))
			return row->who;
	return NULL;
}

static void look_at_instructions(struct walk *walk, const struct listed *entry, const char *who)
{
	char path[2 * PATH_MAX];
	struct name name;

	if (age_of(walk, changed_entry(entry)) == AGE_OLD)
		return;
	snprintf(path, sizeof(path), "%s/%s", walk->top, join(&name, entry->directory, entry->name));
	risky_add(walk->risky, path, "appeared or was changed", who);
}

/* What one directory has in it. */
struct seen {
	struct string_list queue;
	unsigned bare; /* a bit for each of git_bare_names */
	bool has_git;
	bool is_top;
};

static void look_at_entry(struct walk *walk, void *context, const struct listed *entry)
{
	static const char *const others[] = {".hg", ".jj", ".sl"};
	struct seen *seen = context;
	bool is_other = is_name(entry->name, others, ARRAY_LEN(others));
	const char *who = seen->is_top ? NULL : who_obeys(entry->name);

	for (size_t i = 0; i < GIT_BARE_NAMES; i++)
		seen->bare |= strcmp(entry->name, git_bare_names[i]) ? 0 : 1U << i;
	if (!strcmp(entry->name, ".git")) {
		seen->has_git = true;
		return;
	}
	if (who)
		look_at_instructions(walk, entry, who);
	if (entry->type == DT_DIR || is_other) {
		struct name
			name; /* only here: it is cleared wherever it begins, which takes longer than all the rest */

		join(&name, entry->directory, entry->name);
		if (is_other && !seen->is_top)
			look_at_other(walk, name.text, entry->name);
		if (!is_other && string_list_add(&seen->queue, name.text) < 0)
			cut_off(walk);
	}
}

static void walk_workdir(struct walk *walk)
{
	struct seen seen = {.is_top = true};
	size_t next = 0;

	list(walk, "", look_at_entry, &seen);
	while (next < seen.queue.count) {
		AUTO_FREE char *directory = strdup(seen.queue.items[next++]);

		if (!directory || ++walk->directories > DIRECTORIES_MAX || walk->entries > ENTRIES_MAX) {
			cut_off(walk);
			break;
		}
		seen.is_top = seen.has_git = false;
		seen.bare = 0;
		list(walk, directory, look_at_entry, &seen);
		if (seen.has_git)
			look_at_repository(walk, directory, false);
		if (seen.bare == (1U << GIT_BARE_NAMES) - 1)
			look_at_repository(walk, directory, true);
	}
	string_list_done(&seen.queue);
}

void host_find_nested(const struct risky_request *request, const struct watch_list *now, struct risky_list *risky)
{
	struct walk walk = {.request = request, .now = now, .risky = risky, .budget = WATCH_BUDGET};

	find_links_of_host(request, now, risky);
	if (begin(&walk, &request->host->workdir.path))
		walk_workdir(&walk);
	close_fd(&walk.fd);
}
