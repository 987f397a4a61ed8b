/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_watch.c - find files that other programs run or read: by name, behind links, and through git's files
 *
 * First what tables name (survey_names.c), always and in full; then what git would follow: paths in its
 * configuration, included files, repositories that .gitmodules names, and those in turn. The second part reads files
 * that a command may have written, so it comes last and has a budget: nothing that it meets can use up the looks that
 * protect what is known. git itself is never run, because running it here is what a planted configuration waits for.
 */
#include "survey/survey_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "survey/survey_git.h"
#include "survey/survey_git_search.h"
#include "survey/survey_names.h"
#include "survey/survey_paths.h"
#include "survey/survey_search.h"
#include "survey/survey_walk.h"
#include "base/sys/calls.h"

/* In a directory with more names than this each name of the tables is looked up by itself. */
#define NAMES_MAX 2048
/* The most names of the home directory that the search looks at. */
#define HOME_NAMES_MAX 4096

const char *const survey_git_bare_names[GIT_BARE_NAMES] = {"HEAD", "objects", "refs", "commondir"};

/* --- a project ---------------------------------------------------------------------------------------------- */

/* Some directories take upper and lower case for the same. */
static bool has_first_name(const char *name, const char *entry)
{
	size_t len = 0;

	while (name[len] && name[len] != '/' && entry[len] && (name[len] | 0x20) == (entry[len] | 0x20))
		len++;
	return (!name[len] || name[len] == '/') && !entry[len];
}

/*
 * For each row of a table, whether the directory may have its first name. Rows whose names begin with the same letter
 * are in one chain, so that an entry is compared with few of them.
 */
#define ROWS_MAX 256
#define LETTERS 32
struct first_names {
	const struct host_name *rows;
	uint16_t first[LETTERS], next[ROWS_MAX]; /* a row's number and 1; 0: the end of the chain */
	bool is_there[ROWS_MAX];
};

static unsigned letter_of(const char *name)
{
	return (unsigned char)name[0] % LETTERS;
}

static void first_names_init(struct first_names *names, const struct host_name *rows)
{
	*names = (struct first_names){.rows = rows};
	for (uint16_t i = 0; i < ROWS_MAX && rows[i].name; i++) {
		names->next[i] = names->first[letter_of(rows[i].name)];
		names->first[letter_of(rows[i].name)] = (uint16_t)(i + 1);
	}
}

static void note_first_name(struct first_names *names, const char *entry)
{
	for (unsigned at = names->first[letter_of(entry)]; at; at = names->next[at - 1])
		names->is_there[at - 1] |= has_first_name(names->rows[at - 1].name, entry);
}

/* One look at the directory instead of one at each of the names that could be there. */
static void read_first_names(const struct search_root *root, const char *name, struct first_names *of_protected,
			     struct first_names *of_instructions)
{
	AUTO_CLOSE int fd = survey_search_open(root, name, O_RDONLY | O_DIRECTORY);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry = NULL;
	size_t count = 0;

	if (directory)
		take_fd(&fd);
	while (directory && count <= NAMES_MAX && (entry = readdir(directory))) {
		note_first_name(of_protected, entry->d_name);
		note_first_name(of_instructions, entry->d_name);
		/* Here another letter may count for one of ours, or for none. */
		if (!survey_is_ascii(entry->d_name))
			break;
		count++;
	}
	if (!directory || entry) {
		memset(of_protected->is_there, true, sizeof(of_protected->is_there));
		memset(of_instructions->is_there, true, sizeof(of_instructions->is_there));
	}
	if (directory)
		closedir(directory);
}

static void find_rows(struct search *search, const char *top, const struct first_names *names, enum watch_kind kind)
{
	const struct host_name *rows = names->rows;

	for (size_t i = 0; rows[i].name; i++)
		if (i >= ROWS_MAX || names->is_there[i])
			survey_search_find(search, &(struct watched){.kind = kind, .who = rows[i].who}, "%s/%s", top,
					   rows[i].name);
}

bool survey_git_is_bare(unsigned names)
{
	enum { HEAD = 1, OBJECTS = 2, REFS = 4, COMMONDIR = 8 };

	return names & HEAD && (names & COMMONDIR || (names & OBJECTS && names & REFS));
}

