/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_intent.c - what an apply set out to do, so that the next one knows its work if it was killed
 *
 * Three things look different once a part is applied. A directory is touched, so a file that the command had renamed there
 * could be one that the host removed. A file of the workdir loses one of its names, so the others are touched. And a new file
 * with several names has one in the workdir already. Of these changes the store has a list while they are applied: what was no
 * conflict then is none now, as long as both sides are the same objects, and a second name becomes a link to the first.
 */
#include "workspace/workspace_intent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"

#define NAME "intent"
#define NEW_NAME "intent.new"
#define MAGIC "bjintent"
#define BYTES_MAX ((size_t)256 << 20)
#define WRITE_BYTES ((size_t)1 << 16)

struct head {
	char magic[8];
	uint64_t checksum; /* of everything after it */
	uint64_t len;
};

struct stored {
	struct change_side before, after;
	uint32_t layer;
	uint32_t path_len;
};

static uint64_t add_to_checksum(uint64_t hash, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3;
	return hash;
}

static bool is_disguised(const struct change *change)
{
	if (!workspace_change_is_due(change) || change->flags & CHANGE_IS_THEIRS)
		return false;
	return change->flags & CHANGE_IS_COPIED_UP ||
	       (!S_ISDIR(change->before.mode) && change->before.link_count > 1) ||
	       (S_ISREG(change->after.mode) && change->after.link_count > 1);
}

static int flush(int fd, struct text *text, struct head *head)
{
	if (text_failed(text))
		return -ENOMEM;
	head->checksum = add_to_checksum(head->checksum, text_string(text), text->len);
	head->len += text->len;
	if (text->len && write(fd, text->data, text->len) != (ssize_t)text->len)
		return errno ? -errno : -EIO;
	text_clear(text);
	return 0;
}

static void append(struct text *text, const struct change_side *before, const struct change_side *after, unsigned layer,
		   const char *path)
{
	struct stored stored = {
		.before = *before,
		.after = *after,
		.layer = layer,
		.path_len = (uint32_t)strlen(path),
	};

	text_append(text, &stored, sizeof(stored));
	text_append(text, path, stored.path_len);
}

/* Those of an apply before stay, unless there is a new one for the same path: both lists are sorted. */
static int write_all(int fd, const struct intent_list *before, const struct change_list *changes)
{
	struct head head = {.magic = MAGIC};
	AUTO_TEXT text = {0};
	size_t at = 0;
	int rc = pwrite(fd, &head, sizeof(head), 0) == sizeof(head) ? 0 : -errno;

	if (rc == 0 && lseek(fd, sizeof(head), SEEK_SET) < 0)
		rc = -errno;
	for (size_t i = 0; i <= changes->count && rc == 0; i++) {
		const struct change *change = i < changes->count ? &changes->items[i] : NULL;

		if (change && !is_disguised(change))
			continue;
		for (; at < before->count && (!change || strcmp(before->items[at].path, change->path) <= 0); at++)
			if (!change || strcmp(before->items[at].path, change->path) != 0)
				append(&text, &before->items[at].before, &before->items[at].after,
				       before->items[at].layer, before->items[at].path);
		if (change)
			append(&text, &change->before, &change->after, change->layer, change->path);
		if (!change || text.len >= WRITE_BYTES)
			rc = flush(fd, &text, &head);
	}
	if (rc == 0 && pwrite(fd, &head, sizeof(head), 0) != sizeof(head))
		rc = errno ? -errno : -EIO;
	return rc;
}

int workspace_intent_write(const struct workspace *workspace, const struct intent_list *before,
			   const struct change_list *changes)
{
	AUTO_CLOSE int fd = -1;
	bool is_needed = false;
	int rc;

	for (size_t i = 0; i < changes->count && !is_needed; i++)
		is_needed = is_disguised(&changes->items[i]);
	if (!is_needed)
		return 0;
	fd = openat(workspace->fd, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, before, changes);
	/* The one of an apply before counts until this one is whole. */
	if (rc == 0 && renameat(workspace->fd, NEW_NAME, workspace->fd, NAME) < 0)
		rc = -errno;
	if (rc < 0)
		unlinkat(workspace->fd, NEW_NAME, 0);
	return rc;
}

void workspace_intent_remove(const struct workspace *workspace)
{
	unlinkat(workspace->fd, NAME, 0);
	unlinkat(workspace->fd, NEW_NAME, 0);
}

void workspace_intent_done(struct intent_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
	*list = (struct intent_list){0};
}

static int parse(const char *bytes, size_t len, struct intent_list *out)
{
	for (size_t at = 0; at < len;) {
		struct stored stored;
		struct intent *intent;

		if (len - at < sizeof(stored))
			return -EBADMSG;
		memcpy(&stored, bytes + at, sizeof(stored));
		at += sizeof(stored);
		if (stored.path_len > len - at)
			return -EBADMSG;
		intent = list_add(out);
		if (!intent)
			return -ENOMEM;
		*intent = (struct intent){
			.before = stored.before,
			.after = stored.after,
			.layer = stored.layer,
			.path = strndup(bytes + at, stored.path_len),
		};
		if (!intent->path)
			return -ENOMEM;
		at += stored.path_len;
	}
	return 0;
}

void workspace_intent_read(int store_fd, struct intent_list *out)
{
	AUTO_CLOSE int fd = openat(store_fd, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_FREE char *bytes = NULL;
	struct stat status;
	struct head head;
	size_t len;

	*out = (struct intent_list){0};
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || (uint64_t)status.st_size > BYTES_MAX ||
	    (size_t)status.st_size < sizeof(head))
		return;
	len = (size_t)status.st_size;
	bytes = malloc(len);
	if (!bytes || pread(fd, bytes, len, 0) != (ssize_t)len)
		return;
	memcpy(&head, bytes, sizeof(head));
	len -= sizeof(head);
	if (memcmp(head.magic, MAGIC, sizeof(head.magic)) != 0 || head.len != len ||
	    add_to_checksum(0, bytes + sizeof(head), len) != head.checksum || parse(bytes + sizeof(head), len, out) < 0)
		workspace_intent_done(out);
}

static bool is_same(const struct change_side *a, const struct change_side *b)
{
	return (a->mode & S_IFMT) == (b->mode & S_IFMT) && a->device == b->device && a->inode == b->inode &&
	       a->size == b->size && a->mtime_ns == b->mtime_ns;
}

bool workspace_intent_has(const struct intent_list *list, const struct change *change)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct intent *intent = &list->items[middle];
		int order = strcmp(intent->path, change->path);

		if (order == 0)
			return is_same(&intent->before, &change->before) && is_same(&intent->after, &change->after);
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}
