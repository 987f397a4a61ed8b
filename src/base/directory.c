/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/directory.c - read a directory without allocating memory, as readdir() would
 */
#include "base/directory.h"

#include <errno.h>
#include <sys/syscall.h>

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

long directory_read(struct directory *directory)
{
	directory->at = 0;
	directory->len = syscall(SYS_getdents64, directory->fd, directory->buffer, directory->size);
	return directory->len < 0 ? -errno : directory->len;
}

const struct directory_entry *directory_next_read(struct directory *directory)
{
	while (directory->at < directory->len) {
		const struct directory_entry *entry =
			(const struct directory_entry *)(directory->buffer + directory->at);

		directory->at += entry->len;
		if (!is_dots(entry->name))
			return entry;
	}
	return NULL;
}

const struct directory_entry *directory_next(struct directory *directory)
{
	const struct directory_entry *entry;

	while (!(entry = directory_next_read(directory)))
		if (directory_read(directory) <= 0)
			return NULL;
	return entry;
}
