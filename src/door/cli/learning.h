/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/learning.h - write a policy from what one run was refused: `learn`, and `run --suggest`
 */
#ifndef BELLJAR_DOOR_CLI_LEARNING_H
#define BELLJAR_DOOR_CLI_LEARNING_H

#include "door/cli/commands.h"
#include "door/cli/lessons.h"

/* Open the directory of the policy file @path, before the command can replace it. @path must not exist. */
int cli_learning_open(const char *path, int *directory_out, struct error *error);

struct learning {
	const struct invocation *invocation;
	const struct run_options *options;
	const struct messenger *messenger;
	struct policy wanted;           /* as it was given; then with the lines that were taken */
	struct engine_request question; /* about a jar with that */
	struct lesson_list lessons;
};

/*
 * Make the run of @options look harder: the ledger at `trace`, and a gate without rules in the place of no network, because only
 * a gate sees which hosts were wanted. Neither lets more through, and neither is in the policy that is written.
 */
int cli_learning_begin(struct learning *learning, const struct invocation *invocation, struct run_options *options,
		       const struct messenger *messenger, struct error *error);
/*
 * Read what @engine refused, ask a person on the terminal once about each line, write the policy, and print the command that uses
 * it. A negative errno: the policy was not written, and a message says why.
 */
int cli_learning_end(struct learning *learning, const struct engine_run *engine);
void cli_learning_done(struct learning *learning);

#endif
