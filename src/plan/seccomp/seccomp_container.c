/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/seccomp/seccomp_container.c - a seccomp profile, for Docker and Podman, of containers in which Belljar runs
 *
 * Docker's own profile withholds what a jar is made with: namespaces and mounts. Switching seccomp off gives them, and
 * the whole rest of the kernel with them. This profile lets through what a command in a jar may call (the table of
 * seccomp_rules.c) and the few calls that make a jar. The kernel asks for a capability in a user namespace of the
 * caller's own at each of those few; that is what a jar has, and all that a container gains by this profile.
 */
#include "plan/seccomp/seccomp_container.h"

#include <errno.h>
#include <string.h>

#include "plan/seccomp/seccomp_rules.h"

#define VSOCK_FAMILY 40

/* What makes a jar, and is refused inside one. */
static const enum syscall_id builders[] = {
	SYSCALL_mount,       SYSCALL_umount2, SYSCALL_open_tree,     SYSCALL_move_mount, SYSCALL_fsopen,
	SYSCALL_fsconfig,    SYSCALL_fsmount, SYSCALL_mount_setattr, SYSCALL_pivot_root, SYSCALL_chroot,
	SYSCALL_sethostname, SYSCALL_clone3,  SYSCALL_setns,         SYSCALL_unshare,
};

/* Calls that a jar allows, where they reach no other jar; a container's profile does not need them. */
static const enum syscall_id needless[] = {
	SYSCALL_kcmp,        SYSCALL_move_pages, SYSCALL_migrate_pages, SYSCALL_process_madvise,
	SYSCALL_afs_syscall, SYSCALL_getpmsg,    SYSCALL_putpmsg,       SYSCALL_security,
	SYSCALL_tuxcall,     SYSCALL_vserver,    SYSCALL_uprobe,        SYSCALL_uretprobe,
};

/* A container may run 32-bit programs too: what only they call. */
static const char *const only_32_bit[] = {
	"_llseek",
	"_newselect",
	"chown32",
	"clock_getres_time64",
	"clock_gettime64",
	"clock_nanosleep_time64",
	"fadvise64_64",
	"fchown32",
	"fcntl64",
	"fstat64",
	"fstatat64",
	"fstatfs64",
	"ftruncate64",
	"futex_time64",
	"getegid32",
	"geteuid32",
	"getgid32",
	"getgroups32",
	"getresgid32",
	"getresuid32",
	"getuid32",
	"io_pgetevents_time64",
	"ipc",
	"lchown32",
	"lstat64",
	"mmap2",
	"mq_timedreceive_time64",
	"mq_timedsend_time64",
	"ppoll_time64",
	"pselect6_time64",
	"recv",
	"recvmmsg_time64",
	"rt_sigtimedwait_time64",
	"sched_rr_get_interval_time64",
	"semtimedop_time64",
	"send",
	"sendfile64",
	"setfsgid32",
	"setfsuid32",
	"setgid32",
	"setgroups32",
	"setregid32",
	"setresgid32",
	"setresuid32",
	"setreuid32",
	"setuid32",
	"sigprocmask",
	"sigreturn",
	"socketcall",
	"stat64",
	"statfs64",
	"timer_gettime64",
	"timer_settime64",
	"timerfd_gettime64",
	"timerfd_settime64",
	"truncate64",
	"ugetrlimit",
	"utimensat_time64",
	"waitpid",
};

static bool is_among(enum syscall_id call, const enum syscall_id *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == call)
			return true;
	return false;
}

/* Whether a jar's filter refuses @call to everybody, whatever the arguments. */
static bool is_refused_in_jars(enum syscall_id call)
{
	for (size_t i = 0; i < seccomp_rule_count; i++)
		if (seccomp_rules[i].call == call && seccomp_rules[i].part == SECCOMP_KERNEL &&
		    !seccomp_rules[i].when[0])
			return true;
	return false;
}

static bool is_let_through(enum syscall_id call)
{
	if (is_among(call, builders, ARRAY_LEN(builders)))
		return true;
	return !is_refused_in_jars(call) && !is_among(call, needless, ARRAY_LEN(needless)) && call != SYSCALL_socket;
}

static void write_architecture(struct json_writer *writer, const char *name, const char *narrow)
{
	json_open_object(writer, NULL);
	json_write_string(writer, "architecture", name);
	json_open_array(writer, "subArchitectures");
	json_write_string(writer, NULL, narrow);
	json_close_array(writer);
	json_close_object(writer);
}

/* The calls that are let through, or those that are not. */
static void write_names(struct json_writer *writer, bool has_let_through)
{
	json_open_array(writer, "names");
	for (int i = 0; i < SYSCALL_ID_COUNT; i++)
		if (i != SYSCALL_socket && is_let_through((enum syscall_id)i) == has_let_through)
			json_write_string(writer, NULL, syscall_id_name((enum syscall_id)i));
	for (size_t i = 0; has_let_through && i < ARRAY_LEN(only_32_bit); i++)
		json_write_string(writer, NULL, only_32_bit[i]);
	json_close_array(writer);
}

/* Any socket but the hypervisor's, which no network namespace cuts off. */
static void write_socket_rule(struct json_writer *writer)
{
	json_open_object(writer, NULL);
	json_open_array(writer, "names");
	json_write_string(writer, NULL, "socket");
	json_close_array(writer);
	json_write_string(writer, "action", "SCMP_ACT_ALLOW");
	json_open_array(writer, "args");
	json_open_object(writer, NULL);
	json_write_integer(writer, "index", 0);
	json_write_integer(writer, "value", VSOCK_FAMILY);
	json_write_string(writer, "op", "SCMP_CMP_NE");
	json_close_object(writer);
	json_close_array(writer);
	json_close_object(writer);
}

void seccomp_write_container_profile(struct text *out)
{
	struct json_writer writer = {.text = out, .indent = 2};

	json_open_object(&writer, NULL);
	/* What the table does not know is newer than the table: programs then take another way. */
	json_write_string(&writer, "defaultAction", "SCMP_ACT_ERRNO");
	json_write_integer(&writer, "defaultErrnoRet", ENOSYS);
	json_open_array(&writer, "archMap");
	write_architecture(&writer, "SCMP_ARCH_X86_64", "SCMP_ARCH_X86");
	write_architecture(&writer, "SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM");
	json_close_array(&writer);
	json_open_array(&writer, "syscalls");
	json_open_object(&writer, NULL);
	write_names(&writer, true);
	json_write_string(&writer, "action", "SCMP_ACT_ALLOW");
	json_close_object(&writer);
	write_socket_rule(&writer);
	json_open_object(&writer, NULL);
	write_names(&writer, false);
	json_write_string(&writer, "action", "SCMP_ACT_ERRNO");
	json_write_integer(&writer, "errnoRet", EPERM);
	json_close_object(&writer);
	json_close_array(&writer);
	json_close_object(&writer);
	text_append_char(out, '\n');
}
