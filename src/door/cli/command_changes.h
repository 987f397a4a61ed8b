/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_changes.h - applying, for the commands that do it
 */
#ifndef BELLJAR_DOOR_CLI_COMMAND_CHANGES_H
#define BELLJAR_DOOR_CLI_COMMAND_CHANGES_H

#include "door/cli/workspace_words.h"
#include "workspace/workspace_apply.h"

struct apply_order {
	const struct string_list *paths, *theirs, *ours; /* below the workdir */
	bool is_dry_run;
	bool has_json;
};

/*
 * Apply, say what became of it, and drop the workspace if nothing is left of it. @list is judged. What the process exits
 * with: 1 if something chosen was not applied.
 */
int cli_apply_chosen(struct chosen *chosen, struct change_list *list, const struct apply_order *order,
		     const struct messenger *messenger);

#endif
