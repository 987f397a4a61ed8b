/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_python.c - virtual environments that the caller uses, with the Python installations they are made from
 *
 * PATH, VIRTUAL_ENV and the prefix of the caller's interpreter are the caller's, and name directories anywhere. What is
 * in them may be the work of an earlier command: a pyvenv.cfg turns a project into a virtual environment, and its line
 * `home =` names any directory. So three things hold for what such a file, or a link on the way, makes visible:
 *
 *   - no command of this policy can write it, and it is the caller's or root's;
 *   - what it leads to is looked at: only an environment, or an installation (bin/python3, lib/python3.N), counts;
 *   - of that only the names are shown that a prefix has (survey_prefix_names), never the directory that holds them: a
 *     project that is made to look like an environment does not give its .env away.
 */
#include "survey/survey_python.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "survey/survey_names.h"
#include "survey/survey_paths.h"
#include "survey/survey_toolchains.h"
#include "base/sys/calls.h"

#define BENEATH (SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS)
/* Of a pyvenv.cfg; virtualenv writes some 500. */
#define CONFIGURATION_BYTES_MAX 4096
/* Names looked at in lib, to find python3.N among them. */
#define LIBRARIES_MAX 16384
/* Prefixes that a caller can name. */
#define PREFIXES_MAX 16

#define LINK_OF_OTHERS "its path leads through a symbolic link that another user can change"
#define LINK_WRITTEN "its path leads through a symbolic link that an earlier command may have put there"

/* --- whose it is -------------------------------------------------------------------------------------------- */

static bool is_of_caller(const struct host *host, const struct stat *status)
{
	return status->st_uid == host->uid || status->st_uid == 0;
}

/* Return why the link does not count; NULL: the caller or root owns it, and no other user can replace it. */
static const char *why_no_link(const struct host *host, const struct policy *policy, const char *link)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(link, '/');
	struct stat status, around;

	if (survey_written_around(host, policy, link))
		return LINK_WRITTEN;
	snprintf(directory, sizeof(directory), "%.*s", slash == link ? 1 : (int)(slash - link), link);
	if (lstat(link, &status) < 0 || lstat(directory, &around) < 0 || !is_of_caller(host, &status) ||
	    !is_of_caller(host, &around) || (around.st_mode & S_IWOTH && !(around.st_mode & S_ISVTX)))
		return LINK_OF_OTHERS;
	return NULL;
}

/* --- a prefix: what has bin, lib and so on in it -------------------------------------------------------------- */

struct prefix {
	char path[PATH_MAX]; /* resolved */
	struct string_list links;
	int fd;
	bool is_running; /* the caller's own interpreter is from there: any owner will do, since the caller runs it */
};

static void prefix_done(struct prefix *prefix)
{
	close_fd(&prefix->fd);
	string_list_done(&prefix->links);
}

#define AUTO_PREFIX AUTO(prefix_done) struct prefix

/* Where @path is; -ENOENT: nowhere. */
static int prefix_find(struct prefix *prefix, const char *path)
{
	int rc = survey_is_plain(path);

	if (rc == 1)
		rc = snprintf(prefix->path, sizeof(prefix->path), "%s", path) < PATH_MAX ? 0 : -ENAMETOOLONG;
	else if (rc == 0)
		rc = survey_resolve(path, prefix->path, &prefix->links);
	return rc;
}

/* Does the caller or root own it, and can no other user change it? */
static bool may_count(const struct prefix *prefix, const struct host *host, const struct stat *status)
{
	return prefix->is_running || (is_of_caller(host, status) && !(status->st_mode & S_IWOTH));
}

/* Why it may not be shown; NULL: it is open, and may. */
static const char *prefix_open(struct prefix *prefix, const struct host *host, const struct policy *policy)
{
	const char *why = survey_why_unfit(host, prefix->path);
	struct stat status;

	if (!why && survey_is_collection(host, prefix->path))
		why = "it holds data of other programs";
	for (size_t i = 0; i < prefix->links.count && !why && !prefix->is_running; i++)
		why = why_no_link(host, policy, prefix->links.items[i]);
	if (why)
		return why;
	prefix->fd = sys_openat2(AT_FDCWD, prefix->path, O_PATH | O_DIRECTORY, 0, SYS_RESOLVE_NO_SYMLINKS);
	if (prefix->fd < 0 || fstat(prefix->fd, &status) < 0)
		return "it cannot be opened";
	return may_count(prefix, host, &status) ? NULL : "another user owns it or can change it";
}

/* Is @name in it something of this type, no link, and the caller's or root's? */
static bool has(const struct prefix *prefix, const struct host *host, const char *name, mode_t type)
{
	AUTO_CLOSE int fd = sys_openat2(prefix->fd, name, O_PATH | O_NOFOLLOW, 0, BENEATH);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type &&
	       may_count(prefix, host, &status);
}

