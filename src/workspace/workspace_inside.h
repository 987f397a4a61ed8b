/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_inside.h - what the files that keep stores share among themselves
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_INSIDE_H
#define BELLJAR_WORKSPACE_WORKSPACE_INSIDE_H

#include "workspace/workspace_store.h"

/* --- workspace_home.c --------------------------------------------------------------------------------------------- */

/* A descriptor that has the common lock while it is open, or a negative errno. */
int workspace_store_lock_home(const struct workspace_home *home, struct error *error);
/* With the common lock: @place has parts of stores from now on. */
int workspace_home_note_place(const struct workspace_home *home, const char *place);

/* --- workspace_store.c -------------------------------------------------------------------------------------------- */

void workspace_store_clear(struct workspace *workspace);
/* A descriptor that has the lock of the store @fd while it is open. -EBUSY: somebody has it. */
int workspace_store_lock(int fd, const char *id, struct error *error);
/* A directory with a new id, which is then in meta. */
int workspace_store_make_directory(const struct workspace_home *home, struct workspace *workspace);
int workspace_store_open_parts(struct workspace *workspace);
int workspace_store_open_upper(struct workspace *workspace);
/* From now on, what is touched in the workdir counts as touched since. Saves. */
int workspace_store_restamp(struct workspace *workspace, int workdir_fd, struct error *error);
int workspace_store_make_upper(struct workspace *workspace, mode_t mode);
/* With the common lock: out of sight with what nobody needs any more. Without it: remove what is out of sight. */
void workspace_store_hide_useless(const struct workspace_home *home);
void workspace_store_remove_hidden(const struct workspace_home *home);

/* --- workspace_spare.c -------------------------------------------------------------------------------------------- */

/* With the common lock: open and lock the store that was put by, if @workspace can have it. It has no id until it is taken. */
bool workspace_spare_open(const struct workspace_home *home, struct workspace *workspace, mode_t workdir_mode);
int workspace_spare_take(const struct workspace_home *home, const struct workspace *workspace);

/* --- workspace_layers.c ------------------------------------------------------------------------------------------- */

/* Whoever froze or dropped a layer may have been killed: finish it. The caller has the store's lock. */
int workspace_store_finish(const struct workspace_home *home, struct workspace *workspace);

#endif
