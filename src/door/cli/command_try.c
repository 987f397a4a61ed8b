/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_try.c - `try`: run a command with --cow, show what it changed, and ask
 *
 * The run is made by a child, which is `belljar run` in all but name; which workspaces it has left is read from its
 * result. There is one for each directory that was changed under a layer, and each is decided about by itself. Without
 * a terminal nothing is asked: what the options do not decide stays in the workspace.
 */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "door/cli/changes_print.h"
#include "door/cli/child_run.h"
#include "door/cli/command_changes.h"
#include "door/cli/pager.h"
#include "door/cli/picker.h"
#include "workspace/workspace_risk.h"

static int fail(const struct messenger *messenger, const struct error *error)
{
	cli_message_error(messenger, error);
	return EXIT_BELLJAR;
}

/* --- deciding ----------------------------------------------------------------------------------------------------- */

struct trial {
	const struct invocation *invocation;
	struct run_options *options;
	const struct messenger *messenger;
	char id[WORKSPACE_ID_SIZE];
	struct chosen chosen;
	struct change_list list;
	struct string_list risky; /* below the workdir */
	bool *is_matched;         /* which patterns of --apply something has matched */
	bool is_one;              /* there is no other workspace */
	int status;               /* of the command */
};

/* Open the workspace, and list its changes anew. */
static int look(struct trial *trial, struct error *error)
{
	struct run_options words = {.words = (const char *[]){trial->id}, .word_count = 1};
	static const struct string_list everything;
	int rc = cli_chosen_open(&trial->chosen, trial->invocation, &words, 0, WORKSPACE_WRITE, true, error);

	if (rc == 0)
		rc = workspace_settle(&trial->chosen.opened.view, &trial->chosen.opened.workspace, error);
	if (rc == 0)
		rc = cli_chosen_translate(&trial->chosen, trial->invocation, &trial->options->risky, &trial->risky,
					  error);
	if (rc == 0)
		rc = workspace_judged_changes(&trial->chosen.opened.view, &trial->risky, &trial->list, error);
	/* From here on the user decides about the changes as they are now. */
	if (rc == 0)
		rc = workspace_shown_note(&trial->chosen.opened.view, &trial->chosen.opened.workspace, &trial->list,
					  &everything, VIEWER_TERMINAL, error);
	return rc;
}

static void leave(struct trial *trial)
{
	workspace_change_list_done(&trial->list);
	string_list_done(&trial->risky);
	cli_chosen_done(&trial->chosen);
	trial->chosen = (struct chosen){0};
}

static int apply(struct trial *trial, const struct string_list *paths)
{
	static const struct string_list none;
	const struct apply_order order = {.paths = paths, .theirs = &none, .ours = &none};
	struct error error = {0};

	workspace_change_list_done(&trial->list);
	if (workspace_changes_to_apply(&trial->chosen.opened, VIEWER_TERMINAL, &trial->risky, &trial->list, &error) < 0)
		return fail(trial->messenger, &error);
	return cli_apply_chosen(&trial->chosen, &trial->list, &order, trial->messenger);
}

static int discard(struct trial *trial)
{
	struct error error = {0};

	if (workspace_remove(&trial->chosen.opened.home, &trial->chosen.opened.workspace, &error) < 0)
		return fail(trial->messenger, &error);
	cli_message_note(trial->messenger, "dropped: the workdir is as it was");
	return trial->status;
}

static int keep(const struct trial *trial)
{
	cli_message_note(trial->messenger, "kept as the workspace %s", trial->id);
	cli_message_hint(trial->messenger, "`belljar diff %s`, `belljar apply %s`, `belljar discard %s`", trial->id,
			 trial->id, trial->id);
	return trial->status;
}

/* Does a pattern match the path, in the directory or as a whole? All of them are looked at, so that none counts as forgotten. */
static bool is_wanted(const struct trial *trial, const char *path)
{
	const struct string_list *patterns = &trial->options->apply_patterns;
	AUTO_TEXT whole = {0};
	bool is_wanted = false;

	text_append_format(&whole, "%s/%s", trial->chosen.opened.view.workdir, path);
	for (size_t i = 0; i < patterns->count; i++) {
		const char *pattern = patterns->items[i];
		const char *subject = pattern[0] == '/' ? text_string(&whole) : path;

		while (pattern[0] == '.' && pattern[1] == '/')
			pattern += 2 + strspn(pattern + 2, "/");
		if (fnmatch(pattern, subject, 0) != 0 && !workspace_change_is_within(subject, pattern))
			continue;
		trial->is_matched[i] = true;
		is_wanted = true;
	}
	return is_wanted;
}

