/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_apply.c - put a workspace's changes into its workdir
 *
 * In this order: what has to make room (a directory that becomes a file), directories, files, links, permissions, and
 * removals last, so that nothing is gone before what replaces it is there. A killed apply leaves some changes applied and
 * the others in the workspace; the next one lists what still differs, and goes on.
 */
#include "workspace/workspace_apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/list.h"
#include "workspace/workspace_applied.h"
#include "workspace/workspace_base.h"
#include "workspace/workspace_borrow.h"
#include "workspace/workspace_inside.h"
#include "workspace/workspace_intent.h"
#include "workspace/workspace_risk.h"
#include "workspace/workspace_step.h"

#define PROGRESS_STEP 32

/* --- what is chosen ----------------------------------------------------------------------------------------------- */

static bool is_in(const struct string_list *list, const char *path)
{
	for (size_t i = 0; list && i < list->count; i++)
		if (workspace_change_is_within(path, list->items[i]))
			return true;
	return false;
}

static struct change *find(struct change_list *list, const char *path, size_t len)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const char *other = list->items[middle].path;
		int order = strncmp(other, path, len);

		if (!order && other[len])
			order = 1;
		if (!order)
			return &list->items[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* A file needs the directories that it is in, even if only the file was named. */
static void choose_way(struct change_list *list, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct change *above = find(list, path, (size_t)(slash - path));

		if (above && S_ISDIR(above->after.mode) && above->kind != CHANGE_MODE)
			above->flags |= CHANGE_IS_CHOSEN;
	}
}

static bool was_directory(const struct change *change)
{
	return S_ISDIR(change->before.mode) && !S_ISDIR(change->after.mode);
}

/* Is it in a directory of the workdir that something else takes the place of, or that goes, and is that @chosen? */
static const struct change *replaced_above(struct change_list *list, const char *path)
{
	if (!list->has_replaced)
		return NULL;
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct change *above = find(list, path, (size_t)(slash - path));

		if (above && was_directory(above) && above->kind == CHANGE_TYPE)
			return above;
	}
	return NULL;
}

static void hold_back(struct change *change, const char *why)
{
	change->flags |= CHANGE_IS_CONFLICT;
	free(change->conflict);
	change->conflict = strdup(why);
}

/*
 * What of a renamed directory is not in the layer is only in the old one, which changes while we apply. workspace_settle() has
 * taken it into the layer, unless something has that mounted.
 */
static void choose_renamed(struct change_list *list)
{
	for (size_t i = 0; i < list->renamed.count; i++)
		for (size_t k = 0; k < list->count; k++)
			if (workspace_change_is_due(&list->items[k]) &&
			    workspace_change_is_within(list->items[k].path, list->renamed.items[i]))
				hold_back(&list->items[k],
					  "belongs to a renamed directory: it can be applied when no jar has it");
}

static void choose(const struct apply_request *request)
{
	struct change_list *list = request->changes;
	const struct apply_choice *choice = &request->choice;
	bool is_everything = !choice->paths || !choice->paths->count;

	for (size_t i = 0; i < list->count; i++) {
		struct change *change = &list->items[i];

		if (!is_everything && !is_in(choice->paths, change->path))
			continue;
		change->flags |= CHANGE_IS_CHOSEN;
		if (!is_everything)
			choose_way(list, change->path);
	}
	for (size_t i = 0; i < list->count; i++) {
		struct change *change = &list->items[i];
		const struct change *above = replaced_above(list, change->path);

		/* What has to make room goes and stays with what it makes room for. */
		if (above)
			change->flags =
				(change->flags & ~(unsigned)CHANGE_IS_CHOSEN) | (above->flags & CHANGE_IS_CHOSEN);
		if (change->flags & CHANGE_IS_CONFLICT && is_in(choice->theirs, change->path))
			change->flags = (change->flags & ~(unsigned)CHANGE_IS_CONFLICT) | CHANGE_IS_THEIRS;
	}
	/* One that cannot go keeps everything above it. */
	for (size_t i = 0; i < list->count; i++) {
		struct change *change = &list->items[i];

		if (!(change->flags & (CHANGE_IS_CONFLICT | CHANGE_IS_REFUSED)))
			continue;
		for (const char *slash = strchr(change->path, '/'); slash; slash = strchr(slash + 1, '/')) {
			struct change *above = find(list, change->path, (size_t)(slash - change->path));

			if (above && was_directory(above) && !(above->flags & CHANGE_IS_CONFLICT))
				hold_back(above, "something in it stays");
		}
	}
	/* Nothing is removed for what will not come. */
	for (size_t i = 0; i < list->count; i++) {
		struct change *change = &list->items[i];
		const struct change *above = replaced_above(list, change->path);

		if (above && above->flags & (CHANGE_IS_CONFLICT | CHANGE_IS_REFUSED) &&
		    !(change->flags & (CHANGE_IS_CONFLICT | CHANGE_IS_REFUSED)))
			hold_back(change, "what would take its place is not applied");
	}
	choose_renamed(list);
}

