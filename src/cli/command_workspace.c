/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command_workspace.c - `workspace`: list, show, checkpoint, rollback, fork, export and remove; none opens a jar
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/escape.h"
#include "base/json_write.h"
#include "cli/changes_print.h"
#include "cli/workspace_words.h"
#include "workspace/workspace_archive.h"

#define FORKS_MAX 256
#define NAME_MAX_SHOWN 4096

static int fail(const struct messenger *messenger, const struct error *error)
{
	message_error(messenger, error);
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

static void write_json(struct json_writer *json, const struct workspace_meta *meta)
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
			write_json(&json, &list.items[i]);
			json_close_object(&json);
		}
		json_close_array(&json);
		text_append_char(&out, '\n');
	}
	for (size_t i = 0; i < list.count && !options->has_json; i++) {
		const struct workspace_meta *meta = &list.items[i];

		text_append_format(&out, "%s  ", meta->id);
		print_time(&out, meta->created_ns);
		text_append_format(&out, "  %-16s ", meta->name ? meta->name : "-");
		escape_append(&out, meta->workdir, NAME_MAX_SHOWN);
		text_append_char(&out, '\n');
	}
	if (damaged)
		message_note(messenger, "%zu damaged workspaces in '%s' are left out", damaged, home.path);
	return print_out(&out, messenger);
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
	const struct workspace_meta *meta = &chosen->workspace.meta;
	struct workspace_summary summary;
	AUTO_TEXT out = {0};
	struct json_writer json = {.text = &out, .has_byte_escapes = true};
	int rc = workspace_summary(&chosen->home, &chosen->workspace, &summary, error);

	if (rc < 0)
		return rc;
	if (options->has_json) {
		json_open_object(&json, NULL);
		write_json(&json, meta);
		json_write_unsigned(&json, "added", summary.added);
		json_write_unsigned(&json, "modified", summary.modified);
		json_write_unsigned(&json, "deleted", summary.deleted);
		json_write_unsigned(&json, "bytes", summary.bytes);
		json_write_string(&json, "upper", chosen->workspace.parts_path);
		json_close_object(&json);
		text_append_char(&out, '\n');
		return print_out(&out, messenger);
	}
	text_append_format(&out, "%s%s%s\n  of ", meta->id, meta->name ? "  " : "", meta->name ? meta->name : "");
	escape_append(&out, meta->workdir, NAME_MAX_SHOWN);
	text_append_string(&out, "\n  made ");
	print_time(&out, meta->created_ns);
	text_append_format(&out, "%s\n", meta->kind == WORKSPACE_COPY ? ", a whole copy" : "");
	for (size_t i = 0; i < meta->layers.count; i++)
		print_checkpoint(&out, &chosen->home, meta->layers.items[i]);
	text_append_format(
		&out, "  %s%" PRIu64 " added, %" PRIu64 " modified, %" PRIu64 " deleted, %" PRIu64 " bytes\n",
		summary.is_rough ? "about " : "", summary.added, summary.modified, summary.deleted, summary.bytes);
	return print_out(&out, messenger);
}

/* --- checkpoints and forks ---------------------------------------------------------------------------------------- */

static int checkpoint(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
		      struct error *error)
{
	const char *note = chosen->next_word < options->word_count ? options->words[chosen->next_word] : NULL;
	AUTO_TEXT out = {0};
	int rc = workspace_checkpoint(&chosen->home, &chosen->workspace, note, error);

	if (rc < 0)
		return rc;
	text_append_format(&out, "%s\n", chosen->workspace.meta.layers.items[0]);
	return print_out(&out, messenger);
}

static int rollback(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
		    struct error *error)
{
	const char *layer = chosen->next_word < options->word_count ? options->words[chosen->next_word] : NULL;

	return workspace_rollback(&chosen->home, &chosen->workspace, layer, error);
}

static int count_of(const char *word)
{
	int count = 0;

	for (; word && *word >= '0' && *word <= '9' && count <= FORKS_MAX; word++)
		count = count * 10 + (*word - '0');
	return word && !*word && count <= FORKS_MAX ? count : 0;
}

static int fork_it(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
		   struct error *error)
{
	const char *word = chosen->next_word < options->word_count ? options->words[chosen->next_word] : "1";
	AUTO_CLOSE int workdir = open(chosen->workspace.meta.workdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct workspace_request request = {
		.workdir_fd = workdir,
		.workdir = chosen->workspace.meta.workdir,
		.kind = chosen->workspace.meta.kind,
		.base = &chosen->workspace.meta,
	};
	AUTO_TEXT out = {0};
	int count = count_of(word);
	int rc;

	if (!count) {
		error_set(error, STAGE_USAGE, 0, "'%s' is no number of forks", word);
		return error_hint(error, "give a number from 1 to %d", FORKS_MAX);
	}
	/* What was written so far becomes the layer that all of them stand on. */
	rc = workspace_checkpoint(&chosen->home, &chosen->workspace, "fork", error);
	for (int i = 0; i < count && rc == 0; i++) {
		struct workspace made;

		rc = workspace_create(&chosen->home, &request, &made, error);
		if (rc < 0)
			break;
		text_append_format(&out, "%s\n", made.meta.id);
		workspace_done(&made);
	}
	return print_out(&out, messenger) != 0 ? -EIO : rc;
}

/* --- export and remove -------------------------------------------------------------------------------------------- */

static int export(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
		  struct error *error)
{
	AUTO(change_list_done) struct change_list list = {0};
	AUTO_TEXT out = {0};
	int rc = workspace_view_open(&chosen->home, &chosen->workspace, &chosen->view, error);

	if (rc == 0)
		rc = workspace_changes(&chosen->view, &list, error);
	if (rc < 0)
		return rc;
	if (options->has_tar)
		return workspace_archive(&chosen->view, &list, STDOUT_FILENO, error);
	workspace_find_renames(&chosen->view, &list);
	rc = changes_print_patch(&out, &chosen->view, &list, false, false);
	if (rc < 0)
		return error_set(error, STAGE_FILES, -rc, "cannot read the changes: %s", strerror(-rc));
	return print_out(&out, messenger);
}

static int remove_it(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
		     struct error *error)
{
	return workspace_remove(&chosen->home, &chosen->workspace, error);
}

typedef int verb_function(struct chosen *chosen, const struct run_options *options, const struct messenger *messenger,
			  struct error *error);

static const struct {
	const char *name;
	verb_function *function;
	enum workspace_access access;
	bool needs_word; /* it must be said which */
} verbs[] = {
	{"show", show, WORKSPACE_LOOK},     {"checkpoint", checkpoint, WORKSPACE_WRITE},
	{"fork", fork_it, WORKSPACE_WRITE}, {"rollback", rollback, WORKSPACE_WRITE},
	{"export", export, WORKSPACE_LOOK}, {"remove", remove_it, WORKSPACE_WRITE, .needs_word = true},
};

int command_workspace(const struct invocation *invocation, struct run_options *options,
		      const struct messenger *messenger)
{
	AUTO(chosen_done) struct chosen chosen = {0};
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
		rc = chosen_open(&chosen, invocation, options, 1, verbs[i].access, false, &error);
		if (rc == 0 && verbs[i].needs_word && chosen.next_word == 1) {
			error_set(&error, STAGE_USAGE, 0, "there is no workspace '%s'", options->words[1]);
			return fail(messenger, &error);
		}
		if (rc == 0)
			rc = verbs[i].function(&chosen, options, messenger, &error);
	}
	return rc < 0 ? fail(messenger, &error) : rc;
}
