/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_paths.h - questions about paths, shared by the files of host/
 */
#ifndef BELLJAR_HOST_HOST_PATHS_H
#define BELLJAR_HOST_HOST_PATHS_H

#include "host/host.h"

/* @path is @directory or lies in it. Both absolute and resolved. */
bool path_is_within(const char *path, const char *directory);

/* "/", "/usr", "/etc/ssh", ...: nothing that a command should be able to write. */
bool host_is_system_directory(const char *path);

/* Look at @path itself (a symbolic link is not followed). A path that does not exist is PATH_ABSENT, not an error. */
int host_look(struct host_path *path_out, const char *path);
void host_path_done(struct host_path *path);
void host_path_list_done(struct host_path_list *list);
/* host_look() into a new item of @list; what does not exist is left out. */
int host_path_list_look(struct host_path_list *list, const char *path);

#endif
