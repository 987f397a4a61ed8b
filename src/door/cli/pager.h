/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/pager.h - a long text on a terminal, one screen after the other
 */
#ifndef BELLJAR_DOOR_CLI_PAGER_H
#define BELLJAR_DOOR_CLI_PAGER_H

#include "door/cli/commands.h"

/*
 * Print @text. If stdout is a terminal and the text does not fit on it, through the program that PAGER names, which must be
 * the caller's own variable: nothing that lies in a workdir chooses a program.
 */
int cli_pager_print(const struct invocation *invocation, const struct text *text, const struct messenger *messenger);

#endif
