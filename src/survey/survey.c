/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey.c - look at the files that a policy is about
 *
 * Symbolic links are followed here, once, by the trusted side; what is found is remembered by device and inode, and the
 * jar mounts that object or nothing.
 */
#include "survey/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "survey/survey_cgroup.h"
#include "survey/survey_git.h"
#include "survey/survey_layers.h"
#include "survey/survey_match.h"
#include "survey/survey_names.h"
#include "survey/survey_own.h"
#include "survey/survey_paths.h"
#include "survey/survey_risky.h"
#include "survey/survey_secrets.h"
#include "survey/survey_toolchains.h"
#include "survey/survey_trust.h"
#include "survey/survey_watch.h"
#include "base/sys/calls.h"

/* Directories of PATH beyond these are ignored: real lists are far shorter. */
#define PATH_DIRECTORIES_MAX 128
/* Of /etc/hosts. */
#define HOSTS_BYTES_MAX (32 << 10)

static int out_of_memory(struct error *error)
{
	return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
}

/* @directory NULL: they are whole paths. */
static int look_at_names(struct host_path_list *list, const char *directory, const char *const *names)
{
	int rc = 0;

	for (; *names && rc == 0; names++) {
		AUTO_FREE char *path = directory ? survey_path_join(directory, *names) : strdup(*names);

		rc = path ? survey_path_list_look(list, path) : -ENOMEM;
	}
	return rc;
}

/* --- /etc --------------------------------------------------------------------------------------------------- */

/* Links that distributions have in /etc lead there; they need not be followed to know that they do not lead to /run. */
static bool leads_to_system(const char *target)
{
	static const char *const beginnings[] = {"/usr/", "../usr/", "/proc/", "../proc/"};

	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
		if (!strncmp(target, beginnings[i], strlen(beginnings[i])))
			return !strstr(target + strlen(beginnings[i]), "..");
	return false;
}

/*
 * A link out of /etc mostly leads to /usr, which is visible; but resolv.conf leads to a file in /run, which is
 * private in the jar: without that file no name is found on the host's network. It is shown where it is.
 */
static int add_etc_entry(struct host_path_list *list, const char *path)
{
	size_t count = list->count;
	AUTO_FREE char *resolved = NULL;
	struct stat status;
	int rc = survey_path_list_look(list, path);

	if (rc < 0 || list->count == count || list->items[count].kind != PATH_SYMLINK ||
	    leads_to_system(list->items[count].target))
		return rc;
	resolved = realpath(path, NULL);
	if (!resolved || !path_is_within(resolved, "/run") || stat(resolved, &status) < 0 || !S_ISREG(status.st_mode))
		return 0;
	return survey_path_list_look(list, resolved);
}

/*
 * Each name is looked up, whether it is there or not: the kernel remembers that a name is not there, and says so in a
 * third of a microsecond. To list a directory takes longer, and longer the more other names are in it.
 */
static int survey_etc(struct host_path_list *list)
{
	int rc = 0;

	for (const char *const *name = survey_etc_names; *name && rc == 0; name++) {
		AUTO_FREE char *path = survey_path_join("/etc", *name);

		rc = path ? add_etc_entry(list, path) : -ENOMEM;
	}
	return rc;
}

int survey_etc_files(struct host *host)
{
	survey_path_list_done(&host->etc);
	return survey_etc(&host->etc);
}

/* NULL: it is too long, not for everybody, or no text. */
static char *read_hosts(void)
{
	AUTO_CLOSE int fd = sys_open("/etc/hosts", O_RDONLY | O_NOCTTY | O_NONBLOCK);
	AUTO_TEXT content = {0};
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || !(status.st_mode & S_IROTH) ||
	    survey_git_read_open(fd, HOSTS_BYTES_MAX, &content) < 0 || strlen(text_string(&content)) != content.len)
		return NULL;
	return strdup(text_string(&content));
}

/* One item in every case. */
static int add_resolved(struct host_path_list *list, const char *path)
{
	struct host_path *item = list_add(list);

	return item ? survey_look_through(item, path) : -ENOMEM;
}

/* --- the workdir -------------------------------------------------------------------------------------------- */