/* --- applying ----------------------------------------------------------------------------------------------------- */

/* A new file with several names, and where the first of them is in the workdir. */
struct shared {
	dev_t device;
	ino_t inode;
	unsigned layer;
	ino_t made;
	const char *path;
};

struct applying {
	const struct apply_request *request;
	struct stepper stepper;
	LIST_TYPE(struct shared, ) shared;
	size_t brought_count; /* the first of them are of an apply before */
	size_t done, total;
	int rc; /* of what ends the whole */
};

static ino_t inode_at(const struct workspace_view *view, const char *path, struct stat *status)
{
	const char *name;
	AUTO_CLOSE int parent = workspace_view_open_parent(workspace_view_workdir(view), path, &name);

	return parent >= 0 && fstatat(parent, name, status, AT_SYMLINK_NOFOLLOW) == 0 ? status->st_ino : 0;
}

/* Names that an apply before has brought, and was killed before it brought the others. */
static void find_brought(struct applying *applying)
{
	const struct workspace_view *view = applying->request->view;

	for (size_t i = 0; i < view->intents.count; i++) {
		const struct intent *intent = &view->intents.items[i];
		struct stat status;
		struct shared *shared;

		if (!S_ISREG(intent->after.mode) || intent->after.link_count < 2 ||
		    !inode_at(view, intent->path, &status) || !S_ISREG(status.st_mode) ||
		    (uint64_t)status.st_size != intent->after.size ||
		    workspace_view_modified_ns(&status) != intent->after.mtime_ns)
			continue;
		shared = list_add(&applying->shared);
		if (shared)
			*shared = (struct shared){
				.device = intent->after.device,
				.inode = intent->after.inode,
				.layer = intent->layer,
				.path = intent->path,
				.made = status.st_ino,
			};
	}
	applying->brought_count = applying->shared.count;
}

static struct shared *find_shared(struct applying *applying, const struct change *change)
{
	/* One that has a single name may have had others, which were brought. */
	size_t count = change->after.link_count < 2 ? applying->brought_count : applying->shared.count;

	if (!S_ISREG(change->after.mode) || change->layer == applying->request->view->layer_count)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (applying->shared.items[i].inode == change->after.inode &&
		    applying->shared.items[i].device == change->after.device &&
		    applying->shared.items[i].layer == change->layer)
			return &applying->shared.items[i];
	return NULL;
}

static int put_file(struct applying *applying, const struct change *change)
{
	struct shared *first = find_shared(applying, change);
	struct stat status;
	int rc;

	if (change->kind == CHANGE_MODIFIED)
		workspace_base_forget(applying->request->workspace, change->path);
	if (first) {
		rc = workspace_step_link(&applying->stepper, change, first->path, first->made);
		if (rc != -ESTALE && rc != -EMLINK && rc != -EPERM)
			return rc;
	}
	rc = workspace_step_put(&applying->stepper, change);
	if (rc == 0 && !first && change->after.link_count > 1 && S_ISREG(change->after.mode)) {
		struct shared *shared = list_add(&applying->shared);

		if (shared)
			*shared = (struct shared){
				.device = change->after.device,
				.inode = change->after.inode,
				.layer = change->layer,
				.path = change->path,
				.made = inode_at(applying->request->view, change->path, &status),
			};
	}
	return rc;
}

static int put_directory(struct applying *applying, const struct change *change)
{
	struct stat status;
	int rc = workspace_step_unhide(&applying->stepper, change);

	if (rc < 0)
		return rc;
	rc = workspace_step_put(&applying->stepper, change);
	/* The host made one too: what is in it is looked at by itself. */
	if (rc == -EAGAIN && change->kind == CHANGE_ADDED && inode_at(applying->request->view, change->path, &status) &&
	    S_ISDIR(status.st_mode))
		return 0;
	return rc;
}

static void note(struct applying *applying, struct change *change, int rc)
{
	static const char *const words[] = {"changed in the workdir while it was applied",
					    "the directory that it belongs in is not there"};

	applying->done++;
	if (applying->request->progress && applying->done % PROGRESS_STEP == 0)
		applying->request->progress(applying->request->context, applying->done, applying->total);
	if (rc == 0) {
		change->flags |= CHANGE_IS_DONE;
		return;
	}
	free(change->conflict);
	if (rc == -EAGAIN || rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || rc == -EXDEV) {
		change->flags |= CHANGE_IS_CONFLICT;
		change->conflict = strdup(words[rc != -EAGAIN]);
		return;
	}
	change->flags |= CHANGE_HAS_FAILED;
	change->conflict = strdup(strerror(-rc));
	if (rc == -ENOSPC || rc == -EDQUOT || rc == -EROFS || rc == -ENOMEM || rc == -EIO)
		applying->rc = rc;
}

