/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/sys/calls.c - the kernel as we need it
 *
 * Many C libraries and kernel headers lack the names, numbers and structures of the calls that make a jar. So each is
 * a function here, with its own numbers. It falls back to an older call if the kernel or an outer filter lacks it.
 *
 * Everything here may be called in the child between clone and exec: no allocation, no locks. A child made by vfork()
 * shares errno with its parent, which sleeps meanwhile.
 */
#include "base/sys/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* For headers older than the kernel: numbers that are the same on every architecture that Belljar supports. */
#define NUMBER_OPEN_TREE 428
#define NUMBER_MOVE_MOUNT 429
#define NUMBER_FSOPEN 430
#define NUMBER_FSCONFIG 431
#define NUMBER_FSMOUNT 432
#define NUMBER_PIDFD_OPEN 434
#define NUMBER_CLONE3 435
#define NUMBER_CLOSE_RANGE 436
#define NUMBER_OPENAT2 437
#define NUMBER_MOUNT_SETATTR 442
#define NUMBER_OPEN_TREE_ATTR 467
#define NUMBER_LANDLOCK_CREATE_RULESET 444
#define NUMBER_LANDLOCK_ADD_RULE 445
#define NUMBER_LANDLOCK_RESTRICT_SELF 446

#define NETLINK_ANSWER_BYTES 8192
#define FLAG_PIDFD 0x1000ULL
#define FLAG_INTO_CGROUP 0x200000000ULL
#define FLAG_OPEN_TREE_CLONE 1U
#define FLAG_RECURSIVE 0x8000U
#define FLAG_MOVE_FROM_EMPTY_PATH 0x4U
#define FLAG_MOVE_TO_EMPTY_PATH 0x40U
#define FLAG_FS_CLOEXEC 1U
#define COMMAND_SET_FLAG 0U
#define COMMAND_SET_STRING 1U
#define COMMAND_CREATE 6U
#define LANDLOCK_RULE_IS_PATH 1

static int negative_errno(long value)
{
	return value < 0 ? -errno : (int)value;
}

/* call(NUMBER, ARGUMENT...): up to five arguments, numbers or pointers. */
#define call_five(number, a, b, c, d, e, ...)                                                                          \
	negative_errno(syscall((long)(number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e)))
#define call(...) call_five(__VA_ARGS__, 0, 0, 0, 0, 0, 0)

struct clone_arguments {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup; /* since 5.5 and 5.7: only sent along where they are used */
};
#define CLONE_ARGUMENTS_OLD offsetof(struct clone_arguments, set_tid)

pid_t sys_fork(uint64_t clone_flags, int cgroup_fd, int *pidfd_out)
{
	int pidfd = -1;
	struct clone_arguments arguments = {
		.flags = clone_flags | FLAG_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	size_t size = CLONE_ARGUMENTS_OLD;
	pid_t pid;

	if (cgroup_fd >= 0) {
		arguments.flags |= FLAG_INTO_CGROUP;
		arguments.cgroup = (uint64_t)cgroup_fd;
		size = sizeof(arguments);
	}
	pid = call(NUMBER_CLONE3, &arguments, size);
	/* Docker's default filter returns ENOSYS for clone3, since it needs to see clone's flags. */
	if (pid == -ENOSYS && cgroup_fd < 0)
		pid = call(SYS_clone, clone_flags | FLAG_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL);
	if (pid > 0)
		*pidfd_out = pidfd;
	return pid;
}

int sys_pidfd_open(pid_t pid)
{
	return call(NUMBER_PIDFD_OPEN, pid, 0);
}

int sys_close_range(unsigned first, unsigned last)
{
	int rc = call(NUMBER_CLOSE_RANGE, first, last, 0);

	if (rc != -ENOSYS)
		return rc;
	for (unsigned fd = first; fd <= last && fd < 65536; fd++)
		close((int)fd);
	return 0;
}

int sys_task_clock(void)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.inherit = 1,
		.exclude_kernel = 1, /* without this it needs a privilege; the clock counts kernel time anyway */
	};

	return call(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int sys_new_network(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	AUTO_CLOSE int fd = -1;
	int rc = call(SYS_unshare, CLONE_NEWNET);

	if (rc < 0)
		return rc;
	fd = call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? fd : call(SYS_ioctl, fd, SIOCSIFFLAGS, &request);
}

int sys_open(const char *path, int flags)
{
	return call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_LARGEFILE, 0);
}

