/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_git.c - read git's own files, without running git
 *
 * An earlier, untrusted command may have written a `.git` file that names any directory of the host. The jar shows that
 * directory only if a file there, which the command could not write, names this `.git` file or its directory in turn:
 *
 *   linked worktree  X/worktrees/NAME/gitdir holds the path of the `.git` file, and X/worktrees/NAME/commondir says X
 *   submodule        X/modules/NAME/config has core.worktree, which is the directory of the `.git` file
 *
 * A repository kept elsewhere by other means (clone --separate-git-dir) has no way back and is not followed. Both are
 * checked through descriptors and remembered by device and inode, so that swapping a directory for a symbolic link
 * meanwhile leads nowhere. A command that was allowed to write in both places could have read both anyway.
 */
#include "survey/survey_git.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/text.h"
#include "survey/survey_paths.h"
#include "base/sys/calls.h"

#define NAME_MAX_LEN 64
#define READ_STEP 4096

/* --- the configuration file's syntax ------------------------------------------------------------------------ */

struct reader {
	const char *at, *end;
};

/* The next character, with "\r\n" as one line end; '\n' at the end of the text, as git has it. */
static int next(struct reader *reader)
{
	if (reader->at == reader->end)
		return '\n';
	if (*reader->at == '\r' && reader->at + 1 < reader->end && reader->at[1] == '\n')
		reader->at++;
	return (unsigned char)*reader->at++;
}

static void skip_line(struct reader *reader)
{
	while (reader->at < reader->end && next(reader) != '\n')
		;
}

static int peek(const struct reader *reader)
{
	struct reader copy = *reader;

	return next(&copy);
}

/* Read letters, digits, '-' and those in @more, in lower case. Cut long names, since callers need only short ones. */
static int read_name(struct reader *reader, char first, const char *more, char name[NAME_MAX_LEN])
{
	size_t len = 0;

	if (first)
		name[len++] = (char)tolower((unsigned char)first);
	for (;;) {
		int character = peek(reader);

		if (!isalnum(character) && character != '-' && !(character && strchr(more, character)))
			break;
		next(reader);
		if (len + 1 < NAME_MAX_LEN)
			name[len++] = (char)tolower(character);
	}
	name[len] = '\0';
	return len ? 0 : -EINVAL;
}

/* Of [section], [section "subsection"] or, as it was written long ago, [section.subsection]. */
struct section {
	char name[NAME_MAX_LEN]; /* empty before the first */
	bool is_sub;             /* it has a subsection */
};

/* Read the header behind the bracket. Callers do not need the name of a subsection. */
static int read_section(struct reader *reader, struct section *section)
{
	int rc = read_name(reader, 0, ".", section->name);
	int character = rc < 0 ? 0 : next(reader);

	section->is_sub = rc == 0 && (character != ']' || strchr(section->name, '.'));
	if (rc == 0)
		section->name[strcspn(section->name, ".")] = '\0';
	if (character == ']' || rc < 0)
		return rc;
	while (character == ' ' || character == '\t')
		character = next(reader);
	if (character != '"')
		return -EINVAL;
	while ((character = next(reader)) != '"') {
		if (character == '\\')
			character = next(reader);
		if (character == '\n' || character == '\0')
			return -EINVAL;
	}
	return next(reader) == ']' ? 0 : -EINVAL;
}

static int unescape(int character)
{
	switch (character) {
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
	case '"':
		return character;
	default:
		return -EINVAL;
	}
}

/* What follows the '=', up to and with the end of the line. */
static int read_value(struct reader *reader, struct text *value)
{
	bool is_quoted = false;
	size_t kept = 0; /* without white space at the end */

	text_clear(value);
	for (;;) {
		int character = next(reader);

		if (character == '\n')
			break;
		if (character == '\0')
			return -EINVAL;
		if (!is_quoted && (character == '#' || character == ';')) {
			skip_line(reader);
			break;
		}
		if (!is_quoted && isspace(character)) {
			if (value->len)
				text_append_char(value, (char)character);
			continue;
		}
		if (character == '"') {
			is_quoted = !is_quoted;
			kept = value->len;
			continue;
		}
		if (character == '\\') {
			character = next(reader);
			if (character == '\n')
				continue;
			character = unescape(character);
			if (character < 0)
				return character;
		}
		text_append_char(value, (char)character);
		kept = value->len;
	}
	if (text_failed(value))
		return -ENOMEM;
	if (value->data) {
		value->len = kept;
		value->data[kept] = '\0';
	}
	return is_quoted ? -EINVAL : 0;
}

