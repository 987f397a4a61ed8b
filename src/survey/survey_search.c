/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_search.c - find one thing, remember it, and pin what is above it
 *
 * A command may have written the files to mislead the search: a link to outside, a thousand links in a row, a file
 * swapped during the read. So the search first looks beneath an open directory, through no link. Only if there is a
 * link, it walks name by name and records every link too, since replacing the link replaces the file that programs
 * use. A budget bounds looks and bytes; when it is used up, the search stops and the result says so.
 */
#include "survey/survey_search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "survey/survey_git.h"
#include "survey/survey_paths.h"
#include "base/sys/calls.h"

/* As many links as the kernel follows. */
#define LINKS_MAX 40
/* Names on the way to one thing, over all its links. */
#define WAY_LOOKS_MAX 256
/* A file that changed a moment ago and is longer is not remembered whole. */
#define CONTENT_BYTES_MAX (1 << 20)
/* More is not remembered: each is compared with each. */
#define FOUND_MAX 2048

/*
 * May there be one more look? Where names are looked up that a table has, always: nothing that a command leaves may
 * use up the looks that protect what is known.
 */
static bool spend_look(struct search *search)
{
	if (!search->is_following)
		return true;
	if (search->budget->looks) {
		search->budget->looks--;
		return true;
	}
	search->found->is_cut_off = true;
	return false;
}

bool survey_search_spend_bytes(struct search *search, uint64_t bytes)
{
	if (bytes > search->budget->bytes) {
		search->found->is_cut_off = true;
		return false;
	}
	search->budget->bytes -= bytes;
	return true;
}

const struct search_root *survey_search_root_of(const struct search *search, const char *path)
{
	const struct search_root *found = NULL;

	for (size_t i = 0; i < search->root_count; i++)
		if (path_is_within(path, search->roots[i].path) &&
		    (!found || strlen(search->roots[i].path) > strlen(found->path)))
			found = &search->roots[i];
	return found;
}

const char *survey_search_beneath(const struct search_root *root, const char *path)
{
	const char *rest = path + strlen(root->path);

	return rest + strspn(rest, "/");
}

static const struct watched *known(const struct search *search, const char *path)
{
	for (size_t i = 0; i < search->found->count; i++)
		if (!strcmp(search->found->items[i].path.path, path))
			return &search->found->items[i];
	return NULL;
}

/* A root in such a directory is writable all the same: the part of a repository that is this work tree's own. */
static bool is_in_protected(const struct search *search, const struct search_root *root, const struct watched *item)
{
	for (size_t i = 0; i < search->found->count; i++) {
		const struct watched *other = &search->found->items[i];

		if (other != item && other->kind == WATCH_PROTECTED && other->path.kind == PATH_DIRECTORY &&
		    path_is_within(other->path.path, root->path) && path_is_within(item->path.path, other->path.path))
			return true;
	}
	return false;
}

/* Every directory between the root and the last name of @name. */
static void pin_above(struct search *search, const struct search_root *root, const char *name)
{
	char parent[PATH_MAX], path[2 * PATH_MAX];

	for (const char *slash = strchr(name, '/'); search->pinned && slash; slash = strchr(slash + 1, '/')) {
		bool is_known = false;

		snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
		snprintf(path, sizeof(path), "%s/%s", root->path, parent);
		for (size_t i = 0; i < search->pinned->count && !is_known; i++)
			is_known = !strcmp(search->pinned->items[i].path, path);
		if (!is_known && survey_path_list_look_beneath(search->pinned, root->fd, root->path, parent) == -ENOMEM)
			search->has_failed = true;
	}
}

