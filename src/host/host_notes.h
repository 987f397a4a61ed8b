/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_notes.h - what a survey looked at, so that it need not be made again to know that it would find the same
 *
 * While notes are taken, every look at the host's files leaves one. Where a survey goes ways that notes cannot follow (links
 * within a project, repositories elsewhere) it breaks them off, and whoever wants to know makes another survey.
 *
 * A directory or device is told by its number, which nothing else can have as long as a jar holds it. What is read, or may be
 * removed and made again under the same number, is told by when it last changed too. Where that was a moment before
 * the look, a later change may bear the same time: such notes are worth nothing.
 */
#ifndef BELLJAR_HOST_HOST_NOTES_H
#define BELLJAR_HOST_HOST_NOTES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/list.h"

struct host_note {
	char *path;
	bool is_followed; /* it is about what a link leads to */
	int error;        /* why there was nothing to be seen; 0: there was something */
	mode_t type;
	dev_t device;
	ino_t inode;
	int64_t changed_ns; /* 0: that does not matter */
};

LIST_TYPE(struct host_note, host_note_list);

struct host_notes {
	struct host_note_list list;
	int64_t settled_ns; /* what changed later than this may change again unseen */
	bool is_broken;     /* or there are none */
};

/* Take notes in @notes, which are none yet; NULL: no more. */
void host_notes_take(struct host_notes *notes);
void host_notes_done(struct host_notes *notes);
/* Is all as it was noted? */
bool host_notes_hold(const struct host_notes *notes);

/* For those who look; nothing happens while no notes are taken. @status NULL: errno says why there is none. */
void host_note(const char *path, const struct stat *status);
/* What @path leads to, links followed; looks for itself. */
void host_note_followed(const char *path);
/* The names in a directory, or what is in a file: looks for itself. */
void host_note_content(const char *path);
/* @path and all directories above it, none of which is a link; looks for itself. */
void host_note_way(const char *path);
/* @name in @directory, which is not there. */
void host_note_absent(const char *directory, const char *name);
void host_notes_break_off(void);

#endif
