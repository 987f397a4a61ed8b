/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/deny.c - run a command on a host that lacks something
 *
 * deny WORD... -- CMD [ARG...]   installs a seccomp filter and executes CMD under it. Words are in the table below:
 *   userns    as in a default container: unshare, setns, the mount family and clone with any namespace flag answer
 *             EPERM; clone3 answers ENOSYS, since a filter cannot see its flags
 *   cgroup    for root: nothing is mounted at /sys/fs/cgroup, in a mount namespace of its own; for all: none can be locked
 *   listener  the filter has a listener, so that no other one can have one
 *   nftables  no socket for the messages of netfilter, as on a kernel without it
 *   perf      the clock of a tree's CPU time is refused, as in a default container
 *   others    the named calls answer ENOSYS, as on a kernel too old for them
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What <linux/filter.h>, <linux/seccomp.h> and <linux/audit.h> say; musl-gcc does not find them. */
struct filter {
	uint16_t code;
	uint8_t jump_true;
	uint8_t jump_false;
	uint32_t value;
};
struct program {
	unsigned short len;
	struct filter *filter;
};
struct call_data {
	int number;
	uint32_t arch;
	uint64_t ip;
	uint64_t args[6];
};
enum {
	LOAD_WORD = 0x20,
	JUMP_EQUAL = 0x15,
	JUMP_SET = 0x45,
	RETURN = 0x06,
};
#define RETURN_ALLOW 0x7fff0000u
#define RETURN_ERRNO 0x00050000u
#define SET_MODE_FILTER 1
#define FLAG_LISTENER 8

#define FAMILY_NETLINK 16
#define NETLINK_OF_NETFILTER 12

#define NAMESPACE_FLAGS 0x7e020080u /* CLONE_NEW*: time, mount, cgroup, UTS, IPC, user, pid, network */

/* Numbers that every architecture with the generic table shares, and that old headers lack. */
enum {
	CALL_PIDFD_SEND_SIGNAL = 424,
	CALL_OPEN_TREE = 428,
	CALL_MOVE_MOUNT = 429,
	CALL_FSOPEN = 430,
	CALL_FSCONFIG = 431,
	CALL_FSMOUNT = 432,
	CALL_FSPICK = 433,
	CALL_PIDFD_OPEN = 434,
	CALL_CLONE3 = 435,
	CALL_CLOSE_RANGE = 436,
	CALL_OPENAT2 = 437,
	CALL_PIDFD_GETFD = 438,
	CALL_EPOLL_PWAIT2 = 441,
	CALL_MOUNT_SETATTR = 442,
	CALL_LANDLOCK_CREATE_RULESET = 444,
	CALL_LANDLOCK_ADD_RULE = 445,
	CALL_LANDLOCK_RESTRICT_SELF = 446,
	CALL_OPEN_TREE_ATTR = 467,
};

static const struct {
	const char *word;
	int number;
	int error;
} calls[] = {
	{"userns", SYS_unshare, EPERM},
	{"userns", SYS_setns, EPERM},
	{"userns", SYS_mount, EPERM},
	{"userns", SYS_umount2, EPERM},
	{"userns", SYS_pivot_root, EPERM},
	{"userns", CALL_OPEN_TREE, EPERM},
	{"userns", CALL_MOVE_MOUNT, EPERM},
	{"userns", CALL_FSOPEN, EPERM},
	{"userns", CALL_FSCONFIG, EPERM},
	{"userns", CALL_FSMOUNT, EPERM},
	{"userns", CALL_FSPICK, EPERM},
	{"userns", CALL_MOUNT_SETATTR, EPERM},
	{"userns", CALL_OPEN_TREE_ATTR, EPERM},
	{"userns", CALL_CLONE3, ENOSYS},
	{"clone3", CALL_CLONE3, ENOSYS},
	{"cgroup", SYS_flock, ENOSYS}, /* who has rights there cannot have a cgroup to itself */
	{"perf", SYS_perf_event_open, EPERM},
	{"landlock", CALL_LANDLOCK_CREATE_RULESET, ENOSYS},
	{"landlock", CALL_LANDLOCK_ADD_RULE, ENOSYS},
	{"landlock", CALL_LANDLOCK_RESTRICT_SELF, ENOSYS},
	{"pidfd", CALL_PIDFD_OPEN, ENOSYS},
	{"pidfd", CALL_PIDFD_SEND_SIGNAL, ENOSYS},
	{"pidfd", CALL_PIDFD_GETFD, ENOSYS},
	{"newmount", CALL_OPEN_TREE, ENOSYS},
	{"newmount", CALL_MOVE_MOUNT, ENOSYS},
	{"newmount", CALL_FSOPEN, ENOSYS},
	{"newmount", CALL_FSCONFIG, ENOSYS},
	{"newmount", CALL_FSMOUNT, ENOSYS},
	{"newmount", CALL_FSPICK, ENOSYS},
	{"newmount", CALL_MOUNT_SETATTR, ENOSYS},
	{"newmount", CALL_OPEN_TREE_ATTR, ENOSYS},
	{"mount_setattr", CALL_MOUNT_SETATTR, ENOSYS},
	{"mount_setattr", CALL_OPEN_TREE_ATTR, ENOSYS},
	{"open_tree_attr", CALL_OPEN_TREE_ATTR, ENOSYS},
	{"filtered_open_tree_attr", CALL_OPEN_TREE_ATTR, EPERM}, /* by a filter that knows it not */
	{"close_range", CALL_CLOSE_RANGE, ENOSYS},
	{"openat2", CALL_OPENAT2, ENOSYS},
	{"epoll_pwait2", CALL_EPOLL_PWAIT2, ENOSYS},
	{"execveat", SYS_execveat, ENOSYS},
};
enum { CALL_COUNT = sizeof(calls) / sizeof(calls[0]) };

