/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/workspace_words.h - which workspace, and which of its paths, the words of a command line mean
 */
#ifndef BELLJAR_DOOR_CLI_WORKSPACE_WORDS_H
#define BELLJAR_DOOR_CLI_WORKSPACE_WORDS_H

#include "door/cli/commands.h"
#include "workspace/workspace_order.h"

/* A workspace that a command works on. */
struct chosen {
	struct opened_workspace opened;
	struct string_list paths; /* below the workdir */
	int next_word;            /* of the command line, behind what says which workspace */
};

/*
 * Find it: the first of the words from @first on, if that is an id or a name, else the newest of the current directory or of
 * the nearest one above that has any. @has_view: open its layers and its workdir too.
 */
int cli_chosen_open(struct chosen *chosen, const struct invocation *invocation, const struct run_options *options,
		    int first, enum workspace_access access, bool has_view, struct error *error);
void cli_chosen_done(struct chosen *chosen);
/* workspace_remove() of one that was opened with WORKSPACE_DROP, and say what is left where if its layer is not there. */
int cli_chosen_remove(struct chosen *chosen, const struct messenger *messenger, struct error *error);

/* Take the words that are left as paths. */
int cli_chosen_take_paths(struct chosen *chosen, const struct invocation *invocation, const struct run_options *options,
			  struct error *error);
/* Paths as they were given, made into paths below the workdir. */
int cli_chosen_translate(const struct chosen *chosen, const struct invocation *invocation,
			 const struct string_list *from, struct string_list *to, struct error *error);

#endif
