/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_git_search.c - where git's own files lead: what its configuration names, and the repositories that it looks into
 *
 * All of it may have been written by a command, so nothing that is met here can use up the looks that protect what is known.
 */
#include "survey/survey_git_search.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "survey/survey_git.h"
#include "survey/survey_git_named.h"
#include "survey/survey_names.h"
#include "survey/survey_paths.h"
#include "base/sys/calls.h"

/* As many configuration files in one another as git reads. */
#define INCLUDES_MAX 10
/* A byte of a configuration takes as long to parse as this many bytes take to read. */
#define CONFIG_BYTE_COST 8
/* Repositories in repositories: how deep, how many are made read-only, how many looked at. */
#define NESTING_MAX 6
#define PROTECTED_REPOSITORIES_MAX 64
#define REPOSITORIES_MAX 1024
#define SIDE_BY_SIDE_MAX 256

/* --- what git's configuration names ------------------------------------------------------------------------- */

struct configuration {
	struct search *search;
	const char *file;     /* its own path, without links */
	const char *worktree; /* where relative paths begin */
	int depth;
	bool is_callers; /* it, and what it includes, may lie where no command can write */
	struct git_configured configured;
};

static void read_configuration(struct configuration *configuration);

/* One thing that the configuration names, at @name: absolute, or as a command would write it. */
static void find_at(struct configuration *configuration, const struct git_named *named, const char *name)
{
	struct search *search = configuration->search;
	struct watched as = {.kind = WATCH_PROTECTED, .who = named->who};
	char path[PATH_MAX], object[PATH_MAX];
	enum path_kind kind;

	memcpy(path, name, strlen(name) + 1);
	memcpy(object, name, strlen(name) + 1);
	kind = survey_search_find_at(search, object, &(struct watched){.who = NULL});
	/* A word of a command may be anything, also "." or the name of a directory that is worked in. */
	if (named->is_only_file && kind == PATH_ABSENT)
		survey_search_note_absent(search, object, &as, &(struct risk_extra){.is_only_file = true});
	if (named->is_only_file && kind != PATH_FILE)
		return;
	/* The work tree itself, or what holds it, cannot be read-only. */
	if (path_is_within(search->host->workdir.path.path, object))
		as.kind = WATCH_REPORTED;
	kind = survey_search_find_at(search, path, &as);
	if (named->is_include && configuration->depth < INCLUDES_MAX &&
	    (kind == PATH_FILE || (configuration->is_callers && !survey_search_root_of(search, path)))) {
		struct configuration included = {
			.search = search,
			.file = path,
			.worktree = configuration->worktree,
			.depth = configuration->depth + 1,
			.is_callers = configuration->is_callers,
			.configured = configuration->configured,
		};

		read_configuration(&included);
		configuration->configured = included.configured;
	}
}

static bool find_named(void *context, const struct git_named *named)
{
	struct configuration *configuration = context;
	struct search *search = configuration->search;
	const char *home = search->host->real_home, *from = configuration->worktree, *name = named->path;
	char directory[PATH_MAX], path[2 * PATH_MAX];

	if (!search->budget->looks) {
		search->found->is_cut_off = true;
		return false;
	}
	if (named->is_beside_file) {
		snprintf(directory, sizeof(directory), "%s", configuration->file);
		*strrchr(directory, '/') = '\0';
		from = directory;
	}
	/* Of "~user/x" the user may be the caller. */
	if (name[0] == '~' && strchr(name, '/') && home) {
		from = home;
		name = strchr(name, '/') + 1;
	}
	if (name[0] == '/')
		from = "";
	if (snprintf(path, sizeof(path), "%s%s%s", from, name[0] == '/' ? "" : "/", name) >= PATH_MAX)
		search->budget->looks--; /* what is no path takes time too */
	else
		find_at(configuration, named, path);
	return true;
}