/* Find lib/python3.N, Python's library; set @name to its last part, which is the program's name too. */
static bool has_library(const struct prefix *prefix, const struct host *host, char name[NAME_MAX + 1])
{
	AUTO_CLOSE int fd = sys_openat2(prefix->fd, "lib", O_RDONLY | O_DIRECTORY, 0, BENEATH);
	DIR *entries = fd < 0 || !has(prefix, host, "lib", S_IFDIR) ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char path[PATH_MAX];
	bool has_found = false;

	if (!entries)
		return false;
	take_fd(&fd);
	for (int i = 0; i < LIBRARIES_MAX && !has_found && (entry = readdir(entries)); i++) {
		if (strncmp(entry->d_name, "python3.", 8) != 0 && strncmp(entry->d_name, "pypy3.", 6) != 0)
			continue;
		snprintf(path, sizeof(path), "lib/%s", entry->d_name);
		has_found = has(prefix, host, path, S_IFDIR);
		snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
	}
	closedir(entries);
	return has_found;
}

/* A program in bin, by way of links that stay there; that of an environment leads out. */
static bool has_program(const struct prefix *prefix, const struct host *host, const char *name)
{
	AUTO_CLOSE int bin = sys_openat2(prefix->fd, "bin", O_PATH | O_DIRECTORY, 0, BENEATH);
	AUTO_CLOSE int fd =
		bin < 0 ? -1 : sys_openat2(bin, name, O_PATH, 0, SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_MAGICLINKS);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_mode & 0111 &&
	       may_count(prefix, host, &status);
}

static bool is_conda(const struct prefix *prefix, const struct host *host)
{
	return has(prefix, host, "conda-meta", S_IFDIR) && has(prefix, host, "bin", S_IFDIR);
}

static bool is_virtual(const struct prefix *prefix, const struct host *host)
{
	return has(prefix, host, "pyvenv.cfg", S_IFREG) && has(prefix, host, "bin", S_IFDIR);
}

/* Is it an installation, and not an environment? Only a forged pyvenv.cfg names another environment as its base. */
static bool is_installation(const struct prefix *prefix, const struct host *host)
{
	char name[NAME_MAX + 1];

	return !is_virtual(prefix, host) && has(prefix, host, "bin", S_IFDIR) && has_library(prefix, host, name) &&
	       (has_program(prefix, host, "python3") || has_program(prefix, host, name));
}

/* Is it a link, whose words alone are shown, or the caller's or root's? */
static bool may_show(const struct prefix *prefix, const struct host *host, const char *name, enum path_kind kind)
{
	return kind == PATH_SYMLINK || (kind == PATH_DIRECTORY && has(prefix, host, name, S_IFDIR)) ||
	       (kind == PATH_FILE && has(prefix, host, name, S_IFREG));
}

static int add_names(struct host *host, const struct prefix *prefix, const char *const *names)
{
	for (; *names; names++) {
		struct host_path found = {0}, *item;

		if (survey_look_beneath(&found, prefix->fd, prefix->path, *names) < 0)
			return -ENOMEM;
		if (!may_show(prefix, host, *names, found.kind) || survey_toolchain_is_shown(host, found.path)) {
			survey_path_done(&found);
			continue;
		}
		item = list_add(&host->toolchains);
		if (!item) {
			survey_path_done(&found);
			return -ENOMEM;
		}
		*item = found;
	}
	return 0;
}

static bool is_in_system(const struct host *host, const char *path)
{
	for (size_t i = 0; i < host->system.count; i++)
		if (host->system.items[i].kind == PATH_DIRECTORY && path_is_within(path, host->system.items[i].path))
			return true;
	return false;
}

/* What lies in something that is shown anyway needs no place of its own; what is writable there stays so. */
static int prefix_show(struct host *host, const struct policy *policy, const struct prefix *prefix)
{
	int rc = 0;

	if (!is_in_system(host, prefix->path) && !survey_written_around(host, policy, prefix->path)) {
		rc = add_names(host, prefix, survey_prefix_names);
		if (rc == 0 && is_conda(prefix, host))
			rc = add_names(host, prefix, survey_conda_names);
	}
	return rc == 0 ? survey_toolchain_add_links(host, &prefix->links, 0, NULL) : rc;
}

/* @base: the environment is there, and this directory of its Python is not. */
static int leave_out(struct host *host, const char *path, const char *base, const char *why)
{
	struct host_unshown *item;

	for (size_t i = 0; i < host->unshown.count; i++)
		if (!strcmp(host->unshown.items[i].path, path))
			return 0;
	item = list_add(&host->unshown);
	if (!item)
		return -ENOMEM;
	*item = (struct host_unshown){.path = strdup(path), .base = base ? strdup(base) : NULL, .why = why};
	return item->path && (item->base || !base) ? 0 : -ENOMEM;
}

/* --- environments ------------------------------------------------------------------------------------------- */

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	return text;
}

/* The line `home = DIRECTORY` of a pyvenv.cfg, as Python reads it: the first one, in any case of letters. */
static bool read_home(const struct prefix *prefix, char home[PATH_MAX])
{
	char text[CONFIGURATION_BYTES_MAX], *rest = text, *line;
	AUTO_CLOSE int fd = sys_openat2(prefix->fd, "pyvenv.cfg", O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, BENEATH);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (len < 0 || len == sizeof(text))
		return false;
	text[len] = '\0';
	while ((line = strsep(&rest, "\r\n"))) {
		char *equals = strchr(line, '=');

		if (!equals)
			continue;
		*equals = '\0';
		if (strcasecmp(trim(line), "home") != 0)
			continue;
		return snprintf(home, PATH_MAX, "%s", trim(equals + 1)) < PATH_MAX;
	}
	return false;
}

