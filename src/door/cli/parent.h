/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/parent.h - the process that started Belljar, for --die-with-parent
 */
#ifndef BELLJAR_DOOR_CLI_PARENT_H
#define BELLJAR_DOOR_CLI_PARENT_H

#include "base/error.h"

/*
 * A descriptor that becomes readable when the whole process that started this one is gone; one of its threads may end. Fails
 * where it is gone already, or where its end cannot be seen.
 */
int cli_parent_open(int *fd_out, struct error *error);

#endif
