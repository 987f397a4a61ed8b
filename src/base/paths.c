/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/paths.c - compare the names of paths
 */
#include "base/paths.h"

/* One pass without strlen(): planning a jar calls this about ten thousand times. */
bool path_is_within(const char *path, const char *directory)
{
	if (directory[0] == '/' && !directory[1])
		return *path == '/';
	while (*directory && *path == *directory) {
		path++;
		directory++;
	}
	return !*directory && (*path == '\0' || *path == '/');
}