static void read_configuration(struct configuration *configuration)
{
	struct search *search = configuration->search;
	const struct search_root *root = survey_search_root_of(search, configuration->file);
	AUTO_CLOSE int fd = -1;
	AUTO_TEXT content = {0};
	int rc;

	if (root)
		fd = survey_search_open(root, survey_search_beneath(root, configuration->file), O_RDONLY);
	else if (configuration->is_callers)
		fd = sys_open(configuration->file, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	rc = fd < 0 ? fd : survey_git_read_open(fd, GIT_CONFIG_BYTES_MAX, &content);
	/* git reads nothing of a directory. What else cannot be read may name anything. */
	if (fd < 0 || rc == -EISDIR)
		return;
	if (rc < 0 || !search->budget->looks || !survey_search_spend_bytes(search, content.len * CONFIG_BYTE_COST) ||
	    survey_git_config_named(content.data, content.len, find_named, configuration, &configuration->configured) <
		    0)
		configuration->configured.has_programs = search->found->is_cut_off = true;
}

/* Follow the configuration of @git. Set @worktree_out to the work tree that it names, or "". */
static void find_configured(struct search *search, const char *git, const char *worktree, char worktree_out[PATH_MAX])
{
	static const char *const names[] = {"config", "config.worktree"};

	worktree_out[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[PATH_MAX];
		struct configuration configuration = {
			.search = search,
			.file = path,
			.worktree = worktree,
		};

		if (snprintf(path, sizeof(path), "%s/%s", git, names[i]) >= (int)sizeof(path) ||
		    survey_search_find_at(search, path, &(struct watched){.who = NULL}) != PATH_FILE)
			continue;
		read_configuration(&configuration);
		if (configuration.configured.worktree[0])
			memcpy(worktree_out, configuration.configured.worktree, PATH_MAX);
		search->has_programs |= configuration.configured.has_programs;
	}
}

/* --- repositories ------------------------------------------------------------------------------------------- */

void survey_git_find_names(struct search *search, const char *git, enum watch_kind kind, const char *who)
{
	for (const struct host_name *row = survey_protected_names; row->name; row++)
		if (!strncmp(row->name, ".git/", 5))
			survey_search_find(search, &(struct watched){.kind = kind, .who = who ? who : row->who},
					   "%s/%s", git, row->name + 5);
	for (const struct host_name *row = survey_instruction_names; row->name; row++)
		if (!strncmp(row->name, ".git/", 5))
			survey_search_find(search, &(struct watched){.kind = WATCH_REPORTED, .who = row->who}, "%s/%s",
					   git, row->name + 5);
}

/* Repositories, or parts of them, side by side in a directory that is read-only as a whole: for where that does not hold. */
static void find_side_by_side(struct search *search, const char *directory)
{
	const struct search_root *root = survey_search_root_of(search, directory);
	AUTO_CLOSE int fd =
		root ? survey_search_open(root, survey_search_beneath(root, directory), O_RDONLY | O_DIRECTORY) : -1;
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	size_t count = 0;

	if (!listing)
		return;
	take_fd(&fd);
	while (count++ < SIDE_BY_SIDE_MAX && (entry = readdir(listing))) {
		char path[PATH_MAX];

		if (entry->d_name[0] != '.' &&
		    snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) < (int)sizeof(path))
			survey_git_find_names(search, path, WATCH_REPORTED, NULL);
	}
	search->found->is_cut_off |= count > SIDE_BY_SIDE_MAX;
	closedir(listing);
}

struct submodules {
	struct search *search;
	const struct git_repository *repository;
};

/* git also looks into repositories that only its index names. The search after a run finds those by walking. */
static void find_submodule(void *context, const struct git_config_key *key, const char *path)
{
	const struct submodules *submodules = context;
	struct search *search = submodules->search;
	bool is_absolute = path[0] == '/';
	char directory[2 * PATH_MAX];

	if (strcmp(key->section, "submodule") != 0 || !key->is_sub || strcmp(key->name, "path") != 0)
		return;
	if (search->repositories++ >= REPOSITORIES_MAX || !search->budget->looks) {
		search->found->is_cut_off = true;
		return;
	}
	/* A name may lead anywhere, also by ".." or from the root of the host. */
	if (snprintf(directory, sizeof(directory), "%s%s%s", is_absolute ? "" : submodules->repository->worktree,
		     is_absolute ? "" : "/", path) < PATH_MAX)
		survey_git_find_nested(
			search, directory, submodules->repository->depth + 1,
			"`git status` looks into this repository, and runs programs that its configuration names");
}

