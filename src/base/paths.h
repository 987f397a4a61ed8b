/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/paths.h - compare the names of paths, without access to the file system
 */
#ifndef BELLJAR_BASE_PATHS_H
#define BELLJAR_BASE_PATHS_H

#include "base/base.h"

/* Is @path the same as @directory, or below it? Both are absolute, without ".", ".." and a slash at the end. */
bool path_is_within(const char *path, const char *directory);

#endif
