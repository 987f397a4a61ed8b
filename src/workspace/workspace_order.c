/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_order.c - look at a workspace or decide about it
 *
 * Paths are names, not files: what a workspace added is not in the workdir yet. So they are put together without a
 * look at the file system: one that begins with "/" must lie in the workdir, any other is taken from the current
 * directory if that is in the workdir, else from the workdir itself.
 */
#include "workspace/workspace_order.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "base/paths.h"
#include "workspace/workspace_journal.h"
#include "workspace/workspace_patch.h"
#include "workspace/workspace_risk.h"

static int out_of_memory(struct error *error)
{
	return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
}

void workspace_opened_done(struct opened_workspace *opened)
{
	if (opened->view.layer_count)
		workspace_view_done(&opened->view);
	workspace_done(&opened->workspace);
	workspace_home_done(&opened->home);
}

/* --- paths -------------------------------------------------------------------------------------------------------- */

/* @path, from @base, without dots and double slashes: absolute. */
static int absolute(const char *base, const char *path, struct text *out)
{
	const char *const pieces[] = {path[0] == '/' ? "" : base, path};

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		for (const char *part = pieces[i]; *part;) {
			size_t len = strcspn(part, "/");

			if (len == 2 && part[0] == '.' && part[1] == '.') {
				while (out->len && out->data[--out->len] != '/')
					;
				if (out->data)
					out->data[out->len] = '\0';
			} else if (len && !(len == 1 && part[0] == '.')) {
				text_append_char(out, '/');
				text_append(out, part, len);
			}
			part += len;
			part += strspn(part, "/");
		}
	}
	return text_failed(out) ? -ENOMEM : 0;
}

int workspace_path_below(const char *workdir, const char *here, const char *path, struct string_list *to,
			 struct error *error)
{
	bool is_inside = here && path_is_within(here, workdir);
	AUTO_TEXT whole = {0};
	const char *below;

	if (absolute(is_inside ? here : workdir, path, &whole) < 0)
		return out_of_memory(error);
	if (!whole.len || !path_is_within(text_string(&whole), workdir)) {
		error_set(error, STAGE_USAGE, EINVAL, "'%s' is outside the workspace's directory '%s'", path, workdir);
		return error_hint(error, "paths are below the workdir; a workspace is named by its id or name");
	}
	below = whole.data + strlen(workdir);
	below += strspn(below, "/");
	return string_list_add(to, *below ? below : ".") < 0 ? out_of_memory(error) : 0;
}

/* --- what every door does ----------------------------------------------------------------------------------------- */

int workspace_judged_changes(const struct workspace_view *view, const struct string_list *allowed,
			     struct change_list *list, struct error *error)
{
	int rc = workspace_changes(view, list, error);

	if (rc == 0)
		workspace_judge(view, list, allowed);
	return rc;
}

