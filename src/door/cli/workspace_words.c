/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/workspace_words.c - which workspace, and which of its paths, the words of a command line mean
 */
#include "door/cli/workspace_words.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* The newest of @directory, or of the nearest one above it that has any. */
static int find_here(const struct workspace_home *home, const char *directory, char id[WORKSPACE_ID_SIZE],
		     struct error *error)
{
	AUTO_FREE char *path = strdup(directory);

	while (path && *path) {
		struct stat status;
		struct error unused = {0};
		char *slash = strrchr(path, '/');

		if (stat(path, &status) == 0 &&
		    workspace_find(home, NULL, status.st_dev, status.st_ino, id, &unused) == 0)
			return 0;
		if (slash)
			*slash = '\0';
		else
			break;
	}
	error_set(error, STAGE_USAGE, ENOENT, "this directory has no workspace");
	return error_hint(error, "`belljar run --cow -- COMMAND` makes one; `belljar workspace list` shows all");
}

static int find(struct chosen *chosen, const struct invocation *invocation, const struct run_options *options,
		int first, char id[WORKSPACE_ID_SIZE], struct error *error)
{
	const char *word = first < options->word_count ? options->words[first] : NULL;
	const char *directory = invocation->current_directory ? invocation->current_directory : "/";
	struct stat status = {0};
	struct error unused = {0};

	chosen->next_word = first;
	if (word && (workspace_id_is_valid(word) || workspace_name_is_valid(word))) {
		int rc;

		if (stat(directory, &status) < 0)
			status = (struct stat){0};
		rc = workspace_find(&chosen->opened.home, word, status.st_dev, status.st_ino, id, &unused);
		if (rc == 0)
			chosen->next_word++;
		/* An id is never a path, and a name of two workspaces must be told apart. */
		if (rc == 0 || workspace_id_is_valid(word) || rc != -ENOENT) {
			if (rc < 0)
				*error = unused;
			return rc;
		}
	}
	return find_here(&chosen->opened.home, directory, id, error);
}

int cli_chosen_open(struct chosen *chosen, const struct invocation *invocation, const struct run_options *options,
		    int first, enum workspace_access access, bool has_view, struct error *error)
{
	char id[WORKSPACE_ID_SIZE];
	int rc;

	*chosen = (struct chosen){0};
	rc = workspace_home_open(invocation->environment, &chosen->opened.home, error);
	if (rc == 0)
		rc = find(chosen, invocation, options, first, id, error);
	if (rc == 0)
		rc = workspace_open(&chosen->opened.home, id, access, &chosen->opened.workspace, error);
	if (rc == 0 && has_view)
		rc = workspace_view_open(&chosen->opened.home, &chosen->opened.workspace, &chosen->opened.view, error);
	return rc;
}

void cli_chosen_done(struct chosen *chosen)
{
	workspace_opened_done(&chosen->opened);
	string_list_done(&chosen->paths);
}

int cli_chosen_remove(struct chosen *chosen, const struct messenger *messenger, struct error *error)
{
	struct workspace *workspace = &chosen->opened.workspace;
	AUTO_FREE char *left_at = workspace_has_layer(workspace) ? NULL : strdup(workspace->parts_path);
	int rc = workspace_remove(&chosen->opened.home, workspace, error);

	if (rc == 0 && left_at)
		cli_message_note(messenger, "its layer was missing: if '%s' comes back, remove it by hand", left_at);
	return rc;
}

static int translate(const struct chosen *chosen, const struct invocation *invocation, const char *path,
		     struct string_list *to, struct error *error)
{
	return workspace_path_below(chosen->opened.workspace.meta.workdir, invocation->current_directory, path, to,
				    error);
}

int cli_chosen_translate(const struct chosen *chosen, const struct invocation *invocation,
			 const struct string_list *from, struct string_list *to, struct error *error)
{
	int rc = 0;

	for (size_t i = 0; i < from->count && rc == 0; i++)
		rc = translate(chosen, invocation, from->items[i], to, error);
	return rc;
}

int cli_chosen_take_paths(struct chosen *chosen, const struct invocation *invocation, const struct run_options *options,
			  struct error *error)
{
	int rc = 0;

	for (int i = chosen->next_word; i < options->word_count && rc == 0; i++)
		rc = translate(chosen, invocation, options->words[i], &chosen->paths, error);
	return rc;
}
