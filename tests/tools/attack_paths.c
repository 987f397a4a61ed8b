/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/attack_paths.c - every call that takes a path, on one target, by every way that leads to it
 *
 * attack_paths TARGET OWN   TARGET is the absolute path that is attacked; OWN a directory the attacker may write, used
 * for the other end of renames and links. Prints "CALL ROUTE ANSWER" for each pair; the answer is "ok" or the name of
 * the errno. What succeeds is not undone: whoever expects success must not care.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CALL_OPENAT2 437
#define CALL_FCHMODAT2 452
#define CALL_OPEN_TREE 428
#define CALL_NAME_TO_HANDLE_AT 303
#define CALL_OPEN_BY_HANDLE_AT 304
#define CALL_FANOTIFY_INIT 300
#if defined(__aarch64__)
#undef CALL_NAME_TO_HANDLE_AT
#undef CALL_OPEN_BY_HANDLE_AT
#undef CALL_FANOTIFY_INIT
#define CALL_NAME_TO_HANDLE_AT 264
#define CALL_OPEN_BY_HANDLE_AT 265
#define CALL_FANOTIFY_INIT 262
#endif
#define FLAG_EXCHANGE 2
#define FLAG_NO_REPLACE 1
#define FLAG_WHITEOUT 4
#define FLAG_TREE_CLONE 1
#define HANDLE_BYTES 128

static char own[PATH_MAX];           /* a file of ours */
static char own_directory[PATH_MAX]; /* a directory of ours */
static char fresh[PATH_MAX];         /* a name in it that is free */

static int keep(int fd)
{
	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

/* --- looking --- */

static int do_open(const char *path)
{
	return keep(open(path, O_RDONLY | O_NONBLOCK));
}

static int do_openat(const char *path)
{
	int root = open("/", O_PATH | O_DIRECTORY);
	int fd = openat(root, path[0] == '/' ? path + 1 : path, O_RDONLY | O_NONBLOCK);
	int error = errno;

	close(root);
	errno = error;
	return keep(fd);
}

static int do_openat2(const char *path)
{
	uint64_t how[3] = {O_RDONLY | O_NONBLOCK, 0, 0};

	return keep((int)syscall(CALL_OPENAT2, AT_FDCWD, path, how, sizeof(how)));
}

static int do_open_path(const char *path)
{
	/* Allowed by Landlock; the descriptor must then be good for nothing. */
	char again[64];
	int fd = open(path, O_PATH | O_NOFOLLOW), rc;

	if (fd < 0)
		return -1;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	rc = keep(open(again, O_RDONLY | O_NONBLOCK));
	close(fd);
	return rc;
}

static int do_stat(const char *path)
{
	struct stat status;

	return stat(path, &status);
}

static int do_lstat(const char *path)
{
	struct stat status;

	return lstat(path, &status);
}

static int do_statx(const char *path)
{
	char buffer[512];

#if defined(SYS_statx)
	return (int)syscall(SYS_statx, AT_FDCWD, path, 0, 0xfff, buffer);
#else
	(void)buffer;
	return do_stat(path);
#endif
}

static int do_access(const char *path)
{
	return access(path, F_OK);
}

static int do_readlink(const char *path)
{
	char buffer[PATH_MAX];

	/* EINVAL is what a thing says that is there and is no link. */
	return readlink(path, buffer, sizeof(buffer)) < 0 && errno != EINVAL ? -1 : 0;
}

static int do_chdir(const char *path)
{
	int here = open(".", O_PATH | O_DIRECTORY), rc = chdir(path), error = errno;

	if (rc < 0 && error == ENOTDIR)
		rc = 0;
	if (here >= 0 && fchdir(here) == 0)
		close(here);
	errno = error;
	return rc;
}

static int do_execve(const char *path)
{
	int error = 0, ends[2], status;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		char *argv[] = {(char *)path, NULL};

		execve(path, argv, argv + 1);
		error = errno;
		if (write(ends[1], &error, sizeof(error)) < 0)
			_exit(2);
		_exit(1);
	}
	close(ends[1]);
	if (read(ends[0], &error, sizeof(error)) < 0)
		error = EIO;
	close(ends[0]);
	waitpid(child, &status, 0);
	errno = error;
	return error ? -1 : 0;
}

static int do_name_to_handle_at(const char *path)
{
	struct {
		unsigned bytes;
		int type;
		unsigned char handle[HANDLE_BYTES];
	} handle = {HANDLE_BYTES, 0, {0}};
	int mount_id;

	return (int)syscall(CALL_NAME_TO_HANDLE_AT, AT_FDCWD, path, &handle, &mount_id, 0);
}

static int do_open_by_handle_at(const char *path)
{
	struct {
		unsigned bytes;
		int type;
		unsigned char handle[HANDLE_BYTES];
	} handle = {8, 1, {2}};
	int mount_fd = open("/", O_PATH | O_DIRECTORY), fd, error;

	(void)path;
	fd = (int)syscall(CALL_OPEN_BY_HANDLE_AT, mount_fd, &handle, O_RDONLY);
	error = errno;
	close(mount_fd);
	errno = error;
	return keep(fd);
}

