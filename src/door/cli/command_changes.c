/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_changes.c - `diff`, `apply` and `discard`: decide about what a workspace changes; none of them opens a jar
 */
#include "door/cli/command_changes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "door/cli/changes_print.h"
#include "door/cli/pager.h"
#include "door/cli/workspace_words.h"
#include "workspace/workspace_base.h"

#define EXIT_NOT_ALL 1
#define PROGRESS_AFTER_NS 1000000000ULL
#define PROGRESS_EVERY_NS 100000000ULL

static int fail(const struct messenger *messenger, const struct error *error)
{
	cli_message_error(messenger, error);
	return EXIT_BELLJAR;
}

/* --- diff --------------------------------------------------------------------------------------------------------- */

/* The patch of such a file would replace what the workdir has. */
static void say_what_has_no_base(const struct messenger *messenger, const struct workspace *workspace,
				 const struct change_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct change *change = &list->items[i];

		if (change->flags & CHANGE_IS_CONFLICT && !workspace_base_is_known(workspace, change->path))
			cli_message_note(
				messenger,
				"conflict: %s: Belljar did not keep the version before both changes, so its patch "
				"replaces the workdir's version",
				change->path);
	}
}

int cli_command_diff(const struct invocation *invocation, struct run_options *options,
		     const struct messenger *messenger)
{
	AUTO(cli_chosen_done) struct chosen chosen = {0};
	AUTO(workspace_change_list_done) struct change_list list = {0};
	bool has_color = cli_wants_color(options->color, STDOUT_FILENO);
	struct error error = {0};
	AUTO_TEXT out = {0};
	int rc = cli_chosen_open(&chosen, invocation, options, 0, WORKSPACE_LOOK, true, &error);

	if (rc == 0)
		rc = cli_chosen_take_paths(&chosen, invocation, options, &error);
	if (rc == 0)
		rc = workspace_judged_changes(&chosen.opened.view, NULL, &list, &error);
	if (rc < 0)
		return fail(messenger, &error);
	workspace_change_list_keep(&list, &chosen.paths);
	if (workspace_shown_note(&chosen.opened.view, &chosen.opened.workspace, &list, &chosen.paths, VIEWER_TERMINAL,
				 &error) < 0)
		return fail(messenger, &error);
	workspace_find_renames(&chosen.opened.view, &list);
	if (options->has_json) {
		workspace_write_changes(&chosen.opened, &list, &out);
		text_append_char(&out, '\n');
	} else if (options->has_patch) {
		say_what_has_no_base(messenger, &chosen.opened.workspace, &list);
		rc = cli_changes_print_patch(&out, &chosen.opened, &list, isatty(STDOUT_FILENO), has_color);
	} else if (options->has_stat) {
		rc = cli_changes_print_stat(&out, &chosen.opened, &list, has_color);
	} else {
		cli_changes_print(&out, &list, has_color);
	}
	if (rc < 0 || text_failed(&out)) {
		error_set(&error, STAGE_FILES, rc < 0 ? -rc : ENOMEM, "cannot show the changes: %s",
			  strerror(rc < 0 ? -rc : ENOMEM));
		return fail(messenger, &error);
	}
	return cli_pager_print(invocation, &out, messenger);
}

/* --- apply -------------------------------------------------------------------------------------------------------- */

struct progress {
	const struct messenger *messenger;
	uint64_t begun_ns, told_ns;
	bool is_shown;
};

/* On a terminal, and only if it takes long. */
static void show_progress(void *context, size_t done, size_t total)
{
	struct progress *progress = context;
	uint64_t now = clock_ns();
	char line[80];
	int len;

	if (!isatty(progress->messenger->fd) || progress->messenger->verbosity < 0 ||
	    now - progress->begun_ns < PROGRESS_AFTER_NS || now - progress->told_ns < PROGRESS_EVERY_NS)
		return;
	progress->told_ns = now;
	progress->is_shown = true;
	len = snprintf(line, sizeof(line), "\rbelljar: %zu of %zu applied ", done, total);
	if (write(progress->messenger->fd, line, (size_t)len) < 0)
		return;
}