int sys_make_directory(int directory_fd, const char *path, mode_t mode)
{
	return call(SYS_mkdirat, directory_fd, path, mode);
}

int sys_make_file(int directory_fd, const char *path, mode_t mode)
{
	return call(SYS_mknodat, directory_fd, path, S_IFREG | mode);
}

int sys_make_link(const char *text, int directory_fd, const char *path)
{
	return call(SYS_symlinkat, text, directory_fd, path);
}

static unsigned open_tree_flags(const char *path, bool is_recursive)
{
	return FLAG_OPEN_TREE_CLONE | O_CLOEXEC | AT_SYMLINK_NOFOLLOW | (is_recursive ? FLAG_RECURSIVE : 0) |
	       (path[0] ? 0 : AT_EMPTY_PATH);
}

int sys_open_tree(int directory_fd, const char *path, bool is_recursive)
{
	return call(NUMBER_OPEN_TREE, directory_fd, path, open_tree_flags(path, is_recursive));
}

int sys_move_mount(int mount_fd, int directory_fd, const char *path)
{
	unsigned flags = FLAG_MOVE_FROM_EMPTY_PATH | (path[0] ? 0 : FLAG_MOVE_TO_EMPTY_PATH);

	return call(NUMBER_MOVE_MOUNT, mount_fd, "", directory_fd, path, flags);
}

struct mount_attributes {
	uint64_t set, clear, propagation, user_namespace_fd;
};

static int set_attributes(int mount_fd, bool is_recursive, const struct mount_attributes *attributes)
{
	unsigned flags = AT_EMPTY_PATH | (is_recursive ? FLAG_RECURSIVE : 0);

	return call(NUMBER_MOUNT_SETATTR, mount_fd, "", flags, attributes, sizeof(*attributes));
}

int sys_mount_attributes(int mount_fd, uint64_t set, bool is_recursive)
{
	return set_attributes(mount_fd, is_recursive, &(struct mount_attributes){.set = set});
}

int sys_open_tree_with(int directory_fd, const char *path, bool is_recursive, uint64_t attributes,
		       int user_namespace_fd)
{
	struct mount_attributes all = {
		.set = attributes | (user_namespace_fd >= 0 ? SYS_MOUNT_IDMAP : 0),
		.user_namespace_fd = user_namespace_fd >= 0 ? (uint64_t)user_namespace_fd : 0,
	};
	AUTO_CLOSE int mount_fd =
		call(NUMBER_OPEN_TREE_ATTR, directory_fd, path, open_tree_flags(path, is_recursive), &all, sizeof(all));
	int rc = 0;

	if (mount_fd >= 0)
		return take_fd(&mount_fd);
	/* Linux before 6.15, or an outer filter that does not know the call. Other errors occur again here. */
	mount_fd = sys_open_tree(directory_fd, path, is_recursive);
	if (mount_fd < 0)
		return mount_fd;
	if (all.set)
		rc = set_attributes(mount_fd, is_recursive, &all);
	return rc < 0 ? rc : take_fd(&mount_fd);
}

int sys_new_mount(const char *type, const struct sys_option *options, size_t option_count, uint64_t attributes)
{
	AUTO_CLOSE int context = call(NUMBER_FSOPEN, type, FLAG_FS_CLOEXEC);
	int rc;

	if (context < 0)
		return context;
	for (size_t i = 0; i < option_count; i++) {
		rc = call(NUMBER_FSCONFIG, context, options[i].value ? COMMAND_SET_STRING : COMMAND_SET_FLAG,
			  options[i].name, options[i].value, 0);
		if (rc < 0)
			return rc;
	}
	rc = call(NUMBER_FSCONFIG, context, COMMAND_CREATE, NULL, NULL, 0);
	if (rc < 0)
		return rc;
	return call(NUMBER_FSMOUNT, context, FLAG_FS_CLOEXEC, attributes);
}