/* Where a .git file leads, if that is a repository that knows this directory and is fit to be shown. */
static int follow_git_file(struct host *host, const char *git_file)
{
	struct host_workdir *workdir = &host->workdir;
	char around[PATH_MAX];
	char *slash;
	int rc = survey_git_follow(git_file, &workdir->git, &workdir->git_own);

	if (rc <= 0)
		return rc;
	/* The same as for a repository above: that of a home directory kept in git is not for a jar. */
	snprintf(around, sizeof(around), "%s", workdir->git.path);
	slash = strstr(around, "/.git");
	if (slash && slash != around)
		*slash = '\0';
	workdir->has_git_file = !survey_why_unfit(host, around);
	if (workdir->has_git_file)
		return 1;
	survey_path_done(&workdir->git);
	survey_path_done(&workdir->git_own);
	return 0;
}

/* Why the directory @git may not be shown as the repository of @around, which it lies in; NULL: it may. */
static const char *why_strange(const struct host *host, const char *around, const struct host_path *git)
{
	/* What the workdir itself holds is shown in any case. */
	if (!strcmp(around, host->workdir.path.path))
		return NULL;
	if (!survey_git_is_of(host->uid, around))
		return "its directory belongs to another user";
	return survey_git_why_unfit(host->uid, git, &host->workdir.git_own);
}

/* The same for a file, which leads to a repository elsewhere; 1 if that was taken, 0 with *@why, -ENOMEM. */
static int take_git_file(struct host *host, const char *around, const char *git_file, const char **why)
{
	struct host_workdir *workdir = &host->workdir;
	int rc;

	*why = "it belongs to another user, or its directory does";
	if (!survey_git_is_of(host->uid, around) || !survey_git_is_of(host->uid, git_file))
		return 0;
	*why = "it leads to a repository that does not list it, or to none";
	rc = follow_git_file(host, git_file);
	if (rc <= 0)
		return rc;
	*why = survey_git_why_unfit(host->uid, &workdir->git, &workdir->git_own);
	if (!*why)
		return 1;
	survey_path_done(&workdir->git);
	survey_path_done(&workdir->git_own);
	workdir->has_git_file = false;
	return 0;
}

/* @git is the nearest .git: the repository's, or a strange one. */
static int take_git(struct host *host, const char *around, struct host_path *git)
{
	struct host_workdir *workdir = &host->workdir;
	const char *why = "it is a symbolic link, or nothing that git would use";
	int rc = 0;

	if (git->kind == PATH_FILE)
		rc = take_git_file(host, around, git->path, &why);
	else if (git->kind == PATH_DIRECTORY)
		why = why_strange(host, around, git);
	if (git->kind == PATH_DIRECTORY && !why) {
		workdir->git = *git;
		return 1;
	}
	if (rc != 0) {
		survey_path_done(git);
		return rc;
	}
	workdir->refused_git = *git;
	workdir->refused_why = why;
	return 0;
}

/*
 * Find the nearest directory above with a .git, and never a further one: spoiling the nearest must not show the next.
 * A directory that is unfit as a workdir (a home directory kept in git) does not count as a project: showing it would
 * show everything in it. A .git file counts only if the repository that it names refers back to it.
 */
static int find_repository_around(struct host *host)
{
	struct host_workdir *workdir = &host->workdir;
	char directory[PATH_MAX], candidate[PATH_MAX];
	struct host_path found = {0};
	char *slash;
	int rc;

	if (snprintf(directory, sizeof(directory), "%s", workdir->path.path) >= (int)sizeof(directory))
		return 0;
	for (;;) {
		if (survey_why_unfit(host, directory))
			return 0;
		if (snprintf(candidate, sizeof(candidate), "%s/.git", directory) >= (int)sizeof(candidate))
			return 0;
		rc = survey_look(&found, candidate);
		if (rc < 0)
			return rc;
		if (found.kind != PATH_ABSENT)
			break;
		survey_path_done(&found);
		slash = strrchr(directory, '/');
		if (!slash || slash == directory)
			return 0;
		*slash = '\0';
	}
	rc = take_git(host, directory, &found);
	if (rc > 0 && strcmp(directory, workdir->path.path) != 0)
		return survey_look(&workdir->top, directory);
	return rc < 0 ? rc : 0;
}

static bool list_has(const struct host_path_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].path, path))
			return true;
	return false;
}

/* A directory with auto-run files in it, and how to look at them without being led astray. */
struct top {
	const char *path;
	int fd;
};

/* Add an item in every case: if it has just stopped being a directory, the planner refuses the policy. */
static int pin(struct host_path_list *pinned, const struct top *top, const char *name)
{
	AUTO_FREE char *path = survey_path_join(top->path[1] ? top->path : "", name);
	struct host_path *item;

	if (!path)
		return -ENOMEM;
	if (list_has(pinned, path))
		return 0;
	item = list_add(pinned);
	if (!item || survey_look_beneath(item, top->fd, top->path, name) < 0)
		return -ENOMEM;
	if (!item->path)
		item->path = take_ptr(path);
	return 0;
}

