/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/child_run.h - make a run in a child process, as `belljar run` does, and read its result
 */
#ifndef BELLJAR_DOOR_CLI_CHILD_RUN_H
#define BELLJAR_DOOR_CLI_CHILD_RUN_H

#include "base/json_read.h"
#include "door/cli/commands.h"
#include "workspace/workspace_meta.h"

/*
 * Call @function in a child and wait for it. Returns its exit status. The child handles the terminal's signals.
 * @result gets the result object, or null if there is none; it may be NULL.
 */
int cli_child_run(command_function *function, const struct invocation *invocation, struct run_options *options,
		  const struct messenger *messenger, struct json_value *result);

/* The ids of all workspaces in a result that have changes: that of the workdir, then those of other directories. */
int cli_child_run_workspaces(const struct json_value *result, struct string_list *ids);

/* Set one key of the policy, as an option of the command line does. */
int cli_child_run_set_key(struct run_options *options, const struct invocation *invocation, const char *name,
			  const char *value, struct error *error);

#endif
