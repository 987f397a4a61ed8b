/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/introduction.h - the introduction that `belljar shell` prints, and the mark on its prompt
 */
#ifndef BELLJAR_DOOR_CLI_INTRODUCTION_H
#define BELLJAR_DOOR_CLI_INTRODUCTION_H

#include "door/cli/message.h"

/* Print in a few lines what commands in a jar of @policy can see, change and use. They start in @workdir. */
void cli_introduce_jar(const struct messenger *messenger, const struct policy *policy, const char *workdir,
		       const char *rung);

bool cli_shell_is_zsh(const char *shell);

/* Have the prompt of @shell (a path) begin with "(jar)", unless the policy says something about prompts itself. */
int cli_mark_prompt(struct policy *policy, const char *shell, struct error *error);

#endif