/* The repositories that .gitmodules names. */
static void find_submodules(struct search *search, const struct git_repository *repository)
{
	struct submodules submodules = {search, repository};
	char path[PATH_MAX];
	const struct search_root *root;
	AUTO_CLOSE int fd = -1;
	AUTO_TEXT content = {0};
	int rc;

	if (snprintf(path, sizeof(path), "%s/.gitmodules", repository->worktree) >= (int)sizeof(path))
		return;
	root = survey_search_root_of(search, path);
	fd = root ? survey_search_open(root, survey_search_beneath(root, path), O_RDONLY) : -1;
	rc = fd < 0 ? fd : survey_git_read_open(fd, GIT_CONFIG_BYTES_MAX, &content);
	if (fd < 0 || rc == -EISDIR)
		return;
	if (rc < 0 || !survey_search_spend_bytes(search, content.len * CONFIG_BYTE_COST) ||
	    survey_git_config_parse(content.data, content.len, find_submodule, &submodules) < 0)
		search->found->is_cut_off = true;
}

/* @name as a file of @git has it, which becomes the path of the directory; false: there is none that is searched. */
static bool find_directory(struct search *search, const char *git, const char *name, char path[PATH_MAX])
{
	char joined[2 * PATH_MAX];

	if (!name[0] || snprintf(joined, sizeof(joined), "%s%s%s", name[0] == '/' ? "" : git, name[0] == '/' ? "" : "/",
				 name) >= PATH_MAX)
		return false;
	memcpy(path, joined, strlen(joined) + 1);
	return survey_search_find_at(search, path, &(struct watched){.who = NULL}) == PATH_DIRECTORY;
}

/* A repository may have the rest of itself elsewhere, its configuration and hooks among it. */
static void find_common(struct search *search, const struct git_repository *repository)
{
	char file[PATH_MAX], common[PATH_MAX], unused[PATH_MAX];
	const struct search_root *root;
	AUTO_TEXT pointer = {0};
	AUTO_CLOSE int fd = -1;

	if (snprintf(file, sizeof(file), "%s/commondir", repository->own) >= (int)sizeof(file))
		return;
	root = survey_search_root_of(search, file);
	fd = root ? survey_search_open(root, survey_search_beneath(root, file), O_RDONLY) : -1;
	if (fd < 0 || survey_git_read_pointer(fd, "", &pointer) < 0 ||
	    !find_directory(search, repository->own, pointer.data, common) || !strcmp(common, repository->git))
		return;
	survey_git_find_names(search, common, WATCH_PROTECTED, NULL);
	find_configured(search, common, repository->worktree ? repository->worktree : common, unused);
}

void survey_git_find_repository(struct search *search, const struct git_repository *repository)
{
	static const char *const others[] = {"modules", "worktrees"};
	const char *worktree = repository->worktree ? repository->worktree : repository->git;
	char named[PATH_MAX], moved[PATH_MAX];

	find_configured(search, repository->git, worktree, named);
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s/%s", repository->git, others[i]) < (int)sizeof(path))
			find_side_by_side(search, path);
	}
	find_common(search, repository);
	if (repository->depth >= NESTING_MAX)
		search->found->is_cut_off = true;
	else if (repository->worktree)
		find_submodules(search, repository);
	/* A work tree that is elsewhere: names begin there. */
	if (find_directory(search, repository->git, named, moved) && strcmp(moved, worktree) != 0) {
		find_configured(search, repository->git, moved, named);
		if (repository->depth < NESTING_MAX)
			find_submodules(search, &(struct git_repository){repository->git, repository->own, moved,
									 repository->depth});
	}
	if (strcmp(repository->own, repository->git) != 0)
		find_configured(search, repository->own, worktree, named);
}

