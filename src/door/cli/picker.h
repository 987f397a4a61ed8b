/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/picker.h - choose some of many changes by keyboard
 */
#ifndef BELLJAR_DOOR_CLI_PICKER_H
#define BELLJAR_DOOR_CLI_PICKER_H

#include "workspace/workspace_changes.h"

/*
 * Show the changes on the terminal, a line each: arrows or j and k move, space takes one in or out, a takes all, n none, enter
 * is done, q changes nothing. The paths that were taken are in @paths. False: q, or no terminal.
 */
bool cli_pick_changes(const struct change_list *list, struct string_list *paths);

#endif
