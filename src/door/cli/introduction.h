/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/introduction.h - what `belljar shell` says at its start, and the mark on its prompt
 */
#ifndef BELLJAR_DOOR_CLI_INTRODUCTION_H
#define BELLJAR_DOOR_CLI_INTRODUCTION_H

#include "door/cli/message.h"

/* What can be seen, changed and used in a jar of @policy whose commands start in @workdir: a few lines. */
void cli_introduce_jar(const struct messenger *messenger, const struct policy *policy, const char *workdir,
		       const char *rung);

bool cli_shell_is_zsh(const char *shell);

/* Have the prompt of @shell (a path) begin with "(jar)", unless the policy says something about prompts itself. */
int cli_mark_prompt(struct policy *policy, const char *shell, struct error *error);

#endif