static int read_entry(struct reader *reader, char first, const struct section *section, struct text *value,
		      git_config_function *each, void *context)
{
	char key[NAME_MAX_LEN];
	int rc = isalpha((unsigned char)first) ? read_name(reader, first, "", key) : -EINVAL;

	if (rc < 0)
		return rc;
	while (peek(reader) == ' ' || peek(reader) == '\t')
		next(reader);
	if (peek(reader) != '=') {
		/* A name alone is a boolean, and none of those we know is one. */
		return next(reader) == '\n' ? 0 : -EINVAL;
	}
	next(reader);
	rc = read_value(reader, value);
	if (rc == 0 && section->name[0])
		each(context, &(struct git_config_key){section->name, section->is_sub, key}, text_string(value));
	return rc;
}

bool survey_git_config_is(const struct git_config_key *key, const char *section, const char *name)
{
	return !key->is_sub && !strcmp(key->section, section) && !strcmp(key->name, name);
}

int survey_git_config_parse(const char *text, size_t len, git_config_function *each, void *context)
{
	struct reader reader = {text, text + len};
	struct section section = {0};
	AUTO_TEXT value = {0};
	int rc = 0;

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		reader.at += 3;
	while (rc == 0 && reader.at < reader.end) {
		int character = next(&reader);

		if (isspace(character))
			continue;
		if (character == '#' || character == ';') {
			skip_line(&reader);
		} else if (character == '[') {
			rc = read_section(&reader, &section);
		} else {
			rc = read_entry(&reader, (char)character, &section, &value, each, context);
		}
	}
	return rc;
}

/* --- small files -------------------------------------------------------------------------------------------- */

/* CI names /dev/null where git is to read no configuration: a file without a byte. */
static bool is_null_device(const struct stat *status)
{
	return S_ISCHR(status->st_mode) && status->st_rdev == makedev(1, 3);
}

int survey_git_read_open(int fd, size_t bytes_max, struct text *out)
{
	struct stat status;
	size_t wanted;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	if ((!S_ISREG(status.st_mode) && !is_null_device(&status)) || status.st_size > (off_t)bytes_max)
		return -EINVAL;
	text_clear(out);
	/* As long as it says, and then to its end, should it have grown. */
	wanted = (size_t)status.st_size + 1;
	while (out->len <= bytes_max) {
		char *room = text_reserve(out, wanted);
		ssize_t len = room ? read(fd, room, wanted) : 0;

		if (!room)
			return -ENOMEM;
		if (len < 0)
			return -errno;
		if (len == 0)
			break;
		out->len += (size_t)len;
		wanted = (size_t)len < wanted ? wanted - (size_t)len : READ_STEP;
	}
	if (out->len > bytes_max)
		return -EINVAL;
	text_append_char(out, '\0');
	out->len--;
	return text_failed(out) ? -ENOMEM : 0;
}

/* The whole of a regular file, at most @bytes_max. A fifo in its place must not keep us waiting. */
static int read_text(int directory_fd, const char *path, int flags, size_t bytes_max, struct text *out)
{
	AUTO_CLOSE int fd = openat(directory_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);

	return fd < 0 ? -errno : survey_git_read_open(fd, bytes_max, out);
}

/* --- the caller's identity ---------------------------------------------------------------------------------- */

struct identity {
	char *name, *email;
	bool has_failed;
};

static void take_user(void *context, const struct git_config_key *key, const char *value)
{
	struct identity *identity = context;
	char **place = survey_git_config_is(key, "user", "name")    ? &identity->name
		       : survey_git_config_is(key, "user", "email") ? &identity->email
								    : NULL;

	if (!place || strlen(value) > GIT_VALUE_MAX)
		return;
	free(*place);
	*place = strdup(value);
	identity->has_failed |= !*place;
}

static int read_identity(const char *path, struct identity *identity)
{
	AUTO_TEXT content = {0};
	int rc = read_text(AT_FDCWD, path, 0, GIT_CONFIG_BYTES_MAX, &content);

	if (rc == 0)
		rc = survey_git_config_parse(content.data, content.len, take_user, identity);
	return rc == -ENOMEM || identity->has_failed ? -ENOMEM : 0;
}

