/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_base.c - what texts were before both sides changed them, and merging with that
 *
 * When a run ends, the workdir's side of a changed file is what the command began with, as long as its time of change is older
 * than the workspace. That is the moment to keep it: once the host has saved its own version, nobody knows any more. Kept are
 * small texts only, so the cost is that of what was changed, and bounded.
 *
 * A base is good until its file is applied: from then on the workdir has another one. So it is forgotten before that, and
 * whoever is killed in between has a conflict and no base, never a wrong one.
 *
 * What was merged takes the place of the workspace's side first. Whoever is killed then merges once more: both sides have the
 * host's edits by now, so the result is the same.
 */
#include "workspace/workspace_base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/directory.h"
#include "reap/reap.h"
#include "workspace/workspace_digest.h"
#include "workspace/workspace_merge.h"

#define DIRECTORY "bases"
#define NEW_NAME ".new"
#define TEMPORARY ".merged"

static void name_of(const char *path, char out[DIGEST_SHA256_HEX])
{
	struct digest digest;

	digest_init_sha256(&digest);
	digest_add(&digest, path, strlen(path));
	digest_hex(&digest, out);
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

static int read_text(int fd, size_t max, struct text *out)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size > max)
		return -EFBIG;
	while (out->len <= max) {
		char *room = text_reserve(out, 65536);
		ssize_t count = room ? read(fd, room, 65536) : -ENOMEM;

		if (!room)
			return -ENOMEM;
		if (count < 0)
			return -errno;
		if (!count)
			return memchr(text_string(out), '\0', out->len) ? -EILSEQ : 0;
		out->len += (size_t)count;
	}
	return -EFBIG;
}

static int write_text(int fd, const struct text *text)
{
	for (size_t at = 0; at < text->len;) {
		ssize_t count = write(fd, text->data + at, text->len - at);

		if (count < 0)
			return -errno;
		at += (size_t)count;
	}
	return 0;
}

