/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_git_index.c - a strict, bounded reader of git's index
 *
 *   header      "DIRC", version, number of entries
 *   entry       40 bytes of stat data (the mode is bytes 24 to 27), the hash, 16 bits of flags, from version 3 on 16 more if
 *               a flag says so, then the path. Versions 2 and 3: the path, and 1 to 8 zero bytes up to a multiple of 8.
 *               Version 4: how many bytes of the path before to drop, then what comes instead, and a zero byte.
 *   extensions  name, length, content; "link" has the hash of the file that a split index goes on in
 *   checksum    a hash; nobody who wants to be read wrongly would forget it, so it is not looked at
 *
 * All numbers are big-endian. The file is read once, front to back, through one small buffer.
 *
 * With several threads (index.threads) git takes another way: right before the checksum "EOIE" says where the extensions
 * begin, and among them "IEOT" says where blocks of entries begin, and how many each has. In version 4 the first name of a
 * block is whole. An index whose two ways lead to different entries is refused: which one git goes is not ours to know.
 */
#include "host/host_git_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"

#define BUFFER_BYTES 16384
#define STAT_BYTES 40
#define MODE_AT 24
#define MODE_TYPE 0170000
#define MODE_GITLINK 0160000
#define MODE_FOLDED 0040000
#define FLAG_EXTENDED 0x4000
#define NAME_BYTES_MASK 0xfff
#define EXTENSION_BYTES 8
/* "EOIE", its length, and an offset; the hash of the extensions' headers follows. */
#define END_BYTES (EXTENSION_BYTES + 4)
#define END_BYTES_MAX (END_BYTES + 2 * GIT_HASH_BYTES_MAX)
#define TABLE_VERSION 1

/* Where each entry begins, for the table at the end of the file. */
struct start {
	uint32_t at : 31;
	uint32_t is_whole : 1; /* its name takes nothing from the one before */
};

_Static_assert(GIT_INDEX_BYTES_MAX < INT32_MAX, "every place in the file fits 31 bits");

LIST_TYPE(struct start, start_list);

struct reader {
	const struct git_index_request *request;
	struct start_list starts;
	unsigned char end[END_BYTES_MAX]; /* the last bytes so far */
	uint64_t left;                    /* bytes of the file that are not in the buffer yet */
	size_t at, len;
	unsigned version;
	char path[GIT_INDEX_PATH_MAX]; /* of the entry before: version 4 goes on from it */
	size_t path_len;
	unsigned char buffer[BUFFER_BYTES];
};

