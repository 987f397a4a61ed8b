/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/directory.h - what is in a directory, without allocating: readdir() would
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

/* As getdents64() writes it. */
struct directory_entry {
	uint64_t inode;
	int64_t offset;
	unsigned short len;
	unsigned char type;
	char name[];
};

/* Read one piece: its length, 0 at the end, a negative errno. */
long directory_read(struct directory *directory);
/* The next entry of the piece but "." and ".."; NULL: there is none. */
const struct directory_entry *directory_next_read(struct directory *directory);
/* The next entry of the directory likewise, reading on where necessary; NULL also on failure. */
const struct directory_entry *directory_next(struct directory *directory);

#endif
