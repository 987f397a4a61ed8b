/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_nested.c - look at the directories that a run may have changed
 *
 * In a watched directory (hooks) everything counts. In a repository's own directory a new link counts, since git
 * would write through it. Elsewhere the names in survey_judge.c count, and repositories, read as git would read them.
 */
#include "survey/survey_nested.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "survey/survey_judge.h"
#include "survey/survey_names.h"
#include "survey/survey_paths.h"
#include "survey/survey_walk.h"
#include "survey/survey_watch.h"
#include "base/sys/calls.h"

#define REPOSITORIES_MAX 128
#define INSIDE_MAX 512
#define MISLEADING_MAX 32
#define INSIDE_LOOKS_MAX 8192
/* The number of new directories that the search lists after a run; it only skims the others. */
#define LISTED_BEFORE_SKIMMING 64

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
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
	const char *name = survey_walk_join(&whole, entry->directory, entry->name), *end = strrchr(entry->name, '.');
	struct stat status;
	enum age age;
	char path[2 * PATH_MAX];

	inside->has_active |= !end || strcmp(end, ".sample") != 0;
	if (++inside->seen > INSIDE_MAX || ++walk->risky->looks > INSIDE_LOOKS_MAX) {
		survey_walk_leave_out(walk, entry->directory);
		return;
	}
	if (entry->type == DT_DIR && string_list_add(&inside->queue, name) < 0)
		survey_walk_leave_out(walk, name);
	if (fstatat(entry->fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	age = survey_walk_age(walk, survey_changed_ns(&status));
	inside->age = MAX_OF(inside->age, age);
	/* In a mount that is read-only nothing changes but through a second name elsewhere. */
	if (age == AGE_OLD || (age == AGE_UNCLEAR && walk->is_protected && status.st_nlink < 2))
		return;
	snprintf(path, sizeof(path), "%s/%s", walk->top, name);
	if (inside->watched)
		survey_risky_add(walk->risky, path, "appeared or was changed", inside->watched->who);
}

/* All of the directory @name, a few levels deep; what is new is reported if inside->watched says whose it is. */
static void walk_inside(struct walk *walk, const char *name, struct inside *inside)
{
	if (walk->risky->looks > INSIDE_LOOKS_MAX)
		return;
	survey_walk_list(walk, name, look_inside, inside);
	for (size_t i = 0; i < inside->queue.count && inside->seen <= INSIDE_MAX; i++)
		survey_walk_list(walk, inside->queue.items[i], look_inside, inside);
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

/* Those are repositories and parts of them: the search watches the files that git uses in them one by one. */
static bool is_whole_repository(const char *path)
{
	static const char *const names[] = {"modules", "worktrees"};

	return is_name(last_name(path), names, ARRAY_LEN(names));
}

void survey_find_changed_inside(const struct risky_request *request, const struct watched *watched,
				struct risky_list *risky)
{
	const struct host_path *top = top_of(request->host, watched->path.path);
	struct walk walk = {.request = request, .risky = risky};
	struct inside inside = {.watched = watched};

	if (is_whole_repository(watched->path.path))
		return;
	walk.is_protected = request->was_protected && !is_grant(request->host, top);
	if (survey_walk_begin(&walk, top))
		walk_inside(&walk, survey_walk_below_top(&walk, watched->path.path), &inside);
	close_fd(&walk.fd);
}

/* --- repositories in subdirectories ------------------------------------------------------------------------- */

static bool is_known(const struct walk *walk, const char *path)
{
	for (size_t i = 0; i < walk->now->count; i++)
		if (!strcmp(walk->now->items[i].path.path, path))
			return true;
	return false;
}

/* A repository that the survey before the run did not find. */
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
	enum age age = survey_walk_age(walk, part->path.changed_ns);

	repository->can_run |= !is_name(name, harmless, ARRAY_LEN(harmless));
	if (!strcmp(name, "hooks") && part->path.kind == PATH_DIRECTORY) {
		walk_inside(walk, survey_walk_below_top(walk, part->path.path), &inside);
		repository->can_run |= inside.has_active;
		age = MAX_OF(age, inside.age);
	}
	repository->is_reported |= is_known(walk, part->path.path) || age == AGE_NEW;
	repository->is_unclear |= age != AGE_OLD;
	if (age == AGE_NEW && !is_known(walk, part->path.path))
		survey_risky_add(walk->risky, part->path.path, "appeared or was changed", part->who);
}

static void look_at_repository(struct walk *walk, const char *directory, bool is_bare)
{
	struct watch_list parts = {0};
	struct repository repository = {0};
	char path[2 * PATH_MAX], git[2 * PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/%s", walk->top, directory);
	snprintf(git, sizeof(git), "%s%s", path, is_bare ? "" : "/.git");
	if (++walk->repositories > REPOSITORIES_MAX) {
		survey_walk_leave_out(walk, directory);
		return;
	}
	if (survey_watch_nested(walk->request->host, path, is_bare, &walk->budget, &parts, &repository.can_run) < 0 ||
	    parts.is_cut_off)
		survey_walk_leave_out(walk, directory);
	for (size_t i = 0; i < parts.count; i++)
		look_at_part(walk, &parts.items[i], &repository);
	repository.is_unclear |=
		survey_walk_age_of_way(walk, survey_walk_below_top(walk, git)) != AGE_OLD ||
		survey_walk_age(walk, survey_walk_changed_at(walk, survey_walk_below_top(walk, git))) != AGE_OLD;
	if (!repository.is_reported && repository.is_unclear && repository.can_run && !is_known(walk, git))
		survey_risky_add(
			walk->risky, git, "may have appeared or been moved here",
			"git uses this repository's configuration and hooks, which run programs, when it runs in or above the directory");
	survey_watch_done(&parts);
}

/* --- one directory ------------------------------------------------------------------------------------------ */

/* Does the directory (@len bytes of @directory) contain @name? The judge calls this to find bare repositories. */
static bool has_name(void *context, const char *directory, size_t len, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%.*s%s%s", (int)len, directory, len ? "/" : "", name);
	return survey_walk_changed_at(context, path) != 0;
}

/* Has it been compared with what was there before the run, by itself or with a directory that it is in? */
static bool is_compared(const struct walk *walk, const char *path)
{
	for (size_t i = 0; i < walk->now->count; i++) {
		const struct watched *item = &walk->now->items[i];
		bool is_with_content = item->kind != WATCH_NEW && !is_whole_repository(item->path.path);

		if (is_with_content ? path_is_within(path, item->path.path) : !strcmp(path, item->path.path))
			return true;
	}
	return false;
}

static void judge_name(struct walk *walk, const struct tree *tree, const char *name, mode_t mode)
{
	bool is_git = tree->nodes.items[0].flags & TREE_IS_GIT;
	struct risk_rules rules = walk->request->rules ? *walk->request->rules : (struct risk_rules){.has = NULL};
	struct risk_change change = {.mode = mode};
	char path[2 * PATH_MAX];
	const char *who;

	rules.has = has_name;
	rules.context = walk;
	/* The judge knows what lies in a repository by the name of its directory. */
	snprintf(path, sizeof(path), "%s%s", is_git ? ".git/" : "", name);
	change.path = path;
	if (survey_risk_judge(&rules, &change, &who) == RISK_NONE)
		return;
	snprintf(path, sizeof(path), "%s/%s", walk->top, name);
	/* A flood of them must not hide what runs programs. */
	if (who == survey_risk_why_misleading && ++walk->risky->misleading > MISLEADING_MAX) {
		survey_walk_leave_out(walk, "");
		survey_risky_flood(walk->risky);
	} else if (!is_compared(walk, path))
		survey_risky_add(walk->risky, path, "appeared or was changed", who);
}

/* Judge @name in the open directory @fd if it changed during the run. */
static void look_at_name(struct walk *walk, const struct tree *tree, const struct tree_node *node, int fd,
			 const char *name)
{
	struct walk_name whole;
	struct stat status;
	enum age age;

	if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	age = survey_walk_age(walk, survey_changed_ns(&status));
	survey_walk_join(&whole, node->path, name);
	if (age == AGE_OLD && node->flags & TREE_IS_ARRIVED)
		age = AGE_NEW;
	if (age == AGE_OLD && node->flags & TREE_IS_IN_OTHER)
		age = survey_walk_age_of_way(walk, whole.text);
	if (age != AGE_OLD)
		judge_name(walk, tree, whole.text, status.st_mode);
}

/* The search that knows them from before the run has looked at the names directly in a project. */
static bool is_project_top(const struct tree_node *node)
{
	return !node->path[0] && !(node->flags & TREE_IS_GIT);
}

static void look_at_names(struct walk *walk, const struct tree *tree, const struct tree_node *node)
{
	AUTO_CLOSE int fd = -1;

	if (!node->names.count || is_project_top(node))
		return;
	fd = survey_walk_open(walk, node->path, O_PATH | O_DIRECTORY);
	for (size_t i = 0; i < node->names.count && fd >= 0; i++)
		look_at_name(walk, tree, node, fd, node->names.items[i]);
}

static void look_at_rows(struct walk *walk, const char *directory, const struct host_name *rows)
{
	for (const struct host_name *row = rows; row->name; row++) {
		struct walk_name name;
		char path[2 * PATH_MAX];

		if (row->is_of_top || strchr(row->name, '/') ||
		    survey_walk_age(walk, survey_walk_changed_at(
						  walk, survey_walk_join(&name, directory, row->name))) == AGE_OLD)
			continue;
		snprintf(path, sizeof(path), "%s/%s", walk->top, name.text);
		survey_risky_add(walk->risky, path, "appeared or was changed", row->who);
	}
}

/*
 * Directories that take upper and lower case for the same also take some other letters for ours, and leave out those
 * that cannot be seen. Where there are any, what matters is asked for by its name.
 */
static void look_by_name(struct walk *walk, const char *directory, struct tree_node *node)
{
	struct walk_name name;

	for (size_t i = 0; i < GIT_BARE_NAMES; i++)
		node->bare |= survey_walk_changed_at(walk, survey_walk_join(&name, directory, survey_git_bare_names[i]))
				      ? 1U << i
				      : 0;
	if (survey_walk_changed_at(walk, survey_walk_join(&name, directory, ".git")))
		node->flags |= TREE_HAS_GIT;
	look_at_rows(walk, directory, survey_instruction_names);
	look_at_rows(walk, directory, survey_protected_names);
}

/* A later command can open it again, and what is in it has no new time then. */
static void look_at_closed(struct walk *walk, const struct tree *tree, const struct tree_node *node)
{
	char path[2 * PATH_MAX];

	if (!(node->flags & TREE_IS_CLOSED) ||
	    survey_walk_age(walk, survey_walk_changed_at(walk, node->path[0] ? node->path : ".")) == AGE_OLD)
		return;
	snprintf(path, sizeof(path), "%s%s%s", tree->path, node->path[0] ? "/" : "", node->path);
	survey_risky_add(
		walk->risky, path, "appeared or was changed",
		"its permissions keep Belljar from reading it, and it may hold files that other programs run or take instructions from");
}

static void look_at_node(struct walk *walk, const struct tree *tree, struct tree_node *node, bool is_news)
{
	if (node->flags & TREE_IS_LEFT_OUT)
		survey_risky_leave_out(walk->risky, tree->path, node->path);
	look_at_closed(walk, tree, node);
	look_at_names(walk, tree, node);
	if (!node->path[0] || (node->flags & TREE_IS_IN_GIT && !(node->flags & TREE_IS_GIT)))
		return;
	if (is_news && node->flags & TREE_HAS_OTHER_LETTERS && !(node->flags & TREE_IS_IN_GIT))
		look_by_name(walk, node->path, node);
	if (node->flags & TREE_HAS_GIT)
		look_at_repository(walk, node->path, false);
	if (survey_git_is_bare(node->bare) && strcmp(last_name(node->path), ".git") != 0)
		look_at_repository(walk, node->path, true);
}

/* --- the trees ---------------------------------------------------------------------------------------------- */

/* A name in a directory that changed. What matters in any run the tree has noted; the rest matters if it is new. */
static void look_at_new_name(void *context, const struct tree_entry *entry)
{
	struct walk *walk = context;
	const struct risk_rules *rules = walk->request->rules;

	if (entry->node->flags & TREE_IS_IN_GIT ||
	    !(survey_risk_is_misleading(entry->name) || (rules && rules->extra.count)))
		return;
	look_at_name(walk, walk->tree, entry->node, entry->fd, entry->name);
}

static bool is_known_as_news(const struct tree_node *node)
{
	return node->names.count || node->flags & (TREE_HAS_GIT | TREE_IS_LEFT_OUT) || survey_git_is_bare(node->bare);
}

static void look_at_index(struct risk_look *look, struct tree *tree, size_t index)
{
	struct walk *walk = &look->walk;
	struct tree_check check = {
		.old_ns = walk->start.earliest_ns,
		.may_skim = look->listed >= LISTED_BEFORE_SKIMMING,
		.each = look_at_new_name,
		.context = walk,
	};
	enum tree_news news = survey_tree_check(tree, index, &check);
	struct tree_node *node = &tree->nodes.items[index];

	look->listed += news == TREE_LISTED ? 1 : 0;
	if (news == TREE_SKIMMED)
		survey_risky_leave_out(walk->risky, tree->path, node->path);
	if (!(node->flags & TREE_IS_GONE) && (news == TREE_LISTED || is_known_as_news(node)))
		look_at_node(walk, tree, node, news == TREE_LISTED);
	node->flags &= ~(unsigned)TREE_IS_ARRIVED;
	survey_tree_looked(tree, index, is_known_as_news(node));
}

/* Begin with the tree look->tree; false: it is no longer where it was. */
static bool begin_tree(struct risk_look *look, struct tree *tree)
{
	struct host_path top = {.path = tree->path, .device = tree->device, .inode = tree->inode};

	look->index = 0;
	look->walk.tree = tree;
	survey_tree_take_events(tree);
	look->is_begun = survey_walk_begin(&look->walk, &top);
	return look->is_begun;
}

static void end_tree(struct risk_look *look, struct tree *tree)
{
	if (look->is_begun) {
		look->walk.risky->looked_at += tree->nodes.count - tree->gone;
		survey_tree_end_search(tree);
	}
	close_fd(&look->walk.fd);
	look->walk.repositories = look->walk.entries = 0;
	look->is_begun = false;
	look->tree++;
}

bool survey_look_go(struct risk_look *look, size_t count, struct risky_list *risky)
{
	const struct risky_request *request = look->walk.request;

	look->walk.risky = risky;
	while (look->tree < request->tree_count) {
		struct tree *tree = request->trees[look->tree];

		if (!look->is_begun && !begin_tree(look, tree)) {
			end_tree(look, tree);
			continue;
		}
		for (;; look->index++, count--) {
			look->index = survey_tree_next_to_look(tree, look->index, look->walk.start.earliest_ns);
			if (look->index >= tree->nodes.count)
				break;
			if (!count)
				return true;
			look_at_index(look, tree, look->index);
		}
		end_tree(look, tree);
	}
	return false;
}
