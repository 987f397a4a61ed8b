/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/helper.h - recognise this process's helpers: they move between cgroups with it
 */
#ifndef BELLJAR_BASE_HELPER_H
#define BELLJAR_BASE_HELPER_H

#include <sys/types.h>

#include "base/base.h"

/* Mark this process, a child of the engine, as its helper. */
void helper_take_name(void);
/* Is the process @pid a child of this one that has marked itself so? */
bool helper_is_ours(pid_t pid);

#endif