/* Every directory between the top and the last name of @name. */
static int add_directories_above(struct host_path_list *pinned, const struct top *top, const char *name)
{
	char parent[PATH_MAX];
	int rc = 0;

	for (const char *slash = strchr(name, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
		if (snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name) >= (int)sizeof(parent))
			return 0;
		rc = pin(pinned, top, parent);
	}
	return rc;
}

/* Find the files that other programs run or use, and those of them that the jar makes read-only. */
static int find_protected(struct host *host)
{
	struct host_workdir *workdir = &host->workdir;
	int rc = survey_watch(host, survey_settled_ns(), &workdir->watched, &workdir->pinned);

	for (size_t i = 0; i < workdir->watched.count && rc == 0; i++) {
		const struct watched *watched = &workdir->watched.items[i];

		if (watched->kind == WATCH_PROTECTED)
			rc = survey_path_list_copy(&workdir->protected, &watched->path);
	}
	return rc;
}

/* The directory this process stands in, whatever has become of its name since: that is the one that was meant. */
static bool is_current_directory(const struct host_path *path)
{
	struct stat status;

	return stat(".", &status) == 0 && status.st_dev == path->device && status.st_ino == path->inode;
}

static int survey_workdir(struct host *host, const struct policy *policy, const char *current_directory,
			  struct error *error)
{
	const char *path = policy->workdir ? policy->workdir : current_directory;
	struct host_workdir *workdir = &host->workdir;
	int rc;

	if (policy->workdir_choice == WORKDIR_PRIVATE)
		return 0;
	if (!path) {
		error_set(error, STAGE_FILES, ENOENT, "the current directory no longer exists");
		return error_hint(error, "name a work directory with -C DIR, or a private one with -C none");
	}
	rc = policy->workdir || host->is_caller_elsewhere ? survey_look_through(&workdir->path, path)
							  : survey_look(&workdir->path, path);
	if (rc < 0)
		return out_of_memory(error);
	survey_find_planted(host, &workdir->path);
	if (workdir->path.error)
		return error_set(error, STAGE_FILES, workdir->path.error, "cannot use the work directory '%s': %s",
				 path, strerror(workdir->path.error));
	if (!policy->workdir && !host->is_caller_elsewhere && !is_current_directory(&workdir->path)) {
		error_set(error, STAGE_FILES, ESTALE, "the current directory is no longer at '%s'", path);
		return error_hint(error, "another program moved or replaced it; try again, or name one with -C DIR");
	}
	if (workdir->path.kind != PATH_DIRECTORY)
		return error_set(error, STAGE_FILES, ENOTDIR, "the work directory '%s' is not a directory", path);
	workdir->unfit = survey_why_unfit(host, workdir->path.path);
	if (workdir->unfit && policy->workdir_choice == WORKDIR_DEFAULT)
		return 0;
	workdir->is_searched = true;
	return find_repository_around(host) < 0 ? out_of_memory(error) : 0;
}

/* What the policy was read from, and what it names: what is protected, and what is shown where, depends on them. */
static int survey_sources(struct host *host, const struct policy *policy)
{
	int rc = 0;

	for (size_t i = 0; i < policy->files.count && rc == 0; i++)
		rc = add_resolved(&host->policy_files, policy->files.items[i]);
	for (size_t i = 0; i < policy->mounts.count && rc == 0; i++) {
		rc = add_resolved(&host->mounts, policy->mounts.items[i].path);
		if (rc == 0)
			survey_find_planted(host, &host->mounts.items[i]);
		if (rc == 0 && policy->mounts.items[i].access == MOUNT_RW &&
		    host->mounts.items[i].kind == PATH_DIRECTORY)
			rc = survey_path_list_copy(&host->grants, &host->mounts.items[i]);
	}
	return rc;
}

static int survey_git_files(struct host *host)
{
	char paths[GIT_GLOBAL_MAX][PATH_MAX];
	size_t count = survey_git_global(host->environment, host->real_home, paths);
	const char *system = survey_variable(host->environment, "GIT_CONFIG_SYSTEM");
	int rc = string_list_add(&host->git_files, system && system[0] == '/' ? system : "/etc/gitconfig");

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = string_list_add(&host->git_files, paths[i]);
	for (const char *const *name = survey_git_variables; *name && rc == 0; name++) {
		const char *command = survey_variable(host->environment, *name);

		if (command && command[0])
			rc = string_list_add(&host->git_commands, command);
	}
	return rc;
}

