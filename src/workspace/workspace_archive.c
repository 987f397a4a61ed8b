/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_archive.c - what a workspace added and changed, as a tar archive
 *
 * POSIX pax: every entry has an extended header with its path, and its link's text, so that neither has a limit or needs to
 * be UTF-8 for the reader to take the bytes.
 *
 * A file with holes is written as GNU tar writes it, format 1.0: a map of what there is, then that. A hole of a terabyte is a
 * line of the map, where a reader that was sent its zeros would wait for hours.
 */
#include "workspace/workspace_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"

#define BLOCK 512
#define COPY_BYTES 65536
/* The map of one file; more pieces than fit are written as if there were no holes between the last ones. */
#define MAP_BYTES_MAX ((size_t)64 << 20)

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
	char type;
	char link[100], magic[6], version[2], rest[247];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

static int pad(int fd, uint64_t len)
{
	static const char zeros[BLOCK];

	return len % BLOCK ? text_write_all(fd, zeros, BLOCK - len % BLOCK) : 0;
}

/* Octal digits, or the number itself behind a mark where they do not suffice. */
static void put_size(char out[12], uint64_t size)
{
	if (size < (uint64_t)1 << 33) {
		snprintf(out, 12, "%011llo", (unsigned long long)size);
		return;
	}
	memset(out, 0, 12);
	out[0] = (char)0x80;
	for (int i = 11; i > 3; i--, size >>= 8)
		out[i] = (char)size;
}

static int write_header(int fd, char type, const char *name, mode_t mode, uint64_t size, int64_t mtime_ns)
{
	struct header header = {.type = type, .magic = "ustar", .version = {'0', '0'}};
	unsigned sum = 0;

	snprintf(header.name, sizeof(header.name), "%.99s", name);
	snprintf(header.mode, sizeof(header.mode), "%07o", (unsigned)mode & 0777);
	memcpy(header.uid, "0000000", 8);
	memcpy(header.gid, "0000000", 8);
	put_size(header.size, size);
	put_size(header.mtime, mtime_ns > 0 ? (uint64_t)mtime_ns / 1000000000 : 0);
	memset(header.checksum, ' ', sizeof(header.checksum));
	for (size_t i = 0; i < sizeof(header); i++)
		sum += ((const unsigned char *)&header)[i];
	snprintf(header.checksum, sizeof(header.checksum), "%06o", sum);
	header.checksum[7] = ' ';
	return text_write_all(fd, &header, sizeof(header));
}

/* "LEN key=value\n", where LEN counts its own digits. */
static void add_record(struct text *out, const char *key, const char *value)
{
	size_t len = strlen(key) + strlen(value) + 3, digits = 1;

	for (size_t power = 10; power <= len + digits; power *= 10)
		digits++;
	text_append_format(out, "%zu %s=%s\n", len + digits, key, value);
}

/* @records before the header of a member. */
static int write_records(int fd, const struct text *records)
{
	int rc = text_failed(records) ? -ENOMEM : write_header(fd, 'x', "pax", 0644, records->len, 0);

	if (rc == 0)
		rc = text_write_all(fd, records->data, records->len);
	return rc == 0 ? pad(fd, records->len) : rc;
}

static int write_extended(int fd, const char *path, const char *link)
{
	AUTO_TEXT records = {0};

	add_record(&records, "path", path);
	if (link)
		add_record(&records, "linkpath", link);
	return write_records(fd, &records);
}

/* As many bytes as the header says, whatever the file has by now. */
static int write_range(int fd, int source, uint64_t at, uint64_t len)
{
	AUTO_FREE char *block = calloc(1, COPY_BYTES);
	int rc = block ? 0 : -ENOMEM;

	while (len && rc == 0) {
		size_t want = (size_t)MIN_OF(len, (uint64_t)COPY_BYTES);
		ssize_t count = pread(source, block, want, (off_t)at);

		if (count < 0)
			return -errno;
		if (!count) {
			memset(block, 0, want);
			count = (ssize_t)want;
		}
		rc = text_write_all(fd, block, (size_t)count);
		at += (uint64_t)count;
		len -= (uint64_t)count;
	}
	return rc;
}

/* --- files with holes --------------------------------------------------------------------------------------------- */

struct piece {
	uint64_t at, len;
};

LIST_TYPE(struct piece, piece_list);

static void piece_list_done(struct piece_list *list)
{
	free(list->items);
}

/* What there is of a file of @size bytes, between its holes. A file system that knows none has one piece. */
static int find_pieces(int source, uint64_t size, struct piece_list *pieces)
{
	for (uint64_t at = 0; at < size;) {
		off_t data = lseek(source, (off_t)at, SEEK_DATA), hole;
		struct piece *piece;

		if (data < 0 && errno == ENXIO)
			return 0;
		if (data < 0)
			data = (off_t)at;
		hole = pieces->count < MAP_BYTES_MAX / 48 ? lseek(source, data, SEEK_HOLE) : (off_t)size;
		if (hole <= data || (uint64_t)hole > size)
			hole = (off_t)size;
		if ((uint64_t)data >= size)
			return 0;
		piece = list_add(pieces);
		if (!piece)
			return -ENOMEM;
		*piece = (struct piece){(uint64_t)data, (uint64_t)(hole - data)};
		at = (uint64_t)hole;
	}
	return 0;
}