int survey_search_open(const struct search_root *root, const char *name, int flags)
{
	return sys_openat2(root->fd, name[0] ? name : ".", (uint64_t)(flags | O_NOCTTY | O_NONBLOCK), 0,
			   SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
}

static void remember_content(struct search *search, const struct search_root *root, const char *name,
			     struct watched *item)
{
	AUTO_CLOSE int fd = -1;
	AUTO_TEXT content = {0};

	if (item->path.kind != PATH_FILE || item->path.changed_ns < search->settled_ns || item->kind > WATCH_REPORTED)
		return;
	item->is_fresh = true;
	fd = survey_search_open(root, name, O_RDONLY);
	if (fd < 0 || survey_git_read_open(fd, CONTENT_BYTES_MAX, &content) < 0 ||
	    !survey_search_spend_bytes(search, content.len))
		return;
	item->content_bytes = content.len;
	item->content = take_ptr(content.data);
}

/* Without "." and empty names; as far as the first "..", which may lead anywhere. */
static void tidy(const char *path, char out[PATH_MAX])
{
	size_t len = 0;

	while (*path) {
		size_t skipped = strspn(path, "/"), name_len = strcspn(path + skipped, "/");
		const char *name = path + skipped;

		path = name + name_len;
		if (!name_len || (name_len == 1 && name[0] == '.'))
			continue;
		if ((name_len == 2 && !strncmp(name, "..", 2)) || len + name_len + 2 > PATH_MAX)
			break;
		out[len++] = '/';
		memcpy(out + len, name, name_len);
		len += name_len;
	}
	out[len] = '\0';
}

void survey_search_note_absent(struct search *search, const char *named, const struct watched *as,
			       const struct risk_extra *how)
{
	struct risk_extra extra = *how;
	struct risk_rules rules;
	char path[PATH_MAX];
	int rc;

	if (!search->found->absent || !as->who || search->found->absent->count >= FOUND_MAX)
		return;
	tidy(named, path);
	/* The work tree itself, or what is above it: then nothing can be said. */
	if (path_is_within(search->host->workdir.path.path, path))
		return;
	extra.who = as->who;
	extra.risk = as->kind == WATCH_PROTECTED ? RISK_PROTECTED : RISK_REPORTED;
	rules = (struct risk_rules){.extra = *search->found->absent};
	rc = survey_risk_rules_add(&rules, path, &extra);
	*search->found->absent = rules.extra;
	if (rc < 0)
		search->has_failed = true;
}

/* Takes over @path. */
static void remember(struct search *search, const struct search_root *root, struct host_path *path,
		     const struct watched *as)
{
	struct watched *item = NULL;

	if (search->found->count == FOUND_MAX)
		search->found->is_cut_off = true;
	else if (!search->has_failed && !known(search, path->path))
		search->has_failed = !(item = list_add(search->found));
	if (!item) {
		survey_path_done(path);
		return;
	}
	*item = (struct watched){.path = *path, .kind = as->kind, .who = as->who};
	*path = (struct host_path){0};
	remember_content(search, root, survey_search_beneath(root, item->path.path), item);
	/* A file in a protected directory needs no other protection, and one in a writable grant stays writable. */
	if (item->kind == WATCH_PROTECTED && (root->is_grant || is_in_protected(search, root, item)))
		item->kind = WATCH_REPORTED;
	if (item->kind == WATCH_PROTECTED)
		pin_above(search, root, survey_search_beneath(root, item->path.path));
}

bool survey_search_find_plain(struct search *search, const char *path, const struct watched *as,
			      enum path_kind *kind_out)
{
	const struct search_root *root = survey_search_root_of(search, path);
	struct host_path found = {0};

	*kind_out = PATH_ABSENT;
	if (!spend_look(search))
		return true;
	if (!root || !survey_path_is_clean(path))
		return false;
	if ((survey_search_beneath(root, path)[0]
		     ? survey_look_beneath(&found, root->fd, root->path, survey_search_beneath(root, path))
		     : survey_look(&found, path)) < 0) {
		search->has_failed = true;
		return true;
	}
	if (found.kind == PATH_SYMLINK || found.error == ELOOP) {
		survey_path_done(&found);
		return false;
	}
	/* What cannot be looked at is there, and not as it should be. */
	if (found.kind == PATH_ABSENT && found.path && found.error != ENOENT && found.error != ENOTDIR)
		found.kind = PATH_OTHER;
	*kind_out = found.kind;
	if (found.kind == PATH_ABSENT && search->is_following)
		survey_search_note_absent(search, path, as, &(struct risk_extra){.path = NULL});
	if (found.kind != PATH_ABSENT && as->who)
		remember(search, root, &found, as);
	else
		survey_path_done(&found);
	return true;
}

/* A link on the way: it cannot be made read-only, so if it is replaced, that is reported. */
static void add_link(struct search *search, const char *path, const struct watched *as)
{
	const struct search_root *root = survey_search_root_of(search, path);
	struct host_path found = {0};

	if (!root || !survey_search_beneath(root, path)[0] || !as->who)
		return;
	if (survey_look_beneath(&found, root->fd, root->path, survey_search_beneath(root, path)) < 0)
		search->has_failed = true;
	else if (found.kind == PATH_SYMLINK)
		remember(search, root, &found, as);
	else
		survey_path_done(&found);
}

/* What the link at @path, whose name begins at @len, says comes before @rest; @path becomes where it is said from. */
static bool follow_link(struct search *search, char path[PATH_MAX], size_t *len, char rest[PATH_MAX],
			const char *behind, const struct watched *as)
{
	char target[PATH_MAX], joined[2 * PATH_MAX + 2];
	ssize_t target_len;

	add_link(search, path, as);
	target_len = readlink(path, target, sizeof(target) - 1);
	if (target_len <= 0)
		return false;
	target[target_len] = '\0';
	path[target[0] == '/' ? 0 : *len] = '\0';
	*len = strlen(path);
	if (snprintf(joined, sizeof(joined), "%s/%s", target, behind) >= PATH_MAX)
		return false;
	memcpy(rest, joined, strlen(joined) + 1);
	return true;
}

/* Where the way ends at @path, which is not there, before @rest. */
static void note_missing(struct search *search, const char *path, const char *rest, const struct watched *as)
{
	char whole[2 * PATH_MAX];

	snprintf(whole, sizeof(whole), "%s%s", path, rest);
	survey_search_note_absent(search, whole, as, &(struct risk_extra){.path = NULL});
}

/* One name after the other, since every link on the way is a place where the command can put something else. */
bool survey_search_resolve(struct search *search, char path[PATH_MAX], const struct watched *as)
{
	char rest[PATH_MAX];
	size_t len = 0;
	int links = 0, looks = 0;

	snprintf(rest, sizeof(rest), "%s", path);
	path[0] = '\0';
	for (;;) {
		size_t skipped = strspn(rest, "/"), name_len = strcspn(rest + skipped, "/");
		const char *name = rest + skipped;
		struct stat status;

		if (!name_len)
			return len > 0;
		if (name_len == 2 && !strncmp(name, "..", 2)) {
			char *slash = strrchr(path, '/');

			len = slash ? (size_t)(slash - path) : 0;
			path[len] = '\0';
		} else if (name_len != 1 || name[0] != '.') {
			if (len + 1 + name_len >= PATH_MAX)
				return false;
			path[len] = '/';
			memcpy(path + len + 1, name, name_len);
			path[len + 1 + name_len] = '\0';
			if (++looks > WAY_LOOKS_MAX)
				search->found->is_cut_off = true;
			if (looks > WAY_LOOKS_MAX || !spend_look(search))
				return false;
			if (lstat(path, &status) < 0) {
				note_missing(search, path, name + name_len, as);
				return false;
			}
			if (S_ISLNK(status.st_mode)) {
				if (!follow_link(search, path, &len, rest, name + name_len, as) || ++links > LINKS_MAX)
					return false;
				continue;
			}
			len += 1 + name_len;
		}
		memmove(rest, name + name_len, strlen(name + name_len) + 1);
	}
}

enum path_kind survey_search_find_at(struct search *search, char path[PATH_MAX], const struct watched *as)
{
	enum path_kind kind;

	if (survey_search_find_plain(search, path, as, &kind) || !survey_search_resolve(search, path, as))
		return kind;
	survey_search_find_plain(search, path, as, &kind);
	return kind;
}

enum path_kind survey_search_find(struct search *search, const struct watched *as, const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;
	int len;

	va_start(arguments, format);
	len = vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	return len < (int)sizeof(path) ? survey_search_find_at(search, path, as) : PATH_ABSENT;
}
