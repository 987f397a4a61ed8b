/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_journal.h - record the current step of an apply, so that the next apply can finish or undo it
 *
 * A step makes a temporary name beside its target, and removes it at the end. If the process is killed in between,
 * that name stays, and the record describes it. One record is enough: steps do not overlap, and a step is over when
 * its temporary name is gone. The journal protects against a kill, not against a power loss: for that, every step
 * would have to wait for the disk.
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_JOURNAL_H
#define BELLJAR_WORKSPACE_WORKSPACE_JOURNAL_H

#include "workspace/workspace_changes.h"

/* Its name in the store. */
#define WORKSPACE_JOURNAL "journal"
#define JOURNAL_TEMPORARY_SIZE 40
#define JOURNAL_BYTES_MAX (2 * WORKSPACE_PATH_MAX + 512)

enum journal_kind {
	JOURNAL_NEW,      /* the temporary name is to become the target, which is not there */
	JOURNAL_EXCHANGE, /* ... is to change places with the target */
	JOURNAL_REMOVE,   /* the target is to become the temporary name, and then to go */
	JOURNAL_KIND_COUNT,
};

struct journal_record {
	enum journal_kind kind;
	bool is_moved;      /* the new one is the layer's own file */
	bool is_copied_up;  /* ... and the workdir had one before, by some name */
	uint64_t new_inode; /* 0: the new file is not complete yet */
	mode_t new_mode;
	struct change_side old;
	char temporary[JOURNAL_TEMPORARY_SIZE];
	char *path;
	char *upper_path; /* of the layer's file */
};

void workspace_journal_record_done(struct journal_record *record);
/* Write the record to @fd, from its beginning; 0 or a negative errno. */
int workspace_journal_write(int fd, const struct journal_record *record);
/* -ENODATA: there is no record, or an incomplete one: then its step never began. */
int workspace_journal_parse(const char *bytes, size_t len, struct journal_record *out);
int workspace_journal_read(int fd, struct journal_record *out);

#endif