int survey_failed(int rc, struct error *error)
{
	if (rc == -ENOMEM)
		return out_of_memory(error);
	if (rc < 0)
		return error_set(error, STAGE_FILES, -rc, "cannot read the directories that the command may write: %s",
				 strerror(-rc));
	return 0;
}

/* --- what the policy names ---------------------------------------------------------------------------------- */

/* How long the name is of the nearest thing around @path that stands in the jar where it stands on the host. */
static size_t nearest_in_place(const struct host *host, const struct policy *policy, const char *path, size_t skipped)
{
	const struct host_path_list *lists[] = {&host->system, &host->toolchains};
	const struct host_path *single[] = {&host->workdir.path, &host->workdir.top};
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_LEN(single); i++)
		if (single[i]->path && path_is_within(path, single[i]->path))
			len = MAX_OF(len, strlen(single[i]->path));
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++)
			if (path_is_within(path, lists[i]->items[j].path))
				len = MAX_OF(len, strlen(lists[i]->items[j].path));
	for (size_t i = 0; i < policy->mounts.count; i++)
		if (i != skipped && !strcmp(policy->mounts.items[i].path, policy->mounts.items[i].dest) &&
		    path_is_within(path, host->mounts.items[i].path))
			len = MAX_OF(len, strlen(host->mounts.items[i].path));
	return len;
}

/* Where a path of the jar lies on the host: below a mount's destination it is below that mount's source. */
static int host_side(const struct host *host, const struct policy *policy, const char *path, size_t skipped,
		     char *host_path, size_t capacity)
{
	const struct policy_mount *nearest = NULL;

	for (size_t i = 0; i < policy->mounts.count; i++) {
		const struct policy_mount *mount = &policy->mounts.items[i];

		if (i != skipped && strcmp(mount->path, mount->dest) != 0 && path_is_within(path, mount->dest) &&
		    (!nearest || strlen(mount->dest) >= strlen(nearest->dest)))
			nearest = mount;
	}
	if (!nearest || strlen(nearest->dest) < nearest_in_place(host, policy, path, skipped))
		return snprintf(host_path, capacity, "%s", path);
	return snprintf(host_path, capacity, "%s%s", nearest->path,
			path + (nearest->dest[1] ? strlen(nearest->dest) : 0));
}

static int add_host_side(struct host *host, struct host_path_list *list, const struct policy *policy, const char *path,
			 size_t skipped)
{
	char host_path[2 * PATH_MAX];

	host_side(host, policy, path, skipped, host_path, sizeof(host_path));
	return add_resolved(list, host_path);
}

static int survey_named(struct host *host, const struct policy *policy)
{
	int rc = 0;

	for (size_t i = 0; i < policy->mounts.count && rc == 0; i++)
		rc = add_host_side(host, &host->places, policy, policy->mounts.items[i].dest, i);
	for (size_t i = 0; i < policy->tmpfs.count && rc == 0; i++)
		rc = add_host_side(host, &host->tmpfs_places, policy, policy->tmpfs.items[i].path, SIZE_MAX);
	return rc;
}

/* What has more names than one is hidden under all that the jar shows. */
static int survey_hidden(struct host *host, const struct policy *policy, struct error *error)
{
	int rc = 0;

	for (int round = 0; round < 2 && rc == 0; round++) {
		for (size_t i = host->hidden.count; i < policy->hide.count && rc == 0; i++)
			rc = add_host_side(host, &host->hidden, policy, policy->hide.items[i], SIZE_MAX);
		if (rc < 0)
			return out_of_memory(error);
		rc = round || !host->matched ? 0 : survey_match_twins(host, error);
	}
	return rc;
}

/* --- what must stay where it is ----------------------------------------------------------------------------- */

/*
 * What has a place of its own is found by its path again the next time. If a directory above it is writable, a command
 * could move it away and put something else there, so each directory between is a fact too: the planner pins it. So is
 * what is named itself, which may be seen through @root under a name that is not its place.
 */
