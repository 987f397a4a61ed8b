/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_store.c - make, open, lock, list and remove the stores of workspaces
 *
 * A process holds the lock of the common directory while it makes or removes a store, so that no layer is removed
 * while a new store begins to use it. It writes meta.json before it makes upper: a store without upper was never
 * finished, and the next sweep removes it. Removing renames first, and then deletes without the lock.
 */
#include "workspace/workspace_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/directory.h"
#include "base/list.h"
#include "base/reap/reap.h"
#include "workspace/workspace_place.h"
#include "workspace/workspace_shown.h"

#define ENTRY_BYTES 16384
#define ID_ATTEMPTS 64
/* What is being removed: no id has this beginning. */
#define GONE ".gone-"
#define GONE_SIZE (sizeof(GONE) + WORKSPACE_ID_SIZE)

/* --- one store ---------------------------------------------------------------------------------------------------- */

void workspace_store_clear(struct workspace *workspace)
{
	*workspace = (struct workspace){.fd = -1, .parts_fd = -1, .upper_fd = -1, .lock_fd = -1};
}

void workspace_done(struct workspace *workspace)
{
	if (!workspace || !workspace->path)
		return;
	workspace_meta_done(&workspace->meta);
	free(workspace->path);
	free(workspace->parts_path);
	close_fd(&workspace->upper_fd);
	close_fd(&workspace->parts_fd);
	close_fd(&workspace->fd);
	/* A process that was just made has a copy until it gets a processor: the lock must not stay with that. */
	if (workspace->lock_fd >= 0)
		flock(workspace->lock_fd, LOCK_UN);
	close_fd(&workspace->lock_fd);
	workspace_store_clear(workspace);
}

