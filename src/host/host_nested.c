/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_nested.c - search a project after a run: directories, breadth first, as far as the bounds go
 *
 * Three searches. In a watched directory (hooks) everything counts. In .git no link may be new, since git would write through
 * it. In the work directory repositories and instructions for agents may be anywhere. Nothing of this is known from before
 * the run, so that what is reported depends on times of change alone.
 */
#include "host/host_nested.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "host/host_names.h"
#include "host/host_paths.h"
#include "host/host_walk.h"
#include "host/host_watch.h"
#include "sys/calls.h"

#define REPOSITORIES_MAX 128
#define INSIDE_MAX 512
#define INSIDE_LOOKS_MAX 8192

/* Some directories take upper and lower case for the same: whether this one does is for the file system to say. */
static bool is_called(const struct listed *entry, const char *name)
{
	struct stat own, other;

	if (strcasecmp(entry->name, name) != 0)
		return false;
	return !strcmp(entry->name, name) || (fstatat(entry->fd, name, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
					      fstatat(entry->fd, entry->name, &own, AT_SYMLINK_NOFOLLOW) == 0 &&
					      own.st_dev == other.st_dev && own.st_ino == other.st_ino);
}

static bool is_name(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
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
	struct walk_name whole;
	const char *name = walk_join(&whole, entry->directory, entry->name), *end = strrchr(entry->name, '.');
	struct stat status;
	enum age age;
	char path[2 * PATH_MAX];

	inside->has_active |= !end || strcmp(end, ".sample") != 0;
	if (++inside->seen > INSIDE_MAX || ++walk->risky->looks > INSIDE_LOOKS_MAX) {
		walk_cut_off(walk);
		return;
	}
	if (entry->type == DT_DIR && string_list_add(&inside->queue, name) < 0)
		walk_cut_off(walk);
	if (fstatat(entry->fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	age = walk_age(walk, host_changed_ns(&status));
	inside->age = MAX_OF(inside->age, age);
	/* In a mount that is read-only nothing changes but through a second name elsewhere. */
	if (age == AGE_OLD || (age == AGE_UNCLEAR && walk->is_protected && status.st_nlink < 2))
		return;
	snprintf(path, sizeof(path), "%s/%s", walk->top, name);
	if (inside->watched)
		risky_add(walk->risky, path, "appeared or was changed", inside->watched->who);
}

/* All of the directory @name, a few levels deep; what is new is reported if inside->watched says whose it is. */
static void walk_inside(struct walk *walk, const char *name, struct inside *inside)
{
	if (walk->risky->looks > INSIDE_LOOKS_MAX)
		return;
	walk_list(walk, name, look_inside, inside);
	for (size_t i = 0; i < inside->queue.count && inside->seen <= INSIDE_MAX; i++)
		walk_list(walk, inside->queue.items[i], look_inside, inside);
	string_list_done(&inside->queue);
}

/* The directory of the workdir or its repository that @path lies in. */
static const struct host_path *top_of(const struct host *host, const char *path)
{
	const struct host_path *tops[] = {&host->workdir.path, &host->workdir.top, &host->workdir.git_own,
					  &host->workdir.git};

	for (size_t i = 0; i < ARRAY_LEN(tops) && host->workdir.is_searched; i++)
		if (tops[i]->kind == PATH_DIRECTORY && path_is_within(path, tops[i]->path))
			return tops[i];
	for (size_t i = 0; i < host->grants.count; i++)
		if (path_is_within(path, host->grants.items[i].path))
			return &host->grants.items[i];
	return NULL;
}

static bool is_grant(const struct host *host, const struct host_path *top)
{
	return host->grants.count && top >= host->grants.items && top < host->grants.items + host->grants.count;
}

void host_find_changed_inside(const struct risky_request *request, const struct watched *watched,
			      struct risky_list *risky)
{
	/* Those are repositories and parts of them: what in them is obeyed is watched by itself. */
	static const char *const whole_repositories[] = {"modules", "worktrees"};
	const struct host_path *top = top_of(request->host, watched->path.path);
	struct walk walk = {.request = request, .risky = risky};
	struct inside inside = {.watched = watched};
	const char *name = strrchr(watched->path.path, '/') + 1;

	if (is_name(name, whole_repositories, ARRAY_LEN(whole_repositories)))
		return;
	walk.is_protected = request->was_protected && !is_grant(request->host, top);
	if (walk_begin(&walk, top))
		walk_inside(&walk, walk_below_top(&walk, watched->path.path), &inside);
	close_fd(&walk.fd);
}

/* --- links inside .git -------------------------------------------------------------------------------------- */

static void report_link(struct walk *walk, const struct listed *link)
{
	char path[2 * PATH_MAX];
	struct walk_name name;

	if (walk_age(walk, walk_changed(walk, link)) == AGE_OLD)
		return;
	snprintf(path, sizeof(path), "%s/%s", walk->top, walk_join(&name, link->directory, link->name));
	risky_add(walk->risky, path, "appeared or was changed",
		  "git writes to files of such names, and through this link it would write where the link leads");
}

static void queue_directory(struct walk *walk, struct string_list *queue, const char *directory, const char *name)
{
	struct walk_name whole;

	if (string_list_add(queue, walk_join(&whole, directory, name)) < 0)
		walk_cut_off(walk);
}

/* The directories of a repository, also of those in its `modules` and `worktrees`, that are still to be searched for links. */
struct links {
	const char *git; /* the repository's own, below the walk's top */
	struct string_list queue;
};

/* Objects have names that nobody else chooses: two digits of their hash, then the rest. A branch may be called "objects" too. */
static bool is_of_objects(const struct listed *entry)
{
	const char *last = strrchr(entry->directory, '/');

	return !strcmp(last ? last + 1 : entry->directory, "objects") && strlen(entry->name) == 2 &&
	       strspn(entry->name, "0123456789abcdef") == 2 && !strstr(entry->directory, "/refs/") &&
	       !strstr(entry->directory, "/logs/");
}

/*
 * Nothing can be linked into a directory without changing it, and where a link leads cannot be changed: in one that is older
 * than the run no link is new, so that of it only the directories in it matter. Most have none.
 */
static void queue_for_links(struct walk *walk, struct links *links, const struct listed *entry)
{
	static const char *const in_objects[] = {"objects/info", "objects/pack"};
	struct string_list *queue = &links->queue;
	struct stat status;
	bool is_old = fstatat(entry->fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		      walk_age(walk, host_changed_ns(&status)) == AGE_OLD;

	if (is_old && walk->counts_directories && status.st_dev == walk->device && status.st_nlink == 2)
		return;
	if (!is_old || strcmp(entry->name, "objects") != 0 || strcmp(entry->directory, links->git) != 0) {
		queue_directory(walk, queue, entry->directory, entry->name);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(in_objects); i++)
		queue_directory(walk, queue, entry->directory, in_objects[i]);
}

/* Read-only in the jar, with all that is in it. */
static bool was_held(const struct walk *walk, const struct listed *entry)
{
	static const char *const whole[] = {"modules", "worktrees", "hooks"};
	const struct watch_list *before = walk->request->before;
	char path[2 * PATH_MAX];
	struct walk_name name;

	if (!walk->request->was_protected || !is_name(entry->name, whole, ARRAY_LEN(whole)))
		return false;
	snprintf(path, sizeof(path), "%s/%s", walk->top, walk_join(&name, entry->directory, entry->name));
	for (size_t i = 0; i < before->count; i++)
		if (before->items[i].kind == WATCH_PROTECTED && !strcmp(before->items[i].path.path, path))
			return true;
	return false;
}

static void look_for_link(struct walk *walk, void *context, const struct listed *entry)
{
	struct links *links = context;
	bool is_top = !strcmp(entry->directory, links->git);

	if (entry->type == DT_LNK)
		report_link(walk, entry);
	/* The hooks are watched as a whole. */
	else if (entry->type == DT_DIR && !(is_top && !strcmp(entry->name, "hooks")) && !is_of_objects(entry) &&
		 !was_held(walk, entry))
		queue_for_links(walk, links, entry);
}

/* @git: the path of a repository's own directory. */
static void find_links(struct walk *walk, const char *git)
{
	struct links links = {.git = walk_below_top(walk, git)};

	if (string_list_add(&links.queue, links.git) < 0)
		walk_cut_off(walk);
	for (size_t i = 0; i < links.queue.count; i++) {
		if (++walk->directories > WALK_DIRECTORIES_MAX) {
			walk_cut_off(walk);
			break;
		}
		walk_list(walk, links.queue.items[i], look_for_link, &links);
	}
	string_list_done(&links.queue);
}

static void find_links_below(const struct risky_request *request, const struct watch_list *now,
			     const struct host_path *top, const char *name, struct risky_list *risky)
{
	struct walk walk = {.request = request, .now = now, .risky = risky};
	char git[PATH_MAX];

	if (snprintf(git, sizeof(git), "%s%s", top->path, name) >= (int)sizeof(git))
		return;
	if (walk_begin(&walk, top))
		find_links(&walk, git);
	close_fd(&walk.fd);
}

static void find_links_of_host(const struct risky_request *request, const struct watch_list *now,
			       struct risky_list *risky)
{
	const struct host_workdir *workdir = &request->host->workdir;
	const struct host_path_list *grants = &request->host->grants;
	const struct host_path *tops[] = {&workdir->path, &workdir->top, &workdir->git, &workdir->git_own};

	for (size_t i = 0; i < ARRAY_LEN(tops) && workdir->is_searched; i++)
		if ((i < 2 || workdir->has_git_file) && tops[i]->kind == PATH_DIRECTORY)
			find_links_below(request, now, tops[i], i < 2 ? "/.git" : "", risky);
	for (size_t i = 0; i < grants->count; i++)
		find_links_below(request, now, &grants->items[i], "/.git", risky);
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
	bool is_reported; /* part of it was, or was compared with what was there before */
};

static void look_at_part(struct walk *walk, const struct watched *part, struct repository *repository)
{
	static const char *const harmless[] = {"config", "hooks", "HEAD"};
	const char *name = strrchr(part->path.path, '/') + 1;
	struct inside inside = {0};
	enum age age = walk_age(walk, part->path.changed_ns);

	repository->can_run |= !is_name(name, harmless, ARRAY_LEN(harmless));
	if (!strcmp(name, "hooks") && part->path.kind == PATH_DIRECTORY) {
		walk_inside(walk, walk_below_top(walk, part->path.path), &inside);
		repository->can_run |= inside.has_active;
		age = MAX_OF(age, inside.age);
	}
	repository->is_reported |= is_known(walk, part->path.path) || age == AGE_NEW;
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
		walk_cut_off(walk);
		return;
	}
	if (host_watch_nested(walk->request->host, path, is_bare, &walk->budget, &parts, &repository.can_run) < 0 ||
	    parts.is_cut_off)
		walk_cut_off(walk);
	for (size_t i = 0; i < parts.count; i++)
		look_at_part(walk, &parts.items[i], &repository);
	repository.is_unclear |= walk_age_of_way(walk, walk_below_top(walk, git)) != AGE_OLD ||
				 walk_age(walk, walk_changed_at(walk, walk_below_top(walk, git))) != AGE_OLD;
	if (!repository.is_reported && repository.is_unclear && repository.can_run && !is_known(walk, git))
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
		if (walk_changed_at(walk, name) &&
		    (walk_age(walk, walk_changed_at(walk, name)) != AGE_OLD || walk_age_of_way(walk, name) != AGE_OLD))
			risky_add(walk->risky, whole, "appeared or was changed", row->who);
	}
}

/* Is it a name of the table of instructions, and by whom are they obeyed? NULL: it is none. */
static const char *who_obeys(const struct listed *entry)
{
	for (const struct host_name *row = host_instruction_names; row->name; row++)
		if ((row->name[0] | 0x20) == (entry->name[0] | 0x20) && is_called(entry, row->name))
			return row->who;
	return NULL;
}

static void look_at_instructions(struct walk *walk, const struct listed *entry, const char *who)
{
	char path[2 * PATH_MAX];
	struct walk_name name;

	if (walk_age(walk, walk_changed(walk, entry)) == AGE_OLD)
		return;
	snprintf(path, sizeof(path), "%s/%s", walk->top, walk_join(&name, entry->directory, entry->name));
	risky_add(walk->risky, path, "appeared or was changed", who);
}

static const char *const other_repositories[] = {".hg", ".jj", ".sl"};

/* What one directory has in it. */
struct seen {
	struct string_list queue;
	unsigned bare; /* a bit for each of git_bare_names */
	bool has_git;
	bool is_top;
	bool has_other_letters; /* some name in it is not of ASCII letters alone */
};

static void look_at_entry(struct walk *walk, void *context, const struct listed *entry)
{
	struct seen *seen = context;
	const char *who = seen->is_top ? NULL : who_obeys(entry), *other = NULL;

	seen->has_other_letters |= !is_ascii(entry->name);
	for (size_t i = 0; i < ARRAY_LEN(other_repositories) && !other; i++)
		other = is_called(entry, other_repositories[i]) ? other_repositories[i] : NULL;
	for (size_t i = 0; i < GIT_BARE_NAMES; i++)
		seen->bare |= is_called(entry, git_bare_names[i]) ? 1U << i : 0;
	if (is_called(entry, ".git")) {
		seen->has_git = true;
		return;
	}
	if (who)
		look_at_instructions(walk, entry, who);
	if (entry->type == DT_DIR || other) {
		struct walk_name
			name; /* only here: it is cleared wherever it begins, which takes longer than all the rest */

		walk_join(&name, entry->directory, entry->name);
		if (other && !seen->is_top)
			look_at_other(walk, name.text, other);
		if (!other && string_list_add(&seen->queue, name.text) < 0)
			walk_cut_off(walk);
	}
}

/*
 * Directories that take upper and lower case for the same also take some other letters for ours, and leave out those that
 * nobody sees. Where there are any, what matters is asked for by its name.
 */
static void look_by_name(struct walk *walk, const char *directory, struct seen *seen)
{
	struct walk_name name;

	for (size_t i = 0; i < GIT_BARE_NAMES; i++)
		seen->bare |= walk_changed_at(walk, walk_join(&name, directory, git_bare_names[i])) ? 1U << i : 0;
	seen->has_git |= walk_changed_at(walk, walk_join(&name, directory, ".git")) != 0;
	for (size_t i = 0; i < ARRAY_LEN(other_repositories); i++)
		look_at_other(walk, walk_join(&name, directory, other_repositories[i]), other_repositories[i]);
	for (const struct host_name *row = host_instruction_names; row->name; row++) {
		char path[2 * PATH_MAX];

		if (strchr(row->name, '/') ||
		    walk_age(walk, walk_changed_at(walk, walk_join(&name, directory, row->name))) == AGE_OLD)
			continue;
		snprintf(path, sizeof(path), "%s/%s", walk->top, name.text);
		risky_add(walk->risky, path, "appeared or was changed", row->who);
	}
}

static void walk_directories(struct walk *walk)
{
	struct seen seen = {.is_top = true};
	size_t next = 0;

	walk_list(walk, "", look_at_entry, &seen);
	while (next < seen.queue.count) {
		AUTO_FREE char *directory = strdup(seen.queue.items[next++]);

		if (!directory || ++walk->directories > WALK_DIRECTORIES_MAX || walk->entries > WALK_ENTRIES_MAX) {
			walk_cut_off(walk);
			break;
		}
		seen.is_top = seen.has_git = seen.has_other_letters = false;
		seen.bare = 0;
		walk_list(walk, directory, look_at_entry, &seen);
		if (seen.has_other_letters)
			look_by_name(walk, directory, &seen);
		if (seen.has_git)
			look_at_repository(walk, directory, false);
		if (git_is_bare(seen.bare))
			look_at_repository(walk, directory, true);
	}
	string_list_done(&seen.queue);
}

static void walk_tree(const struct risky_request *request, const struct watch_list *now, const struct host_path *top,
		      struct risky_list *risky)
{
	struct walk walk = {.request = request, .now = now, .risky = risky, .budget = WATCH_BUDGET};

	if (walk_begin(&walk, top))
		walk_directories(&walk);
	close_fd(&walk.fd);
}

void host_find_nested(const struct risky_request *request, const struct watch_list *now, struct risky_list *risky)
{
	const struct host *host = request->host;

	find_links_of_host(request, now, risky);
	if (host->workdir.is_searched)
		walk_tree(request, now, &host->workdir.path, risky);
	for (size_t i = 0; i < host->grants.count; i++)
		walk_tree(request, now, &host->grants.items[i], risky);
}