static int pin_way(struct host *host, const struct host_path *root, const struct host_path *path)
{
	size_t root_len = root->path[1] ? strlen(root->path) : 0;
	AUTO_CLOSE int fd = -1;
	char name[PATH_MAX];

	if (snprintf(name, sizeof(name), "%s%s", path->path + root_len + 1, path->kind == PATH_DIRECTORY ? "/" : "") >=
	    (int)sizeof(name))
		return 0;
	/* Where it cannot be opened every look fails, and the planner refuses. */
	fd = survey_open_top(root);
	return add_directories_above(&host->nested, &(struct top){root->path, fd}, name);
}

static int pin_between(struct host *host, const struct host_path *root, const struct host_path *path)
{
	return path->kind == PATH_ABSENT || !path_is_within(path->path, root->path) || !strcmp(path->path, root->path)
		       ? 0
		       : pin_way(host, root, path);
}

/* Everything that has a place in the jar and lies in @root. */
static int pin_all_in(struct host *host, const struct host_path *root)
{
	const struct host_workdir *workdir = &host->workdir;
	const struct host_path *single[] = {&host->skeletons, &workdir->path, &workdir->top, &workdir->git_own,
					    &workdir->git};
	/* A .git in the workdir is part of it and has no place of its own. */
	bool has_own_git = workdir->git.path && !path_is_within(workdir->git.path, workdir->path.path);
	const struct host_path_list *lists[] = {&host->mounts,       &host->places,     &host->hidden,
						&host->tmpfs_places, &host->system,     &host->etc,
						&host->stores,       &host->cow_places, &host->policy_files};
	int rc = 0;

	if (root->kind != PATH_DIRECTORY)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(single) - !has_own_git && rc == 0; i++)
		rc = pin_between(host, root, single[i]);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t j = 0; j < lists[i]->count && rc == 0; j++)
			rc = pin_between(host, root, &lists[i]->items[j]);
	/* Outer ones come first, and what lies in one of them cannot be moved. */
	for (size_t i = 0; i < host->own.count && rc == 0; i++)
		if (!i || !path_is_within(host->own.items[i].path, host->own.items[0].path))
			rc = pin_between(host, root, &host->own.items[i]);
	/* Neither have the tools of a project, which can be thrown away and made again. */
	for (size_t i = 0; i < host->toolchains.count && rc == 0; i++)
		if (!workdir->path.path || !path_is_within(host->toolchains.items[i].path, workdir->path.path))
			rc = pin_between(host, root, &host->toolchains.items[i]);
	return rc;
}

static int survey_nested(struct host *host, const struct policy *policy)
{
	const struct host_workdir *workdir = &host->workdir;
	const struct host_path *own[] = {&workdir->path, &workdir->git, &workdir->git_own};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(own) && rc == 0; i++)
		rc = pin_all_in(host, own[i]);
	for (size_t i = 0; i < host->mounts.count && rc == 0; i++)
		if (policy->mounts.items[i].access == MOUNT_RW)
			rc = pin_all_in(host, &host->mounts.items[i]);
	for (size_t i = host->has_workdir_layer; i < host->layers.count && rc == 0; i++)
		rc = pin_all_in(host, &host->layers.items[i].path);
	return rc;
}

/* A relative one, and an empty one, are meant from wherever a program is started: from the workdir, too. */
static int add_path_directory(struct host *host, const char *directory, size_t len)
{
	const char *workdir = host->workdir.path.path;
	char path[PATH_MAX];
	int written = directory[0] == '/'
			      ? snprintf(path, sizeof(path), "%.*s", (int)len, directory)
			      : snprintf(path, sizeof(path), "%s/%.*s", workdir ? workdir : "", (int)len, directory);

	if (written >= (int)sizeof(path) || (directory[0] != '/' && !workdir) || survey_is_system_directory(path))
		return 0;
	return add_resolved(&host->path_directories, path);
}

static int find_path_directories(struct host *host)
{
	const char *at = NULL;
	int rc = 0;

	for (char *const *variable = host->environment; variable && *variable && !at; variable++)
		at = strncmp(*variable, "PATH=", 5) ? NULL : *variable + 5;
	while (at && rc == 0 && host->path_directories.count < PATH_DIRECTORIES_MAX) {
		size_t len = strcspn(at, ":");

		rc = add_path_directory(host, at, len);
		at = at[len] ? at + len + 1 : NULL;
	}
	return rc;
}

int survey_project(struct host *host, const char *workdir, struct error *error)
{
	int rc = survey_look(&host->workdir.path, workdir);

	if (rc == 0 && host->workdir.path.kind != PATH_DIRECTORY)
		return error_set(error, STAGE_FILES, ENOTDIR, "the work directory '%s' is not a directory", workdir);
	host->workdir.is_searched = true;
	if (rc == 0)
		rc = find_repository_around(host);
	if (rc == 0)
		rc = survey_git_files(host);
	return rc < 0 ? out_of_memory(error) : 0;
}