size_t survey_git_global(char *const *environment, const char *home, char paths[GIT_GLOBAL_MAX][PATH_MAX])
{
	const char *only = survey_variable(environment, "GIT_CONFIG_GLOBAL");
	const char *xdg = survey_variable(environment, "XDG_CONFIG_HOME");

	/* As git does it: one file in place of the others, else the later file wins. */
	if (only) {
		snprintf(paths[0], PATH_MAX, "%s", only);
		return only[0] == '/';
	}
	if (xdg && xdg[0] == '/')
		snprintf(paths[0], PATH_MAX, "%s/git/config", xdg);
	else
		snprintf(paths[0], PATH_MAX, "%s/.config/git/config", home ? home : "/nonexistent");
	snprintf(paths[1], PATH_MAX, "%s/.gitconfig", home ? home : "/nonexistent");
	return GIT_GLOBAL_MAX;
}

int survey_git_identity(char *const *environment, const char *home, char **name_out, char **email_out)
{
	struct identity identity = {0};
	char paths[GIT_GLOBAL_MAX][PATH_MAX];
	size_t count = survey_git_global(environment, home, paths);
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = read_identity(paths[i], &identity);
	if (rc < 0) {
		free(identity.name);
		free(identity.email);
		return rc;
	}
	*name_out = identity.name;
	*email_out = identity.email;
	return 0;
}

/* --- where a .git file leads -------------------------------------------------------------------------------- */

int survey_git_read_pointer(int fd, const char *prefix, struct text *out)
{
	size_t len = strlen(prefix);
	int rc = survey_git_read_open(fd, GIT_POINTER_BYTES_MAX, out);

	if (rc < 0)
		return rc;
	if (out->len < len || memcmp(out->data, prefix, len) != 0)
		return -EINVAL;
	text_consume(out, len);
	while (out->len && (out->data[out->len - 1] == '\n' || out->data[out->len - 1] == '\r'))
		out->data[--out->len] = '\0';
	return out->len && out->len < PATH_MAX && strlen(out->data) == out->len ? 0 : -EINVAL;
}

static int read_pointer(int directory_fd, const char *name, const char *prefix, struct text *out)
{
	AUTO_CLOSE int fd = openat(directory_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : survey_git_read_pointer(fd, prefix, out);
}

static int stat_at(int directory_fd, const char *path, struct stat *status)
{
	return fstatat(directory_fd, path, status, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static bool is_same(const struct stat *left, const struct stat *right)
{
	return left->st_dev == right->st_dev && left->st_ino == right->st_ino;
}

/* A directory's facts as its descriptor has them. */
static int path_of(int fd, const char *path, struct host_path *out)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISDIR(status.st_mode))
		return -ENOTDIR;
	*out = (struct host_path){
		.path = strdup(path), .kind = PATH_DIRECTORY, .device = status.st_dev, .inode = status.st_ino};
	return out->path ? 0 : -ENOMEM;
}

/* Cut the last @count names off @path, in place. Returns false if it has fewer. */
static bool drop_names(char *path, int count)
{
	while (count-- > 0) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return false;
		*slash = '\0';
	}
	return true;
}

/* Is @fd X/worktrees/NAME, and does it name the `.git` file with @git_file's status? */
static int follow_worktree(int fd, const char *path, const struct stat *git_file, struct host_path *git_out,
			   struct host_path *own_out)
{
	AUTO_TEXT pointer = {0};
	struct stat named, common, parent;
	char common_path[PATH_MAX];
	AUTO_CLOSE int common_fd = -1;
	const char *name;
	int rc = read_pointer(fd, "gitdir", "", &pointer);

