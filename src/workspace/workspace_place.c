/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_place.c - on which file system a workspace's layer is kept
 *
 * In the state directory, which no jar sees, also where the workdir is on another file system: beside the data a layer would be
 * in reach of every jar that is shown the data, and could be changed after it was reviewed. Where the state directory cannot be
 * the upper layer of an overlay, as in a container, a directory at the top of the workdir's file system, as far up as the user
 * may write, or memory. Such places are written down, and hidden in every jar that begins later.
 *
 * Never inside the workdir: a command could change the layer behind the kernel's back, and applying would see itself.
 */
#include "workspace/workspace_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#define ANCESTORS_MAX 256
#define PLACE_NAME_SIZE 48

/* File systems that the kernel does not take as an upper layer, or that lose what one needs. The mount has the last word. */
static const unsigned long no_uppers[] = {
	0x794c7630, /* overlayfs */
	0x6969,     /* NFS */
	0x65735546, /* FUSE */
	0x01021997, /* 9p */
	0xff534d42, /* CIFS */
	0xfe534d42, /* SMB2 */
	0x4d44,     /* FAT */
	0x2011bab0, /* exFAT */
	0x7366746e, /* NTFS */
	0x00c36400, /* Ceph */
};

/*
 * If the file system cannot keep overlay's marks, the kernel mounts the layer all the same, and a process that makes a
 * removed directory again gets EIO. A tmpfs has user attributes since Linux 6.6.
 */
static bool keeps_marks(int fd, const struct workspace_request *request)
{
	return !request->has_user_xattrs || fgetxattr(fd, "user.overlay.opaque", NULL, 0) >= 0 || errno != EOPNOTSUPP;
}

static bool can_be_upper(int fd, const struct workspace_request *request)
{
	struct statfs status;

	/* A copy is plain files. */
	if (request->kind == WORKSPACE_COPY)
		return true;
	if (fstatfs(fd, &status) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(no_uppers); i++)
		if (((unsigned long)status.f_type & 0xffffffff) == no_uppers[i])
			return false;
	return keeps_marks(fd, request);
}

int workspace_open_private(int parent_fd, const char *name)
{
	AUTO_CLOSE int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (status.st_uid != geteuid())
		return -EPERM;
	if (status.st_mode & 077 && fchmod(fd, 0700) < 0)
		return -errno;
	return take_fd(&fd);
}

int workspace_make_private(int parent_fd, const char *name)
{
	int fd = workspace_open_private(parent_fd, name);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	return workspace_open_private(parent_fd, name);
}

/* Is the directory @fd the directory @top, or below it? */
static bool is_within(int fd, const struct stat *top)
{
	AUTO_CLOSE int at = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat here, before = {0};

	for (int i = 0; at >= 0 && i < PATH_MAX; i++) {
		int up;

		if (fstat(at, &here) < 0)
			return true;
		if (here.st_dev == top->st_dev && here.st_ino == top->st_ino)
			return true;
		if (i && here.st_dev == before.st_dev && here.st_ino == before.st_ino)
			return false;
		before = here;
		up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = up;
	}
	return true;
}

static char *path_of(int fd)
{
	char name[64], path[PATH_MAX];
	ssize_t len;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	len = readlink(name, path, sizeof(path) - 1);
	if (len <= 0 || path[0] != '/')
		return NULL;
	path[len] = '\0';
	return strdup(path);
}

/* A directory of ours in @parent, which suits as a place; NULL: none. */
static char *try_place(int parent, const struct workspace_request *request, const struct stat *workdir, bool must_share)
{
	char name[PLACE_NAME_SIZE];
	AUTO_CLOSE int fd = -1;
	struct stat status;
	char *path;

	if (parent < 0 || !can_be_upper(parent, request))
		return NULL;
	snprintf(name, sizeof(name), ".belljar-ws-%u", (unsigned)geteuid());
	fd = workspace_make_private(parent, name);
	if (fd < 0)
		return NULL;
	path = path_of(fd);
	/* Places are written down one a line. */
	if (path && !strchr(path, '\n') && fstat(fd, &status) == 0 &&
	    (!must_share || status.st_dev == workdir->st_dev) && !is_within(fd, workdir))
		return path;
	free(path);
	return NULL;
}

/* The directories above the workdir that are on its file system, the topmost tried first. */
static char *try_above(const struct workspace_request *request, const struct stat *workdir)
{
	int above[ANCESTORS_MAX];
	size_t count = 0;
	int at = request->workdir_fd;
	char *place = NULL;
	struct stat status, before = *workdir;

	while (count < ANCESTORS_MAX) {
		int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (up < 0)
			break;
		if (fstat(up, &status) < 0 || status.st_dev != workdir->st_dev || status.st_ino == before.st_ino) {
			close(up);
			break;
		}
		before = status;
		above[count++] = at = up;
	}
	for (size_t i = count; i > 0; i--) {
		AUTO_CLOSE int fd = openat(above[i - 1], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (!place)
			place = try_place(fd, request, workdir, true);
		close(above[i - 1]);
	}
	return place;
}

static char *try_memory(const struct workspace_request *request, const struct stat *workdir)
{
	static const char *const paths[] = {"/dev/shm", "/tmp", "/var/tmp"};
	char *place = NULL;

	for (size_t i = 0; i < ARRAY_LEN(paths) && !place; i++) {
		AUTO_CLOSE int fd = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		place = try_place(fd, request, workdir, false);
	}
	return place;
}

int workspace_choose_place(const struct workspace_home *home, const struct workspace_request *request, char **place_out,
			   struct error *error)
{
	struct stat workdir;

	*place_out = NULL;
	if (fstat(request->workdir_fd, &workdir) < 0)
		return error_set(error, STAGE_FILES, errno, "cannot look at the workdir '%s': %s", request->workdir,
				 strerror(errno));
	if (is_within(home->fd, &workdir)) {
		error_set(error, STAGE_FILES, EINVAL,
			  "the workdir '%s' has the directory of the workspaces in it: '%s'", request->workdir,
			  home->path);
		return error_hint(error, "set XDG_STATE_HOME to a directory outside of the workdir");
	}
	if (can_be_upper(home->fd, request))
		return 0;
	*place_out = try_above(request, &workdir);
	if (!*place_out)
		*place_out = try_memory(request, &workdir);
	if (*place_out)
		return 0;
	error_set(error, STAGE_FILES, EOPNOTSUPP,
		  "no file system here can keep a workspace: neither the workdir's, nor the one of '%s', nor /dev/shm",
		  home->path);
	return error_hint(error, "set XDG_STATE_HOME to a directory on ext4, xfs, btrfs or tmpfs");
}
