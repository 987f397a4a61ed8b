/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_copy.h - copy a whole directory, where the kernel cannot mount a layer over it
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_COPY_H
#define BELLJAR_WORKSPACE_WORKSPACE_COPY_H

#include "workspace/workspace_store.h"

/* More is refused: the copy would take too long, and the command would wait without a visible reason. */
#define WORKSPACE_COPY_ENTRIES_MAX 20000
#define WORKSPACE_COPY_BYTES_MAX ((uint64_t)512 << 20)

/*
 * Copy what is in @directory_fd to the workspace's empty upper: files, links, directories, pipes, with modes, times
 * and the user's attributes; names of one file stay names of one file. Sockets and devices are left out.
 */
int workspace_copy(struct workspace *workspace, int directory_fd, struct error *error);

#endif