/* A .git file: it counts, and so does what it names. */
static void find_pointed(struct search *search, const char *directory, const char *git_file, int depth, const char *who)
{
	const struct search_root *root = survey_search_root_of(search, git_file);
	AUTO_TEXT pointer = {0};
	char git[2 * PATH_MAX];
	AUTO_CLOSE int fd = root ? survey_search_open(root, survey_search_beneath(root, git_file), O_RDONLY) : -1;

	if (fd < 0 || survey_git_read_pointer(fd, "gitdir: ", &pointer) < 0 ||
	    snprintf(git, sizeof(git), "%s%s%s", pointer.data[0] == '/' ? "" : directory,
		     pointer.data[0] == '/' ? "" : "/", pointer.data) >= PATH_MAX)
		return;
	if (survey_search_find_at(search, git, &(struct watched){.who = NULL}) != PATH_DIRECTORY)
		return;
	survey_git_find_names(search, git, WATCH_PROTECTED, who);
	survey_git_find_repository(search, &(struct git_repository){git, git, directory, depth});
}

void survey_git_find_nested(struct search *search, const char *directory, int depth, const char *who)
{
	struct watched as = {
		.kind = search->repositories < PROTECTED_REPOSITORIES_MAX ? WATCH_PROTECTED : WATCH_REPORTED,
		.who = who,
	};
	struct watched look = {.who = NULL};
	enum path_kind kind;
	char git[PATH_MAX];

	if (snprintf(git, sizeof(git), "%s/.git", directory) >= (int)sizeof(git))
		return;
	/* By a link, or a name like "a/../b": then every link on the way counts too. */
	if (!survey_search_find_plain(search, git, &look, &kind)) {
		if (!survey_search_resolve(search, git, &as))
			return;
		survey_search_find_plain(search, git, &look, &kind);
	}
	if (kind == PATH_DIRECTORY) {
		survey_git_find_names(search, git, as.kind, who);
		survey_git_find_repository(search, &(struct git_repository){git, git, directory, depth});
	} else if (kind != PATH_ABSENT) {
		survey_search_find_plain(search, git, &as, &kind);
		find_pointed(search, directory, git, depth, who);
	}
}

/* --- the caller's own -------------------------------------------------------------------------------------- */

static bool find_named_by_variable(void *context, const struct git_named *named)
{
	struct git_named other = *named;

	other.who = "a variable of yours, GIT_EDITOR or the like, makes git run it";
	return find_named(context, &other);
}

/* What the caller's variables make git run. */
static void find_callers_commands(struct search *search)
{
	const struct string_list *commands = &search->host->git_commands;

	for (size_t i = 0; i < commands->count; i++)
		for (size_t j = 0; j < search->root_count; j++) {
			struct configuration configuration = {
				.search = search, .file = search->roots[j].path, .worktree = search->roots[j].path};

			survey_git_command_named(commands->items[i], find_named_by_variable, &configuration);
		}
}

/* What the caller's own git configuration names, for each work tree that relative paths may begin at. */
static void find_callers_configuration(struct search *search)
{
	const struct string_list *files = &search->host->git_files;
	struct watched as = {.kind = WATCH_PROTECTED, .who = "it is your git's configuration, which names programs"};

	for (size_t i = 0; i < files->count; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s", files->items[i]);
		survey_search_find_at(search, path, &as);
		for (size_t j = 0; j < search->root_count; j++)
			read_configuration(&(struct configuration){
				.search = search,
				.file = survey_search_root_of(search, path) ? path : files->items[i],
				.worktree = search->roots[j].path,
				.is_callers = true,
			});
	}
}

void survey_git_find_callers(struct search *search)
{
	find_callers_configuration(search);
	find_callers_commands(search);
}
