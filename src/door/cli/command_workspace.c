/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_workspace.c - `workspace`: list, show, checkpoint, rollback, fork, export and remove; none opens a jar
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/escape.h"
#include "base/json_write.h"
#include "door/cli/changes_print.h"
#include "door/cli/workspace_words.h"
#include "workspace/workspace_archive.h"

#define NAME_MAX_SHOWN 4096
#define NAMES_IN_HINT 8

static int fail(const struct messenger *messenger, const struct error *error)
{
	cli_message_error(messenger, error);
	return EXIT_BELLJAR;
}

/* --- list and show ------------------------------------------------------------------------------------------------ */

static void print_time(struct text *out, int64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm parts;
	char words[32] = "";

	if (localtime_r(&seconds, &parts))
		strftime(words, sizeof(words), "%Y-%m-%d %H:%M", &parts);
	text_append_string(out, words);
}

static int list_all(const struct invocation *invocation, const struct run_options *options,
		    const struct messenger *messenger)
{
	AUTO(workspace_home_done) struct workspace_home home = {.fd = -1};
	AUTO(workspace_list_done) struct workspace_list list = {0};
	struct error error = {0};
	AUTO_TEXT out = {0};
	struct json_writer json = {.text = &out, .has_byte_escapes = true};
	size_t damaged = 0;
	int rc = workspace_home_open(invocation->environment, &home, &error);

	if (rc == 0) {
		workspace_sweep(&home);
		rc = workspace_list(&home, &list, &damaged, &error);
	}
	if (rc < 0)
		return fail(messenger, &error);
	if (options->has_json) {
		json_open_array(&json, NULL);
		for (size_t i = 0; i < list.count; i++) {
			json_open_object(&json, NULL);
			workspace_write_facts(&list.items[i], &json);
			json_write_string(&json, "missing", workspace_missing(&home, &list.items[i]));
			json_close_object(&json);
		}
		json_close_array(&json);
		text_append_char(&out, '\n');
	}
	for (size_t i = 0; i < list.count && !options->has_json; i++) {
		const struct workspace_meta *meta = &list.items[i];
		const char *missing = workspace_missing(&home, meta);

		text_append_format(&out, "%s  ", meta->id);
		print_time(&out, meta->created_ns);
		text_append_format(&out, "  %-16s ", meta->name ? meta->name : "-");
		escape_append(&out, meta->workdir, NAME_MAX_SHOWN);
		text_append_format(&out, "%s%s%s", missing ? "  (its " : "", missing ? missing : "",
				   missing ? " is not there)" : "");
		text_append_char(&out, '\n');
	}
	if (damaged)
		cli_message_note(messenger, "%zu damaged workspaces in '%s' are left out", damaged, home.path);
	return cli_print_out(&out, messenger);
}

static void print_checkpoint(struct text *out, const struct workspace_home *home, const char *id)
{
	AUTO(workspace_done) struct workspace layer = {0};
	struct error nobodys = {0};

	text_append_format(out, "  checkpoint %s", id);
	if (workspace_open(home, id, WORKSPACE_LOOK, &layer, &nobodys) == 0 && layer.meta.note) {
		text_append_string(out, ": ");
		escape_append(out, layer.meta.note, NAME_MAX_SHOWN);
	}
	text_append_char(out, '\n');
}

static int show(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
		struct error *error)
{
	const struct workspace_meta *meta = &chosen->opened.workspace.meta;
	struct workspace_summary summary;
	AUTO_TEXT out = {0};
	int rc = options->has_json
			 ? workspace_write_summary(&chosen->opened, &out, error)
			 : workspace_summary(&chosen->opened.home, &chosen->opened.workspace, &summary, error);

	if (rc < 0)
		return rc;
	if (options->has_json) {
		text_append_char(&out, '\n');
		return cli_print_out(&out, messenger);
	}
	text_append_format(&out, "%s%s%s\n  of ", meta->id, meta->name ? "  " : "", meta->name ? meta->name : "");
	escape_append(&out, meta->workdir, NAME_MAX_SHOWN);
	text_append_string(&out, "\n  made ");
	print_time(&out, meta->created_ns);
	text_append_format(&out, "%s\n", meta->kind == WORKSPACE_COPY ? ", a whole copy" : "");
	for (size_t i = 0; i < meta->layers.count; i++)
		print_checkpoint(&out, &chosen->opened.home, meta->layers.items[i]);
	text_append_format(
		&out, "  %s%" PRIu64 " added, %" PRIu64 " modified, %" PRIu64 " deleted, %" PRIu64 " bytes\n",
		summary.is_rough ? "about " : "", summary.added, summary.modified, summary.deleted, summary.bytes);
	return cli_print_out(&out, messenger);
}

/* --- checkpoints and forks ---------------------------------------------------------------------------------------- */

static int checkpoint(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
		      struct error *error)
{
	const char *note = chosen->next_word < options->word_count ? options->words[chosen->next_word] : NULL;
	AUTO_TEXT out = {0};
	char id[WORKSPACE_ID_SIZE];
	int rc = workspace_mark(&chosen->opened, note, id, error);

	if (rc < 0)
		return rc;
	text_append_format(&out, "%s\n", id);
	return cli_print_out(&out, messenger);
}

static int rollback(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
		    struct error *error)
{
	const char *layer = chosen->next_word < options->word_count ? options->words[chosen->next_word] : NULL;

	return workspace_go_back(&chosen->opened, layer, error);
}