typedef bool phase_test(const struct applying *applying, const struct change *change);
typedef int phase_action(struct applying *applying, const struct change *change);

static bool makes_room(const struct applying *applying, const struct change *change)
{
	return change->kind == CHANGE_DELETED && replaced_above(applying->request->changes, change->path);
}

static bool is_new_directory(const struct applying *applying, const struct change *change)
{
	return S_ISDIR(change->after.mode) && (change->kind == CHANGE_ADDED || change->kind == CHANGE_TYPE);
}

static bool is_file(const struct applying *applying, const struct change *change)
{
	return change->kind != CHANGE_DELETED && change->kind != CHANGE_MODE && !S_ISDIR(change->after.mode) &&
	       !S_ISLNK(change->after.mode);
}

static bool is_link(const struct applying *applying, const struct change *change)
{
	return change->kind != CHANGE_DELETED && change->kind != CHANGE_MODE && S_ISLNK(change->after.mode);
}

static bool is_mode(const struct applying *applying, const struct change *change)
{
	return change->kind == CHANGE_MODE && !S_ISDIR(change->after.mode);
}

static bool is_directory_mode(const struct applying *applying, const struct change *change)
{
	return change->kind == CHANGE_MODE && S_ISDIR(change->after.mode);
}

static bool is_removal(const struct applying *applying, const struct change *change)
{
	return change->kind == CHANGE_DELETED;
}

static int remove_one(struct applying *applying, const struct change *change)
{
	return workspace_step_remove(&applying->stepper, change);
}

static int set_mode(struct applying *applying, const struct change *change)
{
	return workspace_step_set_mode(&applying->stepper, change);
}

/* Those that go up are from the inside out. */
static const struct phase {
	phase_test *test;
	phase_action *action;
	bool is_upward;
} phases[] = {
	{makes_room, remove_one, true},      {is_new_directory, put_directory, false},
	{is_file, put_file, false},          {is_link, put_file, false},
	{is_mode, set_mode, false},          {is_removal, remove_one, true},
	{is_directory_mode, set_mode, true},
};

static void run_phase(struct applying *applying, const struct phase *phase)
{
	struct change_list *list = applying->request->changes;

	for (size_t i = 0; i < list->count && applying->rc == 0; i++) {
		struct change *change = &list->items[phase->is_upward ? list->count - 1 - i : i];
		int rc;

		if (!workspace_change_is_due(change) || !phase->test(applying, change))
			continue;
		rc = phase->action(applying, change);
		/* A killed apply must find it there, or here. A new directory still lacks what is in it, and its permissions. */
		if (rc == 0 && !is_new_directory(applying, change))
			workspace_step_forget(&applying->stepper, change);
		note(applying, change, rc);
	}
}

/* New directories got the permissions that filling them needed. From the inside out: what is empty in the upper goes. */
static void finish_directories(struct applying *applying)
{
	struct change_list *list = applying->request->changes;

	for (size_t i = list->count; i > 0; i--) {
		struct change *change = &list->items[i - 1];

		if (!(change->flags & CHANGE_IS_DONE) || !is_new_directory(applying, change))
			continue;
		if ((change->after.mode & 0700) == 0700 || workspace_step_set_mode(&applying->stepper, change) == 0)
			workspace_step_forget(&applying->stepper, change);
	}
}

static bool is_all_done(const struct change_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (!(list->items[i].flags & (CHANGE_IS_DONE | CHANGE_IS_DROPPED)))
			return false;
	return true;
}

static void count_outcome(const struct change_list *list, struct apply_outcome *outcome)
{
	for (size_t i = 0; i < list->count; i++) {
		unsigned flags = list->items[i].flags;
		bool is_chosen = flags & CHANGE_IS_CHOSEN;

		if (flags & CHANGE_IS_DONE)
			outcome->applied++;
		else if (is_chosen && flags & CHANGE_IS_DROPPED)
			outcome->dropped++;
		else if (is_chosen && flags & CHANGE_HAS_FAILED)
			outcome->failed++;
		else if (is_chosen && flags & CHANGE_IS_REFUSED)
			outcome->refused++;
		else if (is_chosen && flags & CHANGE_IS_CONFLICT)
			outcome->conflicts++;
		else
			outcome->left++;
	}
}