static int do_inotify(const char *path)
{
	int fd = inotify_init1(IN_NONBLOCK), rc = inotify_add_watch(fd, path, IN_ALL_EVENTS), error = errno;

	close(fd);
	errno = error;
	return rc < 0 ? -1 : 0;
}

static int do_fanotify(const char *path)
{
	(void)path;
	return keep((int)syscall(CALL_FANOTIFY_INIT, 0, O_RDONLY));
}

static int do_listxattr(const char *path)
{
	return listxattr(path, NULL, 0) < 0 ? -1 : 0;
}

static int do_bind_source(const char *path)
{
	return mount(path, own, NULL, MS_BIND, NULL);
}

static int do_open_tree(const char *path)
{
	return keep((int)syscall(CALL_OPEN_TREE, AT_FDCWD, path, FLAG_TREE_CLONE));
}

/* --- changing --- */

static int do_open_write(const char *path)
{
	return keep(open(path, O_WRONLY | O_NONBLOCK));
}

static int do_open_append(const char *path)
{
	return keep(open(path, O_RDWR | O_APPEND | O_NONBLOCK));
}

static int do_open_truncate(const char *path)
{
	return keep(open(path, O_RDONLY | O_TRUNC | O_NONBLOCK));
}

static int do_openat2_write(const char *path)
{
	uint64_t how[3] = {O_WRONLY | O_NONBLOCK, 0, 0};

	return keep((int)syscall(CALL_OPENAT2, AT_FDCWD, path, how, sizeof(how)));
}

static int do_reopen_write(const char *path)
{
	char again[64];
	int fd = open(path, O_RDONLY | O_NONBLOCK), rc, error;

	if (fd < 0)
		return -1;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	rc = keep(open(again, O_WRONLY | O_NONBLOCK));
	error = errno;
	close(fd);
	errno = error;
	return rc;
}

static int do_creat(const char *path)
{
	return keep(open(path, O_CREAT | O_WRONLY | O_TRUNC | O_NONBLOCK, 0644));
}

static int do_tmpfile(const char *path)
{
	return keep(open(path, O_TMPFILE | O_WRONLY, 0644));
}

static int do_truncate(const char *path)
{
	return truncate(path, 1);
}

static int do_rename_from(const char *path)
{
	return rename(path, fresh);
}

static int do_rename_to(const char *path)
{
	return rename(own, path);
}

static int do_exchange(const char *path)
{
	return (int)syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, own, FLAG_EXCHANGE);
}

static int do_whiteout(const char *path)
{
	return (int)syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, fresh, FLAG_WHITEOUT | FLAG_NO_REPLACE);
}

static int do_link_from(const char *path)
{
	return link(path, fresh);
}

static int do_link_to(const char *path)
{
	return link(own, path);
}

static int do_symlink(const char *path)
{
	return symlink("/", path);
}

static int do_unlink(const char *path)
{
	return unlink(path);
}

static int do_mkdir(const char *path)
{
	return mkdir(path, 0755);
}

static int do_rmdir(const char *path)
{
	return rmdir(path);
}

static int do_mknod(const char *path)
{
	return mknod(path, S_IFIFO | 0644, 0);
}

static int do_mount_over(const char *path)
{
	return mount(own, path, NULL, MS_BIND, NULL);
}

static int do_remount(const char *path)
{
	return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL);
}

static int do_umount(const char *path)
{
	return umount2(path, MNT_DETACH);
}

static int do_bind_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), rc, error;

	if (fd < 0)
		return -1;
	if (strlen(path) >= sizeof(address.sun_path)) {
		close(fd);
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	rc = bind(fd, (struct sockaddr *)&address, sizeof(address));
	error = errno;
	close(fd);
	errno = error;
	return rc;
}

/* --- metadata --- */

static int do_chmod(const char *path)
{
	return chmod(path, 0600);
}

static int do_fchmodat2(const char *path)
{
	return (int)syscall(CALL_FCHMODAT2, AT_FDCWD, path, 0600, 0);
}

static int do_chown(const char *path)
{
	return chown(path, getuid(), getgid());
}

static int do_utimensat(const char *path)
{
	struct timespec times[2] = {{1000, 0}, {1000, 0}};

	return utimensat(AT_FDCWD, path, times, 0);
}

static int do_setxattr(const char *path)
{
	return setxattr(path, "user.attack", "x", 1, 0);
}

struct row {
	const char *name;
	int (*function)(const char *path);
};

