/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_spare.c - keep one store in which nothing was changed for the next workspace
 *
 * Many commands change nothing. Each of their stores would cost making five objects and removing nine, and removing is
 * the slowest operation here. So one such store stays, as `.spare`, and becomes the next workspace with a rename.
 *
 * The old layer is not used again: a process may still hold a descriptor of it. The engine puts `upper`, and the
 * kernel's own directory in `work`, aside when it takes the store, and removes them while the jar is being made.
 */
#include "workspace/workspace_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/reap/reap.h"
#include "workspace/workspace_place.h"

#define SPARE ".spare"
#define OLD_UPPER "old-upper"
#define OLD_WORK "old-work"

/* Are there as many entries in the directory as @names has, and none besides? */
static bool has_just(int directory_fd, const char *const *names, size_t count)
{
	_Alignas(struct directory_entry) char entries[4096];
	AUTO_CLOSE int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct directory list = {.fd = fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;
	size_t found = 0;

	while (fd >= 0 && (entry = directory_next(&list))) {
		size_t i = 0;

		while (i < count && strcmp(names[i], entry->name) != 0)
			i++;
		if (i == count)
			return false;
		found++;
	}
	return fd >= 0 && list.len == 0 && found == count;
}

/* Report whether the store has only the known names, and an empty upper, so that removing it is quick. */
static bool is_bare(const struct workspace *workspace)
{
	static const char *const names[] = {"lock", "meta.json", "upper", "work"};

	return has_just(workspace->fd, names, ARRAY_LEN(names)) && has_just(workspace->upper_fd, NULL, 0);
}

/* --- taking it ---------------------------------------------------------------------------------------------------- */

static int put_aside(const struct workspace *workspace)
{
	if (renameat(workspace->fd, "upper", workspace->fd, OLD_UPPER) < 0)
		return -errno;
	return renameat(workspace->fd, "work/work", workspace->fd, OLD_WORK) < 0 && errno != ENOENT ? -errno : 0;
}

static int open_spare(struct workspace *workspace, mode_t workdir_mode)
{
	int rc;

	workspace->lock_fd = workspace_store_lock(workspace->fd, workspace->meta.id, NULL);
	rc = MIN_OF(workspace->lock_fd, 0);
	if (rc == 0)
		rc = put_aside(workspace);
	if (rc == 0)
		rc = workspace_store_open_parts(workspace);
	return rc == 0 ? workspace_store_make_upper(workspace, workdir_mode) : rc;
}

bool workspace_spare_open(const struct workspace_home *home, struct workspace *workspace, mode_t workdir_mode)
{
	int rc;

	if (workspace->meta.place || workspace->meta.kind != WORKSPACE_OVERLAY)
		return false;
	workspace->fd = workspace_open_private(home->fd, SPARE);
	if (workspace->fd < 0)
		return false;
	rc = open_spare(workspace, workdir_mode);
	if (rc == 0)
		return true;
	close_fd(&workspace->upper_fd);
	close_fd(&workspace->parts_fd);
	close_fd(&workspace->fd);
	close_fd(&workspace->lock_fd);
	free(take_ptr(workspace->parts_path));
	/* The process that has just put it by may hold its lock a moment longer. */
	if (rc != -EBUSY)
		reap_sweep_at(home->fd, SPARE);
	return false;
}

int workspace_spare_take(const struct workspace_home *home, const struct workspace *workspace)
{
	return renameat(home->fd, SPARE, home->fd, workspace->meta.id) < 0 ? -errno : 0;
}

void workspace_tidy(const struct workspace *workspace)
{
	reap_sweep_at(workspace->fd, OLD_UPPER);
	reap_sweep_at(workspace->fd, OLD_WORK);
}

/* --- putting it by ------------------------------------------------------------------------------------------------ */

/* The kernel's directories have no rights at all: they could not be moved, nor could their owner remove the store with `rm -r`. */
static bool give_rights(const struct workspace *workspace)
{
	static const char *const names[] = {"work/work", "work/work/incompat", "work/work/incompat/volatile"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (fchmodat(workspace->fd, names[i], 0700, 0) < 0 && errno != ENOENT)
			return false;
	return true;
}

int workspace_put_by(const struct workspace_home *home, struct workspace *workspace, struct error *error)
{
	bool may_stay = !workspace->meta.place && workspace->meta.kind == WORKSPACE_OVERLAY &&
			!workspace->meta.layers.count && workspace->lock_fd >= 0 && is_bare(workspace) &&
			give_rights(workspace);
	AUTO_CLOSE int lock = may_stay ? workspace_store_lock_home(home, NULL) : -1;

	/* Another one that is there is not empty, and stays. */
	if (lock < 0 || renameat(home->fd, workspace->meta.id, home->fd, SPARE) < 0) {
		close_fd(&lock);
		return workspace_remove(home, workspace, error);
	}
	workspace_done(workspace);
	return 0;
}
