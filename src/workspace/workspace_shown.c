/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_shown.c - remember what was shown of a workspace, and compare it with what is to be applied
 *
 * No jar reaches a store, so a file of a layer is known by what the kernel says of it: inode, size, mode and time of change, which
 * no process sets at will. No content is read for that. There is one exception: a file that was mapped for writing before it was
 * shown can change without a new time of change. A lease tells whether anybody has it open to write; of such a file the
 * content is remembered too, as a digest.
 *
 * The file of a viewer is a list of records of three texts, each ended by a NUL: identity, digest, path. Those of paths that
 * were looked at come first, as "look"; what lies below one of them and has no record was not there then.
 */
#include "workspace/workspace_shown.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/list.h"
#include "workspace/workspace_digest.h"
#include "workspace/workspace_risk.h"

#define BYTES_MAX ((size_t)512 << 20)
#define BLOCK 65536
#define LOOK "look"
/* A file that is open to write and larger than this cannot be remembered: it is refused until it is closed, and shown again. */
#define DIGEST_BYTES_MAX ((uint64_t)64 << 20)
#define UNKNOWN "unknown"
#define IDENTITY_SIZE 160

static const char *const names[] = {[VIEWER_TERMINAL] = "shown-terminal", [VIEWER_PROGRAM] = "shown-program"};
_Static_assert(ARRAY_LEN(names) == VIEWER_COUNT, "every viewer has a file");

struct record {
	const char *identity, *digest, *path;
};

struct shown {
	char *bytes;
	LIST_TYPE(struct record, ) looks;   /* paths that were looked at */
	LIST_TYPE(struct record, ) records; /* sorted by path */
};

static void shown_done(struct shown *shown)
{
	free(shown->bytes);
	free(shown->looks.items);
	free(shown->records.items);
}

/* --- what a change is ------------------------------------------------------------------------------------------- */

static int open_new(const struct workspace_view *view, const struct change *change)
{
	const char *name;
	AUTO_CLOSE int parent =
		workspace_view_open_parent(view->fds[change->layer], workspace_change_layer_path(change), &name);
	int fd = parent < 0 ? -1 : openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd;
}

/* Can a process write to the open file, or is that unknown? */
static bool may_be_written(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		return true;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

/* Is it known that a process can? Only their owner has leases, and not every file system. */
static bool is_written(int fd)
{
	return fcntl(fd, F_SETLEASE, F_RDLCK) < 0 ? errno == EAGAIN : (fcntl(fd, F_SETLEASE, F_UNLCK), false);
}

static void digest_content(int fd, uint64_t size, char *hex)
{
	AUTO_FREE char *block = malloc(BLOCK);
	struct digest digest;
	off_t at = 0;
	ssize_t count = -1;

	workspace_digest_init_sha256(&digest);
	while (block && size <= DIGEST_BYTES_MAX && (count = pread(fd, block, BLOCK, at)) > 0) {
		workspace_digest_add(&digest, block, (size_t)count);
		at += count;
	}
	if (count == 0)
		workspace_digest_hex(&digest, hex);
	else
		memcpy(hex, UNKNOWN, sizeof(UNKNOWN));
}

/* The attributes of a directory have no time of their own: the names in it change its time too. */
static void digest_xattrs(int fd, char *hex)
{
	AUTO_FREE char *list = malloc(BLOCK), *value = malloc(BLOCK);
	ssize_t len = list && value ? flistxattr(fd, list, BLOCK) : 0;
	struct digest digest;

	workspace_digest_init_sha256(&digest);
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(list + at) + 1) {
		ssize_t count = workspace_view_is_own_xattr(list + at) ? fgetxattr(fd, list + at, value, BLOCK) : -1;

		if (count < 0)
			continue;
		workspace_digest_add(&digest, list + at, strlen(list + at) + 1);
		workspace_digest_add(&digest, value, (size_t)count);
	}
	workspace_digest_hex(&digest, hex);
}

static void identify(const struct change *change, char identity[IDENTITY_SIZE])
{
	const struct change_side *side = &change->after;

	if (!side->mode)
		snprintf(identity, IDENTITY_SIZE, "gone");
	else if (S_ISDIR(side->mode))
		snprintf(identity, IDENTITY_SIZE, "%o", (unsigned)side->mode);
	else
		snprintf(identity, IDENTITY_SIZE, "%o %" PRIu64 " %" PRIu64 " %" PRId64, (unsigned)side->mode,
			 (uint64_t)side->inode, side->size, side->ctime_ns);
}