static const struct row rows[] = {
	{"open", do_open},
	{"openat", do_openat},
	{"openat2", do_openat2},
	{"open_path", do_open_path},
	{"stat", do_stat},
	{"lstat", do_lstat},
	{"statx", do_statx},
	{"access", do_access},
	{"readlink", do_readlink},
	{"chdir", do_chdir},
	{"execve", do_execve},
	{"name_to_handle_at", do_name_to_handle_at},
	{"open_by_handle_at", do_open_by_handle_at},
	{"inotify", do_inotify},
	{"fanotify", do_fanotify},
	{"listxattr", do_listxattr},
	{"bind_source", do_bind_source},
	{"open_tree", do_open_tree},
	{"open_write", do_open_write},
	{"open_append", do_open_append},
	{"open_truncate", do_open_truncate},
	{"openat2_write", do_openat2_write},
	{"reopen_write", do_reopen_write},
	{"tmpfile", do_tmpfile},
	{"truncate", do_truncate},
	{"chmod", do_chmod},
	{"fchmodat2", do_fchmodat2},
	{"chown", do_chown},
	{"utimensat", do_utimensat},
	{"setxattr", do_setxattr},
	{"mount_over", do_mount_over},
	{"remount", do_remount},
	{"umount", do_umount},
	{"link_from", do_link_from},
	{"link_to", do_link_to},
	{"symlink", do_symlink},
	{"mkdir", do_mkdir},
	{"mknod", do_mknod},
	{"bind_socket", do_bind_socket},
	{"creat", do_creat},
	{"exchange", do_exchange},
	{"whiteout", do_whiteout},
	{"rename_to", do_rename_to},
	{"rename_from", do_rename_from},
	{"unlink", do_unlink},
	{"rmdir", do_rmdir},
};

struct error_name {
	int number;
	const char *name;
};

static const struct error_name error_names[] = {
	{EPERM, "EPERM"},
	{ENOENT, "ENOENT"},
	{EACCES, "EACCES"},
	{EBUSY, "EBUSY"},
	{EEXIST, "EEXIST"},
	{EXDEV, "EXDEV"},
	{ENOTDIR, "ENOTDIR"},
	{EISDIR, "EISDIR"},
	{EINVAL, "EINVAL"},
	{EROFS, "EROFS"},
	{ELOOP, "ELOOP"},
	{ENOSYS, "ENOSYS"},
	{ENOTEMPTY, "ENOTEMPTY"},
	{ESTALE, "ESTALE"},
	{EOPNOTSUPP, "EOPNOTSUPP"},
	{ENOEXEC, "ENOEXEC"},
	{ETXTBSY, "ETXTBSY"},
	{EADDRINUSE, "EADDRINUSE"},
	{ENAMETOOLONG, "ENAMETOOLONG"},
	{ENXIO, "ENXIO"},
};

static const char *name_of(int number)
{
	static char other[16];

	for (size_t i = 0; i < sizeof(error_names) / sizeof(error_names[0]); i++)
		if (error_names[i].number == number)
			return error_names[i].name;
	snprintf(other, sizeof(other), "E%d", number);
	return other;
}

static void prepare(void)
{
	int fd;

	unlink(fresh);
	rmdir(fresh);
	fd = open(own, O_CREAT | O_WRONLY, 0644);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	char routes[7][2 * PATH_MAX], up[PATH_MAX] = "", here[PATH_MAX];
	static const char *const route_names[] = {"direct", "self-root", "thread-root", "one-root",
						  "cwd",    "fd",        "dots"};
	const char *target = argc > 1 ? argv[1] : "";
	int root = open("/", O_PATH | O_DIRECTORY);

	if (argc != 3 || target[0] != '/')
		return 2;
	snprintf(own, sizeof(own), "%s/own", argv[2]);
	snprintf(own_directory, sizeof(own_directory), "%s/own.d", argv[2]);
	snprintf(fresh, sizeof(fresh), "%s/fresh", argv[2]);
	if (getcwd(here, sizeof(here)))
		for (const char *slash = strchr(here, '/'); slash && slash[1]; slash = strchr(slash + 1, '/'))
			strncat(up, "/..", sizeof(up) - strlen(up) - 1);
	snprintf(routes[0], sizeof(routes[0]), "%s", target);
	snprintf(routes[1], sizeof(routes[1]), "/proc/self/root%s", target);
	snprintf(routes[2], sizeof(routes[2]), "/proc/thread-self/root%s", target);
	snprintf(routes[3], sizeof(routes[3]), "/proc/1/root%s", target);
	snprintf(routes[4], sizeof(routes[4]), "/proc/self/cwd%s%s", up, target);
	snprintf(routes[5], sizeof(routes[5]), "/proc/self/fd/%d%s", root, target);
	snprintf(routes[6], sizeof(routes[6]), "/usr/../../../..%s", target);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t route = 0; route < sizeof(route_names) / sizeof(route_names[0]); route++) {
			int rc;

			prepare();
			errno = 0;
			rc = rows[i].function(routes[route]);
			printf("%s %s %s\n", rows[i].name, route_names[route], rc < 0 ? name_of(errno) : "ok");
		}
	}
	return 0;
}
