/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_changes.c - the list of changes, and which of them are conflicts
 *
 * There is no snapshot of the old workdir. A file of the workdir was touched since if its ctime is not older than the
 * workspace's stamp; no program can hide that. This errs on the safe side (a chmod counts too), so the walk also
 * compares content: a file that is the same on both sides is not a change.
 */
#include "workspace/workspace_changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "workspace/workspace_base.h"
#include "workspace/workspace_intent.h"
#include "workspace/workspace_risk.h"
#include "workspace/workspace_walk.h"

/* For counting after a run: so much is looked at. */
#define SUMMARY_COMPARE_BYTES ((uint64_t)64 << 20)
#define SUMMARY_ENTRIES 200000
/* Renames are looked for among files up to this size, and so much is read at most. */
#define RENAME_FILE_BYTES ((uint64_t)16 << 20)
#define RENAME_BYTES ((uint64_t)256 << 20)

char workspace_change_letter(enum change_kind kind)
{
	switch (kind) {
	case CHANGE_ADDED:
		return 'A';
	case CHANGE_MODIFIED:
		return 'M';
	case CHANGE_TYPE:
		return 'T';
	case CHANGE_MODE:
		return 'm';
	case CHANGE_DELETED:
		return 'D';
	}
	return '?';
}

void workspace_change_side_of(const struct stat *status, struct change_side *side)
{
	*side = (struct change_side){
		.mode = status->st_mode,
		.device = status->st_dev,
		.inode = status->st_ino,
		.link_count = status->st_nlink,
		.size = (uint64_t)status->st_size,
		.stored = MIN_OF((uint64_t)status->st_size, (uint64_t)status->st_blocks * 512),
		.mtime_ns = workspace_view_modified_ns(status),
		.ctime_ns = workspace_view_changed_ns(status),
		.uid = status->st_uid,
		.gid = status->st_gid,
	};
}

void workspace_change_list_done(struct change_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].path);
		free(list->items[i].layer_path);
		free(list->items[i].conflict);
	}
	free(list->items);
	string_list_done(&list->renamed);
	*list = (struct change_list){0};
}

static int keep(struct walk *walk, const struct change *change)
{
	struct change_list *list = walk->context;
	struct change *kept = list_add(list);

	if (!kept)
		return -ENOMEM;
	*kept = *change;
	kept->path = strdup(change->path);
	kept->layer_path = change->layer_path ? strdup(change->layer_path) : NULL;
	return kept->path && (!change->layer_path || kept->layer_path) ? 0 : -ENOMEM;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

static int walk_error(const struct walk *walk, int rc, struct error *error)
{
	if (rc == -EBADMSG)
		return error_set(error, STAGE_FILES, EBADMSG,
				 "the layer is forged: its directory '%s' claims to be a part of something else",
				 walk->refused);
	if (rc == -E2BIG)
		return error_set(error, STAGE_LIMITS, E2BIG, "the workspace has more than %d changes",
				 WORKSPACE_CHANGES_MAX);
	if (rc == -ENAMETOOLONG)
		return error_set(error, STAGE_LIMITS, ENAMETOOLONG, "the workspace has paths longer than %zu bytes",
				 WORKSPACE_PATH_MAX);
	return error_set(error, STAGE_FILES, -rc, "cannot read the workspace at '%s': %s", walk->refused,
			 strerror(-rc));
}

/* --- conflicts ---------------------------------------------------------------------------------------------------- */

static void set_conflict(struct change *change, const char *why)
{
	change->flags |= CHANGE_IS_CONFLICT;
	free(change->conflict);
	change->conflict = strdup(why);
}

/* The directory that should hold it was touched since, so the name may have been removed from it. */
static bool parent_is_touched(const struct workspace_view *view, const char *path)
{
	AUTO_FREE char *parent = strdup(path);
	struct stat status;

	/* If the directory is gone too, check its own parent. */
	while (parent && *parent) {
		char *slash = strrchr(parent, '/');
		int fd;

		*(slash ? slash : parent) = '\0';
		fd = workspace_view_open_directory(workspace_view_workdir(view), parent);
		if (fd < 0)
			continue;
		if (fstat(fd, &status) < 0)
			status = (struct stat){0};
		close(fd);
		return workspace_view_is_touched(view, &status);
	}
	return true;
}

static void find_conflict(const struct workspace_view *view, struct change *change)
{
	bool is_touched;

	if (workspace_intent_has(&view->intents, change))
		return;
	is_touched = change->before.mode && workspace_view_is_touched_at(view, change->before.device,
									 change->before.inode, change->before.ctime_ns);

	switch (change->kind) {
	case CHANGE_ADDED:
		/* Not new: the command found it in the workdir, under some name. */
		if (change->flags & CHANGE_IS_COPIED_UP && !S_ISDIR(change->after.mode) &&
		    parent_is_touched(view, change->path))
			set_conflict(change, "was changed here, and removed or renamed in the workdir since");
		return;
	case CHANGE_MODE:
		/* Content is not touched; a directory's ctime changes with every name in it. */
		return;
	case CHANGE_MODIFIED:
	case CHANGE_TYPE:
		/* The contents of a directory are judged by themselves. */
		if (is_touched && !S_ISDIR(change->before.mode))
			set_conflict(change, "changed in the workdir since");
		return;
	case CHANGE_DELETED:
		if (is_touched && !S_ISDIR(change->before.mode))
			set_conflict(change, "was removed here, and changed in the workdir since");
		return;
	}
}

int workspace_changes(const struct workspace_view *view, struct change_list *out, struct error *error)
{
	struct change_list list = {0};
	struct walk walk = {
		.view = view,
		.meet = keep,
		.context = &list,
		.compare_bytes = UINT64_MAX,
		.entry_max = WORKSPACE_CHANGES_MAX,
	};
	int rc = workspace_walk(&walk);

	list.renamed = walk.renamed;
	string_list_done(&walk.borrowed);
	if (rc < 0) {
		workspace_change_list_done(&list);
		return walk_error(&walk, rc, error);
	}
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), by_path);
	for (size_t i = 0; i < list.count; i++) {
		find_conflict(view, &list.items[i]);
		list.has_replaced |= list.items[i].kind == CHANGE_TYPE && S_ISDIR(list.items[i].before.mode);
	}
	*out = list;
	return 0;
}

