/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_match_walk.c - walk through the regions of a jar, and compare every name with patterns
 *
 * Patterns are paths of the jar, so each region is walked under the name that it has there. A walk follows no link: a link that
 * matches counts for what it leads to, and a link on the way counts only where the pattern has a name for it. Nothing but
 * directories is opened, and for `hide_secrets` the few files whose content decides.
 */
#include "survey/survey_match_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "survey/survey_paths.h"
#include "policy/policy_lists.h"
#include "policy/secret_files.h"
#include "base/sys/calls.h"

#define DIRECTORIES_MAX 65536
#define ENTRIES_MAX 2097152
#define LIST_BYTES 32768
#define OVERLAY_MAGIC 0x794c7630

int survey_matching_no_memory(struct matching *matching)
{
	return error_set(matching->error, STAGE_ENGINE, ENOMEM, "out of memory");
}

/* Entries are what the kernel writes. */
struct listed_entry {
	uint64_t inode;
	int64_t offset;
	unsigned short len;
	unsigned char type;
	char name[];
};

void survey_matches_done(struct host_match_list *matches)
{
	for (size_t i = 0; i < matches->count; i++) {
		free(matches->items[i].pattern);
		free(matches->items[i].path);
	}
	free(matches->items);
	*matches = (struct host_match_list){0};
}

void survey_matching_done(struct matching *matching)
{
	survey_globs_done(&matching->globs);
	for (size_t i = 0; i < matching->queue.count; i++) {
		free(matching->queue.items[i].inner);
		free(matching->queue.items[i].outer);
		free(matching->queue.items[i].set);
	}
	free(matching->queue.items);
	free(matching->regions.items);
	free(matching->twins.items);
	survey_matches_done(&matching->found);
}

int survey_matching_resolve(const char *path, char resolved[PATH_MAX])
{
	struct string_list links = {0};
	int rc = survey_resolve(path, resolved, &links);

	string_list_done(&links);
	return rc;
}

/* --- what was found ------------------------------------------------------------------------------------------- */

/* @by: the pattern, and the key that has it. */
static int add_found(struct matching *matching, const char *path, const struct host_match *by)
{
	struct host_match *match;

	for (size_t i = 0; i < matching->found.count; i++)
		if (!strcmp(matching->found.items[i].path, path))
			return 0;
	if (matching->found.count == POLICY_MAX_ENTRIES) {
		error_set(matching->error, STAGE_FILES, E2BIG,
			  "`%s` matches more than %d files; the last is '%s', by '%s'", by->key, POLICY_MAX_ENTRIES,
			  path, by->pattern);
		return error_hint(matching->error, "name a directory as a whole, or begin the pattern further down");
	}
	match = list_add(&matching->found);
	if (!match)
		return survey_matching_no_memory(matching);
	*match = (struct host_match){by->key, strdup(by->pattern), strdup(path)};
	return match->pattern && match->path ? 0 : survey_matching_no_memory(matching);
}

static struct host_match pattern_of(const struct matching *matching, long number)
{
	return (struct host_match){.key = matching->key, .pattern = matching->globs.said.items[number]};
}

static int refuse_bound(struct matching *matching, const char *what, size_t max, const char *where)
{
	error_set(matching->error, STAGE_FILES, E2BIG,
		  "cannot find everything that `%s` matches: there are more than %zu %s, and '%s' was not searched",
		  matching->key, max, what, where);
	return error_hint(matching->error,
			  "begin the pattern with the directory that you mean, as in 'config/**/*.key'");
}

/* The jar's name of what lies at @outer on the host; false: it does not show it. */
static bool inner_of(const struct matching *matching, const char *outer, char inner[PATH_MAX], bool *is_project)
{
	const struct region *found = NULL;
	size_t len;

	for (size_t i = 0; i < matching->regions.count; i++) {
		const struct region *region = &matching->regions.items[i];

		if (path_is_within(outer, region->outer) && (!found || strlen(region->outer) > strlen(found->outer)))
			found = region;
	}
	if (!found)
		return false;
	len = strcmp(found->outer, "/") ? strlen(found->outer) : 0;
	*is_project = found->is_project && strcmp(outer, found->outer) != 0;
	return snprintf(inner, PATH_MAX, "%s%s", found->inner, outer + len) < PATH_MAX;
}

