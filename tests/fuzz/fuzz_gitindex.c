/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_gitindex.c - any bytes as a git index
 *
 * The first byte says how the rest comes in pieces, and how long a hash is. The same bytes in one piece must give the same
 * answer, and no path that is told may be empty or too long.
 */
#include <stdlib.h>
#include <string.h>

#include "host/host_git_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
	const uint8_t *bytes;
	size_t left, step;
};

static ssize_t read_bytes(void *context, void *buffer, size_t len)
{
	struct source *source = context;
	size_t part = MIN_OF(MIN_OF(len, source->left), source->step);

	memcpy(buffer, source->bytes, part);
	source->bytes += part;
	source->left -= part;
	return (ssize_t)part;
}

static int count(void *context, const char *path)
{
	size_t len = strlen(path);

	if (!len || len >= GIT_INDEX_PATH_MAX)
		abort();
	*(size_t *)context += len;
	return 0;
}

static int read_index(const uint8_t *data, size_t size, size_t step, size_t hash_bytes, size_t *seen)
{
	struct source source = {data, size, step};
	struct git_index_facts facts;
	struct git_index_request request = {
		.read = read_bytes,
		.read_context = &source,
		.size = size,
		.hash_bytes = hash_bytes,
		.each = count,
		.each_context = seen,
	};

	return git_index_gitlinks(&request, &facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t in_pieces = 0, whole = 0, hash_bytes;

	if (!size)
		return 0;
	hash_bytes = data[0] & 1 ? GIT_HASH_BYTES_MAX : GIT_HASH_BYTES;
	if (read_index(data + 1, size - 1, 1 + (data[0] >> 1), hash_bytes, &in_pieces) !=
		    read_index(data + 1, size - 1, size, hash_bytes, &whole) ||
	    in_pieces != whole)
		abort();
	return 0;
}
