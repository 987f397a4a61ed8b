/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_listing.h - the names in directories, noted while a command runs
 *
 * After a run every directory of the work directory is searched for a few names. Reading a directory takes ten times as long as
 * looking at it, and most have not changed; so they are read while the command runs, when Belljar has nothing else to do. A
 * note counts only if the directory is the same object and has not changed since: names cannot come or go without changing it,
 * and no command can set the time of a change. What is in the files must be looked at all the same.
 */
#ifndef BELLJAR_HOST_HOST_LISTING_H
#define BELLJAR_HOST_HOST_LISTING_H

#include <sys/stat.h>

#include "base/list.h"
#include "base/text.h"

struct host_listing {
	char *directory; /* below the top */
	dev_t device;
	ino_t inode;
	int64_t changed_ns;
	struct string_list names; /* before each name one character: its type */
};

LIST_TYPE(struct host_listing, host_listings);

static inline int64_t host_changed_ns(const struct stat *status)
{
	return (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec;
}

/* A new note of @directory, which @status was seen of before it was read; NULL: no memory. */
struct host_listing *host_listing_add(struct host_listings *listings, const char *directory, const struct stat *status);
int host_listing_add_name(struct host_listing *listing, unsigned char type, const char *name);
/* Take back the last note: the directory was not read to its end. */
void host_listing_drop(struct host_listings *listings);
/*
 * The note of @directory, if it is still right. *@next says where to begin, and where to go on next time: whoever asks in the
 * order of the notes finds each at once. NULL: there is none.
 */
const struct host_listing *host_listing_find(const struct host_listings *listings, int top_fd, const char *directory,
					     size_t *next);
void host_listings_done(struct host_listings *listings);

#endif