/*
 * A link cannot be hidden: what it leads to is. Links to all of the work directory, or to what is the system's, hide nothing: a command
 * could make one so that no later one runs.
 */
static int add_target(struct matching *matching, const char *outer, const struct host_match *by)
{
	const char *workdir = matching->host->workdir.path.path;
	char resolved[PATH_MAX], inner[PATH_MAX];
	bool is_project;

	if (survey_matching_resolve(outer, resolved) < 0 || !inner_of(matching, resolved, inner, &is_project) ||
	    !is_project || (workdir && path_is_within(workdir, resolved)))
		return 0;
	return add_found(matching, inner, by);
}

/* --- the walk ------------------------------------------------------------------------------------------------- */

static int push(struct matching *matching, const char *inner, const char *outer, const uint64_t *set, bool has_secrets)
{
	struct spot *spot = list_add(&matching->queue);
	size_t words = survey_globs_words(&matching->globs);

	if (!spot)
		return survey_matching_no_memory(matching);
	*spot = (struct spot){strdup(inner), strdup(outer), calloc(words + 1, sizeof(*spot->set)), has_secrets};
	if (!spot->inner || !spot->outer || !spot->set)
		return survey_matching_no_memory(matching);
	memcpy(spot->set, set, words * sizeof(*set));
	return 0;
}

bool survey_matching_has_region(const struct matching *matching, const char *inner)
{
	for (size_t i = 0; i < matching->regions.count; i++)
		if (!strcmp(matching->regions.items[i].inner, inner))
			return true;
	return false;
}

