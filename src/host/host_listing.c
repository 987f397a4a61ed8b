/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_listing.c - notes of what directories have in them, and whether they still hold
 */
#include "host/host_listing.h"

#include <errno.h>
#include <fcntl.h>

struct host_listing *host_listing_add(struct host_listings *listings, const char *directory, const struct stat *status)
{
	AUTO_FREE char *copy = strdup(directory);
	struct host_listing *listing = copy ? list_add(listings) : NULL;

	if (!listing)
		return NULL;
	*listing = (struct host_listing){
		.directory = take_ptr(copy),
		.device = status->st_dev,
		.inode = status->st_ino,
		.changed_ns = host_changed_ns(status),
	};
	return listing;
}

int host_listing_add_name(struct host_listing *listing, unsigned char type, const char *name)
{
	return string_list_add_format(&listing->names, "%c%s", type, name);
}

static void listing_done(struct host_listing *listing)
{
	free(listing->directory);
	string_list_done(&listing->names);
}

void host_listing_drop(struct host_listings *listings)
{
	listing_done(&listings->items[--listings->count]);
}

/* A link on the way can only lead to another object: directories are asked for from the top down, each in one that was found right. */
static bool is_right(const struct host_listing *listing, int top_fd)
{
	const char *name = listing->directory[0] ? listing->directory : ".";
	struct stat status;

	return fstatat(top_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
	       status.st_dev == listing->device && status.st_ino == listing->inode &&
	       host_changed_ns(&status) == listing->changed_ns;
}

const struct host_listing *host_listing_find(const struct host_listings *listings, int top_fd, const char *directory,
					     size_t *next)
{
	for (size_t i = 0; i < listings->count; i++) {
		size_t at = (*next + i) % listings->count;

		if (strcmp(listings->items[at].directory, directory) != 0)
			continue;
		*next = at + 1;
		return is_right(&listings->items[at], top_fd) ? &listings->items[at] : NULL;
	}
	return NULL;
}

void host_listings_done(struct host_listings *listings)
{
	while (listings->count)
		host_listing_drop(listings);
	free(listings->items);
	*listings = (struct host_listings){0};
}
