/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/corpus_paths.c - every call that takes a path
 *
 * What succeeds is not undone. A call that old architectures have under an older name is made by that name there.
 */
#include "prove/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_OPENAT2 437
#define CALL_FCHMODAT2 452
#define CALL_OPEN_TREE 428
#define FLAG_EXCHANGE 2
#define FLAG_NO_REPLACE 1
#define FLAG_WHITEOUT 4
#define FLAG_TREE_CLONE 1
#define HANDLE_BYTES 128
#define AT AT_FDCWD
#define P CORPUS_PATH
/* clang-format off */
#ifdef SYS_open
#define CALL(old, new, ...) SYS_##old, {P, __VA_ARGS__}
#define CALL2(old, new, from, to) SYS_##old, {from, to}
#else
#define CALL(old, new, ...) SYS_##new, {AT, P, __VA_ARGS__}
#define CALL2(old, new, from, to) SYS_##new, {AT, from, AT, to}
#endif
/* clang-format on */

static char buffer[PATH_MAX];
static const struct timespec old_times[2] = {{1000, 0}, {1000, 0}};
static const uint64_t to_read[3] = {O_RDONLY | O_NONBLOCK}, to_write[3] = {O_WRONLY | O_NONBLOCK};
static struct {
	unsigned bytes;
	int type;
	unsigned char handle[HANDLE_BYTES];
} handle = {HANDLE_BYTES, 0, {0}};
static int mount_id;

static long close_keeping(int fd, long rc)
{
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return rc;
}

static long open_below_root(const struct corpus_target *target)
{
	int root = open("/", O_PATH | O_DIRECTORY);
	int fd = openat(root, target->path[0] == '/' ? target->path + 1 : target->path, O_RDONLY | O_NONBLOCK);

	return close_keeping(root, close_keeping(fd, fd));
}

/* Open what a descriptor is of once more. */
static long open_again(int fd, int flags)
{
	char again[64];
	int fresh;

	if (fd < 0)
		return -1;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	fresh = open(again, flags | O_NONBLOCK);
	return close_keeping(fd, close_keeping(fresh, fresh));
}

/* Allowed by Landlock; the descriptor must then be good for nothing. */
static long open_path(const struct corpus_target *target)
{
	return open_again(open(target->path, O_PATH | O_NOFOLLOW), O_RDONLY);
}

static long reopen_write(const struct corpus_target *target)
{
	return open_again(open(target->path, O_RDONLY | O_NONBLOCK), O_WRONLY);
}

/* EINVAL: the object exists and is not a link. */
static long read_link(const struct corpus_target *target)
{
	return readlink(target->path, buffer, sizeof(buffer)) < 0 && errno != EINVAL ? -1 : 0;
}

static long change_directory(const struct corpus_target *target)
{
	int here = open(".", O_PATH | O_DIRECTORY), rc = chdir(target->path), error = errno;

	if (rc < 0 && error == ENOTDIR)
		rc = 0;
	if (here >= 0 && fchdir(here) == 0)
		close(here);
	errno = error;
	return rc;
}

static long execute(const struct corpus_target *target)
{
	int error = 0, ends[2], status;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		char *argv[] = {(char *)target->path, NULL};

		execve(target->path, argv, argv + 1);
		error = errno;
		_exit(write(ends[1], &error, sizeof(error)) < 0 ? 2 : 1);
	}
	close(ends[1]);
	if (read(ends[0], &error, sizeof(error)) < 0)
		error = EIO;
	close(ends[0]);
	waitpid(child, &status, 0);
	errno = error;
	return error ? -1 : 0;
}

static long open_by_handle(const struct corpus_target *target)
{
	struct {
		unsigned bytes;
		int type;
		unsigned char handle[HANDLE_BYTES];
	} root = {8, 1, {2}};
	int mount_fd = open("/", O_PATH | O_DIRECTORY);
	int fd = (int)syscall(SYS_open_by_handle_at, mount_fd, &root, O_RDONLY);

	return close_keeping(mount_fd, close_keeping(fd, fd));
}

static long watch(const struct corpus_target *target)
{
	int fd = inotify_init1(IN_NONBLOCK), rc = inotify_add_watch(fd, target->path, IN_ALL_EVENTS);

	return close_keeping(fd, rc);
}