struct open_how_arguments {
	uint64_t flags, mode, resolve;
};

int sys_openat2(int directory_fd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how_arguments how = {flags | O_CLOEXEC, mode, resolve};

	return call(NUMBER_OPENAT2, directory_fd, path, &how, sizeof(how));
}

struct landlock_ruleset_arguments {
	uint64_t handled_fs, handled_net, scoped;
};

int sys_landlock_create(uint64_t handled_fs, uint64_t scoped, int abi)
{
	struct landlock_ruleset_arguments arguments = {.handled_fs = handled_fs, .scoped = scoped};
	size_t size = abi >= 6 ? sizeof(arguments) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);

	return call(NUMBER_LANDLOCK_CREATE_RULESET, &arguments, size, 0U);
}

struct landlock_path_arguments {
	uint64_t access;
	int32_t parent_fd;
} __attribute__((packed));

int sys_landlock_allow_path(int ruleset_fd, int path_fd, uint64_t access)
{
	struct landlock_path_arguments arguments = {access, path_fd};

	return call(NUMBER_LANDLOCK_ADD_RULE, ruleset_fd, LANDLOCK_RULE_IS_PATH, &arguments, 0U);
}

int sys_landlock_restrict(int ruleset_fd, uint32_t flags)
{
	return call(NUMBER_LANDLOCK_RESTRICT_SELF, ruleset_fd, flags);
}

int sys_seccomp_load(const struct sock_filter *program, size_t len)
{
	struct sock_fprog filter = {.len = (unsigned short)len, .filter = (struct sock_filter *)program};

	return call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}

int sys_drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}, {0}};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return call(SYS_capset, &header, data);
}

int sys_set_effective(bool is_raised)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}, {0}};
	int rc = call(SYS_capget, &header, data);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < ARRAY_LEN(data); i++)
		data[i].effective = is_raised ? data[i].permitted : 0;
	return call(SYS_capset, &header, data);
}

int sys_drop_bounding_set(void)
{
	for (int capability = 0; capability < 64; capability++)
		if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 &&
		    (errno != EPERM || prctl(PR_CAPBSET_READ, capability, 0, 0, 0) != 0)) /* 0: it is gone already */
			return errno == EINVAL && capability > 0 ? 0 : -errno;
	return 0;
}

int sys_write_file(int directory_fd, const char *path, const char *content)
{
	AUTO_CLOSE int fd = openat(directory_fd, path, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(content);
	ssize_t written;

	if (fd < 0)
		return -errno;
	written = write(fd, content, len);
	if (written < 0)
		return -errno;
	return (size_t)written == len ? 0 : -EIO;
}

int sys_netlink(int fd, const void *messages, size_t len, uint64_t awaited)
{
	_Alignas(struct nlmsghdr) char answer[NETLINK_ANSWER_BYTES];

	if (send(fd, messages, len, MSG_DONTWAIT) < 0)
		return -errno;
	while (awaited) {
		ssize_t got = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);

		if (got < 0)
			return -errno;
		for (struct nlmsghdr *at = (void *)answer; NLMSG_OK(at, (size_t)got); at = NLMSG_NEXT(at, got)) {
			const struct nlmsgerr *result = NLMSG_DATA(at);

			if (at->nlmsg_type != NLMSG_ERROR)
				continue;
			if (result->error)
				return result->error;
			awaited -= awaited > 0;
		}
	}
	return 0;
}

ssize_t sys_read_file(int directory_fd, const char *path, char *buffer, size_t capacity)
{
	AUTO_CLOSE int fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, buffer, capacity - 1);
	if (len < 0)
		return -errno;
	buffer[len] = '\0';
	return len;
}