/* Decide by --yes, --apply and --discard. -1: none is given. */
static int decide_by_options(struct trial *trial)
{
	AUTO(string_list_done) struct string_list paths = {0};
	const struct string_list *patterns = &trial->options->apply_patterns;
	int rc;

	if (trial->options->has_discard)
		return discard(trial);
	if (trial->options->is_agreed) {
		rc = apply(trial, &paths);
		return rc ? rc : trial->status;
	}
	if (!patterns->count)
		return -1;
	for (size_t i = 0; i < trial->list.count; i++)
		if (is_wanted(trial, trial->list.items[i].path) &&
		    string_list_add(&paths, trial->list.items[i].path) < 0)
			return EXIT_BELLJAR;
	if (!paths.count)
		return keep(trial);
	rc = apply(trial, &paths);
	return rc ? rc : trial->status;
}

static void show(const struct trial *trial, bool is_patch)
{
	bool has_color = cli_wants_color(trial->options->color, STDOUT_FILENO);
	AUTO_TEXT out = {0};

	if (is_patch)
		cli_changes_print_patch(&out, &trial->chosen.opened, &trial->list, true, has_color);
	else
		cli_changes_print(&out, &trial->list, has_color);
	if (is_patch)
		cli_pager_print(trial->invocation, &out, trial->messenger);
	else
		cli_print_out(&out, trial->messenger);
}

/* A shell in a jar on the same workspace; afterwards there may be other changes. */
static int look_around(struct trial *trial, struct error *error)
{
	int rc;

	leave(trial);
	rc = cli_child_run_set_key(trial->options, trial->invocation, "workspace_name", trial->id, error);
	if (rc < 0)
		return rc;
	trial->options->has_pty = true;
	cli_child_run(cli_command_shell, trial->invocation, trial->options, trial->messenger, NULL);
	return look(trial, error);
}

static char ask(void)
{
	static const char question[] = "apply, pick, diff, shell, keep, drop? [a/p/d/s/k/x] ";
	char line[64];
	ssize_t count;

	if (write(STDOUT_FILENO, question, strlen(question)) < 0)
		return 'k';
	count = read(STDIN_FILENO, line, sizeof(line));
	return count <= 0 ? 'k' : line[0];
}

static int decide_by_asking(struct trial *trial, struct error *error)
{
	show(trial, false);
	for (;;) {
		AUTO(string_list_done) struct string_list paths = {0};
		int rc;

		switch (ask()) {
		case 'a':
			rc = apply(trial, &paths);
			return rc ? rc : trial->status;
		case 'p':
			if (!cli_pick_changes(&trial->list, &paths))
				break;
			rc = apply(trial, &paths);
			return rc ? rc : trial->status;
		case 'd':
			show(trial, true);
			break;
		case 's':
			if (!trial->is_one) {
				cli_message_note(trial->messenger,
						 "a shell needs one workspace, and this run has several");
				break;
			}
			rc = look_around(trial, error);
			if (rc < 0)
				return fail(trial->messenger, error);
			show(trial, false);
			break;
		case 'k':
			return keep(trial);
		case 'x':
			return discard(trial);
		default:
			break;
		}
	}
}

static int decide(struct trial *trial, struct error *error)
{
	int rc = look(trial, error);

	if (rc < 0) {
		leave(trial);
		return fail(trial->messenger, error);
	}
	if (!trial->is_one)
		cli_message_note(trial->messenger, "what was changed in '%s':", trial->chosen.opened.view.workdir);
	rc = decide_by_options(trial);
	if (rc < 0 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
		rc = decide_by_asking(trial, error);
	} else if (rc < 0) {
		show(trial, false);
		rc = keep(trial);
	}
	leave(trial);
	return rc;
}

int cli_command_try(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	struct trial trial = {.invocation = invocation, .options = options, .messenger = messenger};
	const struct string_list *patterns = &options->apply_patterns;
	AUTO_FREE bool *is_matched = calloc(patterns->count + 1, sizeof(bool));
	AUTO(string_list_done) struct string_list ids = {0};
	struct error error = {0};
	AUTO_JSON result = {0};
	int rc = is_matched ? cli_child_run_set_key(options, invocation, "workspace", NULL, &error) : -ENOMEM, status;

	if (rc < 0)
		return fail(messenger, &error);
	options->is_tried = true;
	status = trial.status = cli_child_run(cli_command_run, invocation, options, messenger, &result);
	if (cli_child_run_workspaces(&result, &ids) < 0)
		return EXIT_BELLJAR;
	if (!ids.count) {
		cli_message_note(messenger, "nothing was changed");
		return status;
	}
	trial.is_matched = is_matched;
	trial.is_one = ids.count == 1;
	for (size_t i = 0; i < ids.count; i++) {
		memcpy(trial.id, ids.items[i], sizeof(trial.id));
		rc = decide(&trial, &error);
		/* A change that was not applied takes precedence over the command's exit status. */
		if (rc != trial.status)
			status = rc;
	}
	for (size_t i = 0; i < patterns->count; i++)
		if (!is_matched[i])
			cli_message_note(messenger, "no change matches --apply '%s'", patterns->items[i]);
	return status;
}