/* Conflicts that the user settled for the workdir: the upper forgets its side. */
static void drop_ours(struct applying *applying)
{
	struct change_list *list = applying->request->changes;

	for (size_t i = 0; i < list->count; i++) {
		struct change *change = &list->items[i];

		if (!(change->flags & CHANGE_IS_CHOSEN) || !is_in(applying->request->choice.ours, change->path))
			continue;
		change->flags |= CHANGE_IS_DROPPED | CHANGE_IS_CONFLICT;
		if (applying->request->is_dry_run)
			continue;
		workspace_step_forget(&applying->stepper, change);
		workspace_base_forget(applying->request->workspace, change->path);
	}
}

/* A directory stays in the upper for what is in it; only its permissions go back. */
static bool drop_mode(const struct workspace_view *view, const struct change *change)
{
	AUTO_CLOSE int fd = -1;

	if (change->kind != CHANGE_MODE || !S_ISDIR(change->after.mode) || change->layer != 0 || change->layer_path)
		return false;
	fd = workspace_view_open_directory(view->fds[0], change->path);
	return fd >= 0 && fchmod(fd, change->before.mode & 07777) == 0;
}

int workspace_drop(const struct workspace_view *view, const struct workspace *workspace,
		   const struct change_list *changes, const struct string_list *paths, struct error *error)
{
	struct stepper stepper;
	int rc = workspace_step_begin(&stepper, view, workspace, true, error);

	/* From the inside out: a directory goes when it is empty. */
	for (size_t i = changes->count; i > 0 && rc == 0; i--)
		if (is_in(paths, changes->items[i - 1].path) && !drop_mode(view, &changes->items[i - 1])) {
			workspace_step_forget(&stepper, &changes->items[i - 1]);
			workspace_base_forget(workspace, changes->items[i - 1].path);
		}
	workspace_step_end(&stepper, workspace);
	return rc;
}

int workspace_settle(const struct workspace_view *view, const struct workspace *workspace, struct error *error)
{
	struct stepper stepper;
	int rc = workspace_step_begin(&stepper, view, workspace, false, error);

	workspace_step_end(&stepper, workspace);
	return rc == 0 ? workspace_borrow(view, workspace, error) : rc;
}

int workspace_apply(const struct apply_request *request, struct apply_outcome *out, struct error *error)
{
	struct applying applying = {.request = request};
	int rc;

	*out = (struct apply_outcome){0};
	choose(request);
	rc = workspace_step_begin(&applying.stepper, request->view, request->workspace, request->may_move, error);
	if (rc < 0)
		return rc;
	drop_ours(&applying);
	for (size_t i = 0; i < request->changes->count; i++)
		applying.total += workspace_change_is_due(&request->changes->items[i]);
	find_brought(&applying);
	if (!request->is_dry_run)
		applying.rc = workspace_intent_write(request->workspace, &request->view->intents, request->changes);
	for (size_t i = 0; i < ARRAY_LEN(phases) && !request->is_dry_run; i++)
		run_phase(&applying, &phases[i]);
	if (!request->is_dry_run) {
		finish_directories(&applying);
		/* If nothing is left, the workspace goes or begins anew. */
		if (!is_all_done(request->changes))
			workspace_applied_note(request->view, request->workspace, request->changes);
		if (applying.rc == 0)
			workspace_intent_remove(request->workspace);
	}
	if (request->is_dry_run)
		for (size_t i = 0; i < request->changes->count; i++)
			if (workspace_change_is_due(&request->changes->items[i]))
				request->changes->items[i].flags |= CHANGE_IS_DONE;
	out->saved = applying.stepper.saved;
	applying.stepper.saved = (struct string_list){0};
	workspace_step_end(&applying.stepper, request->workspace);
	free(applying.shared.items);
	count_outcome(request->changes, out);
	if (applying.rc < 0) {
		error_set(error, STAGE_FILES, -applying.rc, "applying stopped after %zu of %zu changes: %s",
			  out->applied, applying.total, strerror(-applying.rc));
		return error_hint(error, "what was applied stays, the rest is in the workspace: apply again to go on");
	}
	return 0;
}

void workspace_apply_outcome_done(struct apply_outcome *outcome)
{
	string_list_done(&outcome->saved);
}

int workspace_reset(const struct workspace_home *home, struct workspace *workspace, struct error *error)
{
	AUTO_CLOSE int workdir = open(workspace->meta.workdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	string_list_clear(&workspace->meta.layers);
	rc = workspace_rollback(home, workspace, NULL, error);
	if (rc == 0) {
		workspace_base_forget_all(workspace);
		rc = workspace_store_restamp(workspace, workdir, error);
	}
	return rc;
}