/* An apply was killed, and what it did last may be undone. */
static bool has_journal(const struct opened_workspace *opened)
{
	return faccessat(opened->workspace.fd, WORKSPACE_JOURNAL, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Settling copies what was shown, so it comes after the comparison: what was refused then stays so. */
static void refuse_again(const struct change_list *before, struct change_list *list)
{
	size_t at = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct change *change = &list->items[i];

		while (at < before->count && strcmp(before->items[at].path, change->path) < 0)
			at++;
		if (at == before->count || strcmp(before->items[at].path, change->path) != 0 ||
		    !(before->items[at].flags & CHANGE_IS_UNSEEN))
			continue;
		change->flags |= CHANGE_IS_REFUSED | CHANGE_IS_UNSEEN;
		change->why = before->items[at].why;
	}
}

int workspace_changes_to_apply(const struct opened_workspace *opened, enum workspace_viewer viewer,
			       const struct string_list *allowed, struct change_list *list, struct error *error)
{
	AUTO(workspace_change_list_done) struct change_list before = {0};
	bool was_killed = has_journal(opened);
	int rc = workspace_judged_changes(&opened->view, allowed, &before, error);

	if (rc == 0)
		rc = workspace_shown_check(&opened->view, &opened->workspace, &before, viewer, error);
	if (rc < 0)
		return rc;
	/* Only root's overlay renames directories as a whole. */
	if (!before.renamed.count && !was_killed) {
		*list = before;
		before = (struct change_list){0};
		return 0;
	}
	rc = workspace_settle(&opened->view, &opened->workspace, error);
	if (rc == 0)
		rc = workspace_judged_changes(&opened->view, allowed, list, error);
	if (rc == 0)
		refuse_again(&before, list);
	if (rc == 0 && was_killed)
		rc = workspace_shown_check(&opened->view, &opened->workspace, list, viewer, error);
	return rc;
}

int workspace_finish(struct opened_workspace *opened, struct error *error)
{
	workspace_view_done(&opened->view);
	/* A copy begins anew when it is made again. */
	if (opened->workspace.meta.name && opened->workspace.meta.kind == WORKSPACE_OVERLAY)
		return workspace_reset(&opened->home, &opened->workspace, error);
	return workspace_remove(&opened->home, &opened->workspace, error);
}

int workspace_drop_paths(struct opened_workspace *opened, const struct string_list *paths, struct change_list *left,
			 size_t *dropped_out, struct error *error)
{
	AUTO(workspace_change_list_done) struct change_list list = {0};
	int rc = workspace_judged_changes(&opened->view, NULL, &list, error);

	if (rc == 0)
		rc = workspace_drop(&opened->view, &opened->workspace, &list, paths, error);
	if (rc == 0)
		rc = workspace_judged_changes(&opened->view, NULL, left, error);
	if (rc < 0)
		return rc;
	workspace_change_list_keep(&list, paths);
	workspace_change_list_keep(left, paths);
	*dropped_out = list.count - MIN_OF(left->count, list.count);
	return 0;
}

/* Is there anything that a checkpoint would hold? */
static int is_changed(const struct opened_workspace *opened, struct error *error)
{
	struct workspace_summary summary;
	int rc;

	if (opened->workspace.meta.layers.count)
		return 1;
	rc = workspace_summary(&opened->home, &opened->workspace, &summary, error);
	return rc < 0 ? rc : summary.added || summary.modified || summary.deleted || summary.is_rough;
}

/* A frozen layer never changes, so settle renamed directories and steps of a killed apply first. */
static int freeze(struct opened_workspace *opened, const char *note, struct error *error)
{
	struct workspace_view view = {0};
	int rc = workspace_view_open(&opened->home, &opened->workspace, &view, error);

	if (rc == 0)
		rc = workspace_settle(&view, &opened->workspace, error);
	workspace_view_done(&view);
	return rc < 0 ? rc : workspace_checkpoint(&opened->home, &opened->workspace, note, error);
}

int workspace_mark(struct opened_workspace *opened, const char *note, char id_out[WORKSPACE_ID_SIZE],
		   struct error *error)
{
	int rc = is_changed(opened, error);

	if (rc == 0) {
		memcpy(id_out, WORKSPACE_ORIGIN, sizeof(WORKSPACE_ORIGIN));
		return 0;
	}
	if (rc > 0)
		rc = freeze(opened, note, error);
	if (rc == 0)
		snprintf(id_out, WORKSPACE_ID_SIZE, "%s", opened->workspace.meta.layers.items[0]);
	return rc;
}

int workspace_go_back(struct opened_workspace *opened, const char *checkpoint, struct error *error)
{
	if (!checkpoint || strcmp(checkpoint, WORKSPACE_ORIGIN) != 0)
		return workspace_rollback(&opened->home, &opened->workspace, checkpoint, error);
	if (opened->workspace.meta.kind == WORKSPACE_COPY)
		return workspace_remove(&opened->home, &opened->workspace, error);
	return workspace_reset(&opened->home, &opened->workspace, error);
}

int workspace_fork(struct opened_workspace *opened, unsigned count, struct string_list *ids, struct error *error)
{
	const struct workspace_meta *meta = &opened->workspace.meta;
	AUTO_CLOSE int workdir = -1;
	struct workspace_request request = {
		.workdir = meta->workdir, .kind = meta->kind, .has_user_xattrs = meta->has_user_xattrs, .base = meta};
	int rc = is_changed(opened, error);

	if (rc <= 0)
		return rc;
	workdir = open(meta->workdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (workdir < 0)
		return error_set(error, STAGE_FILES, errno, "cannot open '%s': %s", meta->workdir, strerror(errno));
	request.workdir_fd = workdir;
	/* Freeze the changes so far as the layer that all forks use. */
	rc = freeze(opened, "fork", error);
	for (unsigned i = 0; i < count && rc == 0; i++) {
		struct workspace made;

		rc = workspace_create(&opened->home, &request, &made, error);
		if (rc < 0)
			break;
		if (string_list_add(ids, made.meta.id) < 0)
			rc = out_of_memory(error);
		workspace_done(&made);
	}
	return rc;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

void workspace_write_facts(const struct workspace_meta *meta, struct json_writer *json)
{
	json_write_string(json, "id", meta->id);
	json_write_string(json, "name", meta->name);
	json_write_string(json, "workdir", meta->workdir);
	json_write_string(json, "kind", meta->kind == WORKSPACE_COPY ? "copy" : "overlay");
	json_write_integer(json, "created", meta->created_ns / 1000000000);
	json_open_array(json, "checkpoints");
	for (size_t i = 0; i < meta->layers.count; i++)
		json_write_string(json, NULL, meta->layers.items[i]);
	json_close_array(json);
}

int workspace_write_summary(const struct opened_workspace *opened, struct text *out, struct error *error)
{
	struct json_writer json = {.text = out, .has_byte_escapes = true};
	struct workspace_summary summary;
	int rc = workspace_summary(&opened->home, &opened->workspace, &summary, error);

	if (rc < 0)
		return rc;
	json_open_object(&json, NULL);
	workspace_write_facts(&opened->workspace.meta, &json);
	json_write_unsigned(&json, "added", summary.added);
	json_write_unsigned(&json, "modified", summary.modified);
	json_write_unsigned(&json, "deleted", summary.deleted);
	json_write_unsigned(&json, "bytes", summary.bytes);
	json_write_string(&json, "upper", opened->workspace.parts_path);
	json_close_object(&json);
	return 0;
}

void workspace_write_changes(const struct opened_workspace *opened, const struct change_list *list, struct text *out)
{
	struct json_writer json = {.text = out, .has_byte_escapes = true};

	json_open_object(&json, NULL);
	json_write_string(&json, "id", opened->workspace.meta.id);
	json_write_string(&json, "name", opened->workspace.meta.name);
	json_write_string(&json, "workdir", opened->workspace.meta.workdir);
	json_open_array(&json, "changes");
	for (size_t i = 0; i < list->count; i++)
		workspace_patch_json(&opened->view, &list->items[i], &json);
	json_close_array(&json);
	json_close_object(&json);
}

void workspace_write_outcome(const struct apply_outcome *outcome, const struct change_list *list, bool is_kept,
			     struct text *out)
{
	struct json_writer json = {.text = out, .has_byte_escapes = true};

	json_open_object(&json, NULL);
	json_write_unsigned(&json, "applied", outcome->applied);
	json_write_unsigned(&json, "conflicts", outcome->conflicts);
	json_write_unsigned(&json, "refused", outcome->refused);
	json_write_unsigned(&json, "failed", outcome->failed);
	json_write_unsigned(&json, "dropped", outcome->dropped);
	json_write_unsigned(&json, "left", outcome->left);
	json_write_bool(&json, "kept", is_kept);
	json_open_array(&json, "not_applied");
	for (size_t i = 0; i < list->count; i++) {
		const struct change *change = &list->items[i];

		if (change->flags & (CHANGE_IS_DONE | CHANGE_IS_DROPPED) || !(change->flags & CHANGE_IS_CHOSEN))
			continue;
		json_open_object(&json, NULL);
		json_write_string(&json, "path", change->path);
		json_write_string(&json, "reason",
				  change->flags & CHANGE_HAS_FAILED   ? "failed"
				  : change->flags & CHANGE_IS_REFUSED ? "refused"
								      : "conflict");
		json_write_string(&json, "why", change->conflict ? change->conflict : change->why);
		json_close_object(&json);
	}
	json_close_array(&json);
	json_open_array(&json, "saved");
	for (size_t i = 0; i < outcome->saved.count; i++)
		json_write_string(&json, NULL, outcome->saved.items[i]);
	json_close_array(&json);
	json_close_object(&json);
}

/* --- whole orders ------------------------------------------------------------------------------------------------- */

static int paths_below(const struct opened_workspace *opened, char *const *paths, struct string_list *to,
		       struct error *error)
{
	int rc = 0;

	for (; paths && *paths && rc == 0; paths++)
		rc = workspace_path_below(opened->workspace.meta.workdir, NULL, *paths, to, error);
	return rc;
}

static int show(struct opened_workspace *opened, const struct workspace_order *order, const struct string_list *paths,
		struct text *out, struct error *error)
{
	return workspace_write_summary(opened, out, error);
}

static int diff(struct opened_workspace *opened, const struct workspace_order *order, const struct string_list *paths,
		struct text *out, struct error *error)
{
	AUTO(workspace_change_list_done) struct change_list list = {0};
	int rc = workspace_judged_changes(&opened->view, NULL, &list, error);

	if (rc < 0)
		return rc;
	workspace_change_list_keep(&list, paths);
	rc = workspace_shown_note(&opened->view, &opened->workspace, &list, paths, VIEWER_PROGRAM, error);
	if (rc < 0)
		return rc;
	workspace_find_renames(&opened->view, &list);
	if (order->verb == WORKSPACE_DIFF) {
		workspace_write_changes(opened, &list, out);
		return 0;
	}
	for (size_t i = 0; i < list.count && rc == 0; i++)
		rc = workspace_patch_print(&opened->view, &opened->workspace, &list.items[i], out);
	return rc < 0 ? error_set(error, STAGE_FILES, -rc, "cannot read the changes: %s", strerror(-rc)) : 0;
}

static int apply(struct opened_workspace *opened, const struct workspace_order *order, const struct string_list *paths,
		 struct text *out, struct error *error)
{
	AUTO(workspace_change_list_done) struct change_list list = {0};
	AUTO(string_list_done) struct string_list theirs = {0};
	AUTO(string_list_done) struct string_list ours = {0};
	AUTO(string_list_done) struct string_list risky = {0};
	struct apply_request request = {
		.view = &opened->view,
		.workspace = &opened->workspace,
		.changes = &list,
		.choice = {.paths = paths, .theirs = &theirs, .ours = &ours},
		.may_move = true,
	};
	AUTO(workspace_apply_outcome_done) struct apply_outcome outcome = {0};
	bool is_kept;
	int rc = paths_below(opened, order->theirs, &theirs, error);

	if (rc == 0)
		rc = paths_below(opened, order->ours, &ours, error);
	if (rc == 0)
		rc = paths_below(opened, order->risky, &risky, error);
	if (rc == 0)
		rc = workspace_changes_to_apply(opened, VIEWER_PROGRAM, &risky, &list, error);
	if (rc == 0)
		rc = workspace_apply(&request, &outcome, error);
	if (rc < 0)
		return rc;
	is_kept = outcome.conflicts || outcome.refused || outcome.failed || outcome.left;
	if (!is_kept)
		rc = workspace_finish(opened, error);
	workspace_write_outcome(&outcome, &list, is_kept, out);
	return rc;
}

static int discard(struct opened_workspace *opened, const struct workspace_order *order,
		   const struct string_list *paths, struct text *out, struct error *error)
{
	AUTO(workspace_change_list_done) struct change_list left = {0};
	struct json_writer json = {.text = out, .has_byte_escapes = true};
	AUTO_FREE char *left_at = NULL;
	size_t dropped;
	int rc = 0;

	if (!workspace_has_layer(&opened->workspace))
		left_at = strdup(opened->workspace.parts_path);
	if (paths->count)
		rc = workspace_view_open(&opened->home, &opened->workspace, &opened->view, error);
	if (rc == 0)
		rc = paths->count ? workspace_drop_paths(opened, paths, &left, &dropped, error)
				  : workspace_remove(&opened->home, &opened->workspace, error);
	json_open_object(&json, NULL);
	json_write_bool(&json, "kept", paths->count);
	if (left_at)
		json_write_string(&json, "left_at", left_at);
	json_open_array(&json, "not_dropped");
	for (size_t i = 0; i < left.count; i++)
		json_write_string(&json, NULL, left.items[i].path);
	json_close_array(&json);
	json_close_object(&json);
	return rc;
}

static int checkpoint(struct opened_workspace *opened, const struct workspace_order *order,
		      const struct string_list *paths, struct text *out, struct error *error)
{
	struct json_writer json = {.text = out};
	char id[WORKSPACE_ID_SIZE] = "";
	int rc = workspace_mark(opened, order->note, id, error);

	json_open_object(&json, NULL);
	json_write_string(&json, "checkpoint", id);
	json_close_object(&json);
	return rc;
}

static int rollback(struct opened_workspace *opened, const struct workspace_order *order,
		    const struct string_list *paths, struct text *out, struct error *error)
{
	text_append_string(out, "{}");
	return workspace_go_back(opened, order->checkpoint, error);
}

static int fork_it(struct opened_workspace *opened, const struct workspace_order *order,
		   const struct string_list *paths, struct text *out, struct error *error)
{
	AUTO(string_list_done) struct string_list ids = {0};
	struct json_writer json = {.text = out};
	int rc = workspace_fork(opened, order->count, &ids, error);

	json_open_object(&json, NULL);
	json_open_array(&json, "forks");
	for (unsigned i = 0; i < order->count; i++)
		json_write_string(&json, NULL, i < ids.count ? ids.items[i] : NULL);
	json_close_array(&json);
	json_close_object(&json);
	return rc;
}

typedef int verb_function(struct opened_workspace *opened, const struct workspace_order *order,
			  const struct string_list *paths, struct text *out, struct error *error);

static const struct {
	verb_function *function;
	bool has_view;
} verbs[] = {
	[WORKSPACE_SHOW] = {show},         [WORKSPACE_DIFF] = {diff, true}, [WORKSPACE_PATCH] = {diff, true},
	[WORKSPACE_APPLY] = {apply, true}, [WORKSPACE_DISCARD] = {discard}, [WORKSPACE_CHECKPOINT] = {checkpoint},
	[WORKSPACE_ROLLBACK] = {rollback}, [WORKSPACE_FORK] = {fork_it},
};
_Static_assert(ARRAY_LEN(verbs) == WORKSPACE_VERB_COUNT, "every verb has its function");

static int open_it(struct opened_workspace *opened, const struct workspace_order *order, struct error *error)
{
	struct stat status = {0};
	char id[WORKSPACE_ID_SIZE];
	int rc = workspace_home_open(order->environment, &opened->home, error);

	if (rc == 0 && order->directory && stat(order->directory, &status) < 0)
		status = (struct stat){0};
	if (rc == 0)
		rc = workspace_find(&opened->home, order->which, status.st_dev, status.st_ino, id, error);
	if (rc == 0)
		rc = workspace_open(&opened->home, id,
				    workspace_verb_looks(order->verb)  ? WORKSPACE_LOOK
				    : order->verb == WORKSPACE_DISCARD ? WORKSPACE_DROP
								       : WORKSPACE_WRITE,
				    &opened->workspace, error);
	if (rc == 0 && verbs[order->verb].has_view)
		rc = workspace_view_open(&opened->home, &opened->workspace, &opened->view, error);
	return rc;
}

int workspace_carry_out(const struct workspace_order *order, struct text *out, struct error *error)
{
	AUTO(workspace_opened_done) struct opened_workspace opened = {0};
	AUTO(string_list_done) struct string_list paths = {0};
	int rc = open_it(&opened, order, error);

	if (rc == 0)
		rc = paths_below(&opened, order->paths, &paths, error);
	if (rc == 0)
		rc = verbs[order->verb].function(&opened, order, &paths, out, error);
	if (rc == 0 && text_failed(out))
		rc = out_of_memory(error);
	return rc;
}
