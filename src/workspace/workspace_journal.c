/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_journal.c - write and read the record of the step that is under way
 */
#include "workspace/workspace_journal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define MAGIC "bjapply2"

struct head {
	char magic[8];
	uint64_t checksum; /* of everything after it */
	uint32_t kind;
	uint32_t is_moved;
	uint32_t is_copied_up;
	uint32_t new_mode;
	uint64_t new_inode;
	uint64_t old_mode, old_device, old_inode, old_size;
	int64_t old_mtime_ns;
	char temporary[JOURNAL_TEMPORARY_SIZE];
	uint32_t path_len;
	uint32_t upper_path_len;
};

static uint64_t checksum_of(const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ at[i]) * 0x100000001b3;
	return hash;
}

void workspace_journal_record_done(struct journal_record *record)
{
	free(record->path);
	free(record->upper_path);
	*record = (struct journal_record){0};
}

int workspace_journal_write(int fd, const struct journal_record *record)
{
	AUTO_TEXT text = {0};
	struct head head = {
		.magic = MAGIC,
		.kind = (uint32_t)record->kind,
		.is_moved = record->is_moved,
		.is_copied_up = record->is_copied_up,
		.new_mode = record->new_mode,
		.new_inode = record->new_inode,
		.old_mode = record->old.mode,
		.old_device = record->old.device,
		.old_inode = record->old.inode,
		.old_size = record->old.size,
		.old_mtime_ns = record->old.mtime_ns,
		.path_len = (uint32_t)strlen(record->path),
		.upper_path_len = record->upper_path ? (uint32_t)strlen(record->upper_path) : 0,
	};
	struct head *written;

	memcpy(head.temporary, record->temporary, sizeof(head.temporary));
	text_append(&text, &head, sizeof(head));
	text_append(&text, record->path, head.path_len);
	text_append(&text, record->upper_path, head.upper_path_len);
	if (text_failed(&text))
		return -ENOMEM;
	written = (struct head *)text.data;
	written->checksum = checksum_of(&written->kind, text.len - offsetof(struct head, kind));
	if (pwrite(fd, text.data, text.len, 0) != (ssize_t)text.len)
		return errno ? -errno : -EIO;
	return 0;
}

/* A path that a walk could have found: relative, without dots. */
static bool is_path(const char *bytes, size_t len)
{
	if (!len || len >= WORKSPACE_PATH_MAX || memchr(bytes, '\0', len) || bytes[0] == '/')
		return false;
	for (size_t at = 0; at < len;) {
		const char *slash = memchr(bytes + at, '/', len - at);
		size_t part = slash ? (size_t)(slash - bytes) - at : len - at;

		if (!part || (part <= 2 && !memcmp(bytes + at, "..", part)))
			return false;
		at += part + 1;
		if (slash && at >= len)
			return false;
	}
	return true;
}

/* The rest of an older, longer record may stand behind a new one. */
int workspace_journal_parse(const char *bytes, size_t len, struct journal_record *out)
{
	struct head head;
	size_t whole;
	const char *path = bytes + sizeof(head);

	if (len < sizeof(head))
		return -ENODATA;
	memcpy(&head, bytes, sizeof(head));
	if (memcmp(head.magic, MAGIC, sizeof(head.magic)) != 0 || head.path_len >= WORKSPACE_PATH_MAX ||
	    head.upper_path_len >= WORKSPACE_PATH_MAX)
		return -ENODATA;
	whole = sizeof(head) + head.path_len + head.upper_path_len;
	if (whole > len ||
	    checksum_of(bytes + offsetof(struct head, kind), whole - offsetof(struct head, kind)) != head.checksum)
		return -ENODATA;
	if (head.kind >= JOURNAL_KIND_COUNT || head.is_moved > 1 || head.is_copied_up > 1 ||
	    !is_path(path, head.path_len) ||
	    (head.upper_path_len && !is_path(path + head.path_len, head.upper_path_len)) ||
	    !memchr(head.temporary, '\0', sizeof(head.temporary)) || !is_path(head.temporary, strlen(head.temporary)) ||
	    strchr(head.temporary, '/') || (head.is_moved && !head.upper_path_len))
		return -EBADMSG;
	*out = (struct journal_record){
		.kind = (enum journal_kind)head.kind,
		.is_moved = head.is_moved,
		.is_copied_up = head.is_copied_up,
		.new_mode = head.new_mode,
		.new_inode = head.new_inode,
		.old =
			{
				.mode = (mode_t)head.old_mode,
				.device = (dev_t)head.old_device,
				.inode = (ino_t)head.old_inode,
				.size = head.old_size,
				.mtime_ns = head.old_mtime_ns,
			},
		.path = strndup(path, head.path_len),
		.upper_path = head.upper_path_len ? strndup(path + head.path_len, head.upper_path_len) : NULL,
	};
	memcpy(out->temporary, head.temporary, sizeof(out->temporary));
	if (out->path && (!head.upper_path_len || out->upper_path))
		return 0;
	workspace_journal_record_done(out);
	return -ENOMEM;
}

int workspace_journal_read(int fd, struct journal_record *out)
{
	AUTO_FREE char *bytes = malloc(JOURNAL_BYTES_MAX);
	ssize_t len = bytes ? pread(fd, bytes, JOURNAL_BYTES_MAX, 0) : -1;

	if (!bytes)
		return -ENOMEM;
	return len < 0 ? -errno : workspace_journal_parse(bytes, (size_t)len, out);
}
