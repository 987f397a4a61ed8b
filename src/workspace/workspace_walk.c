/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_walk.c - meet every difference between a workspace and its workdir
 *
 * For each directory there are sources, topmost first: directories of layers, and the workdir's own last if nothing hides it.
 * Together they are the new state. The base is the workdir's directory at the same path: the old state. If the last source is
 * the base itself, only names that a layer has can differ; else every name of both is compared.
 *
 * Directories wait in a list and are opened by their paths, one after the other: neither depth nor layers cost descriptors,
 * and nothing recurses.
 */
#include "workspace/workspace_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/directory.h"
#include "base/list.h"

#define ENTRY_BYTES 65536
#define SOURCES_MAX (WORKSPACE_LAYERS_MAX + 2)

/* A directory that is part of a merged one. */
struct source {
	unsigned layer;
	char *path; /* in it; NULL: the merged path */
};

struct place {
	char *path; /* merged */
	struct source sources[SOURCES_MAX];
	unsigned source_count;
	bool has_base;
	bool is_moved;   /* of a whole copy: it may have been renamed, with all in it */
	bool is_hiding;  /* a name that is missing here is removed, not seen through to the workdir */
	bool is_renamed; /* by the topmost layer: it shows what those below have elsewhere */
};

LIST_TYPE(struct place *, place_list);

static void place_free(struct place *place)
{
	if (!place)
		return;
	for (unsigned i = 0; i < place->source_count; i++)
		free(place->sources[i].path);
	free(place->path);
	free(place);
}

/* A place while it is looked at. */
struct opened {
	struct place *place;
	int fds[SOURCES_MAX];
	int base;
};

/* What a name stands for in the new state. */
struct found {
	struct stat status; /* st_mode 0: nothing */
	unsigned index;     /* of the source it was found in */
	struct place *directory;
	bool is_closed;
};

static const char *source_path(const struct place *place, unsigned index)
{
	return place->sources[index].path ? place->sources[index].path : place->path;
}

static char *join(const char *directory, const char *name)
{
	char *path;

	if (strlen(directory) + strlen(name) + 2 > WORKSPACE_PATH_MAX)
		return NULL;
	return asprintf(&path, "%s%s%s", directory, *directory ? "/" : "", name) < 0 ? NULL : path;
}

static struct place *place_new(const char *directory, const char *name)
{
	struct place *place = calloc(1, sizeof(*place));

	if (place)
		place->path = join(directory, name);
	if (place && place->path)
		return place;
	free(place);
	return NULL;
}

static bool is_transparent(const struct walk *walk, const struct place *place)
{
	const struct source *last = place->source_count ? &place->sources[place->source_count - 1] : NULL;

	return last && last->layer == walk->view->layer_count && !last->path;
}

/* --- the new state of a name -------------------------------------------------------------------------------------- */

static int forged(struct walk *walk, const char *path)
{
	snprintf(walk->refused, sizeof(walk->refused), "%s", path);
	return -EBADMSG;
}

/*
 * Is @path a directory in this layer? As the kernel looks: something else in the way, or a directory that hides, ends the search
 * in the layers below as well. A frozen layer was settled before: nothing in it leads elsewhere.
 */
static int look_up(const struct workspace_view *view, unsigned layer, const char *path, bool *is_there, bool *is_last)
{
	AUTO_CLOSE int at = -1;

	*is_there = false;
	*is_last = layer == view->layer_count || workspace_view_is_opaque(view, view->fds[layer]);
	while (*path) {
		AUTO_FREE char *name = strndup(path, strcspn(path, "/")), *again = NULL;
		int from = at >= 0 ? at : view->fds[layer], fd;
		struct stat status;

		if (!name)
			return -ENOMEM;
		if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : -errno;
		if (!S_ISDIR(status.st_mode)) {
			*is_last = true;
			return 0;
		}
		fd = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		close_fd(&at);
		at = fd;
		if (layer != view->layer_count) {
			*is_last |= workspace_view_is_opaque(view, fd);
			if (workspace_view_redirect(view, fd, "", &again) < 0 || again)
				return -EBADMSG;
		}
		path += strlen(name);
		path += strspn(path, "/");
	}
	*is_there = true;
	return 0;
}

