/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_risky.c - compare files that other programs run or read before the run and after it
 *
 * The result leaves out unchanged files. A file is unchanged if its inode and its time of last change are, since no
 * command can set that time. If that time was too close to the look before the run, the content decides.
 */
#include "survey/survey_risky.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/text.h"
#include "survey/survey_git.h"
#include "survey/survey_nested.h"
#include "survey/survey_paths.h"
#include "survey/survey_watch.h"
#include "base/sys/calls.h"

/*
 * File systems keep time by the clock's tick, of which there are at least 100 in a second: a file that changed so
 * shortly before it was looked at may change again and keep its time. The look after the run reads what the one
 * before it read, and that was less than this before the run.
 */
#define SETTLING_NS 20000000LL
#define LOOK_BEFORE_NS 10000000000LL
/* What is reported at most; more is a flood. */
#define RISKY_MAX 256

static int64_t nanoseconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void survey_moment_now(struct host_moment *moment)
{
	/* In this order: the first is the clock that file systems take most times from, and runs behind the second. */
	moment->earliest_ns = nanoseconds(CLOCK_REALTIME_COARSE);
	moment->latest_ns = nanoseconds(CLOCK_REALTIME);
}

int64_t survey_settled_ns(void)
{
	return nanoseconds(CLOCK_REALTIME) - SETTLING_NS;
}

const char *survey_risky_unsearched_words(enum risky_unsearched unsearched)
{
	static const char *const words[] = {
		[RISKY_IS_MOVED] =
			"Belljar could not search the work directory: another program moved it or its repository",
		[RISKY_IS_FLOODED] = "more files than are listed in `risky` are new or have changed",
		[RISKY_HAS_PATTERNS] = "Belljar could not search everything for files that match `hide` and are new",
		[RISKY_IS_LOST] = "Belljar could not search the work directory: the process that searches it has ended",
	};

	return words[unsearched];
}

void survey_risky_flood(struct risky_list *risky)
{
	risky->unsearched = RISKY_IS_FLOODED;
}

/* @why is copied. */
static void add(struct risky_list *risky, const char *path, const char *why)
{
	AUTO_FREE char *path_copy = NULL, *why_copy = NULL;
	struct risky_path *item;

	for (size_t i = 0; i < risky->count; i++)
		if (!strcmp(risky->items[i].path, path))
			return;
	if (risky->count == RISKY_MAX) {
		survey_risky_flood(risky);
		return;
	}
	path_copy = strdup(path);
	why_copy = strdup(why);
	item = path_copy && why_copy ? list_add(risky) : NULL;
	if (item)
		*item = (struct risky_path){take_ptr(path_copy), take_ptr(why_copy)};
}

void survey_risky_add(struct risky_list *risky, const char *path, const char *what, const char *who)
{
	AUTO_TEXT why = {0};

	text_append_format(&why, "it %s during the run; %s", what, who);
	if (!text_failed(&why))
		add(risky, path, text_string(&why));
}

void survey_risky_merge(struct risky_list *into, const struct risky_list *from)
{
	for (size_t i = 0; i < from->count; i++)
		add(into, from->items[i].path, from->items[i].why);
	for (size_t i = 0; i < from->left_out.count; i++)
		survey_risky_leave_out(into, from->left_out.items[i], "");
	into->unsearched = into->unsearched ? into->unsearched : from->unsearched;
	into->looked_at = MAX_OF(into->looked_at, from->looked_at);
}

void survey_risky_leave_out(struct risky_list *risky, const char *top, const char *path)
{
	AUTO_TEXT whole = {0};

	if (risky->left_out.count == RISKY_LEFT_OUT_MAX)
		return;
	text_append_format(&whole, "%s%s%s", top, path[0] ? "/" : "", path);
	for (size_t i = 0; i < risky->left_out.count; i++)
		if (!strcmp(risky->left_out.items[i], text_string(&whole)))
			return;
	string_list_add(&risky->left_out, text_string(&whole));
}

/* --- what was found before and after ------------------------------------------------------------------------ */

static const struct watched *find(const struct watch_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].path.path, path))
			return &list->items[i];
	return NULL;
}

/* Where times do not tell, what is in it does. */
static bool has_same_content(const struct watched *before, const struct watched *now)
{
	return before->content && now->content && before->content_bytes == now->content_bytes &&
	       !memcmp(before->content, now->content, now->content_bytes);
}

/* What became of it; NULL: nothing. */
static const char *what_happened(const struct watched *before, const struct watched *now)
{
	const struct host_path *left = &before->path, *right = &now->path;

	if (left->kind != right->kind || left->device != right->device || left->inode != right->inode)
		return "was replaced";
	if (left->changed_ns != right->changed_ns || left->size_bytes != right->size_bytes)
		return "was changed";
	if (before->is_fresh && !has_same_content(before, now))
		return "was changed";
	return NULL;
}

static void compare(const struct risky_request *request, const struct watched *now, struct risky_list *risky)
{
	const struct watched *before = find(request->before, now->path.path);
	const char *what;

	if (now->kind == WATCH_MUST_STAY)
		return;
	if (!before) {
		survey_risky_add(risky, now->path.path, "appeared", now->who);
		return;
	}
	what = now->kind == WATCH_NEW ? NULL : what_happened(before, now);
	if (what)
		survey_risky_add(risky, now->path.path, what, now->who);
	else if (now->path.kind == PATH_DIRECTORY && now->kind != WATCH_NEW)
		survey_find_changed_inside(request, now, risky);
}

void survey_look_begin(struct risk_look *look, const struct risky_request *request, struct risky_list *risky)
{
	const struct watch_list *now = &look->now;
	const char *git = request->host->workdir.git.path;

	*look = (struct risk_look){.walk = {.request = request, .now = now, .budget = WATCH_BUDGET, .fd = -1}};
	if (!survey_is_searched(request->host)) {
		look->tree = request->tree_count;
		return;
	}
	if (survey_watch(request->host, request->start.earliest_ns - LOOK_BEFORE_NS, &look->now, NULL) < 0) {
		risky->unsearched = RISKY_IS_MOVED;
		look->tree = request->tree_count;
		return;
	}
	/* git's files lead to more files and repositories than Belljar looks at. */
	if (now->is_cut_off || request->before->is_cut_off)
		survey_risky_leave_out(risky, git ? git : request->host->workdir.path.path, "");
	for (size_t i = 0; i < now->count; i++)
		compare(request, &now->items[i], risky);
	for (size_t i = 0; i < request->before->count; i++) {
		const struct watched *before = &request->before->items[i];

		if (before->kind == WATCH_MUST_STAY && !find(now, before->path.path))
			survey_risky_add(risky, before->path.path, "was removed", before->who);
	}
}

void survey_look_end(struct risk_look *look)
{
	close_fd(&look->walk.fd);
	survey_watch_done(&look->now);
	look->tree = look->index = 0;
}

void survey_risky_done(struct risky_list *risky)
{
	for (size_t i = 0; i < risky->count; i++) {
		free(risky->items[i].path);
		free(risky->items[i].why);
	}
	free(risky->items);
	string_list_done(&risky->left_out);
	*risky = (struct risky_list){0};
}
