/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/help.h - what --help, `help` and --version print, made from the tables of commands and options
 */
#ifndef BELLJAR_CLI_HELP_H
#define BELLJAR_CLI_HELP_H

#include "base/text.h"
#include "cli/options.h"

/* No line is longer. */
#define HELP_COLUMNS 100

void help_print_overview(struct text *out);                          /* belljar --help */
void help_print_command(enum cli_command command, struct text *out); /* belljar run --help, belljar help run */
void help_print_version(struct text *out);                           /* belljar --version */

#endif