/* Does git take the directory itself for a repository? A dangling link counts: HEAD may name an unborn branch. */
static bool is_bare(struct search *search, const char *directory)
{
	struct watched look = {.who = NULL};
	unsigned names = 0;

	/* Without the first, HEAD, the others do not matter. */
	for (size_t i = 0; i < GIT_BARE_NAMES && (i == 0 || names); i++) {
		char path[PATH_MAX];
		enum path_kind kind;

		if (snprintf(path, sizeof(path), "%s/%s", directory, survey_git_bare_names[i]) < (int)sizeof(path) &&
		    (!survey_search_find_plain(search, path, &look, &kind) || kind != PATH_ABSENT))
			names |= 1U << i;
	}
	return survey_git_is_bare(names);
}

static void find_bare_names(struct search *search, const char *directory)
{
	survey_search_find(
		search,
		&(struct watched){
			.kind = WATCH_NEW,
			.who = "with `objects` and `refs`, or `commondir`, beside it git takes this directory for a repository, and uses the `config` and the `hooks` in it",
		},
		"%s/HEAD", directory);
	survey_git_find_names(search, directory, WATCH_PROTECTED, NULL);
}

/* In a second workspace of jj a file says where the repository is; elsewhere that is a directory, and worked in. */
static void find_jj_pointer(struct search *search, const char *top)
{
	struct watched pointer = {.kind = WATCH_PROTECTED, .who = "jj takes its repository from where it points"};
	struct watched look = {.who = NULL};
	enum path_kind kind;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/.jj/repo", top) >= (int)sizeof(path))
		return;
	if (!survey_search_find_plain(search, path, &look, &kind))
		survey_search_resolve(search, path, &pointer);
	else if (kind == PATH_FILE)
		survey_search_find_plain(search, path, &pointer, &kind);
}

static void find_project(struct search *search, const char *top)
{
	const struct search_root *root = survey_search_root_of(search, top);
	struct first_names protected, instructions;
	struct watched pointer = {.kind = WATCH_PROTECTED, .who = "git takes its repository from where it points"};
	struct watched look = {.who = NULL};
	enum path_kind kind;
	char git[PATH_MAX];
	bool has_no_link;

	if (!root || snprintf(git, sizeof(git), "%s/.git", top) >= (int)sizeof(git))
		return;
	first_names_init(&protected, survey_protected_names);
	first_names_init(&instructions, survey_instruction_names);
	read_first_names(root, survey_search_beneath(root, top), &protected, &instructions);
	/* As a directory, only some of its contents are protected; else it says where the repository is. */
	has_no_link = survey_search_find_plain(search, git, &look, &kind);
	if (has_no_link && kind == PATH_DIRECTORY) {
		survey_search_find(search,
				   &(struct watched){
					   .kind = WATCH_MUST_STAY,
					   .who = "without it git uses a repository in a parent directory instead",
				   },
				   "%s/HEAD", git);
	} else if (!(has_no_link && kind == PATH_ABSENT) && survey_search_resolve(search, git, &pointer)) {
		survey_search_find_plain(search, git, &look, &kind);
		if (kind != PATH_DIRECTORY)
			survey_search_find_plain(search, git, &pointer, &kind);
	}
	find_jj_pointer(search, top);
	find_rows(search, top, &protected, WATCH_PROTECTED);
	find_rows(search, top, &instructions, WATCH_REPORTED);
	if (is_bare(search, top))
		find_bare_names(search, top);
}

/* What the repository at @top leads to. */
static void find_project_repository(struct search *search, const char *top)
{
	char git[PATH_MAX];

	if (snprintf(git, sizeof(git), "%s/.git", top) < (int)sizeof(git) &&
	    survey_search_find_at(search, git, &(struct watched){.who = NULL}) == PATH_DIRECTORY)
		survey_git_find_repository(search, &(struct git_repository){git, git, top, 0});
	if (is_bare(search, top))
		survey_git_find_repository(search, &(struct git_repository){top, top, NULL, 0});
}

