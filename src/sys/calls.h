/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys/calls.h - system calls that the C library has no name for, or not everywhere
 *
 * Thin: each returns what the kernel returns, a negative errno on failure, so that child-side code needs no errno.
 * Constants newer than the build machine's headers are defined here.
 */
#ifndef BELLJAR_SYS_CALLS_H
#define BELLJAR_SYS_CALLS_H

#include <linux/filter.h>
#include <signal.h>
#include <sys/types.h>

#include "base/base.h"

/* --- processes ---------------------------------------------------------------------------------------------- */

/*
 * fork() with namespaces and a pidfd, into the version 2 cgroup whose directory is @cgroup_fd (-1: our own). Returns 0 in
 * the child, the pid in the parent, a negative errno.
 */
pid_t sys_fork(uint64_t clone_flags, int cgroup_fd, int *pidfd_out);
/* Processors that a process may run on. */
struct sys_processors {
	unsigned long bits[1024 / (8 * sizeof(long))];
	size_t len; /* in bytes; 0: nothing was changed */
};

/*
 * Stay on this processor: a child that is made now begins here, where its parent is about to sleep. Elsewhere it might
 * wait behind other work for milliseconds, or for a processor that sleeps. Child and parent must roam again, with what was
 * @before; neither call can fail, it is only about time.
 */
void sys_stay(struct sys_processors *before);
void sys_roam(const struct sys_processors *before);
int sys_pidfd_open(pid_t pid);
int sys_pidfd_send_signal(int pidfd, int signal_number);
/* The standard action again; also for those that the C library keeps to itself and would not let go of. */
void sys_reset_signal(int number);
int sys_close_range(unsigned first, unsigned last);
/* A descriptor that reads as the nanoseconds of CPU time of this process and of all it will start, ended or not. */
int sys_task_clock(void);

/* A new network namespace for this process, its loopback up. */
int sys_new_network(void);

/* --- files -------------------------------------------------------------------------------------------------- */

/* What the C library's open() does, without asking the kernel twice for O_CLOEXEC, which is always set. */
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

/* A detached copy of the mount at @path below @directory_fd ("" is @directory_fd itself). */
int sys_open_tree(int directory_fd, const char *path, bool is_recursive);
/* Attach the detached mount @mount_fd at @path below @directory_fd. */
int sys_move_mount(int mount_fd, int directory_fd, const char *path);
int sys_mount_attributes(int mount_fd, uint64_t set, bool is_recursive);
int sys_mount_idmap(int mount_fd, int user_namespace_fd, bool is_recursive);
/* sys_open_tree(), sys_mount_attributes() and, with a @user_namespace_fd, sys_mount_idmap(), at once where the kernel can. */
int sys_open_tree_with(int directory_fd, const char *path, bool is_recursive, uint64_t attributes,
		       int user_namespace_fd);
/* Cut the whole mount tree off from the host's: without this, root's mounts would appear on the host. */
int sys_mounts_private(void);

struct sys_option {
	const char *name;
	const char *value;
};

/* A new, detached mount of a fresh @type file system. */
int sys_new_mount(const char *type, const struct sys_option *options, size_t option_count, uint64_t attributes);

/* --- openat2 ------------------------------------------------------------------------------------------------ */

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
/* What this process is refused before it executes another program is not for the audit log. */
#define SYS_LANDLOCK_QUIET (1U << 0)
#define SYS_LANDLOCK_NET_BIND (1ULL << 0)
#define SYS_LANDLOCK_NET_CONNECT (1ULL << 1)

/*
 * Have this process, not its children, run soon after it wakes, in short turns: it gets no more of a processor than others,
 * but what wakes in a crowd of thousands need not wait for them. Before Linux 6.12 nothing changes.
 */
void sys_be_prompt(void);

/*
 * Let this process have as many descriptors open as its hard limit allows. The kernel also refuses to pass a descriptor
 * while more than the sender's soft limit are under way for the user. A command has a lower limit than the engine, so
 * no command can stop the engine and the jar's first process from passing theirs.
 */
void sys_raise_descriptor_limit(void);

int sys_landlock_abi(void); /* 0 or more; 0 where there is no Landlock */
int sys_landlock_create(uint64_t handled_fs, uint64_t handled_net, uint64_t scoped, int abi);
int sys_landlock_allow_path(int ruleset_fd, int path_fd, uint64_t access);
/* @flags: SYS_LANDLOCK_QUIET, from ABI 7 on. */
int sys_landlock_restrict(int ruleset_fd, uint32_t flags);

/* --- privileges --------------------------------------------------------------------------------------------- */

int sys_seccomp_load(const struct sock_filter *program, size_t len);

/*
 * Load a filter that asks, and return its listener. Whoever holds that hears of every call that the filter asks about; the
 * caller of such a call sleeps until it is answered. Where the kernel can, signals other than SIGKILL wait meanwhile.
 * Without a holder such calls fail with ENOSYS. -EBUSY: a filter that is in force already has a listener.
 */
int sys_seccomp_listen(const struct sock_filter *program, size_t len);

/* A call that somebody waits for. */
struct sys_question {
	uint64_t id;
	pid_t pid; /* of the thread */
	int number;
	uint64_t arguments[6];
};

/* Never waits where poll() has said that there is one; -ENOENT: who asked is gone. */
int sys_question_receive(int listener_fd, struct sys_question *question);
/* Whether who asked still waits: then everything that was opened by its pid since the question came is its own. */
bool sys_question_is_open(int listener_fd, const struct sys_question *question);
/* The call returns 0, or fails with the negative errno @rc. */
int sys_question_answer(int listener_fd, const struct sys_question *question, int rc);

int sys_drop_capabilities(void);         /* permitted, effective, inheritable, ambient */
bool sys_has_capability(int capability); /* effective */
int sys_raise_capabilities(void);        /* everything permitted becomes effective */
int sys_rest_capabilities(void);         /* nothing is effective; what is permitted can be raised again */
int sys_drop_bounding_set(void);
/* Keep only the capabilities in @mask, also over an exec, and leave none to be gained. */
int sys_keep_capabilities(uint32_t mask);

/* Write a small file in one write; a negative errno on failure. */
int sys_write_file(int directory_fd, const char *path, const char *content);
/* Read a small file whole, NUL-terminated; the length, or a negative errno. */
ssize_t sys_read_file(int directory_fd, const char *path, char *buffer, size_t capacity);

/* Two descriptors that are closed on exec from birth; written only on success. */
int sys_pipe(int *reader, int *writer);

uint64_t sys_monotonic_ns(void);

#endif
