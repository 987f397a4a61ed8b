/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/workspace_words.c - which workspace, and which of its paths, the words of a command line mean
 *
 * Paths are names, not files: what a workspace added is not in the workdir yet. So they are put together without a look at
 * the file system: one that begins with "/" must lie in the workdir, any other is taken from the current directory if that
 * is in the workdir, else from the workdir itself.
 */
#include "cli/workspace_words.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"

/* The newest of @directory, or of the nearest one above it that has any. */
static int find_here(const struct workspace_home *home, const char *directory, char id[WORKSPACE_ID_SIZE],
		     struct error *error)
{
	AUTO_FREE char *path = strdup(directory);

	while (path && *path) {
		struct stat status;
		struct error nobodys = {0};
		char *slash = strrchr(path, '/');

		if (stat(path, &status) == 0 &&
		    workspace_find(home, NULL, status.st_dev, status.st_ino, id, &nobodys) == 0)
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
	struct error nobodys = {0};

	chosen->next_word = first;
	if (word && (workspace_id_is_valid(word) || workspace_name_is_valid(word))) {
		int rc;

		if (stat(directory, &status) < 0)
			status = (struct stat){0};
		rc = workspace_find(&chosen->home, word, status.st_dev, status.st_ino, id, &nobodys);
		if (rc == 0)
			chosen->next_word++;
		/* An id is never a path, and a name of two workspaces must be told apart. */
		if (rc == 0 || workspace_id_is_valid(word) || rc != -ENOENT) {
			if (rc < 0)
				*error = nobodys;
			return rc;
		}
	}
	return find_here(&chosen->home, directory, id, error);
}

int chosen_open(struct chosen *chosen, const struct invocation *invocation, const struct run_options *options,
		int first, enum workspace_access access, bool has_view, struct error *error)
{
	char id[WORKSPACE_ID_SIZE];
	int rc;

	*chosen = (struct chosen){0};
	rc = workspace_home_open(invocation->environment, &chosen->home, error);
	if (rc == 0)
		rc = find(chosen, invocation, options, first, id, error);
	if (rc == 0)
		rc = workspace_open(&chosen->home, id, access, &chosen->workspace, error);
	if (rc == 0 && has_view)
		rc = workspace_view_open(&chosen->home, &chosen->workspace, &chosen->view, error);
	return rc;
}

void chosen_done(struct chosen *chosen)
{
	if (chosen->view.layer_count)
		workspace_view_done(&chosen->view);
	workspace_done(&chosen->workspace);
	workspace_home_done(&chosen->home);
	string_list_done(&chosen->paths);
}

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

static int translate(const struct chosen *chosen, const struct invocation *invocation, const char *path,
		     struct string_list *to, struct error *error)
{
	const char *workdir = chosen->workspace.meta.workdir;
	const char *here = invocation->current_directory;
	bool is_inside = here && path_is_within(here, workdir);
	AUTO_TEXT whole = {0};
	const char *below;

	if (absolute(is_inside ? here : workdir, path, &whole) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	if (!whole.len || !path_is_within(text_string(&whole), workdir)) {
		error_set(error, STAGE_USAGE, EINVAL, "'%s' is not in '%s', of which the workspace is", path, workdir);
		return error_hint(error, "paths are below the workdir; a workspace is named by its id or name");
	}
	below = whole.data + strlen(workdir);
	below += strspn(below, "/");
	return string_list_add(to, *below ? below : ".") < 0 ? error_set(error, STAGE_ENGINE, ENOMEM, "out of memory")
							     : 0;
}

int chosen_translate(const struct chosen *chosen, const struct invocation *invocation, const struct string_list *from,
		     struct string_list *to, struct error *error)
{
	int rc = 0;

	for (size_t i = 0; i < from->count && rc == 0; i++)
		rc = translate(chosen, invocation, from->items[i], to, error);
	return rc;
}

int chosen_take_paths(struct chosen *chosen, const struct invocation *invocation, const struct run_options *options,
		      struct error *error)
{
	int rc = 0;

	for (int i = chosen->next_word; i < options->word_count && rc == 0; i++)
		rc = translate(chosen, invocation, options->words[i], &chosen->paths, error);
	return rc;
}
