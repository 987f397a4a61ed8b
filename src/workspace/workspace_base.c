/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_base.c - keep what a text was before the command and the host both changed it
 *
 * When a run ends, the workdir's side of a changed file is what the command began with, as long as its time of change is older
 * than the workspace. Keep it then: after the host has saved its own version it is lost. Belljar keeps small texts only, so
 * the cost is that of what was changed, and bounded.
 *
 * The patch of a conflict needs it. A patch from the workdir's version to the workspace's would undo the host's change, and
 * `git apply --3way` would take it without a word.
 *
 * A base is good until its file is applied: from then on the workdir has another one. So Belljar forgets it before that. After a
 * kill in between there is a conflict and no base, never a wrong one.
 */
#include "workspace/workspace_base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/directory.h"
#include "base/reap/reap.h"
#include "workspace/workspace_digest.h"

#define DIRECTORY "bases"
#define NEW_NAME ".new"

static void name_of(const char *path, char out[DIGEST_SHA256_HEX])
{
	struct digest digest;

	workspace_digest_init_sha256(&digest);
	workspace_digest_add(&digest, path, strlen(path));
	workspace_digest_hex(&digest, out);
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
	AUTO_CLOSE int parent = workspace_view_open_parent(top_fd, path, &name);
	int fd = parent < 0 ? parent : openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 && parent >= 0 ? -errno : fd;
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

void workspace_base_keeper_init(struct base_keeper *keeper, const struct workspace_view *view,
				const struct workspace *workspace)
{
	*keeper = (struct base_keeper){.view = view, .workspace = workspace, .fd = -1};
}

void workspace_base_keeper_done(struct base_keeper *keeper)
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
	       workspace_view_changed_ns(&status) == side->ctime_ns;
}

void workspace_base_keep(struct base_keeper *keeper, const struct change *change)
{
	const struct change_side *side = &change->before;
	char name[DIGEST_SHA256_HEX];
	AUTO_CLOSE int from = -1, to = -1;
	AUTO_TEXT text = {0};

	if (change->kind != CHANGE_MODIFIED || !S_ISREG(side->mode) || side->size > BASE_FILE_BYTES_MAX ||
	    workspace_view_is_touched_at(keeper->view, side->device, side->inode, side->ctime_ns) ||
	    !open_keeper(keeper))
		return;
	name_of(change->path, name);
	if (faccessat(keeper->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || keeper->count >= BASE_FILES_MAX ||
	    keeper->bytes + side->size > BASE_BYTES_MAX)
		return;
	from = open_file(workspace_view_workdir(keeper->view), change->path);
	if (from < 0 || read_text(from, BASE_FILE_BYTES_MAX, &text) < 0)
		return;
	to = openat(keeper->fd, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* The copy is good only if the file is still the one that was looked at. */
	if (to < 0 || write_text(to, &text) < 0 || fchmod(to, side->mode & 0777) < 0 || !is_of(from, side) ||
	    renameat(keeper->fd, NEW_NAME, keeper->fd, name) < 0) {
		unlinkat(keeper->fd, NEW_NAME, 0);
		return;
	}
	keeper->count++;
	keeper->bytes += text.len;
}

void workspace_base_forget(const struct workspace *workspace, const char *path)
{
	char name[sizeof(DIRECTORY) + DIGEST_SHA256_HEX] = DIRECTORY "/";

	name_of(path, name + strlen(name));
	unlinkat(workspace->fd, name, 0);
}

void workspace_base_forget_all(const struct workspace *workspace)
{
	reap_sweep_at(workspace->fd, DIRECTORY);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

int workspace_base_open(const struct workspace *workspace, const char *path, struct stat *status)
{
	char name[sizeof(DIRECTORY) + DIGEST_SHA256_HEX] = DIRECTORY "/";
	int fd;

	name_of(path, name + strlen(name));
	fd = openat(workspace->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, status) < 0 || !S_ISREG(status->st_mode)))
		close_fd(&fd);
	return fd;
}

bool workspace_base_is_known(const struct workspace *workspace, const char *path)
{
	struct stat status;
	AUTO_CLOSE int fd = workspace_base_open(workspace, path, &status);

	return fd >= 0;
}
