/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_applied.c - record what an apply wrote into the workdir, so that it is no conflict later
 *
 * If a workspace goes on after an apply of a part, the applied files have a ctime later than its stamp, and would look
 * like changes by the host. So the store lists the applied objects with the ctime that the apply gave them. A later
 * change gives an object another ctime.
 */
#include "workspace/workspace_applied.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/list.h"

#define NAME "applied"
#define BYTES_MAX ((size_t)64 << 20)

static int by_inode(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct applied_object));
}

void workspace_applied_done(struct applied_list *list)
{
	free(list->items);
	*list = (struct applied_list){0};
}

void workspace_applied_read(int store_fd, struct applied_list *out)
{
	AUTO_CLOSE int fd = openat(store_fd, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	size_t len;

	*out = (struct applied_list){0};
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || (uint64_t)status.st_size > BYTES_MAX)
		return;
	len = (size_t)status.st_size / sizeof(*out->items) * sizeof(*out->items);
	out->items = len ? malloc(len) : NULL;
	if (!out->items || read(fd, out->items, len) != (ssize_t)len) {
		workspace_applied_done(out);
		return;
	}
	out->count = out->capacity = len / sizeof(*out->items);
	qsort(out->items, out->count, sizeof(*out->items), by_inode);
}

bool workspace_applied_has(const struct applied_list *list, dev_t device, ino_t inode, int64_t ctime_ns)
{
	const struct applied_object key = {.device = device, .inode = inode, .ctime_ns = ctime_ns};

	return list->count && bsearch(&key, list->items, list->count, sizeof(key), by_inode);
}

static void add(struct applied_list *list, const struct stat *status)
{
	struct applied_object *object = list_add(list);

	if (object)
		*object = (struct applied_object){status->st_dev, status->st_ino, workspace_view_changed_ns(status)};
}

/* Is it still what the step left? The host may have saved it since, and its time of change would be the host's. */
static bool is_ours(const struct stat *status, const struct change *change)
{
	const struct change_side *side = change->kind == CHANGE_MODE ? &change->before : &change->after;

	return !S_ISREG(status->st_mode) || (S_ISREG(side->mode) && (uint64_t)status->st_size == side->size &&
					     workspace_view_modified_ns(status) == side->mtime_ns);
}

void workspace_applied_note(const struct workspace_view *view, const struct workspace *workspace,
			    const struct change_list *changes)
{
	struct applied_list list = {0};
	AUTO_FREE char *last = NULL;
	AUTO_CLOSE int parent = -1;
	AUTO_CLOSE int fd = -1;

	for (size_t i = 0; i < changes->count; i++) {
		const struct change *change = &changes->items[i];
		const char *slash = strrchr(change->path, '/');
		size_t len = slash ? (size_t)(slash - change->path) : 0;
		struct stat status;

		if (!(change->flags & CHANGE_IS_DONE))
			continue;
		if (!last || strlen(last) != len || strncmp(last, change->path, len) != 0) {
			free(last);
			close_fd(&parent);
			last = strndup(change->path, len);
			parent = last ? workspace_view_open_directory(workspace_view_workdir(view), last) : -1;
			if (parent >= 0 && fstat(parent, &status) == 0)
				add(&list, &status);
		}
		if (parent >= 0 &&
		    fstatat(parent, slash ? slash + 1 : change->path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		    is_ours(&status, change))
			add(&list, &status);
	}
	fd = list.count ? openat(workspace->fd, NAME, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600)
			: -1;
	if (fd >= 0 && write(fd, list.items, list.count * sizeof(*list.items)) < 0)
		unlinkat(workspace->fd, NAME, 0);
	workspace_applied_done(&list);
}
