/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_step.h - change one name of the workdir, whole or not at all, and lose nobody's work
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
	struct sigaction before;  /* what SIGIO did */
	struct string_list saved; /* what was put aside, because both sides had changed it in the middle of a step */
};

/* Blocks are shared where the file system can, holes are kept. *@copied grows by what was copied. */
int workspace_step_copy_data(int from, int to, uint64_t size, uint64_t *copied);

/* Opens the journal in the store and settles a step that was left in it. */
int workspace_step_begin(struct stepper *stepper, const struct workspace_view *view, const struct workspace *workspace,
			 bool may_move, struct error *error);
void workspace_step_end(struct stepper *stepper, const struct workspace *workspace);

/*
 * Each: 0 done; -EAGAIN: the workdir's side is not what was looked at, nothing is changed; or another negative errno, nothing
 * is changed either.
 */
int workspace_step_put(struct stepper *stepper, const struct change *change);
/* The same, with another name for the file @linked_path of the workdir, which must still be @inode. */
int workspace_step_link(struct stepper *stepper, const struct change *change, const char *linked_path, ino_t inode);
int workspace_step_remove(struct stepper *stepper, const struct change *change);
/* Permissions and attributes in place. */
int workspace_step_set_mode(struct stepper *stepper, const struct change *change);
/* A directory that the workdir has not is about to be there: the upper's must not hide what will be in it. */
int workspace_step_unhide(struct stepper *stepper, const struct change *change);
/* Take what was applied out of the upper. */
void workspace_step_forget(struct stepper *stepper, const struct change *change);

#endif
