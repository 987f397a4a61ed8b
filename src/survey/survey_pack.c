/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_pack.c - numbers of 8 bytes, strings with their length before them and a NUL behind them, lists with their count
 *
 * Both sides are the same program on the same machine, so the order of bytes is the machine's.
 */
#include "survey/survey_pack.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "survey/survey_paths.h"

/* Longer lists are no facts of ours. */
#define LIST_MAX 65536
#define REASON_MAX 512

void survey_pack_number(struct text *out, uint64_t number)
{
	text_append(out, &number, sizeof(number));
}

void survey_pack_string(struct text *out, const char *string)
{
	size_t size = string ? strlen(string) + 1 : 0;

	survey_pack_number(out, size);
	if (string)
		text_append(out, string, size);
}

uint64_t survey_unpack_number(struct unpack *from)
{
	uint64_t number;

	if (from->has_failed || (size_t)(from->end - from->at) < sizeof(number)) {
		from->has_failed = true;
		return 0;
	}
	memcpy(&number, from->at, sizeof(number));
	from->at += sizeof(number);
	return number;
}

const char *survey_unpack_string(struct unpack *from)
{
	uint64_t size = survey_unpack_number(from);
	const char *string = from->at;

	if (from->has_failed || !size)
		return NULL;
	if (size > (size_t)(from->end - from->at) || memchr(string, 0, size) != string + size - 1) {
		from->has_failed = true;
		return NULL;
	}
	from->at += size;
	return string;
}

/* How many items of a list follow. */
static size_t unpack_count(struct unpack *from)
{
	uint64_t count = survey_unpack_number(from);

	if (count > LIST_MAX)
		from->has_failed = true;
	return from->has_failed ? 0 : count;
}

/* --- the facts ---------------------------------------------------------------------------------------------- */

static void pack_strings(struct text *out, const struct string_list *list)
{
	survey_pack_number(out, list->count);
	for (size_t i = 0; i < list->count; i++)
		survey_pack_string(out, list->items[i]);
}

static int unpack_strings(struct unpack *from, struct string_list *list)
{
	int rc = 0;

	for (size_t left = unpack_count(from); left && rc == 0; left--) {
		const char *string = survey_unpack_string(from);

		rc = string ? string_list_add(list, string) : -EBADMSG;
	}
	return rc;
}

static void pack_path(struct text *out, const struct host_path *path)
{
	survey_pack_string(out, path->path);
	survey_pack_number(out, path->kind);
	survey_pack_number(out, path->device);
	survey_pack_number(out, path->inode);
}

static int unpack_path(struct unpack *from, struct host_path *path)
{
	const char *string = survey_unpack_string(from);
	uint64_t kind = survey_unpack_number(from);

	*path = (struct host_path){.path = string ? strdup(string) : NULL, .kind = (enum path_kind)kind};
	path->device = survey_unpack_number(from);
	path->inode = survey_unpack_number(from);
	if (string && !path->path)
		return -ENOMEM;
	return from->has_failed || (kind != PATH_ABSENT && !string) ? -EBADMSG : 0;
}

static void pack_paths(struct text *out, const struct host_path_list *list)
{
	survey_pack_number(out, list->count);
	for (size_t i = 0; i < list->count; i++)
		pack_path(out, &list->items[i]);
}

static int unpack_paths(struct unpack *from, struct host_path_list *list)
{
	int rc = 0;

	for (size_t left = unpack_count(from); left && rc == 0; left--) {
		struct host_path *item = list_add(list);

		rc = item ? unpack_path(from, item) : -ENOMEM;
	}
	return rc;
}

void survey_pack_project(struct text *out, const struct host *host)
{
	const struct host_workdir *workdir = &host->workdir;

	survey_pack_number(out, host->uid);
	survey_pack_number(out, workdir->is_searched);
	survey_pack_number(out, workdir->has_git_file);
	survey_pack_string(out, host->real_home);
	pack_strings(out, &host->git_files);
	pack_strings(out, &host->git_commands);
	pack_path(out, &workdir->path);
	pack_path(out, &workdir->top);
	pack_path(out, &workdir->git);
	pack_path(out, &workdir->git_own);
	pack_paths(out, &host->policy_files);
	pack_paths(out, &host->grants);
}

int survey_unpack_project(struct unpack *from, struct host *host)
{
	struct host_workdir *workdir = &host->workdir;
	struct host_path *paths[] = {&workdir->path, &workdir->top, &workdir->git, &workdir->git_own};
	const char *home;
	int rc;

	host->uid = (uid_t)survey_unpack_number(from);
	workdir->is_searched = survey_unpack_number(from);
	workdir->has_git_file = survey_unpack_number(from);
	home = survey_unpack_string(from);
	host->real_home = home ? strdup(home) : NULL;
	rc = home && !host->real_home ? -ENOMEM : unpack_strings(from, &host->git_files);
	if (rc == 0)
		rc = unpack_strings(from, &host->git_commands);
	for (size_t i = 0; i < ARRAY_LEN(paths) && rc == 0; i++)
		rc = unpack_path(from, paths[i]);
	if (rc == 0)
		rc = unpack_paths(from, &host->policy_files);
	if (rc == 0)
		rc = unpack_paths(from, &host->grants);
	return rc == 0 && from->has_failed ? -EBADMSG : rc;
}

