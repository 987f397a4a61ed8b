/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/learned_policy.h - a policy as `learn` writes it: what differs from the default, with a reason for each new line
 */
#ifndef BELLJAR_DOOR_CLI_LEARNED_POLICY_H
#define BELLJAR_DOOR_CLI_LEARNED_POLICY_H

#include "door/cli/invocation.h"
#include "door/cli/lessons.h"

struct learned_policy {
	const struct policy *policy;
	const struct lesson_list *lessons;
	const char *program; /* what was run */
};

/*
 * As a document with comments. It has been read back: it says what @learned->policy says, and `belljar policy test` passes.
 */
int cli_learned_policy_write(const struct learned_policy *learned, const struct invocation *invocation,
			     struct text *out, struct error *error);

#endif
