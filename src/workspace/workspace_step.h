/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_step.h - change one name of the workdir, whole or not at all, and lose no one's work
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_STEP_H
#define BELLJAR_WORKSPACE_WORKSPACE_STEP_H

#include <signal.h>

#include "workspace/workspace_journal.h"

/* A directory that is kept open, because the next name is often in the same. */
struct step_directory {
	char *path;
	int fd;
};

struct stepper {
	const struct workspace_view *view;
	int journal_fd;
	bool may_move; /* take the upper's own files: nothing may have it mounted */
	bool is_free;  /* nothing has the upper mounted, but there may be frozen layers */
	char temporary[JOURNAL_TEMPORARY_SIZE];
	struct step_directory workdir, layer;
	unsigned layer_index;
	bool is_gone; /* the last step took the upper's own file: there is nothing to forget */
	uint64_t copied_bytes;
	struct sigaction before;  /* the old action of SIGIO */
	struct string_list saved; /* files that were put aside, because both sides changed them during a step */
};

/* Copy data; share blocks if the file system can, and keep holes. Add the bytes that were copied to *@copied. */
int workspace_step_copy_data(int from, int to, uint64_t size, uint64_t *copied);

/* Opens the journal in the store and settles a step that was left in it. */
int workspace_step_begin(struct stepper *stepper, const struct workspace_view *view, const struct workspace *workspace,
			 bool may_move, struct error *error);
void workspace_step_end(struct stepper *stepper, const struct workspace *workspace);

/*
 * Each returns 0: done; -EAGAIN: the workdir's side differs from what was compared; or another negative errno. On
 * failure nothing is changed.
 */
int workspace_step_put(struct stepper *stepper, const struct change *change);
/* The same, but make another name for the file @linked_path of the workdir, which must still be @inode. */
int workspace_step_link(struct stepper *stepper, const struct change *change, const char *linked_path, ino_t inode);
int workspace_step_remove(struct stepper *stepper, const struct change *change);
/* Set permissions and attributes in place. */
int workspace_step_set_mode(struct stepper *stepper, const struct change *change);
/* Prepare for making a directory in the workdir: the upper's directory must not hide what will be in it. */
int workspace_step_unhide(struct stepper *stepper, const struct change *change);
/* Remove an applied change from the upper. */
void workspace_step_forget(struct stepper *stepper, const struct change *change);

#endif
