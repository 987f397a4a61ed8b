/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_why.c - `why`: may a command do this, by which rule, and what is the smallest change; runs nothing
 */
#include <errno.h>
#include <string.h>

#include "door/cli/commands.h"
#include "engine/engine_why.h"

/* Paths as a shell's user writes them: "~/x", "./x", "x/y", and names of files that are here. */
static bool is_path(const char *word)
{
	return strchr(word, '/') || !strcmp(word, "~") || !strcmp(word, ".") || !strcmp(word, "..") ||
	       access(word, F_OK) == 0;
}

static int make_absolute(const struct invocation *invocation, const char *word, struct text *out, struct error *error)
{
	if (word[0] == '~' && (!word[1] || word[1] == '/') && invocation->home)
		text_append_format(out, "%s%s", invocation->home, word + 1);
	else if (word[0] == '/')
		text_append_string(out, word);
	else if (invocation->current_directory)
		text_append_format(out, "%s/%s", invocation->current_directory, word);
	else
		return error_set(error, STAGE_USAGE, ENOENT,
				 "%s: the current directory no longer exists; name an absolute path", word);
	return 0;
}

int cli_command_why(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	static const char *const accesses[] = {"read", "write", "exec", NULL};
	struct engine_request request = cli_question_of(invocation, &options->policy);
	const char *access = options->word_count > 1 ? options->words[1] : NULL;
	struct error error = {0};
	AUTO_TEXT out = {0}, question = {0};
	bool is_access = !access;
	int rc = 0;

	for (size_t i = 0; accesses[i] && access; i++)
		is_access |= !strcmp(accesses[i], access);
	if (!is_access) {
		rc = error_set(&error, STAGE_USAGE, 0, "'%s' is none of read, write and exec", access);
		error_hint(&error, "`belljar why ~/data write`");
	}
	if (rc == 0 && is_path(options->words[0]))
		rc = make_absolute(invocation, options->words[0], &question, &error);
	else
		text_append_string(&question, options->words[0]);
	if (rc == 0)
		rc = engine_why(&request, text_string(&question), access, options->has_json, &out, &error);
	if (rc < 0) {
		cli_message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	return cli_print_out(&out, messenger) == 0 ? rc : EXIT_BELLJAR;
}