/* Of a repository elsewhere the part that is this work tree's own; where there is none, all of it. */
static const char *own_part(const struct host_workdir *workdir)
{
	return workdir->git_own.kind == PATH_DIRECTORY ? workdir->git_own.path : workdir->git.path;
}

/* A repository elsewhere, of a linked work tree or a submodule: neither it nor the work tree's part of it may move. */
static void find_elsewhere(struct search *search)
{
	const struct host_workdir *workdir = &search->host->workdir;
	bool has_own = workdir->git_own.kind == PATH_DIRECTORY;
	const char *own = own_part(workdir);

	survey_git_find_names(search, workdir->git.path, WATCH_PROTECTED, NULL);
	if (has_own) {
		survey_git_find_names(search, own, WATCH_PROTECTED, NULL);
		survey_search_find(search,
				   &(struct watched){.kind = WATCH_PROTECTED, .who = "git takes its work tree from it"},
				   "%s/gitdir", own);
	}
	if (search->pinned && (survey_path_list_look(search->pinned, workdir->git.path) == -ENOMEM ||
			       (has_own && survey_path_list_look(search->pinned, own) == -ENOMEM)))
		search->has_failed = true;
}

/* Where git's own files lead, from every repository around. */
static void find_followed(struct search *search)
{
	const struct host_workdir *workdir = &search->host->workdir;
	const char *top = workdir->top.kind == PATH_DIRECTORY ? workdir->top.path : NULL;

	if (top)
		find_project_repository(search, top);
	if (workdir->has_git_file)
		survey_git_find_repository(search, &(struct git_repository){workdir->git.path, own_part(workdir),
									    top ? top : workdir->path.path, 0});
	find_project_repository(search, workdir->path.path);
}

/* --- what else a command may write --------------------------------------------------------------------------- */

static void find_in_grants(struct search *search, void (*find)(struct search *search, const char *top))
{
	for (size_t i = 0; i < search->root_count; i++)
		if (search->roots[i].is_grant)
			find(search, search->roots[i].path);
}

/*
 * People keep the files that programs read in their home directory elsewhere, with links to them: a shell runs what
 * is in "dotfiles/bashrc" as it would run ".bashrc".
 */
static void find_linked(struct search *search, const char *directory, const char *name)
{
	struct watched as = {.kind = WATCH_REPORTED, .who = "a link in your home directory leads to it"};
	char path[PATH_MAX];
	const struct search_root *root;

	for (const struct host_name *row = survey_protected_names; row->name; row++)
		if (!strcmp(row->name, name))
			as = (struct watched){.kind = WATCH_PROTECTED, .who = row->who};
	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path) ||
	    !survey_search_resolve(search, path, &(struct watched){.who = NULL}))
		return;
	root = survey_search_root_of(search, path);
	/* Not what the command works in. */
	if (!root || !survey_search_beneath(root, path)[0])
		return;
	for (size_t i = 0; i < search->root_count; i++)
		if (path_is_within(search->roots[i].path, path))
			return;
	survey_search_find_at(search, path, &as);
}

static void find_links_of_home(struct search *search, const char *below)
{
	char path[PATH_MAX];
	DIR *directory;
	const struct dirent *entry;
	size_t count = 0;

	if (!search->host->real_home ||
	    snprintf(path, sizeof(path), "%s%s", search->host->real_home, below) >= (int)sizeof(path))
		return;
	directory = opendir(path);
	while (directory && count < HOME_NAMES_MAX && (entry = readdir(directory))) {
		count++;
		if (entry->d_type == DT_LNK && (below[0] || entry->d_name[0] == '.'))
			find_linked(search, path, entry->d_name);
	}
	if (directory)
		closedir(directory);
}

/* The planner makes them read-only; where that cannot be, a change is reported. */
static void find_policy_files(struct search *search)
{
	for (size_t i = 0; i < search->host->policy_files.count; i++)
		survey_search_find(search,
				   &(struct watched){
					   .kind = WATCH_PROTECTED,
					   .who = "Belljar takes the policy of later runs from it",
				   },
				   "%s", search->host->policy_files.items[i].path);
}