static int open_file(int top_fd, const char *path)
{
	const char *name;
	AUTO_CLOSE int parent = view_open_parent(top_fd, path, &name);
	int fd = parent < 0 ? parent : openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 && parent >= 0 ? -errno : fd;
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

void base_keeper_init(struct base_keeper *keeper, const struct workspace_view *view, const struct workspace *workspace)
{
	*keeper = (struct base_keeper){.view = view, .workspace = workspace, .fd = -1};
}

void base_keeper_done(struct base_keeper *keeper)
{
	close_fd(&keeper->fd);
}

static bool open_keeper(struct base_keeper *keeper)
{
	_Alignas(struct directory_entry) char entries[16384];
	struct directory list = {.buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;
	struct stat status;

	if (keeper->fd >= 0)
		return true;
	if (mkdirat(keeper->workspace->fd, DIRECTORY, 0700) < 0 && errno != EEXIST)
		return false;
	keeper->fd = openat(keeper->workspace->fd, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	list.fd = keeper->fd;
	while (keeper->fd >= 0 && (entry = directory_next(&list))) {
		keeper->count++;
		if (fstatat(keeper->fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			keeper->bytes += (uint64_t)status.st_size;
	}
	return keeper->fd >= 0;
}

static bool is_of(int fd, const struct change_side *side)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_dev == side->device && status.st_ino == side->inode &&
	       view_changed_ns(&status) == side->ctime_ns;
}

void base_keep(struct base_keeper *keeper, const struct change *change)
{
	const struct change_side *side = &change->before;
	char name[DIGEST_SHA256_HEX];
	AUTO_CLOSE int from = -1, to = -1;
	AUTO_TEXT text = {0};

	if (change->kind != CHANGE_MODIFIED || !S_ISREG(side->mode) || side->size > BASE_FILE_BYTES_MAX ||
	    view_is_touched_at(keeper->view, side->device, side->inode, side->ctime_ns) || !open_keeper(keeper))
		return;
	name_of(change->path, name);
	if (faccessat(keeper->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || keeper->count >= BASE_FILES_MAX ||
	    keeper->bytes + side->size > BASE_BYTES_MAX)
		return;
	from = open_file(view_workdir(keeper->view), change->path);
	if (from < 0 || read_text(from, BASE_FILE_BYTES_MAX, &text) < 0)
		return;
	to = openat(keeper->fd, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* What was read is what was looked at only if nobody has touched it meanwhile. */
	if (to < 0 || write_text(to, &text) < 0 || fchmod(to, side->mode & 0777) < 0 || !is_of(from, side) ||
	    renameat(keeper->fd, NEW_NAME, keeper->fd, name) < 0) {
		unlinkat(keeper->fd, NEW_NAME, 0);
		return;
	}
	keeper->count++;
	keeper->bytes += text.len;
}

void base_forget(const struct workspace *workspace, const char *path)
{
	char name[sizeof(DIRECTORY) + DIGEST_SHA256_HEX] = DIRECTORY "/";

	name_of(path, name + strlen(name));
	unlinkat(workspace->fd, name, 0);
}

void base_forget_all(const struct workspace *workspace)
{
	reap_sweep_at(workspace->fd, DIRECTORY);
}

/* --- merging ------------------------------------------------------------------------------------------------------ */

static const char *const too_much = "cannot be merged: it is no text, or too large";

struct merging {
	struct text base, ours, theirs, merged;
	mode_t mode;
};

static void merging_done(struct merging *merging)
{
	text_done(&merging->base);
	text_done(&merging->ours);
	text_done(&merging->theirs);
	text_done(&merging->merged);
}

/* The permissions that one side changed; of both, if they are the same. */
static bool merge_modes(mode_t base, mode_t ours, mode_t theirs, mode_t *out)
{
	if (((ours | theirs) & 07000) || (ours != base && theirs != base && ours != theirs))
		return false;
	*out = ours != base ? ours : theirs;
	return true;
}

static const char *read_all(const struct workspace_view *view, const struct workspace *workspace,
			    const struct change *change, struct merging *merging)
{
	char name[sizeof(DIRECTORY) + DIGEST_SHA256_HEX] = DIRECTORY "/";
	AUTO_CLOSE int base = -1, ours = -1, theirs = -1;
	struct stat status;

	name_of(change->path, name + strlen(name));
	base = openat(workspace->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (base < 0 || fstat(base, &status) < 0 || read_text(base, BASE_FILE_BYTES_MAX, &merging->base) < 0)
		return "cannot be merged: what it was before is not known";
	ours = open_file(view_workdir(view), change->path);
	theirs = open_file(view->fds[0], change->path);
	if (ours < 0 || theirs < 0 || read_text(ours, MERGE_BYTES_MAX, &merging->ours) < 0 ||
	    read_text(theirs, MERGE_BYTES_MAX, &merging->theirs) < 0)
		return too_much;
	if (!is_of(ours, &change->before) || !is_of(theirs, &change->after))
		return "cannot be merged: it changes at this moment";
	if (change->flags & CHANGE_HAS_XATTRS || !merge_modes(status.st_mode & 0777, change->before.mode & 07777,
							      change->after.mode & 07777, &merging->mode))
		return "cannot be merged: both sides changed its permissions or attributes";
	return NULL;
}

/* The merged text in the upper, under the same name. 0 or a negative errno. */
static int replace_upper(const struct workspace_view *view, const struct workspace *workspace, struct change *change,
			 const struct merging *merging)
{
	const char *name;
	AUTO_CLOSE int parent = view_open_parent(view->fds[0], change->path, &name);
	AUTO_CLOSE int from = parent < 0 ? -1 : openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_CLOSE int to = -1;
	struct stat status;
	int rc;

	if (from < 0)
		return parent < 0 ? parent : -errno;
	unlinkat(workspace->parts_fd, TEMPORARY, 0);
	to = openat(workspace->parts_fd, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	rc = write_text(to, &merging->merged);
	if (rc == 0)
		rc = view_copy_xattrs(from, to);
	if (rc == 0 && view->kind == WORKSPACE_OVERLAY)
		rc = view_mark_copied_up(view, to);
	if (rc == 0 && fchmod(to, merging->mode) < 0)
		rc = -errno;
	if (rc == 0 && renameat(workspace->parts_fd, TEMPORARY, parent, name) < 0)
		rc = -errno;
	if (rc == 0 && fstat(to, &status) < 0)
		rc = -errno;
	if (rc < 0)
		unlinkat(workspace->parts_fd, TEMPORARY, 0);
	else
		change_side_of(&status, &change->after);
	return rc;
}

const char *base_merge(const struct workspace_view *view, const struct workspace *workspace, struct change *change,
		       bool is_dry_run)
{
	AUTO(merging_done) struct merging merging = {0};
	const char *why;
	int rc;

	if (change->kind != CHANGE_MODIFIED || !S_ISREG(change->before.mode))
		return "cannot be merged: only one side has it as a file";
	if (change->layer != 0 || change->layer_path || change->after.link_count > 1)
		return "cannot be merged: it belongs to a checkpoint, or has several names";
	why = read_all(view, workspace, change, &merging);
	if (why)
		return why;
	rc = merge_texts(&merging.base, &merging.ours, &merging.theirs, &merging.merged);
	if (rc == 0)
		return "cannot be merged: both sides changed the same lines";
	if (rc == 1 && !is_dry_run)
		rc = replace_upper(view, workspace, change, &merging);
	return rc < 0 ? "cannot be merged: the workspace cannot be written to" : NULL;
}
