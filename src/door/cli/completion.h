/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/completion.h - completions for bash, zsh and fish, made from the tables of commands and options
 */
#ifndef BELLJAR_DOOR_CLI_COMPLETION_H
#define BELLJAR_DOOR_CLI_COMPLETION_H

#include "base/error.h"
#include "base/text.h"

/* The script that `belljar completion SHELL` prints. An unknown shell is an error of stage `usage`. */
int cli_completion_print(const char *shell, struct text *out, struct error *error);

#endif