/* X of X/bin, or of X/condabin; false: it is neither. */
static bool prefix_of(const char *directory, char path[PATH_MAX])
{
	const char *slash = strrchr(directory, '/');
	size_t len = slash ? (size_t)(slash - directory) : 0;

	if (!len || len >= PATH_MAX || (strcmp(slash, "/bin") != 0 && strcmp(slash, "/condabin") != 0))
		return false;
	memcpy(path, directory, len);
	path[len] = '\0';
	return true;
}

/* Add the installation behind the environment @made. Not inlined, to keep its 28 KiB off the stack of other calls. */
static __attribute__((noinline)) int add_base(struct host *host, const struct policy *policy, const struct prefix *made)
{
	AUTO_PREFIX base = {.fd = -1};
	char home[PATH_MAX], path[PATH_MAX], configuration[PATH_MAX];
	const char *why = NULL;
	int rc;

	if (!read_home(made, home) || !survey_path_is_clean(home) || is_in_system(host, home))
		return 0;
	if (snprintf(configuration, sizeof(configuration), "%s/pyvenv.cfg", made->path) >= (int)sizeof(configuration))
		return 0;
	if (survey_written_around(host, policy, configuration))
		return leave_out(host, made->path, home, "an earlier command may have written its pyvenv.cfg");
	if (!prefix_of(home, path))
		return leave_out(host, made->path, home, "its pyvenv.cfg names no directory 'bin'");
	rc = prefix_find(&base, path);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	if (is_in_system(host, base.path))
		return survey_toolchain_add_links(host, &base.links, 0, NULL);
	why = prefix_open(&base, host, policy);
	if (!why && !is_installation(&base, host))
		why = "its pyvenv.cfg names no installation of Python";
	return why ? leave_out(host, made->path, home, why) : prefix_show(host, policy, &base);
}

/* @path, if it is an environment; or, if the caller's own interpreter @is_running from it, an installation. */
static int add_prefix(struct host *host, const struct policy *policy, const char *path, bool is_running)
{
	AUTO_PREFIX prefix = {.fd = -1, .is_running = is_running};
	char marker[PATH_MAX + 16];
	const char *why;
	struct stat status;
	bool has_marker;
	int rc;

	snprintf(marker, sizeof(marker), "%s/pyvenv.cfg", path);
	has_marker = lstat(marker, &status) == 0;
	if (!has_marker) {
		snprintf(marker, sizeof(marker), "%s/conda-meta", path);
		has_marker = lstat(marker, &status) == 0;
	}
	if (!has_marker && !is_running)
		return 0;
	rc = prefix_find(&prefix, path);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	/* The system's Python, in /usr or in "/", is there anyway. */
	why = survey_is_system_directory(prefix.path) && !has_marker ? NULL : prefix_open(&prefix, host, policy);
	if (why)
		return leave_out(host, prefix.path, NULL, why);
	if (prefix.fd < 0)
		return 0;
	if (is_virtual(&prefix, host)) {
		rc = prefix_show(host, policy, &prefix);
		/* An interpreter knows what it is made from, and says so itself. */
		return rc == 0 && !is_running ? add_base(host, policy, &prefix) : rc;
	}
	return is_conda(&prefix, host) || (is_running && is_installation(&prefix, host))
		       ? prefix_show(host, policy, &prefix)
		       : 0;
}

int survey_add_environment_of(struct host *host, const struct policy *policy, const char *directory)
{
	char path[PATH_MAX];

	return survey_path_is_clean(directory) && prefix_of(directory, path) && !survey_is_system_directory(path)
		       ? add_prefix(host, policy, path, false)
		       : 0;
}

int survey_add_named_pythons(struct host *host, const struct policy *policy)
{
	const char *virtual_env = NULL;
	int rc = 0;

	for (char *const *variable = host->environment; variable && *variable && !virtual_env; variable++)
		virtual_env = strncmp(*variable, "VIRTUAL_ENV=", 12) ? NULL : *variable + 12;
	if (virtual_env && survey_path_is_clean(virtual_env)) {
		rc = add_prefix(host, policy, virtual_env, false);
		/*
		 * What a command could have written there does not say which Python it needs. That the caller uses an
		 * environment does: those that tools install are shown, whatever its pyvenv.cfg says.
		 */
		if (rc == 0 && survey_written_around(host, policy, virtual_env))
			rc = survey_toolchain_add_needs(host, survey_python_stores);
	}
	for (size_t i = 0; host->prefixes && host->prefixes[i] && i < PREFIXES_MAX && rc == 0; i++)
		if (survey_path_is_clean(host->prefixes[i]))
			rc = add_prefix(host, policy, host->prefixes[i], true);
	return rc;
}
