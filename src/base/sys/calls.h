/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/sys/calls.h - system calls for which the C library has no function, or not everywhere
 *
 * Thin: each returns what the kernel returns, a negative errno on failure, so that child-side code needs no errno.
 * Constants newer than the build machine's headers are defined here.
 */
#ifndef BELLJAR_BASE_SYS_CALLS_H
#define BELLJAR_BASE_SYS_CALLS_H

#include <linux/filter.h>
#include <signal.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/clock.h"

/* --- processes ---------------------------------------------------------------------------------------------- */

/*
 * fork() with namespaces and a pidfd, into the version 2 cgroup whose directory is @cgroup_fd (-1: our own). Returns
 * 0 in the child, the pid in the parent, a negative errno.
 */
pid_t sys_fork(uint64_t clone_flags, int cgroup_fd, int *pidfd_out);
int sys_pidfd_open(pid_t pid);
int sys_close_range(unsigned first, unsigned last);
/* Return a descriptor that reads as nanoseconds of CPU time of this process and its future descendants. */
int sys_task_clock(void);

/* Move this process to a new network namespace with its loopback up. */
int sys_new_network(void);

/* --- files -------------------------------------------------------------------------------------------------- */

/* Call open() with O_CLOEXEC, in one system call; the C library's open() makes a second one for O_CLOEXEC. */
int sys_open(const char *path, int flags);
int sys_make_directory(int directory_fd, const char *path, mode_t mode);
int sys_make_file(int directory_fd, const char *path, mode_t mode); /* an empty one */
int sys_make_link(const char *text, int directory_fd, const char *path);

/* --- mounts ------------------------------------------------------------------------------------------------- */

#define SYS_MOUNT_RDONLY 0x1ULL
#define SYS_MOUNT_NOSUID 0x2ULL
#define SYS_MOUNT_NODEV 0x4ULL
#define SYS_MOUNT_NOEXEC 0x8ULL
#define SYS_MOUNT_IDMAP 0x100000ULL

/* Return a detached copy of the mount at @path below @directory_fd ("" is @directory_fd itself). */
int sys_open_tree(int directory_fd, const char *path, bool is_recursive);
/* Attach the detached mount @mount_fd at @path below @directory_fd. */
int sys_move_mount(int mount_fd, int directory_fd, const char *path);
int sys_mount_attributes(int mount_fd, uint64_t set, bool is_recursive);
/* Call sys_open_tree() and sys_mount_attributes() with the id map of @user_namespace_fd, in one call if possible. */
int sys_open_tree_with(int directory_fd, const char *path, bool is_recursive, uint64_t attributes,
		       int user_namespace_fd);
struct sys_option {
	const char *name;
	const char *value; /* NULL: a switch without a value */
};

/* Return a detached mount of a new @type file system. */
int sys_new_mount(const char *type, const struct sys_option *options, size_t option_count, uint64_t attributes);

/* --- openat2 ------------------------------------------------------------------------------------------------ */

#define SYS_RESOLVE_NO_XDEV 0x01ULL
#define SYS_RESOLVE_NO_MAGICLINKS 0x02ULL
#define SYS_RESOLVE_NO_SYMLINKS 0x04ULL
#define SYS_RESOLVE_BENEATH 0x08ULL
#define SYS_RESOLVE_IN_ROOT 0x10ULL

int sys_openat2(int directory_fd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve);

/* --- Landlock ----------------------------------------------------------------------------------------------- */

#define SYS_LANDLOCK_EXECUTE (1ULL << 0)
#define SYS_LANDLOCK_WRITE_FILE (1ULL << 1)
#define SYS_LANDLOCK_READ_FILE (1ULL << 2)
#define SYS_LANDLOCK_READ_DIR (1ULL << 3)
#define SYS_LANDLOCK_REFER (1ULL << 13)
#define SYS_LANDLOCK_TRUNCATE (1ULL << 14)
#define SYS_LANDLOCK_IOCTL_DEV (1ULL << 15)
#define SYS_LANDLOCK_SCOPE_ABSTRACT_UNIX (1ULL << 0)
#define SYS_LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
/* The kernel logs no refusals of this process before it executes another program. */
#define SYS_LANDLOCK_QUIET (1U << 0)

int sys_landlock_create(uint64_t handled_fs, uint64_t scoped, int abi);
int sys_landlock_allow_path(int ruleset_fd, int path_fd, uint64_t access);
/* @flags: SYS_LANDLOCK_QUIET, from ABI 7 on. */
int sys_landlock_restrict(int ruleset_fd, uint32_t flags);

/* --- privileges --------------------------------------------------------------------------------------------- */

int sys_seccomp_load(const struct sock_filter *program, size_t len);

int sys_drop_capabilities(void);       /* permitted, effective, inheritable, ambient */
int sys_set_effective(bool is_raised); /* every capability that is permitted, or none: they can be raised again */
int sys_drop_bounding_set(void);
/* Write a small file in one write; a negative errno on failure. */
int sys_write_file(int directory_fd, const char *path, const char *content);
/* Send messages to the kernel and read @awaited acknowledgements. Returns 0 or the first error among them. */
int sys_netlink(int fd, const void *messages, size_t len, uint64_t awaited);
/* Read a whole small file and NUL-terminate it. Returns the length or a negative errno. */
ssize_t sys_read_file(int directory_fd, const char *path, char *buffer, size_t capacity);

static inline uint64_t sys_monotonic_ns(void)
{
	return clock_ns();
}

#endif