static uint32_t number(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void keep_end(struct reader *reader, const unsigned char *bytes, size_t len)
{
	size_t part = MIN_OF(len, sizeof(reader->end));

	memmove(reader->end, reader->end + part, sizeof(reader->end) - part);
	memcpy(reader->end + sizeof(reader->end) - part, bytes + len - part, part);
}

static uint64_t bytes_left(const struct reader *reader)
{
	return reader->left + (reader->len - reader->at);
}

static uint64_t place(const struct reader *reader)
{
	return reader->request->size - bytes_left(reader);
}

/* Have @len bytes, or all that are left, in the buffer. */
static int fill(struct reader *reader, size_t len)
{
	if (reader->len - reader->at >= len)
		return 0;
	memmove(reader->buffer, reader->buffer + reader->at, reader->len - reader->at);
	reader->len -= reader->at;
	reader->at = 0;
	while (reader->len < BUFFER_BYTES && reader->left) {
		ssize_t got = reader->request->read(reader->request->read_context, reader->buffer + reader->len,
						    MIN_OF(BUFFER_BYTES - reader->len, reader->left));

		if (got < 0)
			return (int)got;
		if (got == 0)
			return -EINVAL;
		keep_end(reader, reader->buffer + reader->len, (size_t)got);
		reader->len += (size_t)got;
		reader->left -= (uint64_t)got;
	}
	return 0;
}

/* The next @len bytes, which stay good until the next call; @len is at most the buffer's. */
static int take(struct reader *reader, size_t len, const unsigned char **bytes_out)
{
	int rc = fill(reader, len);

	if (rc == 0 && reader->len - reader->at < len)
		rc = -EINVAL;
	if (rc == 0) {
		*bytes_out = reader->buffer + reader->at;
		reader->at += len;
	}
	return rc;
}

static int skip(struct reader *reader, uint64_t len)
{
	const unsigned char *bytes;
	int rc = 0;

	while (len && rc == 0) {
		size_t part = MIN_OF(len, (uint64_t)BUFFER_BYTES);

		rc = take(reader, part, &bytes);
		len -= part;
	}
	return rc;
}

/* --- paths -------------------------------------------------------------------------------------------------- */

/* Append what is there up to a zero byte, and take that too. */
static int take_string(struct reader *reader)
{
	for (;;) {
		int rc = fill(reader, 1);
		size_t there = reader->len - reader->at;
		const unsigned char *zero = memchr(reader->buffer + reader->at, 0, there);
		size_t len = zero ? (size_t)(zero - reader->buffer) - reader->at : there;

		if (rc < 0 || !there || reader->path_len + len >= sizeof(reader->path))
			return rc < 0 ? rc : -EINVAL;
		memcpy(reader->path + reader->path_len, reader->buffer + reader->at, len);
		reader->path_len += len;
		reader->at += len + (zero != NULL);
		if (zero)
			break;
	}
	reader->path[reader->path_len] = '\0';
	return 0;
}

/* Version 4: a number of which each byte has seven bits, the highest first, and one is added for each byte before. */
static int take_offset(struct reader *reader, size_t *offset_out)
{
	const unsigned char *byte = NULL;
	size_t offset = 0;
	int rc = 0;

	for (int i = 0; rc == 0 && i < 3; i++) {
		rc = take(reader, 1, &byte);
		if (rc < 0)
			break;
		offset = i ? ((offset + 1) << 7) + (*byte & 0x7f) : *byte & 0x7f;
		if (!(*byte & 0x80)) {
			*offset_out = offset;
			return 0;
		}
	}
	return rc < 0 ? rc : -EINVAL;
}

static int take_following_path(struct reader *reader)
{
	size_t dropped;
	int rc = take_offset(reader, &dropped);

	if (rc < 0)
		return rc;
	if (dropped > reader->path_len)
		return -EINVAL;
	reader->path_len -= dropped;
	reader->starts.items[reader->starts.count - 1].is_whole = !reader->path_len;
	return take_string(reader);
}

/* Versions 2 and 3, behind @before bytes of the entry: with as many zero bytes as make it a multiple of 8, one at least. */
static int take_padded_path(struct reader *reader, size_t before, size_t name_bytes)
{
	const unsigned char *bytes;
	size_t padding;
	int rc;

	reader->path_len = 0;
	rc = take_string(reader);
	if (rc < 0)
		return rc;
	if (name_bytes < NAME_BYTES_MASK ? reader->path_len != name_bytes : reader->path_len < NAME_BYTES_MASK)
		return -EINVAL;
	padding = 7 - (before + reader->path_len) % 8;
	rc = take(reader, padding, &bytes);
	for (size_t i = 0; i < padding && rc == 0; i++)
		rc = bytes[i] ? -EINVAL : 0;
	return rc;
}

/* --- entries and extensions --------------------------------------------------------------------------------- */

static int read_index_entry(struct reader *reader, struct git_index_facts *facts)
{
	const struct git_index_request *request = reader->request;
	size_t before = STAT_BYTES + request->hash_bytes + 2;
	const unsigned char *bytes = NULL, *more;
	struct start *start = list_add(&reader->starts);
	unsigned mode, flags;
	int rc;

	if (!start)
		return -ENOMEM;
	*start = (struct start){.at = (uint32_t)place(reader) & INT32_MAX, .is_whole = true};
	rc = take(reader, before, &bytes);
	if (rc < 0)
		return rc;
	mode = number(bytes + MODE_AT);
	flags = (unsigned)bytes[before - 2] << 8 | bytes[before - 1];
	if (flags & FLAG_EXTENDED) {
		rc = reader->version < 3 ? -EINVAL : take(reader, 2, &more);
		before += 2;
	}
	if (rc == 0)
		rc = reader->version == 4 ? take_following_path(reader)
					  : take_padded_path(reader, before, flags & NAME_BYTES_MASK);
	if (rc == 0 && (mode & MODE_TYPE) == MODE_FOLDED && request->each_folded)
		return request->each_folded(request->each_context, reader->path);
	if (rc < 0 || (mode & MODE_TYPE) != MODE_GITLINK)
		return rc;
	if (reader->path_len)
		return request->each(request->each_context, reader->path);
	facts->has_nameless = true;
	return 0;
}

static int read_link(struct reader *reader, uint32_t len, struct git_index_facts *facts)
{
	size_t hash_bytes = reader->request->hash_bytes;
	const unsigned char *hash = NULL;
	int rc = len < hash_bytes ? -EINVAL : take(reader, hash_bytes, &hash);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < hash_bytes; i++) {
		facts->has_base |= hash[i] != 0;
		snprintf(facts->base + 2 * i, 3, "%02x", hash[i]);
	}
	return skip(reader, len - hash_bytes);
}