static void end_progress(const struct progress *progress)
{
	if (progress->is_shown && write(progress->messenger->fd, "\r\033[K", 4) < 0)
		return;
}

static void say_what_stays(const struct messenger *messenger, const struct change_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct change *change = &list->items[i];

		if (change->flags & (CHANGE_IS_DONE | CHANGE_IS_DROPPED) || !(change->flags & CHANGE_IS_CHOSEN))
			continue;
		if (change->flags & CHANGE_HAS_FAILED)
			cli_message_note(messenger, "failed: %s: %s", change->path, change->conflict);
		else if (change->flags & CHANGE_IS_REFUSED)
			cli_message_note(messenger, "refused: %s: %s", change->path, change->why);
		else if (change->flags & CHANGE_IS_CONFLICT)
			cli_message_note(messenger, "conflict: %s: %s", change->path, change->conflict);
	}
}

static size_t count_unseen(const struct change_list *list)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += list->items[i].flags & CHANGE_IS_UNSEEN && list->items[i].flags & CHANGE_IS_CHOSEN;
	return count;
}

static void say_outcome(const struct messenger *messenger, const struct apply_outcome *outcome, size_t unseen,
			bool is_dry_run, bool is_kept, const char *id)
{
	for (size_t i = 0; i < outcome->saved.count; i++)
		cli_message_note(messenger,
				 "saved: the workdir's version of a file that changed at the same moment is '%s'",
				 outcome->saved.items[i]);
	if (outcome->refused > unseen)
		cli_message_hint(messenger, "--allow-risky PATH applies what is refused");
	if (unseen)
		cli_message_hint(messenger, "look at it again, then apply: `belljar diff %s`", id);
	if (outcome->conflicts)
		cli_message_hint(messenger,
				 "--theirs PATH takes the workspace's side of a conflict, --ours PATH the workdir's; "
				 "to merge: `git add PATH; belljar diff --patch %s PATH | git apply --3way`",
				 id);
	if (is_dry_run)
		cli_message_note(messenger, "%zu change%s would be applied, %zu not", outcome->applied,
				 outcome->applied == 1 ? "" : "s", outcome->conflicts + outcome->refused);
	else
		cli_message_note(messenger, "%zu change%s applied%s%s", outcome->applied,
				 outcome->applied == 1 ? "" : "s", is_kept ? "; the rest is in the workspace " : "",
				 is_kept ? id : "");
}

int cli_apply_chosen(struct chosen *chosen, struct change_list *list, const struct apply_order *order,
		     const struct messenger *messenger)
{
	struct progress progress = {.messenger = messenger, .begun_ns = clock_ns()};
	struct apply_request request = {
		.view = &chosen->opened.view,
		.workspace = &chosen->opened.workspace,
		.changes = list,
		.choice = {.paths = order->paths, .theirs = order->theirs, .ours = order->ours},
		.is_dry_run = order->is_dry_run,
		.may_move = true,
		.progress = show_progress,
		.context = &progress,
	};
	struct apply_outcome outcome = {0};
	struct error error = {0};
	AUTO_TEXT out = {0};
	char id[WORKSPACE_ID_SIZE];
	bool is_kept;
	int rc = workspace_apply(&request, &outcome, &error);

	memcpy(id, chosen->opened.workspace.meta.id, sizeof(id));
	end_progress(&progress);
	say_what_stays(messenger, list);
	is_kept = rc < 0 || outcome.conflicts || outcome.refused || outcome.failed || outcome.left;
	if (rc == 0 && !is_kept && !order->is_dry_run)
		rc = workspace_finish(&chosen->opened, &error);
	say_outcome(messenger, &outcome, count_unseen(list), order->is_dry_run, is_kept, id);
	if (order->has_json) {
		workspace_write_outcome(&outcome, list, is_kept || order->is_dry_run, &out);
		text_append_char(&out, '\n');
	}
	if (rc < 0)
		cli_message_error(messenger, &error);
	if (cli_print_out(&out, messenger) != 0)
		rc = -EIO;
	if (rc == 0 && (outcome.conflicts || outcome.refused || outcome.failed))
		rc = EXIT_NOT_ALL;
	workspace_apply_outcome_done(&outcome);
	return rc < 0 ? EXIT_BELLJAR : rc;
}