/* The map, filled up to whole blocks; a file that ends with a hole has an empty piece there. */
static int print_map(const struct piece_list *pieces, uint64_t size, struct text *out)
{
	const struct piece *last = pieces->count ? &pieces->items[pieces->count - 1] : NULL;
	bool ends_with_hole = !last || last->at + last->len < size;

	text_append_format(out, "%zu\n", pieces->count + ends_with_hole);
	for (size_t i = 0; i < pieces->count; i++)
		text_append_format(out, "%" PRIu64 "\n%" PRIu64 "\n", pieces->items[i].at, pieces->items[i].len);
	if (ends_with_hole)
		text_append_format(out, "%" PRIu64 "\n0\n", size);
	while (!text_failed(out) && out->len % BLOCK)
		text_append_char(out, '\0');
	return text_failed(out) ? -ENOMEM : 0;
}

static int write_sparse(int fd, int source, const struct change *change, const struct piece_list *pieces)
{
	AUTO_TEXT records = {0}, map = {0};
	char size[24];
	uint64_t len = 0;
	int rc = print_map(pieces, change->after.size, &map);

	for (size_t i = 0; i < pieces->count; i++)
		len += pieces->items[i].len;
	snprintf(size, sizeof(size), "%" PRIu64, change->after.size);
	add_record(&records, "GNU.sparse.major", "1");
	add_record(&records, "GNU.sparse.minor", "0");
	add_record(&records, "GNU.sparse.name", change->path);
	add_record(&records, "GNU.sparse.realsize", size);
	if (rc == 0)
		rc = write_records(fd, &records);
	if (rc == 0)
		rc = write_header(fd, '0', "GNUSparseFile.0/file", change->after.mode, map.len + len,
				  change->after.mtime_ns);
	if (rc == 0)
		rc = text_write_all(fd, map.data, map.len);
	for (size_t i = 0; i < pieces->count && rc == 0; i++)
		rc = write_range(fd, source, pieces->items[i].at, pieces->items[i].len);
	return rc == 0 ? pad(fd, len) : rc;
}

static int write_file(int fd, int source, const struct change *change)
{
	AUTO(piece_list_done) struct piece_list pieces = {0};
	uint64_t size = change->after.size;
	int rc = change->after.stored < size ? find_pieces(source, size, &pieces) : 0;

	if (rc < 0)
		return rc;
	if (change->after.stored < size && (pieces.count != 1 || pieces.items[0].len < size))
		return write_sparse(fd, source, change, &pieces);
	rc = write_extended(fd, change->path, NULL);
	if (rc == 0)
		rc = write_header(fd, '0', "file", change->after.mode, size, change->after.mtime_ns);
	if (rc == 0)
		rc = write_range(fd, source, 0, size);
	return rc == 0 ? pad(fd, size) : rc;
}

/* --- members ------------------------------------------------------------------------------------------------------ */

static int write_change(const struct workspace_view *view, const struct change *change, int fd)
{
	const char *name;
	AUTO_CLOSE int parent =
		workspace_view_open_parent(view->fds[change->layer], workspace_change_layer_path(change), &name);
	AUTO_CLOSE int source = -1;
	mode_t mode = change->after.mode;
	int rc;

	if (parent < 0)
		return parent;
	if (S_ISLNK(mode)) {
		char text[WORKSPACE_LINK_MAX + 1];
		ssize_t len = readlinkat(parent, name, text, sizeof(text) - 1);

		if (len < 0)
			return -errno;
		text[len] = '\0';
		rc = write_extended(fd, change->path, text);
		return rc == 0 ? write_header(fd, '2', "link", 0777, 0, change->after.mtime_ns) : rc;
	}
	if (S_ISDIR(mode)) {
		rc = write_extended(fd, change->path, NULL);
		return rc == 0 ? write_header(fd, '5', "directory", mode, 0, change->after.mtime_ns) : rc;
	}
	source = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (source < 0)
		return -errno;
	return write_file(fd, source, change);
}

int workspace_archive(const struct workspace_view *view, const struct change_list *list, int fd, struct error *error)
{
	static const char end[2 * BLOCK];
	int rc = 0;

	for (size_t i = 0; i < list->count && rc == 0; i++) {
		const struct change *change = &list->items[i];

		if (!S_ISREG(change->after.mode) && !S_ISDIR(change->after.mode) && !S_ISLNK(change->after.mode))
			continue;
		rc = write_change(view, change, fd);
		if (rc < 0)
			return error_set(error, STAGE_FILES, -rc, "cannot put '%s' into the archive: %s", change->path,
					 strerror(-rc));
	}
	rc = text_write_all(fd, end, sizeof(end));
	return rc < 0 ? error_set(error, STAGE_OUTPUT, -rc, "cannot write the archive: %s", strerror(-rc)) : 0;
}
