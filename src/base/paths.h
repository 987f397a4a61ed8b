/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/paths.h - questions about the names of paths; nothing here looks at the file system
 */
#ifndef BELLJAR_BASE_PATHS_H
#define BELLJAR_BASE_PATHS_H

#include "base/base.h"

/* Is @path the same as @directory, or below it? Both absolute, with neither "." nor ".." in them and no slash at the end. */
bool path_is_within(const char *path, const char *directory);

#endif
