/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_inside.h - functions that only the files about stores share
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_INSIDE_H
#define BELLJAR_WORKSPACE_WORKSPACE_INSIDE_H

#include "workspace/workspace_store.h"

/* --- workspace_home.c --------------------------------------------------------------------------------------------- */

/* Take the common lock. Returns a descriptor that holds it while it is open, or a negative errno. */
int workspace_store_lock_home(const struct workspace_home *home, struct error *error);
/* Record that @place has parts of stores from now on. The caller holds the common lock. */
int workspace_home_note_place(const struct workspace_home *home, const char *place);

/* --- workspace_store.c -------------------------------------------------------------------------------------------- */

void workspace_store_clear(struct workspace *workspace);
/* Lock the store @fd. Returns a descriptor that holds the lock while it is open. -EBUSY: it is locked. */
int workspace_store_lock(int fd, const char *id, struct error *error);
/* Make a directory with a new id, and set the id in meta. */
int workspace_store_make_directory(const struct workspace_home *home, struct workspace *workspace);
int workspace_store_open_parts(struct workspace *workspace);
int workspace_store_open_upper(struct workspace *workspace);
/* Set the stamp to now: later changes in the workdir count as touched. Saves. */
int workspace_store_restamp(struct workspace *workspace, int workdir_fd, struct error *error);
int workspace_store_make_upper(struct workspace *workspace, mode_t mode);
/* Hide useless stores; the caller holds the common lock. Then remove the hidden ones, without the lock. */
void workspace_store_hide_useless(const struct workspace_home *home);
void workspace_store_remove_hidden(const struct workspace_home *home);

/* --- workspace_spare.c -------------------------------------------------------------------------------------------- */

/* Open and lock the spare store, if @workspace can use it; it has no id yet. The caller holds the common lock. */
bool workspace_spare_open(const struct workspace_home *home, struct workspace *workspace, mode_t workdir_mode);
int workspace_spare_take(const struct workspace_home *home, const struct workspace *workspace);

/* --- workspace_layers.c ------------------------------------------------------------------------------------------- */

/* Finish freezing or dropping a layer, if the process that began it was killed. The caller holds the store's lock. */
int workspace_store_finish(const struct workspace_home *home, struct workspace *workspace);

#endif