static long bind_socket(const struct corpus_target *target)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (fd < 0)
		return -1;
	if (strlen(target->path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return close_keeping(fd, -1);
	}
	strcpy(address.sun_path, target->path);
	return close_keeping(fd, bind(fd, (struct sockaddr *)&address, sizeof(address)));
}

static long make_link(const struct corpus_target *target)
{
	return symlink("/", target->path);
}

/* clang-format off */
const struct corpus_call prove_corpus_paths[] = {
	/* looking */
	{"open", CALL(open, openat, O_RDONLY | O_NONBLOCK)},
	{"openat", .function = open_below_root},
	{"openat2", CALL_OPENAT2, {AT, P, (long)to_read, sizeof(to_read)}},
	{"open_path", .function = open_path},
	{"stat", CALL(stat, newfstatat, (long)buffer)},
	{"lstat", CALL(lstat, newfstatat, (long)buffer, AT_SYMLINK_NOFOLLOW)},
	{"statx", SYS_statx, {AT, P, 0, 0xfff, (long)buffer}},
	{"access", CALL(access, faccessat, F_OK)},
	{"readlink", .function = read_link},
	{"chdir", .function = change_directory},
	{"execve", .function = execute},
	{"name_to_handle_at", SYS_name_to_handle_at, {AT, P, (long)&handle, (long)&mount_id}},
	{"open_by_handle_at", .function = open_by_handle},
	{"inotify", .function = watch},
	{"fanotify", SYS_fanotify_init, {0, O_RDONLY}},
	{"listxattr", SYS_listxattr, {P}},
	{"bind_source", SYS_mount, {P, CORPUS_OWN, 0, MS_BIND}},
	{"open_tree", CALL_OPEN_TREE, {AT, P, FLAG_TREE_CLONE}},
	/* changing */
	{"open_write", CALL(open, openat, O_WRONLY | O_NONBLOCK)},
	{"open_append", CALL(open, openat, O_RDWR | O_APPEND | O_NONBLOCK)},
	{"open_truncate", CALL(open, openat, O_RDONLY | O_TRUNC | O_NONBLOCK)},
	{"openat2_write", CALL_OPENAT2, {AT, P, (long)to_write, sizeof(to_write)}},
	{"reopen_write", .function = reopen_write},
	{"tmpfile", CALL(open, openat, O_TMPFILE | O_WRONLY, 0644)},
	{"truncate", SYS_truncate, {P, 1}},
	{"chmod", CALL(chmod, fchmodat, 0600)},
	{"fchmodat2", CALL_FCHMODAT2, {AT, P, 0600}},
	{"chown", CALL(chown, fchownat, CORPUS_UID, CORPUS_GID)},
	{"utimensat", SYS_utimensat, {AT, P, (long)old_times}},
	{"setxattr", SYS_setxattr, {P, (long)"user.attack", (long)"x", 1}},
	{"mount_over", SYS_mount, {CORPUS_OWN, P, 0, MS_BIND}},
	{"remount", SYS_mount, {0, P, 0, MS_REMOUNT | MS_BIND}},
	{"umount", SYS_umount2, {P, MNT_DETACH}},
	{"link_from", CALL2(link, linkat, P, CORPUS_FRESH), "link"},
	{"link_to", CALL2(link, linkat, CORPUS_OWN, P)},
	{"symlink", .function = make_link},
	{"mkdir", CALL(mkdir, mkdirat, 0755)},
	{"mknod", CALL(mknod, mknodat, S_IFIFO | 0644)},
	{"bind_socket", .function = bind_socket},
	{"creat", CALL(open, openat, O_CREAT | O_WRONLY | O_TRUNC | O_NONBLOCK, 0644), "open"},
	{"exchange", SYS_renameat2, {AT, P, AT, CORPUS_OWN, FLAG_EXCHANGE}},
	{"whiteout", SYS_renameat2, {AT, P, AT, CORPUS_FRESH, FLAG_WHITEOUT | FLAG_NO_REPLACE}},
	{"rename_to", CALL2(rename, renameat2, CORPUS_OWN, P)},
	{"rename_from", CALL2(rename, renameat2, P, CORPUS_FRESH)},
	{"unlink", CALL(unlink, unlinkat, 0)},
	{"rmdir", CALL(rmdir, unlinkat, AT_REMOVEDIR)},
	{0},
};
/* clang-format on */
