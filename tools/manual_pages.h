/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools/manual_pages.h - fill the templates of the man pages from the tables of options and policy keys
 */
#ifndef BELLJAR_TOOLS_MANUAL_PAGES_H
#define BELLJAR_TOOLS_MANUAL_PAGES_H

#include "base/error.h"
#include "base/text.h"

/*
 * Copy an mdoc template to @out. A line `.\" BELLJAR: NAME [WORD]` is replaced by what NAME stands for:
 *
 *   options COMMAND   the options that COMMAND accepts, by subject
 *   keys              the policy keys, in the order of the table
 *   environment       the variables that the default policy passes on
 *   presets           the presets by name
 *   protected         the names of protected files
 *   instructions      the names of instructions for agents
 *   shapes            the shapes of secrets by name, with an example
 *
 * An unknown NAME is an error, so that a template cannot ask in vain.
 */
int manual_fill(const char *template, struct text *out, struct error *error);

#endif