/* The directory was renamed: below here the layers, and the workdir, have it at @target. */
static int add_redirected(struct walk *walk, struct place *child, unsigned above, const char *target)
{
	bool is_there, is_last = false;

	for (unsigned layer = above + 1; layer <= walk->view->layer_count && !is_last; layer++) {
		struct source *source;
		int rc = look_up(walk->view, layer, target, &is_there, &is_last);

		if (rc < 0)
			return rc == -EBADMSG ? forged(walk, child->path) : rc;
		if (!is_there)
			continue;
		source = &child->sources[child->source_count++];
		source->layer = layer;
		source->path = strdup(target);
		if (!source->path)
			return -ENOMEM;
	}
	return 0;
}

/* Take the directory @name of a source into the child. 1: what is below is hidden, or was added already. */
static int add_source(struct walk *walk, const struct opened *opened, unsigned index, const char *name,
		      struct found *found)
{
	const struct source *parent = &opened->place->sources[index];
	struct place *child = found->directory;
	AUTO_CLOSE int fd = openat(opened->fds[index], name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FREE char *target = NULL;
	bool is_workdir = parent->layer == walk->view->layer_count;
	struct source *source;
	int rc;

	if (fd < 0) {
		found->is_closed = true;
		return 1;
	}
	source = &child->sources[child->source_count++];
	source->layer = parent->layer;
	source->path = parent->path ? join(parent->path, name) : NULL;
	if (parent->path && !source->path)
		return -ENOMEM;
	if (is_workdir || workspace_view_is_opaque(walk->view, fd))
		return 1;
	/* The parent's path in what is below: of the next source, if there is one. */
	rc = workspace_view_redirect(
		walk->view, fd, index + 1 < opened->place->source_count ? source_path(opened->place, index + 1) : "",
		&target);
	if (rc < 0)
		return rc == -EBADMSG ? forged(walk, child->path) : rc;
	if (!target)
		return 0;
	child->is_hiding = true;
	child->is_renamed = parent->layer == 0;
	if (string_list_add(&walk->renamed, child->path) < 0 || string_list_add(&walk->renamed, target) < 0)
		return -ENOMEM;
	rc = add_redirected(walk, child, parent->layer, target);
	return rc < 0 ? rc : 1;
}

static int find_new(struct walk *walk, const struct opened *opened, const char *name, struct found *found)
{
	for (unsigned i = 0; i < opened->place->source_count; i++) {
		bool is_workdir = opened->place->sources[i].layer == walk->view->layer_count;
		struct stat status;
		int rc;

		if (fstatat(opened->fds[i], name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (!is_workdir && workspace_view_is_whiteout(walk->view, opened->fds[i], name, &status))
			break;
		if (!S_ISDIR(status.st_mode)) {
			if (!found->directory) {
				found->status = status;
				found->index = i;
			}
			break;
		}
		if (!found->directory) {
			found->status = status;
			found->index = i;
			found->directory = place_new(opened->place->path, name);
			if (!found->directory)
				return -ENAMETOOLONG;
		}
		rc = add_source(walk, opened, i, name, found);
		if (rc < 0)
			return rc;
		if (rc)
			break;
	}
	return 0;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static int open_to_read(int directory_fd, const char *name)
{
	return openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool same_link(int a_fd, int b_fd, const char *name)
{
	char a[WORKSPACE_LINK_MAX], b[WORKSPACE_LINK_MAX];
	ssize_t a_len = readlinkat(a_fd, name, a, sizeof(a)), b_len = readlinkat(b_fd, name, b, sizeof(b));

	return a_len >= 0 && a_len == b_len && !memcmp(a, b, (size_t)a_len);
}

/* What differs between two of the same type, as flags of a change. */
static unsigned compare(struct walk *walk, const struct opened *opened, const char *name, const struct found *found,
			const struct stat *old)
{
	int new_directory = opened->fds[found->index];
	mode_t type = old->st_mode & S_IFMT;
	AUTO_CLOSE int a = -1, b = -1;
	unsigned flags = 0;

	if (type == S_IFLNK)
		return same_link(new_directory, opened->base, name) ? 0 : CHANGE_HAS_CONTENT;
	if ((found->status.st_mode ^ old->st_mode) & 07777)
		flags |= CHANGE_HAS_MODE;
	if (type != S_IFREG && type != S_IFDIR)
		return found->status.st_rdev == old->st_rdev ? flags : flags | CHANGE_HAS_CONTENT;
	if (type == S_IFREG && found->status.st_size != old->st_size)
		flags |= CHANGE_HAS_CONTENT;
	a = open_to_read(new_directory, name);
	b = open_to_read(opened->base, name);
	if (a < 0 || b < 0)
		return type == S_IFREG ? flags | CHANGE_HAS_CONTENT : flags;
	if (!workspace_view_same_xattrs(a, b))
		flags |= CHANGE_HAS_XATTRS;
	if (type == S_IFREG && !(flags & CHANGE_HAS_CONTENT) &&
	    workspace_view_same_content(a, b, (uint64_t)old->st_size, &walk->compare_bytes) != 1)
		flags |= CHANGE_HAS_CONTENT;
	return flags;
}

/* When it was made, where the file system knows; INT64_MAX: it does not. */
static int64_t birth_ns(int directory_fd, const char *name)
{
	struct statx status;

	if (syscall(SYS_statx, directory_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &status) < 0 ||
	    !(status.stx_mask & STATX_BTIME))
		return INT64_MAX;
	return (int64_t)status.stx_btime.tv_sec * 1000000000 + status.stx_btime.tv_nsec;
}

/* Did the workdir have what is new here, by this name or another? */
static bool was_there_before(struct walk *walk, const struct opened *opened, const char *name,
			     const struct found *found)
{
	if (opened->place->sources[found->index].layer == walk->view->layer_count)
		return false;
	if (walk->view->kind == WORKSPACE_COPY)
		return birth_ns(opened->fds[found->index], name) < walk->view->copied_ns;
	if (!S_ISREG(found->status.st_mode) && !S_ISDIR(found->status.st_mode))
		return false;
	return workspace_view_was_copied_up(walk->view, opened->fds[found->index], name);
}

/* In a whole copy: was this name neither touched by the command nor there when the copy was made? */
static bool is_nobodys(struct walk *walk, const struct opened *opened, const char *name, const struct found *found,
		       const struct stat *old)
{
	const struct workspace_view *view = walk->view;
	struct stat directory;

	if (view->kind != WORKSPACE_COPY)
		return false;
	if (found->status.st_mode) {
		if (S_ISDIR(found->status.st_mode) || workspace_view_changed_ns(&found->status) >= view->copied_ns)
			return false;
		/* Untouched, but perhaps not where it was. If the host touched its side, that is the host's business. */
		return !opened->place->is_moved || (old->st_mode && workspace_view_is_touched(view, old));
	}
	/* Not in the copy: removed by the command, or made in the workdir since. An untouched directory tells, if it is where it was. */
	if (!opened->place->is_moved && opened->place->source_count && fstat(opened->fds[0], &directory) == 0 &&
	    workspace_view_changed_ns(&directory) < view->copied_ns)
		return true;
	return workspace_view_is_touched(view, old) && birth_ns(opened->base, name) != INT64_MAX &&
	       birth_ns(opened->base, name) >= view->stamp_ns;
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

struct pass {
	struct walk *walk;
	struct place_list waiting;
};

/* Owns @place from here on. */
static int wait_for(struct pass *pass, struct place *place)
{
	struct place **slot = list_add(&pass->waiting);

	if (!slot) {
		place_free(place);
		return -ENOMEM;
	}
	*slot = place;
	return 0;
}

static int meet(struct pass *pass, const struct opened *opened, const char *name, const struct found *found,
		const struct stat *old, enum change_kind kind, unsigned flags)
{
	const struct place *place = opened->place;
	AUTO_FREE char *path = join(place->path, name), *layer_path = NULL;
	struct change change = {.kind = kind, .flags = flags, .path = path};

	if (!pass->walk->meet)
		return 0;
	if (place->is_hiding)
		change.flags |= CHANGE_IS_HIDING;
	if (!path)
		return -ENAMETOOLONG;
	if (found->status.st_mode) {
		const struct source *source = &place->sources[found->index];

		workspace_change_side_of(&found->status, &change.after);
		change.layer = source->layer;
		if (source->path && !(layer_path = join(source->path, name)))
			return -ENAMETOOLONG;
		change.layer_path = layer_path;
	}
	if (old->st_mode)
		workspace_change_side_of(old, &change.before);
	return pass->walk->meet(pass->walk, &change);
}

/* The workdir's directory @name goes with all in it. */
static int wait_for_removed(struct pass *pass, const struct opened *opened, const char *name)
{
	struct place *place = place_new(opened->place->path, name);

	if (!place)
		return -ENAMETOOLONG;
	place->has_base = true;
	return wait_for(pass, place);
}

static int decide(struct pass *pass, const struct opened *opened, const char *name, struct found *found,
		  const struct stat *old)
{
	mode_t new_type = found->status.st_mode & S_IFMT, old_type = old->st_mode & S_IFMT;
	unsigned flags = found->is_closed ? CHANGE_IS_CLOSED : 0;
	int rc = 0;

	if ((!new_type && !old_type) || is_nobodys(pass->walk, opened, name, found, old))
		return 0;
	if (!new_type) {
		rc = meet(pass, opened, name, found, old, CHANGE_DELETED, 0);
		return rc == 0 && old_type == S_IFDIR ? wait_for_removed(pass, opened, name) : rc;
	}
	if (!old_type) {
		if (pass->walk->meet && !pass->walk->is_count && was_there_before(pass->walk, opened, name, found))
			flags |= CHANGE_IS_COPIED_UP;
		rc = meet(pass, opened, name, found, old, CHANGE_ADDED, flags | CHANGE_HAS_CONTENT);
	} else if (new_type != old_type) {
		rc = meet(pass, opened, name, found, old, CHANGE_TYPE, flags | CHANGE_HAS_CONTENT | CHANGE_HAS_MODE);
		if (rc == 0 && old_type == S_IFDIR)
			rc = wait_for_removed(pass, opened, name);
	} else {
		if (pass->walk->meet)
			flags |= compare(pass->walk, opened, name, found, old);
		if (flags)
			rc = meet(pass, opened, name, found, old,
				  flags & CHANGE_HAS_CONTENT ? CHANGE_MODIFIED : CHANGE_MODE, flags);
		if (new_type == S_IFDIR && found->directory) {
			found->directory->has_base = true;
			found->directory->is_hiding |= !is_transparent(pass->walk, found->directory);
		}
	}
	if (found->directory) {
		/* What may not be written to cannot lose its mark, so nothing may leave it. */
		if (old_type != S_IFDIR && !(found->status.st_mode & 0200))
			found->directory->is_hiding = true;
		found->directory->is_hiding |= opened->place->is_hiding;
		found->directory->is_renamed |= opened->place->is_renamed;
		found->directory->is_moved = opened->place->is_moved ||
					     workspace_view_changed_ns(&found->status) >= pass->walk->view->copied_ns;
	}
	if (rc == 0 && found->directory && !found->is_closed)
		rc = wait_for(pass, take_ptr(found->directory));
	return rc;
}

static int borrow(struct walk *walk, const struct place *place, unsigned index, const char *name)
{
	AUTO_FREE char *path = join(place->path, name), *old_path = join(source_path(place, index), name);

	if (!path || !old_path)
		return -ENAMETOOLONG;
	if (string_list_add(&walk->borrowed, path) < 0 || string_list_add(&walk->borrowed, old_path) < 0)
		return -ENOMEM;
	return string_list_add_format(&walk->borrowed, "%u", place->sources[index].layer) < 0 ? -ENOMEM : 0;
}

static int look_at(struct pass *pass, const struct opened *opened, const char *name)
{
	struct walk *walk = pass->walk;
	struct found found = {0};
	struct stat old = {0};
	int rc;

	if (++walk->entry_count > walk->entry_max)
		return -E2BIG;
	if (opened->base >= 0 && fstatat(opened->base, name, &old, AT_SYMLINK_NOFOLLOW) < 0)
		old = (struct stat){0};
	rc = find_new(walk, opened, name, &found);
	if (rc == 0 && found.status.st_mode && opened->place->is_renamed &&
	    opened->place->sources[found.index].layer > 0)
		rc = borrow(walk, opened->place, found.index, name);
	if (rc == 0)
		rc = decide(pass, opened, name, &found, &old);
	place_free(found.directory);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int collect(struct walk *walk, int fd, struct string_list *names)
{
	_Alignas(struct directory_entry) char entries[ENTRY_BYTES];
	struct directory list = {.fd = fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;

	while ((entry = directory_next(&list))) {
		if (names->count + walk->entry_count > walk->entry_max)
			return -E2BIG;
		if (string_list_add(names, entry->name) < 0)
			return -ENOMEM;
	}
	return list.len < 0 ? -EIO : 0;
}

static int look_into(struct pass *pass, struct opened *opened)
{
	const struct place *place = opened->place;
	bool is_clear = is_transparent(pass->walk, place);
	AUTO(string_list_done) struct string_list names = {0};
	int rc = 0;

	for (unsigned i = 0; i < place->source_count && rc == 0; i++)
		if (!is_clear || i + 1 < place->source_count)
			rc = collect(pass->walk, opened->fds[i], &names);
	if (rc == 0 && !is_clear && opened->base >= 0)
		rc = collect(pass->walk, opened->base, &names);
	if (names.count)
		qsort(names.items, names.count, sizeof(*names.items), by_name);
	for (size_t i = 0; i < names.count && rc == 0; i++)
		if (!i || strcmp(names.items[i - 1], names.items[i]) != 0)
			rc = look_at(pass, opened, names.items[i]);
	return rc;
}

static int visit(struct pass *pass, struct place *place)
{
	struct opened opened = {.place = place, .base = -1};
	int rc = 0;

	for (unsigned i = 0; i < place->source_count; i++)
		opened.fds[i] = workspace_view_open_directory(pass->walk->view->fds[place->sources[i].layer],
							      source_path(place, i));
	if (place->has_base) {
		opened.base = workspace_view_open_directory(workspace_view_workdir(pass->walk->view), place->path);
		/* Of a directory that we may not read nothing was seen inside either. */
		if (opened.base < 0 && !place->source_count)
			goto out;
	}
	for (unsigned i = 0; i < place->source_count; i++)
		if (opened.fds[i] < 0)
			rc = opened.fds[i];
	if (rc == 0)
		rc = look_into(pass, &opened);
	else
		snprintf(pass->walk->refused, sizeof(pass->walk->refused), "%s", place->path);
out:
	for (unsigned i = 0; i < place->source_count; i++)
		close_fd(&opened.fds[i]);
	close_fd(&opened.base);
	return rc;
}

/* The workdir itself: what was changed about it, and all layers over it. */
static int begin(struct pass *pass)
{
	const struct workspace_view *view = pass->walk->view;
	struct place *top = calloc(1, sizeof(*top));
	struct change change = {.kind = CHANGE_MODE, .path = (char[]){"."}};
	struct stat new, old;

	if (!top || !(top->path = strdup(""))) {
		free(top);
		return -ENOMEM;
	}
	top->has_base = true;
	top->is_hiding = view->kind == WORKSPACE_COPY;
	for (unsigned i = 0; i <= view->layer_count; i++) {
		if (i == view->layer_count && view->kind == WORKSPACE_COPY)
			break;
		top->sources[top->source_count++].layer = i;
		if (i < view->layer_count && workspace_view_is_opaque(view, view->fds[i]))
			break;
	}
	if (fstat(view->fds[0], &new) == 0 && fstat(workspace_view_workdir(view), &old) == 0) {
		workspace_change_side_of(&new, &change.after);
		workspace_change_side_of(&old, &change.before);
		if ((new.st_mode ^ old.st_mode) & 01777)
			change.flags |= CHANGE_HAS_MODE;
		if (change.flags && pass->walk->meet && pass->walk->meet(pass->walk, &change) < 0) {
			place_free(top);
			return -ENOMEM;
		}
	}
	return wait_for(pass, top);
}

int workspace_walk(struct walk *walk)
{
	struct pass pass = {.walk = walk};
	int rc = begin(&pass);

	while (pass.waiting.count && rc == 0) {
		struct place *place = pass.waiting.items[--pass.waiting.count];

		rc = visit(&pass, place);
		place_free(place);
	}
	while (pass.waiting.count)
		place_free(pass.waiting.items[--pass.waiting.count]);
	free(pass.waiting.items);
	return rc;
}
