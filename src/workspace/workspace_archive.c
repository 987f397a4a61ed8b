/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_archive.c - what a workspace added and changed, as a tar archive
 *
 * POSIX pax: every entry has an extended header with its path, and its link's text, so that neither has a limit or needs to
 * be UTF-8 for the reader to take the bytes.
 */
#include "workspace/workspace_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 512
#define COPY_BYTES 65536

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
	char type;
	char link[100], magic[6], version[2], rest[247];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

static int write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t count = write(fd, at, len);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		at += count;
		len -= (size_t)count;
	}
	return 0;
}

static int pad(int fd, uint64_t len)
{
	static const char zeros[BLOCK];

	return len % BLOCK ? write_all(fd, zeros, BLOCK - len % BLOCK) : 0;
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
	return write_all(fd, &header, sizeof(header));
}

/* "LEN key=value\n", where LEN counts its own digits. */
static void add_record(struct text *out, const char *key, const char *value)
{
	size_t len = strlen(key) + strlen(value) + 3, digits = 1;

	for (size_t power = 10; power <= len + digits; power *= 10)
		digits++;
	text_append_format(out, "%zu %s=%s\n", len + digits, key, value);
}

static int write_extended(int fd, const char *path, const char *link)
{
	AUTO_TEXT records = {0};
	int rc;

	add_record(&records, "path", path);
	if (link)
		add_record(&records, "linkpath", link);
	if (text_failed(&records))
		return -ENOMEM;
	rc = write_header(fd, 'x', "pax", 0644, records.len, 0);
	if (rc == 0)
		rc = write_all(fd, records.data, records.len);
	return rc == 0 ? pad(fd, records.len) : rc;
}

/* As many bytes as the header says, whatever the file has by now. */
static int write_content(int fd, int source, uint64_t size)
{
	AUTO_FREE char *block = calloc(1, COPY_BYTES);
	uint64_t left = size;
	int rc = block ? 0 : -ENOMEM;

	while (left && rc == 0) {
		size_t want = (size_t)MIN_OF(left, (uint64_t)COPY_BYTES);
		ssize_t count = read(source, block, want);

		if (count < 0)
			return -errno;
		if (!count) {
			memset(block, 0, want);
			count = (ssize_t)want;
		}
		rc = write_all(fd, block, (size_t)count);
		left -= (uint64_t)count;
	}
	return rc == 0 ? pad(fd, size) : rc;
}

static int write_change(const struct workspace_view *view, const struct change *change, int fd)
{
	const char *name;
	AUTO_CLOSE int parent = view_open_parent(view->fds[change->layer], change_layer_path(change), &name);
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
	rc = write_extended(fd, change->path, NULL);
	if (rc == 0)
		rc = write_header(fd, '0', "file", mode, change->after.size, change->after.mtime_ns);
	return rc == 0 ? write_content(fd, source, change->after.size) : rc;
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
	rc = write_all(fd, end, sizeof(end));
	return rc < 0 ? error_set(error, STAGE_OUTPUT, -rc, "cannot write the archive: %s", strerror(-rc)) : 0;
}
