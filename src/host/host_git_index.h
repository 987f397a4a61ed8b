/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_git_index.h - which directories a git index calls repositories of their own
 *
 * `git status` looks into every directory that its index has a gitlink for (mode 160000), and obeys the configuration of the
 * repository it finds there. So it is the index that must be asked, and a command may have written it.
 */
#ifndef BELLJAR_HOST_HOST_GIT_INDEX_H
#define BELLJAR_HOST_HOST_GIT_INDEX_H

#include <sys/types.h>

#include "base/base.h"

/* What is larger, or has more entries, is not read to its end. */
#define GIT_INDEX_BYTES_MAX (32 << 20)
#define GIT_INDEX_PATH_MAX 4096
/* The hash of an object: SHA-1 or SHA-256. */
#define GIT_HASH_BYTES 20
#define GIT_HASH_BYTES_MAX 32

/* The next bytes, as read() gives them: 0 at the end, a negative errno. */
typedef ssize_t git_index_read(void *context, void *buffer, size_t len);
/* Called for each gitlink. A negative errno ends the reading. */
typedef int git_index_function(void *context, const char *path);

struct git_index_request {
	git_index_read *read;
	void *read_context;
	uint64_t size; /* of the whole file */
	size_t hash_bytes;
	git_index_function *each;
	git_index_function
		*each_folded; /* for each directory that a sparse index has in place of what is in it; or NULL */
	void *each_context;
};

struct git_index_facts {
	bool has_base; /* a split index: further entries are in sharedindex.BASE */
	char base[2 * GIT_HASH_BYTES_MAX + 1];
	bool has_nameless; /* a gitlink whose name is in that other file */
};

/*
 * Read an index of version 2, 3 or 4. 0; -EINVAL for what is none, breaks off, or can be read in two ways; -EFBIG: it is larger
 * than is read; or what @each or @read gave.
 */
int git_index_gitlinks(const struct git_index_request *request, struct git_index_facts *facts_out);

#endif