/* --- the search --------------------------------------------------------------------------------------------- */

static int open_root(struct search *search, const struct host_path *path, bool is_grant)
{
	int fd;

	/* What lies in the workdir is looked at with it. */
	if (is_grant && survey_search_root_of(search, path->path))
		return 0;
	fd = survey_open_top(path);
	if (fd < 0)
		return fd;
	search->roots[search->root_count++] = (struct search_root){path->path, fd, is_grant};
	return 0;
}

static int open_roots(struct search *search)
{
	const struct host_workdir *workdir = &search->host->workdir;
	const struct host_path *own[SEARCH_OWN_ROOTS] = {&workdir->path, &workdir->top, &workdir->git_own,
							 &workdir->git};
	const struct host_path_list *grants = &search->host->grants;
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(own) && workdir->is_searched && rc == 0; i++)
		if ((i < 2 || workdir->has_git_file) && own[i]->kind == PATH_DIRECTORY)
			rc = open_root(search, own[i], false);
	for (size_t i = 0; i < grants->count && search->root_count < SEARCH_ROOTS_MAX && rc == 0; i++)
		rc = open_root(search, &grants->items[i], true);
	search->found->is_cut_off |= grants->count > SEARCH_ROOTS_MAX - SEARCH_OWN_ROOTS;
	return rc;
}

static void end(struct search *search)
{
	while (search->root_count)
		close(search->roots[--search->root_count].fd);
}

int survey_watch(const struct host *host, int64_t settled_ns, struct watch_list *found, struct host_path_list *pinned)
{
	struct watch_budget budget = WATCH_BUDGET;
	struct search search = {
		.host = host, .budget = &budget, .settled_ns = settled_ns, .found = found, .pinned = pinned};
	int rc = open_roots(&search);

	if (rc == 0 && host->workdir.is_searched) {
		find_project(&search, host->workdir.path.path);
		if (host->workdir.top.kind == PATH_DIRECTORY)
			find_project(&search, host->workdir.top.path);
		if (host->workdir.has_git_file)
			find_elsewhere(&search);
	}
	if (rc == 0) {
		find_in_grants(&search, find_project);
		find_policy_files(&search);
		find_links_of_home(&search, "");
		find_links_of_home(&search, "/.config");
		search.is_following = true;
		survey_git_find_callers(&search);
		if (host->workdir.is_searched)
			find_followed(&search);
		find_in_grants(&search, find_project_repository);
	}
	end(&search);
	return rc == 0 && search.has_failed ? -ENOMEM : rc;
}

bool survey_is_empty(const struct host *host)
{
	const struct host_workdir *workdir = &host->workdir;
	const struct dirent *entry = NULL;
	AUTO_CLOSE int top_fd = -1, fd = -1;
	DIR *directory;

	if (!workdir->is_searched || workdir->has_git_file || workdir->top.kind == PATH_DIRECTORY || host->grants.count)
		return false;
	top_fd = survey_open_top(&workdir->path);
	if (top_fd >= 0)
		fd = openat(top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory)
		return false;
	take_fd(&fd);
	errno = 0;
	do
		entry = readdir(directory);
	while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
	closedir(directory);
	return !entry && !errno;
}

int survey_watch_nested(const struct host *host, const char *directory, bool is_bare, struct watch_budget *budget,
			struct watch_list *found, bool *has_programs_out)
{
	struct search search = {.host = host, .budget = budget, .settled_ns = INT64_MAX, .found = found};
	int rc = open_roots(&search);

	search.is_following = true;
	if (rc == 0 && is_bare) {
		find_bare_names(&search, directory);
		survey_git_find_repository(&search, &(struct git_repository){directory, directory, NULL, 0});
	} else if (rc == 0)
		survey_git_find_nested(&search, directory, 0, "git uses it when it runs in this directory");
	end(&search);
	*has_programs_out = search.has_programs;
	return rc == 0 && search.has_failed ? -ENOMEM : rc;
}

void survey_watch_done(struct watch_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		survey_path_done(&list->items[i].path);
		free(list->items[i].content);
	}
	free(list->items);
	*list = (struct watch_list){0};
}
