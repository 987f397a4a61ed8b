/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/changes_print.h - changes for people to read
 */
#ifndef BELLJAR_DOOR_CLI_CHANGES_PRINT_H
#define BELLJAR_DOOR_CLI_CHANGES_PRINT_H

#include "base/text.h"
#include "workspace/workspace_order.h"

/* A line for each change, whatever their number, then what to look at before applying them, then the counts. */
void cli_changes_print(struct text *out, const struct change_list *list, bool has_color);
/* Lines added and removed in each file. */
int cli_changes_print_stat(struct text *out, const struct opened_workspace *opened, const struct change_list *list,
			   bool has_color);
/* The patch. @is_shown: for a screen, with colours if @has_color, and with everything harmless that could steer it. */
int cli_changes_print_patch(struct text *out, const struct opened_workspace *opened, const struct change_list *list,
			    bool is_shown, bool has_color);
/* "3 added, 1 modified, 2 deleted" */
void cli_changes_print_counts(struct text *out, const struct change_list *list);
/* One line about one change, without its end. */
void cli_changes_print_one(struct text *out, const struct change *change, bool has_color);
/* Print changes that are refused or shown apart, and why; nothing if there are none. */
void cli_changes_print_risks(struct text *out, const struct change_list *list, bool has_color);

#endif