static unsigned char type_of(int fd, const struct listed_entry *entry)
{
	struct stat status;

	if (entry->type != DT_UNKNOWN)
		return entry->type;
	return fstatat(fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN
									  : (unsigned char)IFTODT(status.st_mode);
}

/* What cannot be read counts as a secret, unless the file is gone. */
static bool has_secret_content(int directory_fd, const char *name, const char *glob)
{
	AUTO_CLOSE int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	AUTO_FREE char *content = fd < 0 ? NULL : malloc(SECRET_FILE_BYTES);
	ssize_t len = content ? read(fd, content, SECRET_FILE_BYTES) : -1;

	return len < 0 ? errno != ENOENT : policy_secret_file_has(glob, content, (size_t)len);
}

static int look_for_secret(struct matching *matching, int fd, const char *name, unsigned char type, const char *inner,
			   const char *outer)
{
	char pattern[SECRET_GLOB_BYTES];
	const struct host_match by = {.key = "hide_secrets", .pattern = pattern};
	const char *glob = "";
	enum secret_file kind = policy_secret_file_of(name, &glob);

	if (kind == SECRET_NONE || type == DT_DIR ||
	    (kind == SECRET_BY_CONTENT && type == DT_REG && !has_secret_content(fd, name, glob)))
		return 0;
	if (snprintf(pattern, sizeof(pattern), "**/%s", glob) >= (int)sizeof(pattern))
		return 0;
	if (type == DT_LNK)
		return add_target(matching, outer, &by);
	return type == DT_REG ? add_found(matching, inner, &by) : 0;
}

/* The pattern has a name for the link: it goes on where the link leads. */
static int follow(struct matching *matching, const char *outer, const uint64_t *set)
{
	char resolved[PATH_MAX], inner[PATH_MAX];
	struct stat status;
	bool is_project;

	if (survey_matching_resolve(outer, resolved) < 0 || !inner_of(matching, resolved, inner, &is_project) ||
	    lstat(resolved, &status) < 0 || !S_ISDIR(status.st_mode))
		return 0;
	return push(matching, inner, resolved, set, false);
}

/* Something matches. What `ro` and `rw` would show must be a file or a directory itself. */
static int take(struct matching *matching, unsigned char type, const char *inner, const char *outer,
		const struct host_match *by)
{
	if (matching->is_hiding && type == DT_LNK)
		return add_target(matching, outer, by);
	return matching->is_hiding || type == DT_REG || type == DT_DIR ? add_found(matching, inner, by) : 0;
}

static int look_at(struct matching *matching, const struct spot *spot, int fd, const struct listed_entry *entry,
		   uint64_t *next)
{
	const struct globs *globs = &matching->globs;
	char inner[PATH_MAX], outer[PATH_MAX];
	unsigned char type = type_of(fd, entry);
	bool has_secrets = spot->has_secrets && !(type == DT_DIR && policy_secret_file_is_tools(entry->name));
	long ended = survey_globs_step(globs, spot->set, entry->name, type == DT_LNK, next);
	bool is_going_on = !survey_globs_is_empty(globs, next);
	const char *glob;

	/* Most files do not count, and their paths are not made. */
	if (ended < 0 && !(is_going_on && (type == DT_DIR || type == DT_LNK)) && !(has_secrets && type == DT_DIR) &&
	    !(has_secrets && policy_secret_file_of(entry->name, &glob)))
		return 0;
	if (snprintf(inner, sizeof(inner), "%s/%s", strcmp(spot->inner, "/") ? spot->inner : "", entry->name) >=
		    (int)sizeof(inner) ||
	    snprintf(outer, sizeof(outer), "%s/%s", strcmp(spot->outer, "/") ? spot->outer : "", entry->name) >=
		    (int)sizeof(outer))
		return refuse_bound(matching, "bytes in a path", PATH_MAX - 1, spot->inner);
	if (survey_matching_has_region(matching, inner))
		return 0; /* another walk begins there, with what the jar shows at that place */
	if (ended >= 0 && type != DT_UNKNOWN) {
		const struct host_match by = pattern_of(matching, ended);
		int rc = take(matching, type, inner, outer, &by);

		if (rc < 0 || (matching->is_hiding && type != DT_LNK))
			return rc;
	}
	if (has_secrets && type != DT_DIR) {
		int rc = look_for_secret(matching, fd, entry->name, type, inner, outer);

		if (rc < 0)
			return rc;
	}
	if (type == DT_LNK)
		return is_going_on && matching->is_hiding ? follow(matching, outer, next) : 0;
	return type == DT_DIR && (is_going_on || has_secrets) ? push(matching, inner, outer, next, has_secrets) : 0;
}

/* Does the file have another name that is hidden? */
static int look_for_twin(struct matching *matching, const struct spot *spot, int fd, const struct listed_entry *entry,
			 bool has_own_numbers)
{
	for (size_t i = 0; i < matching->twins.count; i++) {
		const struct twin *twin = &matching->twins.items[i];
		AUTO_TEXT path = {0}, reason = {0};
		struct host_match by;
		struct stat status;

		if ((!has_own_numbers && entry->inode != twin->inode) ||
		    fstatat(fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0 || status.st_dev != twin->device ||
		    status.st_ino != twin->inode)
			continue;
		text_append_format(&path, "%s/%s", spot->inner, entry->name);
		if (!strcmp(text_string(&path), twin->path))
			continue;
		text_append_format(&reason, "a second name of '%s'", twin->path);
		by = (struct host_match){.key = "hide", .pattern = reason.data};
		return text_failed(&path) || text_failed(&reason) ? survey_matching_no_memory(matching)
								  : add_found(matching, text_string(&path), &by);
	}
	return 0;
}

static int look_for_twins_at(struct matching *matching, const struct spot *spot, int fd,
			     const struct listed_entry *entry, bool has_own_numbers)
{
	char inner[PATH_MAX], outer[PATH_MAX];
	unsigned char type = type_of(fd, entry);

	if (type == DT_REG)
		return look_for_twin(matching, spot, fd, entry, has_own_numbers);
	if (type != DT_DIR || snprintf(inner, sizeof(inner), "%s/%s", spot->inner, entry->name) >= (int)sizeof(inner) ||
	    snprintf(outer, sizeof(outer), "%s/%s", spot->outer, entry->name) >= (int)sizeof(outer) ||
	    survey_matching_has_region(matching, inner))
		return 0;
	return push(matching, inner, outer, spot->set, false);
}

/* A directory that another user closed the command cannot open either; its own it could. */
static int refuse_closed(struct matching *matching, const struct spot *spot, int rc)
{
	struct stat status;

	if (rc == -ENOENT || rc == -ENOTDIR || !matching->is_hiding)
		return 0;
	if (rc == -EACCES && lstat(spot->outer, &status) == 0 && status.st_uid != matching->host->uid)
		return 0;
	error_set(matching->error, STAGE_FILES, -rc, "cannot find what `hide` matches: cannot list '%s': %s",
		  spot->inner, strerror(-rc));
	return error_hint(matching->error, "make the directory readable, or hide it as a whole: --hide '%s'",
			  spot->inner);
}

static int list_spot(struct matching *matching, const struct spot *spot, char *entries, uint64_t *next)
{
	AUTO_CLOSE int fd = sys_openat2(AT_FDCWD, spot->outer, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0,
					SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
	bool is_for_twins = matching->twins.count, has_own_numbers;
	struct statfs system;
	long len;

	if (fd < 0)
		return refuse_closed(matching, spot, fd);
	if (++matching->directories > DIRECTORIES_MAX)
		return refuse_bound(matching, "directories", DIRECTORIES_MAX, spot->inner);
	has_own_numbers = is_for_twins && fstatfs(fd, &system) == 0 && system.f_type == OVERLAY_MAGIC;
	while ((len = syscall(SYS_getdents64, fd, entries, LIST_BYTES)) > 0)
		for (long at = 0; at < len;) {
			const struct listed_entry *entry = (const struct listed_entry *)(entries + at);
			int rc;

			at += entry->len;
			if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
				continue;
			if (++matching->entries > ENTRIES_MAX)
				return refuse_bound(matching, "files", ENTRIES_MAX, spot->inner);
			rc = is_for_twins ? look_for_twins_at(matching, spot, fd, entry, has_own_numbers)
					  : look_at(matching, spot, fd, entry, next);
			if (rc < 0)
				return rc;
		}
	return len < 0 ? refuse_closed(matching, spot, -errno) : 0;
}

static int walk_queue(struct matching *matching)
{
	AUTO_FREE char *entries = malloc(LIST_BYTES);
	AUTO_FREE uint64_t *next = calloc(survey_globs_words(&matching->globs) + 1, sizeof(*next));
	int rc = entries && next ? 0 : survey_matching_no_memory(matching);

	while (rc == 0 && matching->queue.count) {
		struct spot spot = matching->queue.items[--matching->queue.count];

		rc = list_spot(matching, &spot, entries, next);
		free(spot.inner);
		free(spot.outer);
		free(spot.set);
	}
	return rc;
}

int survey_matching_walk(struct matching *matching, const char *inner, const char *outer, const uint64_t *set)
{
	int rc = push(matching, inner, outer, set, false);

	return rc < 0 ? rc : walk_queue(matching);
}

/* From the root of the jar to where the region stands: patterns may end on the way. */
static int begin_region(struct matching *matching, const struct region *region, bool has_secrets, uint64_t *set,
			uint64_t *next)
{
	size_t words = survey_globs_words(&matching->globs);
	AUTO_FREE char *way = strdup(region->inner);
	struct stat status;

	if (!way)
		return survey_matching_no_memory(matching);
	memset(set, 0, words * sizeof(*set));
	survey_globs_start(&matching->globs, set);
	for (char *at = way + strspn(way, "/"), *end; *at; at = end + strspn(end, "/")) {
		struct host_match by;
		long ended;
		char cut;

		end = at + strcspn(at, "/");
		cut = *end;
		*end = '\0';
		ended = survey_globs_step(&matching->globs, set, at, false, next);
		if (ended >= 0) {
			by = pattern_of(matching, ended);
			return add_found(matching, way, &by);
		}
		memcpy(set, next, words * sizeof(*set));
		*end = cut;
		if (!cut)
			break;
	}
	if ((survey_globs_is_empty(&matching->globs, set) && !has_secrets) || lstat(region->outer, &status) < 0 ||
	    !S_ISDIR(status.st_mode))
		return 0;
	return push(matching, region->inner, region->outer, set, has_secrets);
}

int survey_matching_walk_regions(struct matching *matching, bool has_secrets)
{
	size_t words = survey_globs_words(&matching->globs) + 1;
	AUTO_FREE uint64_t *sets = calloc(2 * words, sizeof(*sets));
	int rc = sets ? 0 : survey_matching_no_memory(matching);

	for (size_t i = 0; i < matching->regions.count && rc == 0; i++) {
		const struct region *region = &matching->regions.items[i];

		rc = begin_region(matching, region, has_secrets && region->is_project, sets, sets + words);
		if (rc == 0)
			rc = walk_queue(matching);
	}
	return rc;
}

int survey_matching_walk_twins(struct matching *matching)
{
	uint64_t none = 0;
	int rc = 0;

	for (size_t i = 0; i < matching->regions.count && rc == 0; i++) {
		const struct region *region = &matching->regions.items[i];

		if (region->is_project)
			rc = survey_matching_walk(matching, region->inner, region->outer, &none);
	}
	return rc;
}