int cli_command_apply(const struct invocation *invocation, struct run_options *options,
		      const struct messenger *messenger)
{
	AUTO(cli_chosen_done) struct chosen chosen = {0};
	AUTO(workspace_change_list_done) struct change_list list = {0};
	AUTO(string_list_done) struct string_list theirs = {0};
	AUTO(string_list_done) struct string_list ours = {0};
	AUTO(string_list_done) struct string_list risky = {0};
	struct apply_order order = {
		.paths = &chosen.paths,
		.theirs = &theirs,
		.ours = &ours,
		.is_dry_run = options->is_dry_run,
		.has_json = options->has_json,
	};
	struct error error = {0};
	int rc = cli_chosen_open(&chosen, invocation, options, 0, WORKSPACE_WRITE, true, &error);

	if (rc == 0)
		rc = cli_chosen_take_paths(&chosen, invocation, options, &error);
	if (rc == 0)
		rc = cli_chosen_translate(&chosen, invocation, &options->theirs, &theirs, &error);
	if (rc == 0)
		rc = cli_chosen_translate(&chosen, invocation, &options->ours, &ours, &error);
	if (rc == 0)
		rc = cli_chosen_translate(&chosen, invocation, &options->risky, &risky, &error);
	if (rc == 0)
		rc = workspace_changes_to_apply(&chosen.opened, VIEWER_TERMINAL, &risky, &list, &error);
	return rc < 0 ? fail(messenger, &error) : cli_apply_chosen(&chosen, &list, &order, messenger);
}

/* --- discard ------------------------------------------------------------------------------------------------------ */

/* Discard some changes only: drop those in the upper, and report those that cannot be dropped. */
static int discard_paths(struct chosen *chosen, const struct messenger *messenger, struct error *error)
{
	AUTO(workspace_change_list_done) struct change_list left = {0};
	size_t dropped;
	int rc = workspace_drop_paths(&chosen->opened, &chosen->paths, &left, &dropped, error);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < left.count; i++)
		cli_message_note(messenger, "cannot be dropped by itself: %s", left.items[i].path);
	if (left.count)
		cli_message_hint(messenger,
				 "it belongs to a checkpoint, or to a directory that was replaced as a whole");
	cli_message_note(messenger, "%zu changes dropped", dropped);
	return left.count ? EXIT_NOT_ALL : 0;
}

int cli_command_discard(const struct invocation *invocation, struct run_options *options,
			const struct messenger *messenger)
{
	AUTO(cli_chosen_done) struct chosen chosen = {0};
	struct error error = {0};
	bool has_paths;
	char id[WORKSPACE_ID_SIZE];
	int rc = cli_chosen_open(&chosen, invocation, options, 0, WORKSPACE_DROP, false, &error);

	if (rc < 0)
		return fail(messenger, &error);
	has_paths = chosen.next_word < options->word_count;
	memcpy(id, chosen.opened.workspace.meta.id, sizeof(id));
	if (has_paths) {
		rc = cli_chosen_take_paths(&chosen, invocation, options, &error);
		if (rc == 0)
			rc = workspace_view_open(&chosen.opened.home, &chosen.opened.workspace, &chosen.opened.view,
						 &error);
		if (rc == 0)
			rc = discard_paths(&chosen, messenger, &error);
	} else {
		rc = cli_chosen_remove(&chosen, messenger, &error);
		if (rc == 0)
			cli_message_note(messenger, "the workspace %s is gone", id);
	}
	return rc < 0 ? fail(messenger, &error) : rc;
}