	if (rc == 0)
		rc = stat_at(fd, pointer.data, &named);
	if (rc < 0)
		return rc;
	if (!is_same(&named, git_file) || !S_ISREG(named.st_mode))
		return -EINVAL;
	rc = read_pointer(fd, "commondir", "", &pointer);
	if (rc < 0)
		return rc;
	/* By "..", which is where the directory really is, whatever its path leads to by now. */
	common_fd = openat(fd, "../..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (common_fd < 0 || fstat(common_fd, &parent) < 0 || fstatat(fd, pointer.data, &common, 0) < 0)
		return -errno;
	snprintf(common_path, sizeof(common_path), "%s", path);
	if (!is_same(&common, &parent) || !drop_names(common_path, 1))
		return -EINVAL;
	name = strrchr(common_path, '/');
	if (!name || strcmp(name, "/worktrees") != 0 || !drop_names(common_path, 1))
		return -EINVAL;
	rc = path_of(common_fd, common_path, git_out);
	return rc < 0 ? rc : path_of(fd, path, own_out);
}

struct submodule {
	char worktree[PATH_MAX];
};

static void take_worktree(void *context, const struct git_config_key *key, const char *value)
{
	struct submodule *submodule = context;

	if (survey_git_config_is(key, "core", "worktree") && strlen(value) < sizeof(submodule->worktree))
		snprintf(submodule->worktree, sizeof(submodule->worktree), "%s", value);
}

/* Is @fd X/modules/..., and is @directory its work tree? */
static int follow_submodule(int fd, const char *path, const char *directory, struct host_path *git_out)
{
	struct submodule submodule = {""};
	struct stat named, actual;
	AUTO_TEXT content = {0};
	int rc;

	if (!strstr(path, "/modules/"))
		return -EINVAL;
	rc = read_text(fd, "config", O_NOFOLLOW, GIT_CONFIG_BYTES_MAX, &content);
	if (rc == 0)
		rc = survey_git_config_parse(content.data, content.len, take_worktree, &submodule);
	if (rc < 0)
		return rc;
	if (!submodule.worktree[0] || fstatat(fd, submodule.worktree, &named, 0) < 0 || stat(directory, &actual) < 0)
		return -EINVAL;
	return is_same(&named, &actual) ? path_of(fd, path, git_out) : -EINVAL;
}

bool survey_git_is_of(uid_t uid, const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 && (status.st_uid == uid || status.st_uid == 0);
}

/* As git has it, but for links: what they lead to is not in the jar. */
static const char *why_no_repository(uid_t uid, const struct host_path *git, bool has_objects)
{
	static const char *const names[] = {"objects", "refs"};
	AUTO_CLOSE int fd = survey_open_top(git);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return "it cannot be opened";
	if (status.st_uid != uid && status.st_uid != 0)
		return "it belongs to another user";
	if (stat_at(fd, "HEAD", &status) < 0 || (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)))
		return "it is not a repository: it has no HEAD";
	for (size_t i = 0; has_objects && i < ARRAY_LEN(names); i++)
		if (stat_at(fd, names[i], &status) < 0 || !S_ISDIR(status.st_mode))
			return "it is not a repository: it has no objects or no refs";
	return NULL;
}

const char *survey_git_why_unfit(uid_t uid, const struct host_path *git, const struct host_path *own)
{
	const char *why = why_no_repository(uid, git, true);

	return why || own->kind != PATH_DIRECTORY ? why : why_no_repository(uid, own, false);
}

int survey_git_follow(const char *git_file, struct host_path *git_out, struct host_path *own_out)
{
	struct host_path git = {0}, own = {0};
	AUTO_CLOSE int directory_fd = -1, fd = -1;
	AUTO_FREE char *resolved = NULL;
	char directory[PATH_MAX], path[2 * PATH_MAX];
	AUTO_TEXT pointer = {0};
	struct stat status;
	int rc;

	if (snprintf(directory, sizeof(directory), "%s", git_file) >= (int)sizeof(directory) ||
	    !drop_names(directory, 1))
		return 0;
	directory_fd = sys_open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	if (directory_fd < 0 || fstatat(directory_fd, ".git", &status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	rc = read_pointer(directory_fd, ".git", "gitdir: ", &pointer);
	if (rc == 0) {
		snprintf(path, sizeof(path), "%s%s%s", pointer.data[0] == '/' ? "" : directory,
			 pointer.data[0] == '/' ? "" : "/", pointer.data);
		resolved = realpath(path, NULL);
		fd = resolved ? sys_openat2(AT_FDCWD, resolved, O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
					    SYS_RESOLVE_NO_SYMLINKS)
			      : -errno;
		rc = fd < 0 ? fd : follow_worktree(fd, resolved, &status, &git, &own);
		if (rc < 0 && rc != -ENOMEM && fd >= 0 && !git.path)
			rc = path_is_within(resolved, directory) ? path_of(fd, resolved, &git)
								 : follow_submodule(fd, resolved, directory, &git);
	}
	if (rc < 0) {
		survey_path_done(&git);
		survey_path_done(&own);
		return rc == -ENOMEM ? rc : 0;
	}
	*git_out = git;
	*own_out = own;
	return 1;
}
