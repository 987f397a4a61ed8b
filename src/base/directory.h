/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/directory.h - read a directory without allocating memory, as readdir() would
 */
#ifndef BELLJAR_BASE_DIRECTORY_H
#define BELLJAR_BASE_DIRECTORY_H

#include "base/base.h"

struct directory {
	int fd; /* borrowed; read from where it was left */
	char *buffer;
	size_t size;
	long len, at; /* of the piece that is in the buffer */
};

/* The layout that getdents64() writes. */
struct directory_entry {
	uint64_t inode;
	int64_t offset;
	unsigned short len;
	unsigned char type;
	char name[];
};

/* Read one piece. Returns its length, 0 at the end, or a negative errno. */
long directory_read(struct directory *directory);
/* Return the next entry of the piece, skipping "." and "..", or NULL at its end. */
const struct directory_entry *directory_next_read(struct directory *directory);
/* Return the next entry of the directory, and read more pieces as needed. NULL at the end or on failure. */
const struct directory_entry *directory_next(struct directory *directory);

#endif