static unsigned count_of(const char *word)
{
	unsigned count = 0;

	for (; word && *word >= '0' && *word <= '9' && count <= WORKSPACE_FORKS_MAX; word++)
		count = count * 10 + (unsigned)(*word - '0');
	return word && !*word && count <= WORKSPACE_FORKS_MAX ? count : 0;
}

static int fork_it(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
		   struct error *error)
{
	const char *word = chosen->next_word < options->word_count ? options->words[chosen->next_word] : "1";
	AUTO(string_list_done) struct string_list ids = {0};
	AUTO_TEXT out = {0};
	unsigned count = count_of(word);
	int rc;

	if (!count) {
		error_set(error, STAGE_USAGE, 0, "'%s' is not a number of forks", word);
		return error_hint(error, "give a number from 1 to %d", WORKSPACE_FORKS_MAX);
	}
	rc = workspace_fork(&chosen->opened, count, &ids, error);
	if (rc == 0 && !ids.count)
		rc = error_set(error, STAGE_USAGE, ENODATA,
			       "nothing was changed in this workspace: there is nothing to fork");
	for (size_t i = 0; i < ids.count; i++)
		text_append_format(&out, "%s\n", ids.items[i]);
	return cli_print_out(&out, messenger) != 0 ? -EIO : rc;
}

/* --- export and remove -------------------------------------------------------------------------------------------- */

static int export(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
		  struct error *error)
{
	AUTO(workspace_change_list_done) struct change_list list = {0};
	AUTO_TEXT out = {0};
	int rc = workspace_view_open(&chosen->opened.home, &chosen->opened.workspace, &chosen->opened.view, error);

	if (rc == 0)
		rc = workspace_changes(&chosen->opened.view, &list, error);
	if (rc < 0)
		return rc;
	if (options->has_tar)
		return workspace_archive(&chosen->opened.view, &list, STDOUT_FILENO, error);
	workspace_find_renames(&chosen->opened.view, &list);
	rc = cli_changes_print_patch(&out, &chosen->opened, &list, false, false);
	if (rc < 0)
		return error_set(error, STAGE_FILES, -rc, "cannot read the changes: %s", strerror(-rc));
	return cli_print_out(&out, messenger);
}

static int remove_it(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
		     struct error *error)
{
	return cli_chosen_remove(chosen, messenger, error);
}

typedef int verb_function(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
			  struct error *error);

static const struct {
	const char *name;
	verb_function *function;
	enum workspace_access access;
	bool needs_word; /* the word for the workspace must be given */
	int more_words;  /* this many words may follow the one for the workspace */
} verbs[] = {
	{"show", show, WORKSPACE_LOOK},
	{"checkpoint", checkpoint, WORKSPACE_WRITE, .more_words = 1},
	{"fork", fork_it, WORKSPACE_WRITE, .more_words = 1},
	{"rollback", rollback, WORKSPACE_WRITE, .more_words = 1},
	{"export", export, WORKSPACE_LOOK},
	{"remove", remove_it, WORKSPACE_DROP, .needs_word = true},
};

/* Nothing is done to the newest one for a word that means none; the error names those that there are. */
static int refuse_word(const struct workspace_home *home, const char *word, struct error *error)
{
	AUTO(workspace_list_done) struct workspace_list list = {0};
	struct error nobodys = {0};
	AUTO_TEXT names = {0};
	size_t damaged = 0;

	if (workspace_list(home, &list, &damaged, &nobodys) < 0)
		list.count = 0;
	for (size_t i = 0; i < list.count && i < NAMES_IN_HINT; i++)
		text_append_format(&names, "%s%s%s%s%s", i ? ", " : "", list.items[i].id,
				   list.items[i].name ? " (" : "", list.items[i].name ? list.items[i].name : "",
				   list.items[i].name ? ")" : "");
	if (list.count > NAMES_IN_HINT)
		text_append_format(&names, " and %zu more", list.count - NAMES_IN_HINT);
	*error = (struct error){0};
	error_set(error, STAGE_USAGE, ENOENT, "there is no workspace '%s'", word);
	if (!list.count)
		return error_hint(error, "no workspace exists yet; `belljar run --cow -- COMMAND` makes one");
	return error_hint(error, "there are: %s", text_string(&names));
}

int cli_command_workspace(const struct invocation *invocation, struct run_options *options,
			  const struct messenger *messenger)
{
	AUTO(cli_chosen_done) struct chosen chosen = {0};
	struct error error = {0};
	int rc = -EINVAL;

	if (!strcmp(options->words[0], "list"))
		return list_all(invocation, options, messenger);
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strcmp(verbs[i].name, options->words[0]) != 0)
			continue;
		if (verbs[i].needs_word && options->word_count < 2) {
			error_set(&error, STAGE_USAGE, 0, "say which workspace to remove");
			error_hint(&error, "`belljar workspace list` shows all");
			return fail(messenger, &error);
		}
		rc = cli_chosen_open(&chosen, invocation, options, 1, verbs[i].access, false, &error);
		if ((rc == 0 || rc == -ENOENT) && chosen.opened.home.path &&
		    options->word_count - chosen.next_word > verbs[i].more_words)
			rc = refuse_word(&chosen.opened.home, options->words[chosen.next_word], &error);
		if (rc == 0)
			rc = verbs[i].function(&chosen, options, messenger, &error);
	}
	return rc < 0 ? fail(messenger, &error) : rc;
}