/* Blocks of entries, as "IEOT" has them: they must be the entries that were read, from the first to the last. */
static int check_table(struct reader *reader, uint32_t len)
{
	const struct start_list *starts = &reader->starts;
	const unsigned char *bytes = NULL;
	size_t next = 0;
	int rc = len < 4 ? -EINVAL : take(reader, 4, &bytes);

	if (rc < 0 || number(bytes) != TABLE_VERSION || (len - 4) % 8)
		return rc < 0 ? rc : -EINVAL;
	for (len -= 4; len; len -= 8) {
		size_t count;

		rc = take(reader, 8, &bytes);
		if (rc < 0)
			return rc;
		count = number(bytes + 4);
		if (count > starts->count - next ||
		    (count && (starts->items[next].at != number(bytes) || !starts->items[next].is_whole)))
			return -EINVAL;
		next += count;
	}
	return next == starts->count ? 0 : -EINVAL;
}

/* At the end of the file git looks for "EOIE" by its place, whatever the extensions before it are. */
static int check_end(const struct reader *reader, uint64_t extensions_at)
{
	size_t hash_bytes = reader->request->hash_bytes;
	const unsigned char *end = reader->end + sizeof(reader->end) - END_BYTES - 2 * hash_bytes;

	if (reader->request->size < END_BYTES + 2 * hash_bytes || memcmp(end, "EOIE", 4) != 0)
		return 0;
	return number(end + EXTENSION_BYTES) == extensions_at ? 0 : -EINVAL;
}

static int read_extension(struct reader *reader, struct git_index_facts *facts)
{
	const unsigned char *bytes = NULL;
	char name[4];
	uint32_t len;
	int rc = take(reader, EXTENSION_BYTES, &bytes);

	if (rc < 0)
		return rc;
	memcpy(name, bytes, sizeof(name));
	len = number(bytes + 4);
	if (!memcmp(name, "link", 4))
		return read_link(reader, len, facts);
	return memcmp(name, "IEOT", 4) ? skip(reader, len) : check_table(reader, len);
}

static int read_extensions(struct reader *reader, struct git_index_facts *facts)
{
	size_t hash_bytes = reader->request->hash_bytes;
	uint64_t extensions_at = place(reader);
	int rc = 0;

	while (rc == 0 && bytes_left(reader) > hash_bytes)
		rc = read_extension(reader, facts);
	if (rc == 0 && bytes_left(reader) != hash_bytes)
		rc = -EINVAL;
	if (rc == 0)
		rc = skip(reader, hash_bytes);
	return rc < 0 ? rc : check_end(reader, extensions_at);
}

int git_index_gitlinks(const struct git_index_request *request, struct git_index_facts *facts_out)
{
	struct reader reader; /* without its buffer: zeroing that would cost more than most indexes */
	struct git_index_facts facts = {0};
	const unsigned char *header = NULL;
	uint32_t count;
	int rc;

	if (request->size > GIT_INDEX_BYTES_MAX)
		return -EFBIG;
	reader.request = request;
	reader.left = request->size;
	reader.at = reader.len = reader.path_len = 0;
	reader.starts = (struct start_list){0};
	memset(reader.end, 0, sizeof(reader.end));
	rc = take(&reader, 12, &header);
	if (rc < 0)
		return rc;
	reader.version = number(header + 4);
	count = number(header + 8);
	if (memcmp(header, "DIRC", 4) != 0 || reader.version < 2 || reader.version > 4)
		return -EINVAL;
	while (count-- && rc == 0)
		rc = read_index_entry(&reader, &facts);
	if (rc == 0)
		rc = read_extensions(&reader, &facts);
	free(reader.starts.items);
	if (rc == 0)
		*facts_out = facts;
	return rc;
}
