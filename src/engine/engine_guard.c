/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_guard.c - end a jar when the host takes away what hides a file
 *
 * A file is hidden by a mount over it. The kernel drops that mount, in every jar, when a program of the host saves by renaming a new
 * file over the old one, or removes the old one. When a program moves the file, or a directory above it, the
 * mount moves along. Then the jar sees the new file of that name. The engine cannot mount in an existing jar.
 * So it watches the objects and the directories above them (inotify), and ends the jar.
 *
 * A file that a process of the jar opens before the engine wakes up stays open until the jar ends: a few milliseconds
 * on a host with a free processor. The check at the end of each run finds what no watch reported in time.
 */
#include "engine/engine_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "survey/survey_paths.h"
#include "base/sys/calls.h"

/* The object is no longer where it was. A new one may have got its number, so that looking there shows no difference. */
#define GONE_EVENTS (IN_MOVE_SELF | IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW)
#define OWN_EVENTS (IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_MASK_ADD)
/* For a directory that contains an object that the caller cannot read, and so not watch. */
#define NAME_EVENTS (OWN_EVENTS | IN_MOVE | IN_DELETE | IN_CREATE)

/* --- the objects to watch ----------------------------------------------------------------------------------- */

static void take_outer(const struct host_path *root, const char *path, const struct host_path **found)
{
	if (root->path && root->kind == PATH_DIRECTORY && path_is_within(path, root->path) &&
	    strcmp(path, root->path) != 0 && (!*found || strlen(root->path) < strlen((*found)->path)))
		*found = root;
}

/* The outermost directory that the jar shows around @path. Under a layer the host's names are not the jar's. */
static const struct host_path *shown_around(const struct host *host, const char *path)
{
	const struct host_path *own[] = {&host->workdir.path, &host->workdir.top, &host->workdir.git,
					 &host->workdir.git_own};
	const struct host_path_list *lists[] = {&host->mounts, &host->toolchains, &host->system};
	const struct host_path *found = NULL;

	for (size_t i = 0; i < host->layers.count; i++)
		if (path_is_within(path, host->layers.items[i].path.path))
			return NULL;
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		take_outer(own[i], path, &found);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++)
			take_outer(&lists[i]->items[j], path, &found);
	return found;
}

static int add_item(struct engine_guard *guard, const struct host *host, const struct host_path *path)
{
	const struct host_path *root =
		path->kind == PATH_DIRECTORY || path->kind == PATH_FILE ? shown_around(host, path->path) : NULL;
	struct guard_item *item;
	int fd;

	if (!root)
		return 0;
	fd = survey_open_top(root);
	if (fd < 0)
		return fd;
	item = list_add(&guard->items);
	if (!item) {
		close_fd(&fd);
		return -ENOMEM;
	}
	*item = (struct guard_item){
		.path = path->path,
		.name = path->path + (root->path[1] ? strlen(root->path) : 0) + 1,
		.device = path->device,
		.inode = path->inode,
		.root_fd = fd,
	};
	return 0;
}

static int collect(struct engine_guard *guard, const struct host *host, const struct policy *policy)
{
	int rc = 0;

	for (size_t i = 0; i < host->hidden.count && rc == 0; i++)
		rc = add_item(guard, host, &host->hidden.items[i]);
	for (size_t i = 0; i < host->own.count && rc == 0; i++)
		if (survey_written_around(host, policy, host->own.items[i].path))
			rc = add_item(guard, host, &host->own.items[i]);
	return rc;
}

/* --- looking ------------------------------------------------------------------------------------------------ */

static bool is_in_place(const struct guard_item *item)
{
	AUTO_CLOSE int fd = sys_openat2(item->root_fd, item->name, O_PATH | O_NOFOLLOW, 0,
					SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == item->device && status.st_ino == item->inode;
}

static void read_events(struct engine_guard *guard)
{
	_Alignas(struct inotify_event) char buffer[4096];
	ssize_t len;

	while (guard->inotify_fd > 0 && (len = read(guard->inotify_fd, buffer, sizeof(buffer))) > 0) {
		const struct inotify_event *event;

		for (ssize_t at = 0; at < len; at += (ssize_t)(sizeof(*event) + event->len)) {
			event = (const struct inotify_event *)(buffer + at);
			guard->has_moved |= (event->mask & GONE_EVENTS) != 0;
		}
	}
}

bool engine_guard_is_lifted(struct engine_guard *guard, struct error *error)
{
	read_events(guard);
	for (size_t i = 0; i < guard->items.count; i++) {
		const struct guard_item *item = &guard->items.items[i];

		if (!guard->has_moved && is_in_place(item))
			continue;
		error_set(error, STAGE_ISOLATE, ESTALE,
			  "the jar could no longer cover '%s': a program of the host replaced, moved or removed it",
			  item->path);
		error_hint(error, "start again: a new jar covers what is there now; or write to the file in place");
		return true;
	}
	return false;
}

/* The object itself, and every directory between it and the root. */
static int watch_item(int inotify_fd, const struct guard_item *item)
{
	uint32_t events = OWN_EVENTS;
	char path[PATH_MAX];

	for (size_t len = strlen(item->name); len; len--) {
		if (item->name[len] && item->name[len] != '/')
			continue;
		if (snprintf(path, sizeof(path), "/proc/self/fd/%d/%.*s", item->root_fd, (int)len, item->name) >=
		    (int)sizeof(path))
			return -ENAMETOOLONG;
		if (inotify_add_watch(inotify_fd, path, events) >= 0)
			events = OWN_EVENTS;
		else if (errno == EACCES)
			events = NAME_EVENTS;
		else
			return -errno;
	}
	return 0;
}

static void on_event(struct loop_watch *watch, uint32_t events)
{
	struct engine_guard *guard = watch->owner;
	struct error error = {0};

	(void)events;
	if (!engine_guard_is_lifted(guard, &error))
		return;
	loop_remove(&guard->watch);
	guard->lifted(guard->owner, &error);
}

static int watch_all(struct engine_guard *guard, struct loop *loop)
{
	AUTO_CLOSE int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	int rc = fd < 0 ? -errno : 0;

	for (size_t i = 0; i < guard->items.count && rc == 0; i++)
		rc = watch_item(fd, &guard->items.items[i]);
	if (rc == 0)
		rc = loop_add(loop, &guard->watch, fd, EPOLLIN, on_event, guard);
	if (rc == 0)
		guard->inotify_fd = take_fd(&fd);
	return rc;
}

int engine_guard_open(struct engine_guard *guard, struct loop *loop, const struct host *host,
		      const struct policy *policy, void (*lifted)(void *owner, const struct error *error), void *owner,
		      struct error *error)
{
	int rc = collect(guard, host, policy);

	guard->lifted = lifted;
	guard->owner = owner;
	if (rc == 0 && guard->items.count)
		rc = watch_all(guard, loop);
	if (rc == 0)
		return 0;
	engine_guard_close(guard);
	error_set(error, STAGE_ISOLATE, -rc, "cannot watch the files that the jar hides: %s", strerror(-rc));
	if (rc == -EMFILE || rc == -ENOSPC)
		error_hint(error, "raise fs.inotify.max_user_instances and max_user_watches, or hide less");
	return rc;
}

void engine_guard_close(struct engine_guard *guard)
{
	loop_remove(&guard->watch);
	for (size_t i = 0; i < guard->items.count; i++)
		close_fd(&guard->items.items[i].root_fd);
	free(guard->items.items);
	if (guard->inotify_fd > 0)
		close_fd(&guard->inotify_fd);
	*guard = (struct engine_guard){0};
}
