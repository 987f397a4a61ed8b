/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/help.h - what --help, `help` and --version print, made from the tables of commands and options
 */
#ifndef BELLJAR_DOOR_CLI_HELP_H
#define BELLJAR_DOOR_CLI_HELP_H

#include "base/text.h"
#include "door/cli/options.h"

/* No line is longer. */
#define HELP_COLUMNS 100

void cli_help_print_overview(struct text *out);                          /* belljar --help */
void cli_help_print_command(enum cli_command command, struct text *out); /* belljar run --help, belljar help run */
void cli_help_print_version(struct text *out);                           /* belljar --version */

#endif