static int write_meta(const struct workspace *workspace, const char *name, struct error *error)
{
	AUTO_TEXT text = {0};
	AUTO_CLOSE int fd = openat(workspace->fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -errno : 0;

	workspace_meta_print(&workspace->meta, &text);
	if (rc == 0 && text_failed(&text))
		rc = -ENOMEM;
	if (rc == 0 && write(fd, text.data, text.len) != (ssize_t)text.len)
		rc = errno ? -errno : -EIO;
	if (rc == 0 && ftruncate(fd, (off_t)text.len) < 0)
		rc = -errno;
	if (rc < 0)
		error_set(error, STAGE_FILES, -rc, "cannot write '%s/%s': %s", workspace->path, name, strerror(-rc));
	return rc;
}

int workspace_save(const struct workspace *workspace, struct error *error)
{
	int rc = write_meta(workspace, "meta.json.new", error);

	if (rc == 0 && renameat(workspace->fd, "meta.json.new", workspace->fd, "meta.json") < 0)
		rc = error_set(error, STAGE_FILES, errno, "cannot write '%s/meta.json': %s", workspace->path,
			       strerror(errno));
	return rc;
}

static int read_meta(int fd, const char *id, struct workspace_meta *out, struct error *error)
{
	AUTO_CLOSE int file = openat(fd, "meta.json", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_FREE char *bytes = malloc(WORKSPACE_META_BYTES_MAX);
	ssize_t len;

	if (file < 0)
		return -errno;
	len = bytes ? read(file, bytes, WORKSPACE_META_BYTES_MAX) : -1;
	if (len < 0)
		return -EIO;
	return workspace_meta_parse(out, id, bytes, (size_t)len, error);
}

int workspace_store_lock(int fd, const char *id, struct error *error)
{
	AUTO_CLOSE int lock = openat(fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat status;

	if (lock < 0)
		return error_set(error, STAGE_FILES, errno, "cannot open the lock of the workspace '%s': %s", id,
				 strerror(errno));
	if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return error_set(error, STAGE_FILES, errno, "cannot lock the workspace '%s': %s", id,
					 strerror(errno));
		error_set(error, STAGE_FILES, EBUSY, "the workspace '%s' is in use", id);
		return error_hint(error, "wait until the run or the command that uses it has ended");
	}
	/* The previous holder of the lock may have removed the store. */
	if (fstat(lock, &status) < 0 || !status.st_nlink)
		return error_set(error, STAGE_FILES, ENOENT, "there is no workspace '%s' any more", id);
	return take_fd(&lock);
}

/* Open the directory where upper and work are. */
int workspace_store_open_parts(struct workspace *workspace)
{
	const struct workspace_meta *meta = &workspace->meta;
	AUTO_CLOSE int place = -1;

	if (!meta->place) {
		workspace->parts_path = strdup(workspace->path);
		workspace->parts_fd = workspace_open_private(workspace->fd, ".");
	} else {
		place = workspace_open_private(AT_FDCWD, meta->place);
		workspace->parts_fd = place < 0 ? place : workspace_open_private(place, meta->id);
		if (asprintf(&workspace->parts_path, "%s/%s", meta->place, meta->id) < 0)
			workspace->parts_path = NULL;
	}
	if (workspace->parts_fd >= 0 && !workspace->parts_path)
		return -ENOMEM;
	return MIN_OF(workspace->parts_fd, 0);
}

int workspace_store_open_upper(struct workspace *workspace)
{
	struct stat status;

	workspace->upper_fd = openat(workspace->parts_fd, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Inside, the upper's own mode is the workdir's: a command can take it all away. */
	if (workspace->upper_fd < 0 && errno == EACCES &&
	    fstatat(workspace->parts_fd, "upper", &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
	    fchmodat(workspace->parts_fd, "upper", (status.st_mode & 07777) | 0700, 0) == 0)
		workspace->upper_fd =
			openat(workspace->parts_fd, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return workspace->upper_fd < 0 ? -errno : 0;
}

/* The store's directory and meta.json; nothing is locked yet. */
static int open_store(const struct workspace_home *home, const char *id, struct workspace *out, struct error *error)
{
	int rc;

	workspace_store_clear(out);
	if (!workspace_id_is_valid(id))
		return error_set(error, STAGE_USAGE, EINVAL, "'%s' is not the id of a workspace", id);
	if (asprintf(&out->path, "%s/%s", home->path, id) < 0) {
		out->path = NULL;
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	}
	out->fd = workspace_open_private(home->fd, id);
	if (out->fd < 0) {
		error_set(error, STAGE_FILES, -out->fd, "there is no workspace '%s' in '%s'", id, home->path);
		return error_hint(error, "`belljar workspace list` shows those that there are");
	}
	rc = read_meta(out->fd, id, &out->meta, error);
	return rc < 0 ? error_set(error, STAGE_FILES, -rc, "cannot read '%s/meta.json': %s", out->path, strerror(-rc))
		      : 0;
}

/* Where upper and work are, and the upper; @is_ours: it may be put in order. */
static int open_layer(const struct workspace_home *home, struct workspace *workspace, bool is_ours)
{
	int rc = workspace_store_open_parts(workspace);

	if (rc == 0 && is_ours && workspace->meta.place)
		rc = workspace_home_note_place(home, workspace->meta.place);
	if (rc == 0 && is_ours)
		rc = workspace_store_finish(home, workspace);
	return rc == 0 ? workspace_store_open_upper(workspace) : rc;
}

int workspace_open(const struct workspace_home *home, const char *id, enum workspace_access access,
		   struct workspace *out, struct error *error)
{
	struct workspace workspace;
	int rc = open_store(home, id, &workspace, error);

	if (rc == 0 && access != WORKSPACE_LOOK) {
		workspace.lock_fd = workspace_store_lock(workspace.fd, id, error);
		rc = MIN_OF(workspace.lock_fd, 0);
		if (rc == 0) {
			/* Another process may have had the lock, and written it, since it was read. */
			workspace_meta_done(&workspace.meta);
			rc = read_meta(workspace.fd, id, &workspace.meta, error);
		}
	}
	if (rc == 0)
		rc = open_layer(home, &workspace, access != WORKSPACE_LOOK);
	if (rc < 0 && access == WORKSPACE_DROP && workspace.parts_path) {
		workspace.upper_fd = -1;
		rc = 0;
	}
	if (rc < 0) {
		error_set(error, STAGE_FILES, -rc, "cannot open the layer of the workspace '%s'%s%s%s: %s", id,
			  workspace.parts_path ? " in '" : "", workspace.parts_path ? workspace.parts_path : "",
			  workspace.parts_path ? "'" : "", strerror(-rc));
		if (workspace.parts_path && access != WORKSPACE_DROP)
			error_hint(error,
				   "if its file system is lost, `belljar workspace remove %s` drops the workspace", id);
		workspace_done(&workspace);
		return rc;
	}
	*out = workspace;
	return 0;
}

const char *workspace_missing(const struct workspace_home *home, const struct workspace_meta *meta)
{
	AUTO(workspace_done) struct workspace workspace;
	struct stat status;

	workspace_store_clear(&workspace);
	if (workspace_open(home, meta->id, WORKSPACE_LOOK, &workspace, NULL) < 0) {
		workspace_store_clear(&workspace);
		return "layer";
	}
	if (stat(meta->workdir, &status) < 0 || status.st_dev != meta->workdir_device ||
	    status.st_ino != meta->workdir_inode)
		return "directory";
	return NULL;
}

/* --- making one --------------------------------------------------------------------------------------------------- */

static int64_t nanoseconds(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/*
 * The time of change that a file gets now, by the clock of the file system that @fd is a new file of. Since Linux 6.13
 * one that was looked at before gets a finer time than the tick, and everything that changes later a later one: so a
 * file that was written a moment before is not taken for one that was written since.
 */
static int64_t take_stamp(int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0 || fchmod(fd, 0600) < 0 || fstat(fd, &status) < 0)
		return -errno;
	return nanoseconds(&status.st_ctim);
}

/* The lock is a file of ours, and making another one takes longer than anything else here. */
static int64_t stamp_of(const struct workspace *workspace, int workdir_fd)
{
	AUTO_CLOSE int fd = -1;
	struct stat own;

	if (fstat(workspace->lock_fd, &own) < 0)
		return -errno;
	if (own.st_dev != workspace->meta.workdir_device) {
		/* A file without a name changes nothing in the workdir; its file system may have a clock of its own. */
		AUTO_CLOSE int readable = openat(workdir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		fd = readable < 0 ? -1 : openat(readable, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	}
	return take_stamp(fd >= 0 ? fd : workspace->lock_fd);
}

int workspace_store_restamp(struct workspace *workspace, int workdir_fd, struct error *error)
{
	int64_t stamp_ns = stamp_of(workspace, workdir_fd);

	if (stamp_ns < 0)
		return error_set(error, STAGE_FILES, (int)-stamp_ns, "cannot make a file in '%s': %s", workspace->path,
				 strerror((int)-stamp_ns));
	workspace->meta.stamp_ns = stamp_ns;
	unlinkat(workspace->fd, "applied", 0);
	workspace_shown_forget(workspace);
	return workspace_save(workspace, error);
}

/* Overlay shows the upper's own mode as the workdir's. */
int workspace_store_make_upper(struct workspace *workspace, mode_t mode)
{
	int rc;

	if (mkdirat(workspace->parts_fd, "upper", 0700) < 0)
		return -errno;
	rc = workspace_store_open_upper(workspace);
	return rc == 0 && fchmod(workspace->upper_fd, mode & 01777) < 0 ? -errno : rc;
}

static int make_parts(struct workspace *workspace, mode_t workdir_mode)
{
	AUTO_CLOSE int place = -1;
	int rc;

	if (workspace->meta.place) {
		place = workspace_open_private(AT_FDCWD, workspace->meta.place);
		if (place < 0 || mkdirat(place, workspace->meta.id, 0700) < 0)
			return place < 0 ? place : -errno;
	}
	rc = workspace_store_open_parts(workspace);
	if (rc == 0 && mkdirat(workspace->parts_fd, "work", 0700) < 0)
		rc = -errno;
	return rc == 0 ? workspace_store_make_upper(workspace, workdir_mode) : rc;
}

/* The common lock is held: what is free now stays so. */
static int choose_id(const struct workspace_home *home, struct workspace *workspace)
{
	for (int i = 0; i < ID_ATTEMPTS; i++) {
		uint32_t bits;

		if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
			return -errno;
		workspace_id_make(bits, workspace->meta.id);
		if (faccessat(home->fd, workspace->meta.id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : -errno;
	}
	return -EEXIST;
}

static int make_directory(const struct workspace_home *home, struct workspace *workspace)
{
	if (mkdirat(home->fd, workspace->meta.id, 0700) < 0)
		return -errno;
	workspace->fd = workspace_open_private(home->fd, workspace->meta.id);
	return MIN_OF(workspace->fd, 0);
}

int workspace_store_make_directory(const struct workspace_home *home, struct workspace *workspace)
{
	int rc = choose_id(home, workspace);

	return rc < 0 ? rc : make_directory(home, workspace);
}

static int fill_meta(struct workspace *workspace, const struct workspace_request *request, const struct stat *workdir)
{
	struct workspace_meta *meta = &workspace->meta;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	meta->created_ns = nanoseconds(&now);
	meta->kind = request->kind;
	meta->has_user_xattrs = request->has_user_xattrs;
	meta->workdir = strdup(request->workdir);
	meta->workdir_device = workdir->st_dev;
	meta->workdir_inode = workdir->st_ino;
	meta->name = request->name ? strdup(request->name) : NULL;
	if (!meta->workdir || (request->name && !meta->name))
		return -ENOMEM;
	if (!request->base)
		return 0;
	meta->stamp_ns = request->base->stamp_ns;
	meta->copied_ns = request->base->copied_ns;
	return string_list_copy(&meta->layers, &request->base->layers);
}

static bool has_name(const struct workspace_home *home, const struct workspace_request *request,
		     const struct stat *workdir)
{
	AUTO(workspace_list_done) struct workspace_list list = {0};

	if (!request->name || workspace_list(home, &list, NULL, NULL) < 0)
		return false;
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].name && !strcmp(list.items[i].name, request->name) &&
		    list.items[i].workdir_device == workdir->st_dev && list.items[i].workdir_inode == workdir->st_ino)
			return true;
	return false;
}

static int make_locked(const struct workspace_home *home, struct workspace *workspace, struct error *error)
{
	int rc = make_directory(home, workspace);

	if (rc < 0)
		return rc;
	workspace->lock_fd = workspace_store_lock(workspace->fd, workspace->meta.id, error);
	return MIN_OF(workspace->lock_fd, 0);
}

/* The common lock is held. What fails here leaves something that the next sweep removes. */
static int build(const struct workspace_home *home, const struct workspace_request *request,
		 struct workspace *workspace, const struct stat *workdir, struct error *error)
{
	bool is_spare = false;
	int rc = workspace_choose_place(home, request, &workspace->meta.place, error);

	/* Before anything is there: from now on no jar that begins sees the place. */
	if (rc == 0 && workspace->meta.place)
		rc = workspace_home_note_place(home, workspace->meta.place);
	if (rc == 0)
		rc = choose_id(home, workspace);
	if (rc == 0 && asprintf(&workspace->path, "%s/%s", home->path, workspace->meta.id) < 0) {
		workspace->path = NULL;
		rc = -ENOMEM;
	}
	if (rc == 0)
		rc = fill_meta(workspace, request, workdir);
	if (rc == 0) {
		is_spare = workspace_spare_open(home, workspace, workdir->st_mode);
		rc = is_spare ? 0 : make_locked(home, workspace, error);
	}
	if (rc == 0 && !workspace->meta.stamp_ns) {
		workspace->meta.stamp_ns = stamp_of(workspace, request->workdir_fd);
		rc = (int)MIN_OF(workspace->meta.stamp_ns, 0);
	}
	/* meta.json of a spare is not read by any process: write over it. */
	if (rc == 0)
		rc = is_spare ? write_meta(workspace, "meta.json", error) : workspace_save(workspace, error);
	if (rc < 0)
		return rc;
	return is_spare ? workspace_spare_take(home, workspace) : make_parts(workspace, workdir->st_mode);
}

int workspace_create(const struct workspace_home *home, const struct workspace_request *request, struct workspace *out,
		     struct error *error)
{
	AUTO_CLOSE int lock = -1;
	struct workspace workspace;
	struct stat workdir;
	int rc;

	if (request->name && !workspace_name_is_valid(request->name)) {
		error_set(error, STAGE_USAGE, EINVAL, "'%s' cannot be the name of a workspace", request->name);
		return error_hint(error, "a name has letters, digits, '.', '_' and '-', %d at most",
				  WORKSPACE_NAME_MAX);
	}
	if (fstat(request->workdir_fd, &workdir) < 0 || !S_ISDIR(workdir.st_mode))
		return error_set(error, STAGE_FILES, ENOTDIR, "the workdir '%s' is not a directory", request->workdir);
	lock = workspace_store_lock_home(home, error);
	if (lock < 0)
		return lock;
	if (has_name(home, request, &workdir))
		return error_set(error, STAGE_USAGE, EEXIST, "there is a workspace '%s' of '%s' already", request->name,
				 request->workdir);
	workspace_store_clear(&workspace);
	rc = build(home, request, &workspace, &workdir, error);
	if (rc < 0) {
		error_set(error, STAGE_FILES, -rc, "cannot make a workspace in '%s': %s", home->path, strerror(-rc));
		if (workspace.path)
			workspace_done(&workspace);
		else
			workspace_meta_done(&workspace.meta);
		return rc;
	}
	*out = workspace;
	return 0;
}

int workspace_copy_is_whole(struct workspace *workspace, struct error *error)
{
	AUTO_CLOSE int fd = openat(workspace->parts_fd, "stamp", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int64_t stamp_ns = fd < 0 ? -errno : take_stamp(fd);

	if (stamp_ns < 0)
		return error_set(error, STAGE_FILES, (int)-stamp_ns, "cannot make a file in '%s': %s",
				 workspace->parts_path, strerror((int)-stamp_ns));
	unlinkat(workspace->parts_fd, "stamp", 0);
	workspace->meta.copied_ns = stamp_ns;
	return workspace_save(workspace, error);
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static int by_age(const void *a, const void *b)
{
	const struct workspace_meta *one = a, *other = b;

	return (one->created_ns < other->created_ns) - (one->created_ns > other->created_ns);
}

/* Every store, frozen or not; those without a meta.json that can be read are only counted. */
static int list_all(const struct workspace_home *home, struct workspace_list *out, size_t *damaged_out)
{
	_Alignas(struct directory_entry) char entries[ENTRY_BYTES];
	AUTO_CLOSE int fd = openat(home->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct directory list = {.fd = fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;

	if (fd < 0)
		return -errno;
	while (out->count < WORKSPACE_STORES_MAX && (entry = directory_next(&list))) {
		AUTO_CLOSE int store = -1;
		struct workspace_meta meta = {0}, *item;

		if (!workspace_id_is_valid(entry->name))
			continue;
		store = workspace_open_private(home->fd, entry->name);
		if (store < 0 || read_meta(store, entry->name, &meta, NULL) < 0) {
			if (damaged_out)
				(*damaged_out)++;
			continue;
		}
		item = list_add(out);
		if (!item) {
			workspace_meta_done(&meta);
			return -ENOMEM;
		}
		*item = meta;
	}
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), by_age);
	return 0;
}

int workspace_list(const struct workspace_home *home, struct workspace_list *out, size_t *damaged_out,
		   struct error *error)
{
	int rc;
	size_t kept = 0;

	*out = (struct workspace_list){0};
	if (damaged_out)
		*damaged_out = 0;
	rc = list_all(home, out, damaged_out);
	for (size_t i = 0; i < out->count; i++) {
		if (out->items[i].is_frozen)
			workspace_meta_done(&out->items[i]);
		else
			out->items[kept++] = out->items[i];
	}
	out->count = kept;
	if (rc < 0)
		error_set(error, STAGE_FILES, -rc, "cannot list '%s': %s", home->path, strerror(-rc));
	return rc;
}

void workspace_list_done(struct workspace_list *list)
{
	for (size_t i = 0; list && i < list->count; i++)
		workspace_meta_done(&list->items[i]);
	if (list)
		free(list->items);
	if (list)
		*list = (struct workspace_list){0};
}

static bool is_of(const struct workspace_meta *meta, dev_t device, ino_t inode)
{
	return meta->workdir_device == device && meta->workdir_inode == inode;
}

int workspace_find(const struct workspace_home *home, const char *word, dev_t device, ino_t inode,
		   char id_out[WORKSPACE_ID_SIZE], struct error *error)
{
	AUTO(workspace_list_done) struct workspace_list list = {0};
	const struct workspace_meta *found = NULL;
	size_t named = 0;
	int rc = workspace_list(home, &list, NULL, error);

	for (size_t i = 0; rc == 0 && i < list.count; i++) {
		const struct workspace_meta *meta = &list.items[i];

		if (!word ? !found && is_of(meta, device, inode) : !strcmp(meta->id, word))
			found = meta;
		if (word && meta->name && !strcmp(meta->name, word) && is_of(meta, device, inode)) {
			found = meta;
			named = 0;
			break;
		}
		if (word && meta->name && !strcmp(meta->name, word) && !found) {
			found = meta;
			named++;
		} else if (word && meta->name && !strcmp(meta->name, word)) {
			named++;
		}
	}
	if (rc < 0)
		return rc;
	if (named > 1) {
		error_set(error, STAGE_USAGE, EINVAL, "more than one workdir has a workspace '%s'", word);
		return error_hint(error, "give its id, which `belljar workspace list` shows");
	}
	if (!found) {
		error_set(error, STAGE_FILES, ENOENT,
			  word ? "there is no workspace '%s'" : "this directory has no workspace%s", word ? word : "");
		return error_hint(error,
				  "`belljar run --cow -- COMMAND` makes one; `belljar workspace list` shows all");
	}
	memcpy(id_out, found->id, WORKSPACE_ID_SIZE);
	return 0;
}

/* --- removing ----------------------------------------------------------------------------------------------------- */

/* Out of everybody's sight; the common lock is held. */
static int hide(const struct workspace_home *home, const char *id)
{
	char gone[GONE_SIZE];

	snprintf(gone, sizeof(gone), GONE "%s", id);
	return renameat(home->fd, id, home->fd, gone) < 0 ? -errno : 0;
}

/* What a hidden store has elsewhere goes first, so that meta.json still says where it is if we are killed now. */
static int remove_hidden(const struct workspace_home *home, const char *gone)
{
	AUTO_CLOSE int fd = workspace_open_private(home->fd, gone);
	AUTO(workspace_meta_done) struct workspace_meta meta = {0};
	const char *id = gone + strlen(GONE);

	if (fd >= 0 && read_meta(fd, id, &meta, NULL) == 0 && meta.place) {
		AUTO_CLOSE int place = workspace_open_private(AT_FDCWD, meta.place);

		if (place >= 0)
			reap_sweep_at(place, id);
	}
	return reap_sweep_at(home->fd, gone);
}

static bool is_stood_on(const struct workspace_list *list, const char *id)
{
	for (size_t i = 0; i < list->count; i++)
		for (size_t k = 0; !list->items[i].is_frozen && k < list->items[i].layers.count; k++)
			if (!strcmp(list->items[i].layers.items[k], id))
				return true;
	return false;
}

static bool is_empty(int directory_fd)
{
	_Alignas(struct directory_entry) char entries[ENTRY_BYTES];
	struct directory list = {.fd = directory_fd, .buffer = entries, .size = sizeof(entries)};

	return !directory_next(&list);
}

/* Report whether a store is unnamed, unused and empty: the process that made it was killed. */
static bool is_abandoned(const struct workspace_home *home, const struct workspace_meta *meta)
{
	AUTO_CLOSE int store = -1, lock = -1, place = -1, upper = -1;

	if (meta->is_frozen || meta->name || meta->layers.count)
		return false;
	store = workspace_open_private(home->fd, meta->id);
	lock = store < 0 ? store : workspace_store_lock(store, meta->id, NULL);
	if (meta->place)
		place = workspace_open_private(AT_FDCWD, meta->place);
	/* A file system that is not there now may come back. */
	if (lock < 0 || (meta->place && place < 0))
		return false;
	if (meta->place) {
		close_fd(&store);
		store = workspace_open_private(place, meta->id);
		if (store < 0)
			return store == -ENOENT;
	}
	upper = openat(store, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (upper < 0)
		return errno == ENOENT;
	return meta->kind == WORKSPACE_COPY ? !meta->copied_ns : is_empty(upper);
}

/* The caller holds the common lock, so no store is made meanwhile. */
void workspace_store_hide_useless(const struct workspace_home *home)
{
	_Alignas(struct directory_entry) char entries[ENTRY_BYTES];
	AUTO(workspace_list_done) struct workspace_list list = {0};
	AUTO_CLOSE int fd = openat(home->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct directory names = {.fd = fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;
	size_t damaged = 0;

	/* If the list is incomplete, a layer in use might look unused. */
	if (fd < 0 || list_all(home, &list, &damaged) < 0 || list.count >= WORKSPACE_STORES_MAX)
		return;
	for (size_t i = 0; i < list.count && !damaged; i++)
		if (list.items[i].is_frozen ? !is_stood_on(&list, list.items[i].id)
					    : is_abandoned(home, &list.items[i]))
			hide(home, list.items[i].id);
	/* Made, and its maker killed before it was written down. */
	while ((entry = directory_next(&names))) {
		AUTO_CLOSE int store = -1;

		if (!workspace_id_is_valid(entry->name))
			continue;
		store = workspace_open_private(home->fd, entry->name);
		if (store >= 0 && faccessat(store, "meta.json", F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
			hide(home, entry->name);
	}
}

void workspace_store_remove_hidden(const struct workspace_home *home)
{
	_Alignas(struct directory_entry) char entries[ENTRY_BYTES];
	AUTO_CLOSE int fd = openat(home->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct directory names = {.fd = fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;

	while (fd >= 0 && (entry = directory_next(&names)))
		if (!strncmp(entry->name, GONE, strlen(GONE)) && workspace_id_is_valid(entry->name + strlen(GONE)))
			remove_hidden(home, entry->name);
}

void workspace_sweep(const struct workspace_home *home)
{
	AUTO_CLOSE int lock = workspace_store_lock_home(home, NULL);

	if (lock < 0)
		return;
	workspace_store_hide_useless(home);
	close_fd(&lock);
	workspace_store_remove_hidden(home);
}

int workspace_remove(const struct workspace_home *home, struct workspace *workspace, struct error *error)
{
	AUTO_CLOSE int lock = workspace_store_lock_home(home, error);
	char gone[GONE_SIZE];
	int rc = MIN_OF(lock, 0);

	snprintf(gone, sizeof(gone), GONE "%s", workspace->meta.id);
	if (rc == 0 && workspace->lock_fd < 0)
		rc = error_set(error, STAGE_FILES, EBUSY, "the workspace '%s' is not locked", workspace->meta.id);
	if (rc == 0)
		rc = hide(home, workspace->meta.id);
	if (rc == 0 && workspace->meta.layers.count)
		workspace_store_hide_useless(home);
	close_fd(&lock);
	if (rc == 0)
		rc = remove_hidden(home, gone);
	if (rc == 0 && workspace->meta.layers.count)
		workspace_store_remove_hidden(home);
	if (rc < 0)
		error_set(error, STAGE_FILES, -rc, "cannot remove the workspace '%s' from '%s': %s", workspace->meta.id,
			  home->path, strerror(-rc));
	workspace_done(workspace);
	return rc;
}