/* --- renames ------------------------------------------------------------------------------------------------------ */

static bool may_be_renamed(const struct change *change, enum change_kind kind)
{
	const struct change_side *side = kind == CHANGE_DELETED ? &change->before : &change->after;

	return change->kind == kind && S_ISREG(side->mode) && side->size && side->size <= RENAME_FILE_BYTES;
}

static int by_size(const void *a, const void *b)
{
	const struct change *one = *(const struct change *const *)a, *other = *(const struct change *const *)b;

	return (one->before.size > other->before.size) - (one->before.size < other->before.size);
}

static int open_file(int top_fd, const char *path)
{
	const char *name;
	AUTO_CLOSE int parent = workspace_view_open_parent(top_fd, path, &name);

	return parent < 0 ? parent : openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static bool is_same_file(const struct workspace_view *view, const struct change *added, const struct change *deleted,
			 uint64_t *budget)
{
	AUTO_CLOSE int a = open_file(view->fds[added->layer], workspace_change_layer_path(added));
	AUTO_CLOSE int b = open_file(workspace_view_workdir(view), deleted->path);

	return a >= 0 && b >= 0 && workspace_view_same_content(a, b, added->after.size, budget) == 1;
}

void workspace_find_renames(const struct workspace_view *view, struct change_list *list)
{
	LIST_TYPE(struct change *, ) deleted = {0};
	uint64_t budget = RENAME_BYTES;

	for (size_t i = 0; i < list->count; i++) {
		if (may_be_renamed(&list->items[i], CHANGE_DELETED)) {
			struct change **slot = list_add(&deleted);

			if (slot)
				*slot = &list->items[i];
		}
	}
	if (deleted.count)
		qsort(deleted.items, deleted.count, sizeof(*deleted.items), by_size);
	for (size_t i = 0; deleted.count && i < list->count; i++) {
		struct change *added = &list->items[i];
		size_t low = 0, high = deleted.count;

		if (!may_be_renamed(added, CHANGE_ADDED))
			continue;
		while (low < high) {
			size_t middle = (low + high) / 2;

			if (deleted.items[middle]->before.size < added->after.size)
				low = middle + 1;
			else
				high = middle;
		}
		/* One that was deleted is the origin of one file only. */
		for (; low < deleted.count && deleted.items[low]->before.size == added->after.size && !added->from;
		     low++)
			if (!deleted.items[low]->from && is_same_file(view, added, deleted.items[low], &budget)) {
				added->from = deleted.items[low];
				deleted.items[low]->from = added;
			}
	}
	free(deleted.items);
}

/* --- counts ------------------------------------------------------------------------------------------------------- */

struct summing {
	struct workspace_summary summary;
	struct base_keeper *keeper; /* NULL: no bases are kept */
};

static int count(struct walk *walk, const struct change *change)
{
	struct summing *summing = walk->context;
	struct workspace_summary *summary = &summing->summary;

	if (change->kind == CHANGE_ADDED)
		summary->added++;
	else if (change->kind == CHANGE_DELETED)
		summary->deleted++;
	else
		summary->modified++;
	if (S_ISREG(change->after.mode) && change->flags & CHANGE_HAS_CONTENT)
		summary->bytes += change->after.stored;
	if (summing->keeper)
		workspace_base_keep(summing->keeper, change);
	return 0;
}

static int summarize(const struct workspace_home *home, const struct workspace *workspace, bool keeps_bases,
		     struct workspace_summary *out, struct error *error)
{
	AUTO(workspace_view_done) struct workspace_view view = {0};
	AUTO(workspace_base_keeper_done) struct base_keeper keeper = {.fd = -1};
	struct summing summing = {.keeper = keeps_bases ? &keeper : NULL};
	struct walk walk = {
		.meet = count,
		.context = &summing,
		.view = &view,
		.compare_bytes = SUMMARY_COMPARE_BYTES,
		.entry_max = SUMMARY_ENTRIES,
		.is_count = true,
	};
	int rc = workspace_view_open(home, workspace, &view, error);

	if (rc < 0)
		return rc;
	workspace_base_keeper_init(&keeper, &view, workspace);
	rc = workspace_walk(&walk);
	string_list_done(&walk.renamed);
	string_list_done(&walk.borrowed);
	if (rc < 0 && rc != -E2BIG)
		return walk_error(&walk, rc, error);
	summing.summary.is_rough = rc == -E2BIG || walk.compare_bytes < (uint64_t)1 << 16;
	*out = summing.summary;
	return 0;
}

int workspace_summary(const struct workspace_home *home, const struct workspace *workspace,
		      struct workspace_summary *out, struct error *error)
{
	return summarize(home, workspace, false, out, error);
}

/* One is enough. */
static int stop(struct walk *walk, const struct change *change)
{
	return -ECANCELED;
}

bool workspace_has_changes(const struct workspace_home *home, const struct workspace *workspace)
{
	AUTO(workspace_view_done) struct workspace_view view = {0};
	struct walk walk = {
		.meet = stop,
		.view = &view,
		.compare_bytes = SUMMARY_COMPARE_BYTES,
		.entry_max = SUMMARY_ENTRIES,
		.is_count = true,
	};
	int rc = workspace_view_open(home, workspace, &view, NULL);

	if (rc == 0)
		rc = workspace_walk(&walk);
	string_list_done(&walk.renamed);
	string_list_done(&walk.borrowed);
	return rc != 0;
}

int workspace_run_ended(const struct workspace_home *home, const struct workspace *workspace,
			struct workspace_summary *out, struct error *error)
{
	return summarize(home, workspace, true, out, error);
}

void workspace_change_list_keep(struct change_list *list, const struct string_list *paths)
{
	size_t kept = 0;

	for (size_t i = 0; paths->count && i < list->count; i++) {
		bool is_named = false;

		for (size_t k = 0; k < paths->count; k++)
			is_named |= workspace_change_is_within(list->items[i].path, paths->items[k]);
		if (is_named) {
			struct change other = list->items[kept];

			list->items[kept] = list->items[i];
			if (kept != i)
				list->items[i] = other;
			kept++;
		}
	}
	/* The rest is behind, to be freed with the list. */
	for (size_t i = kept; paths->count && i < list->count; i++) {
		free(list->items[i].path);
		free(list->items[i].layer_path);
		free(list->items[i].conflict);
	}
	if (paths->count)
		list->count = kept;
}