/* --- what is protected -------------------------------------------------------------------------------------- */

void survey_pack_protected(struct text *out, const struct watch_list *watched, const struct host_path_list *pinned)
{
	size_t count = 0;

	for (size_t i = 0; i < watched->count; i++)
		count += watched->items[i].kind == WATCH_PROTECTED;
	survey_pack_number(out, count);
	for (size_t i = 0; i < watched->count; i++)
		if (watched->items[i].kind == WATCH_PROTECTED)
			survey_pack_string(out, watched->items[i].path.path);
	survey_pack_number(out, pinned->count);
	for (size_t i = 0; i < pinned->count; i++)
		survey_pack_string(out, pinned->items[i].path);
}

/* A directory that the command may write, opened when something in it is first looked up. */
struct writable {
	const struct host_path *path;
	int fd;
};

/* The innermost directory around @path; -1: there is none. */
static ssize_t find_around(const struct writable *writable, size_t count, const char *path)
{
	ssize_t found = -1;

	for (size_t i = 0; i < count; i++)
		if (writable[i].path->kind == PATH_DIRECTORY && path_is_within(path, writable[i].path->path) &&
		    (found < 0 || strlen(writable[i].path->path) > strlen(writable[found].path->path)))
			found = (ssize_t)i;
	return found;
}

static int take_path(struct host_path_list *list, struct writable *writable, size_t count, const char *path)
{
	struct writable *around = NULL;
	const char *name;
	ssize_t at = -1;
	int rc;

	/* What lies in the root of the host, as it is put together there. */
	if (path && !strncmp(path, "//", 2))
		path++;
	if (path && survey_path_is_clean(path))
		at = find_around(writable, count, path);
	if (at >= 0)
		around = &writable[at];
	if (!around)
		return -EBADMSG;
	name = path + strlen(around->path->path);
	name += strspn(name, "/");
	if (!name[0])
		return survey_path_list_copy(list, around->path);
	if (around->fd < 0)
		around->fd = survey_open_top(around->path);
	if (around->fd < 0)
		return around->fd;
	rc = survey_path_list_look_beneath(list, around->fd, around->path->path, name);
	return rc == -ENOMEM ? rc : 0;
}

static int take_paths(struct unpack *from, struct host_path_list *list, struct writable *writable, size_t count)
{
	int rc = 0;

	for (size_t left = unpack_count(from); left && rc == 0; left--)
		rc = take_path(list, writable, count, survey_unpack_string(from));
	return rc == 0 && from->has_failed ? -EBADMSG : rc;
}

int survey_take_protected(struct unpack *from, struct host *host)
{
	struct host_workdir *workdir = &host->workdir;
	const struct host_path *own[] = {&workdir->path, &workdir->top, &workdir->git, &workdir->git_own};
	size_t count = ARRAY_LEN(own) + host->grants.count;
	AUTO_FREE struct writable *writable = calloc(count, sizeof(*writable));
	int rc;

	if (!writable)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		writable[i] = (struct writable){
			i < ARRAY_LEN(own) ? own[i] : &host->grants.items[i - ARRAY_LEN(own)],
			-1,
		};
	rc = take_paths(from, &workdir->protected, writable, count);
	if (rc == 0)
		rc = take_paths(from, &workdir->pinned, writable, count);
	for (size_t i = 0; i < count; i++)
		close_fd(&writable[i].fd);
	return rc;
}

/* --- what is risky ------------------------------------------------------------------------------------------ */

void survey_pack_risky(struct text *out, const struct risky_list *risky)
{
	survey_pack_number(out, risky->looked_at);
	survey_pack_number(out, risky->unsearched);
	survey_pack_number(out, risky->count);
	for (size_t i = 0; i < risky->count; i++) {
		survey_pack_string(out, risky->items[i].path);
		survey_pack_string(out, risky->items[i].why);
	}
	pack_strings(out, &risky->left_out);
}

int survey_unpack_risky(struct unpack *from, struct risky_list *risky)
{
	uint64_t unsearched;
	int rc = 0;

	risky->looked_at = survey_unpack_number(from);
	unsearched = survey_unpack_number(from);
	risky->unsearched = unsearched < RISKY_UNSEARCHED_COUNT ? (enum risky_unsearched)unsearched : RISKY_IS_LOST;
	for (size_t left = unpack_count(from); left && rc == 0; left--) {
		const char *path = survey_unpack_string(from), *why = survey_unpack_string(from);
		struct risky_path *item = path && why && strlen(why) < REASON_MAX ? list_add(risky) : NULL;

		if (!item)
			return path && why ? -ENOMEM : -EBADMSG;
		*item = (struct risky_path){strdup(path), strdup(why)};
		if (!item->path || !item->why)
			return -ENOMEM;
	}
	if (rc == 0)
		rc = unpack_strings(from, &risky->left_out);
	return rc == 0 && from->has_failed ? -EBADMSG : rc;
}