int survey_writable(struct host *host, const struct policy *said, const char *current_directory, struct error *error)
{
	int rc = survey_match_shown(host, said, current_directory, error);
	const struct policy *policy = survey_policy(host, said);

	if (rc == 0)
		rc = survey_sources(host, policy) < 0 ? out_of_memory(error)
						      : survey_workdir(host, policy, current_directory, error);
	if (rc == 0 && survey_is_searched(host) && survey_git_files(host) < 0)
		rc = out_of_memory(error);
	return rc;
}

int survey_rest(struct host *host, const struct policy *said, struct error *error)
{
	const struct policy *policy = survey_policy(host, said);
	int rc = survey_layers(host, policy, error);

	if (rc < 0)
		return rc;
	if (policy->has_system)
		rc = look_at_names(&host->system, NULL, survey_system_names);
	if (rc == 0 && policy->has_system)
		rc = survey_etc(&host->etc);
	if (policy->has_system && policy->net != NET_HOST)
		host->hosts = read_hosts();
	if (rc == 0)
		rc = look_at_names(&host->devices, "/dev", survey_device_names);
	/* They depend on what is writable; places on what is shown where it is. */
	if (rc == 0 && policy->has_toolchains)
		rc = survey_find_toolchains(host, policy);
	if (rc == 0 && survey_match_hidden(host, said, error) < 0)
		return -EINVAL;
	policy = survey_policy(host, said);
	if (rc == 0)
		rc = survey_named(host, policy);
	if (rc == 0 && survey_hidden(host, policy, error) < 0)
		return -EINVAL;
	if (rc == 0)
		rc = survey_find_own(host);
	if (rc == 0)
		rc = survey_nested(host, policy);
	if (rc == 0)
		rc = find_path_directories(host);
	if (rc == 0)
		rc = survey_git_identity(host->environment, host->real_home, &host->git_name, &host->git_email);
	if (rc == 0 && policy_is_inspecting(policy))
		rc = survey_trust(host);
	if (rc == 0 && policy->limits.disk_bytes != LIMIT_NONE)
		rc = survey_find_uncounted(host, policy);
	if (policy->limits.cpu_time_ns != LIMIT_NONE)
		host->has_task_clock = survey_may_have_task_clock();
	host->hides_processes = access("/proc/1/stat", R_OK) < 0;
	host->hides_jar = host->uid == 0 && prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE, 0, 0, 0) == 0;
	return rc < 0 ? out_of_memory(error) : 0;
}

int survey_host(struct host *host, const struct policy *policy, const char *current_directory, struct error *error)
{
	int rc = survey_writable(host, policy, current_directory, error);

	if (rc == 0 && survey_is_searched(host))
		rc = survey_failed(find_protected(host), error);
	return rc < 0 ? rc : survey_rest(host, policy, error);
}

void survey_done(struct host *host)
{
	struct host_path_list *lists[] = {
		&host->system,         &host->etc,
		&host->toolchains,     &host->devices,
		&host->mounts,         &host->places,
		&host->nested,         &host->hidden,
		&host->tmpfs_places,   &host->workdir.protected,
		&host->workdir.pinned, &host->path_directories,
		&host->cow_places,     &host->policy_files,
		&host->grants,         &host->own,
	};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		survey_path_list_done(lists[i]);
	for (size_t i = 0; i < host->unshown.count; i++) {
		free(host->unshown.items[i].path);
		free(host->unshown.items[i].base);
	}
	free(host->unshown.items);
	survey_match_done(host);
	survey_watch_done(&host->workdir.watched);
	survey_layers_done(host);
	survey_path_done(&host->skeletons);
	survey_path_done(&host->started_by);
	survey_path_done(&host->workdir.path);
	survey_path_done(&host->workdir.top);
	survey_path_done(&host->workdir.git);
	survey_path_done(&host->workdir.git_own);
	survey_path_done(&host->workdir.refused_git);
	survey_trust_done(&host->trust);
	free(host->hosts);
	string_list_done(&host->git_files);
	string_list_done(&host->git_commands);
	free(host->git_name);
	free(host->git_email);
	free(host->home);
	free(host->real_home);
	free(host->run_directory);
	survey_cgroups_done(&host->cgroups);
	free(host->uncounted_path);
	*host = (struct host){0};
}