static int hide_cgroups(void)
{
	if (getuid() != 0)
		return 0; /* see calls[] */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) < 0)
		return -1;
	return 0;
}

static int is_word(const char *word)
{
	if (strcmp(word, "cgroup") == 0 || strcmp(word, "listener") == 0 || strcmp(word, "nftables") == 0)
		return 1;
	for (int i = 0; i < CALL_COUNT; i++)
		if (strcmp(calls[i].word, word) == 0)
			return 1;
	return 0;
}

/* A listener that nobody holds is none: it stays open in CMD. */
static int load(struct program *program, int has_listener)
{
	int fd = (int)syscall(SYS_seccomp, SET_MODE_FILTER, has_listener ? FLAG_LISTENER : 0, program);

	return fd < 0 || !has_listener ? fd : fcntl(fd, F_SETFD, 0);
}

int main(int argc, char **argv)
{
	struct filter filter[2 * CALL_COUNT + 24];
	struct program program = {.filter = filter};
	int has_userns = 0, has_listener = 0, has_nftables = 0;
	int at = 1;

	filter[program.len++] = (struct filter){LOAD_WORD, 0, 0, offsetof(struct call_data, number)};
	for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
		if (!is_word(argv[at])) {
			fprintf(stderr, "deny: unknown word '%s'\n", argv[at]);
			return 2;
		}
		has_userns |= strcmp(argv[at], "userns") == 0;
		has_nftables |= strcmp(argv[at], "nftables") == 0;
		has_listener |= strcmp(argv[at], "listener") == 0;
		if (strcmp(argv[at], "cgroup") == 0 && hide_cgroups() < 0) {
			perror("deny: cannot hide the cgroups");
			return 2;
		}
	}
	if (at + 1 >= argc) {
		fprintf(stderr, "usage: deny WORD... -- CMD [ARG...]\n");
		return 2;
	}
	for (int i = 0; i < CALL_COUNT; i++) {
		int is_asked = 0;

		for (int word = 1; word < at; word++)
			is_asked |= strcmp(argv[word], calls[i].word) == 0;
		if (!is_asked)
			continue;
		filter[program.len++] = (struct filter){JUMP_EQUAL, 0, 1, (uint32_t)calls[i].number};
		filter[program.len++] = (struct filter){RETURN, 0, 0, RETURN_ERRNO | (uint32_t)calls[i].error};
	}
	if (has_userns) {
		filter[program.len++] = (struct filter){JUMP_EQUAL, 0, 3, SYS_clone};
		filter[program.len++] = (struct filter){LOAD_WORD, 0, 0, offsetof(struct call_data, args)};
		filter[program.len++] = (struct filter){JUMP_SET, 0, 1, NAMESPACE_FLAGS};
		filter[program.len++] = (struct filter){RETURN, 0, 0, RETURN_ERRNO | EPERM};
	}
	if (has_nftables) {
		filter[program.len++] = (struct filter){LOAD_WORD, 0, 0, offsetof(struct call_data, number)};
		filter[program.len++] = (struct filter){JUMP_EQUAL, 0, 5, SYS_socket};
		filter[program.len++] = (struct filter){LOAD_WORD, 0, 0, offsetof(struct call_data, args)};
		filter[program.len++] = (struct filter){JUMP_EQUAL, 0, 3, FAMILY_NETLINK};
		filter[program.len++] =
			(struct filter){LOAD_WORD, 0, 0, offsetof(struct call_data, args) + 2 * sizeof(uint64_t)};
		filter[program.len++] = (struct filter){JUMP_EQUAL, 0, 1, NETLINK_OF_NETFILTER};
		filter[program.len++] = (struct filter){RETURN, 0, 0, RETURN_ERRNO | EPROTONOSUPPORT};
	}
	filter[program.len++] = (struct filter){RETURN, 0, 0, RETURN_ALLOW};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || load(&program, has_listener) < 0) {
		perror("deny: cannot install the filter");
		return 2;
	}
	execvp(argv[at + 1], argv + at + 1);
	perror("deny: cannot execute");
	return 127;
}