/* What the identity alone does not tell; "" if it tells all. */
static void digest_change(const struct workspace_view *view, const struct change *change, char hex[DIGEST_SHA256_HEX])
{
	bool is_file = S_ISREG(change->after.mode);
	AUTO_CLOSE int fd = is_file || S_ISDIR(change->after.mode) ? open_new(view, change) : -1;

	hex[0] = '\0';
	if (fd >= 0 && !is_file)
		digest_xattrs(fd, hex);
	else if (fd >= 0 && may_be_written(fd))
		digest_content(fd, change->after.size, hex);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static void append(struct text *out, const char *identity, const char *digest, const char *path)
{
	text_append(out, identity, strlen(identity) + 1);
	text_append(out, digest, strlen(digest) + 1);
	text_append(out, path, strlen(path) + 1);
}

/* 1: it is there; 0: nothing was shown to this viewer. */
static int read_shown(const struct workspace *workspace, enum workspace_viewer viewer, struct shown *out)
{
	AUTO_CLOSE int fd = openat(workspace->fd, names[viewer], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	size_t len, done = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || (uint64_t)status.st_size > BYTES_MAX)
		return -EBADMSG;
	len = (size_t)status.st_size;
	out->bytes = malloc(len + 1);
	while (out->bytes && done < len) {
		ssize_t count = read(fd, out->bytes + done, len - done);

		if (count <= 0)
			return -EIO;
		done += (size_t)count;
	}
	if (!out->bytes)
		return -ENOMEM;
	out->bytes[len] = '\0';
	for (const char *at = out->bytes, *end = at + len; at < end;) {
		const char *digest = at + strlen(at) + 1, *path = digest < end ? digest + strlen(digest) + 1 : end;
		struct record *record;

		if (path >= end)
			return -EBADMSG;
		record = strcmp(at, LOOK) != 0 ? list_add(&out->records) : list_add(&out->looks);
		if (!record)
			return -ENOMEM;
		*record = (struct record){.identity = at, .digest = digest, .path = path};
		at = path + strlen(path) + 1;
	}
	return 1;
}

static int write_shown(const struct workspace *workspace, enum workspace_viewer viewer, const struct text *text)
{
	AUTO_CLOSE int fd = -1;
	char name[64];
	size_t done = 0;
	int rc = 0;

	if (text_failed(text))
		return -ENOMEM;
	/* Looking takes no lock: two may look at once. */
	snprintf(name, sizeof(name), "%s.%d", names[viewer], (int)getpid());
	fd = openat(workspace->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	while (done < text->len && rc == 0) {
		ssize_t count = write(fd, text->data + done, text->len - done);

		if (count < 0)
			rc = -errno;
		else
			done += (size_t)count;
	}
	if (rc == 0 && renameat(workspace->fd, name, workspace->fd, names[viewer]) < 0)
		rc = -errno;
	if (rc < 0)
		unlinkat(workspace->fd, name, 0);
	return rc;
}

static bool is_below(const char *path, const struct string_list *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		if (workspace_change_is_within(path, paths->items[i]))
			return true;
	return !paths->count;
}

/* What @shown has of other paths, and what @list is now. */
static void merge(const struct workspace_view *view, const struct shown *shown, const struct change_list *list,
		  const struct string_list *paths, struct text *out)
{
	size_t at = 0;

	for (size_t i = 0; i < shown->looks.count; i++)
		if (!is_below(shown->looks.items[i].path, paths))
			append(out, LOOK, "", shown->looks.items[i].path);
	for (size_t i = 0; i < paths->count; i++)
		append(out, LOOK, "", paths->items[i]);
	if (!paths->count)
		append(out, LOOK, "", ".");
	for (size_t i = 0; i <= list->count; i++) {
		const struct change *change = i < list->count ? &list->items[i] : NULL;
		char identity[IDENTITY_SIZE], hex[DIGEST_SHA256_HEX];

		for (;
		     at < shown->records.count && (!change || strcmp(shown->records.items[at].path, change->path) <= 0);
		     at++) {
			const struct record *record = &shown->records.items[at];

			if (!is_below(record->path, paths))
				append(out, record->identity, record->digest, record->path);
		}
		if (!change)
			break;
		identify(change, identity);
		digest_change(view, change, hex);
		append(out, identity, hex, change->path);
	}
}

int workspace_shown_note(const struct workspace_view *view, const struct workspace *workspace,
			 const struct change_list *list, const struct string_list *paths, enum workspace_viewer viewer,
			 struct error *error)
{
	AUTO(shown_done) struct shown shown = {0};
	AUTO_TEXT text = {0};
	int rc;

	/* A user who saw that there is nothing, and applies something later, knows that it is new. */
	if (!list->count && !paths->count) {
		unlinkat(workspace->fd, names[viewer], 0);
		return 0;
	}
	rc = paths->count ? read_shown(workspace, viewer, &shown) : 0;

	/* One that is damaged is shown anew as a whole, or not at all. */
	if (rc >= 0) {
		merge(view, &shown, list, paths, &text);
		rc = write_shown(workspace, viewer, &text);
	}
	if (rc < 0) {
		error_set(error, STAGE_FILES, -rc, "cannot remember in '%s' what is shown: %s", workspace->path,
			  strerror(-rc));
		return error_hint(error, "`belljar apply` needs it, to apply what was shown and nothing else");
	}
	return 0;
}

void workspace_shown_forget(const struct workspace *workspace)
{
	for (size_t i = 0; i < VIEWER_COUNT; i++)
		unlinkat(workspace->fd, names[i], 0);
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static void refuse(struct change *change, const char *why)
{
	change->flags |= CHANGE_IS_REFUSED | CHANGE_IS_UNSEEN;
	change->why = why;
}

static bool was_looked_at(const struct shown *shown, const char *path)
{
	for (size_t i = 0; i < shown->looks.count; i++)
		if (workspace_change_is_within(path, shown->looks.items[i].path))
			return true;
	return false;
}

static bool is_as_shown(const struct workspace_view *view, const struct change *change, const struct record *record)
{
	AUTO_CLOSE int fd = -1;
	char identity[IDENTITY_SIZE], hex[DIGEST_SHA256_HEX] = "";

	identify(change, identity);
	if (strcmp(identity, record->identity) != 0)
		return false;
	if (!record->digest[0])
		return true;
	fd = open_new(view, change);
	if (fd >= 0 && S_ISDIR(change->after.mode))
		digest_xattrs(fd, hex);
	else if (fd >= 0)
		digest_content(fd, change->after.size, hex);
	return strcmp(hex, UNKNOWN) != 0 && !strcmp(hex, record->digest);
}

static void check(const struct workspace_view *view, const struct shown *shown, const struct record *record,
		  struct change *change)
{
	AUTO_CLOSE int fd = S_ISREG(change->after.mode) ? open_new(view, change) : -1;

	if (fd >= 0 && change->layer < view->layer_count && is_written(fd))
		refuse(change, "a process has it open to write, and can change it at any time");
	else if (!record && was_looked_at(shown, change->path))
		refuse(change, "is newer than what was shown");
	else if (record && !is_as_shown(view, change, record))
		refuse(change, "changed since it was shown");
}

int workspace_shown_check(const struct workspace_view *view, const struct workspace *workspace,
			  struct change_list *list, enum workspace_viewer viewer, struct error *error)
{
	AUTO(shown_done) struct shown shown = {0};
	size_t at = 0;
	int rc = read_shown(workspace, viewer, &shown);

	if (rc < 0) {
		error_set(error, STAGE_FILES, -rc, "cannot read in '%s' what was shown: %s", workspace->path,
			  strerror(-rc));
		return error_hint(error, "look at the whole workspace again: `belljar diff %s`", workspace->meta.id);
	}
	for (size_t i = 0; i < list->count; i++) {
		struct change *change = &list->items[i];
		const struct record *record;

		while (at < shown.records.count && strcmp(shown.records.items[at].path, change->path) < 0)
			at++;
		record = at < shown.records.count && !strcmp(shown.records.items[at].path, change->path)
				 ? &shown.records.items[at]
				 : NULL;
		check(view, &shown, record, change);
	}
	return 0;
}
