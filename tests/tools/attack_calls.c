/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/attack_calls.c - system calls that a jar has no use for, each once
 *
 * Prints "NAME ANSWER" for each, the answer being "ok" or the number of the errno. Where it can be had, the arguments
 * are such that the kernel itself would say something else than the filter does. What succeeds harms nobody.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define X32 0x40000000
#define NEW_USER 0x10000000

static void say(const char *name, long rc)
{
	if (rc < 0)
		printf("%s %d\n", name, errno);
	else
		printf("%s ok\n", name);
	fflush(stdout);
	errno = 0;
}

/* A child that clone() makes with these flags; it leaves at once. */
static long try_clone(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return pid;
}

static long try_clone3(void)
{
	uint64_t arguments[8] = {NEW_USER, 0, 0, 0, SIGCHLD};
	long pid = syscall(435, arguments, sizeof(arguments));

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return pid;
}

#if defined(__x86_64__)
/* getpid() by the 32-bit door. A kernel without that door faults; the child takes the blow. */
static void try_ia32(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		long rc;

		__asm__ volatile("int $0x80" : "=a"(rc) : "a"(20) : "memory");
		_exit(rc > 0 ? 1 : 0);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		printf("ia32 signal %d\n", WTERMSIG(status));
	else
		printf("ia32 %s\n", WEXITSTATUS(status) ? "ok" : "refused");
	fflush(stdout);
}
#endif

int main(void)
{
	static const struct {
		const char *name;
		int family, type, protocol;
	} sockets[] = {
		{"socket_inet", AF_INET, SOCK_STREAM, 0},
		{"socket_raw", AF_INET, SOCK_RAW, 1},
		{"socket_raw_tcp", AF_INET, SOCK_RAW, 6},
		{"socket_packet", 17, SOCK_RAW, 0},
		{"socket_vsock", 40, SOCK_STREAM, 0},
		{"socket_alg", 38, SOCK_SEQPACKET, 0},
		{"socket_xdp", 44, SOCK_RAW, 0},
		{"socket_bluetooth", 31, SOCK_RAW, 1},
		{"socket_tipc", 30, SOCK_STREAM, 0},
		{"socket_can", 29, SOCK_RAW, 1},
		{"socket_key", 15, SOCK_RAW, 2},
		{"socket_kcm", 41, SOCK_DGRAM, 0},
		{"socket_rds", 21, SOCK_SEQPACKET, 0},
		{"socket_smc", 43, SOCK_STREAM, 0},
		{"socket_qipcrtr", 42, SOCK_DGRAM, 0},
		{"socket_nfc", 39, SOCK_STREAM, 0},
		{"socket_sctp", AF_INET, SOCK_STREAM, 132},
		{"socket_mptcp", AF_INET, SOCK_STREAM, 262},
		{"socket_netlink_audit", 16, SOCK_RAW, 9},
		{"socket_netlink_netfilter", 16, SOCK_RAW, 12},
		{"socket_netlink_generic", 16, SOCK_RAW, 16},
		{"socket_netlink_uevent", 16, SOCK_RAW, 15},
	};
	int pair[2];

	say("mount", syscall(SYS_mount, NULL, NULL, NULL, 0, NULL));
	say("umount2", syscall(SYS_umount2, "/", 0x1000));
	say("pivot_root", syscall(SYS_pivot_root, NULL, NULL));
	say("chroot", syscall(SYS_chroot, NULL));
	say("open_tree", syscall(428, -1, "", 0x40000000));
	say("move_mount", syscall(429, -1, "", -1, "", 0x40000000));
	say("fsopen", syscall(430, NULL, 0));
	say("fsmount", syscall(432, -1, 0, 0));
	say("fspick", syscall(433, -1, "", 0));
	say("mount_setattr", syscall(442, -1, "", 0, NULL, 0));
	say("bpf", syscall(SYS_bpf, 0xffff, NULL, 0));
	say("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
	say("userfaultfd", syscall(SYS_userfaultfd, 0x40000000));
	say("io_uring_setup", syscall(425, 0, NULL));
	say("io_uring_enter", syscall(426, -1, 0, 0, 0, NULL, 0));
	say("io_uring_register", syscall(427, -1, 0, NULL, 0));
	say("keyctl", syscall(SYS_keyctl, 0, -4, 0, 0, 0));
	say("add_key", syscall(SYS_add_key, "user", "attack", "x", 1, -4));
	say("request_key", syscall(SYS_request_key, "user", "attack", NULL, -4));
	say("init_module", syscall(SYS_init_module, NULL, 0, ""));
	say("finit_module", syscall(SYS_finit_module, -1, "", 0));
	say("delete_module", syscall(SYS_delete_module, "no_such_module", 0));
	say("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
	say("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
	say("swapoff", syscall(SYS_swapoff, NULL));
	say("acct", syscall(SYS_acct, "/no/such"));
	say("sethostname", syscall(SYS_sethostname, "attack", 6));
	say("clock_settime", syscall(SYS_clock_settime, 0, NULL));
	say("settimeofday", syscall(SYS_settimeofday, NULL, NULL));
	say("syslog", syscall(SYS_syslog, 10, NULL, 0));
	say("quotactl", syscall(SYS_quotactl, 0, NULL, 0, NULL));
	say("lsm_set_self_attr", syscall(460, 0, NULL, 0, 0));
	say("unshare_user", syscall(SYS_unshare, NEW_USER));
	say("unshare_mount", syscall(SYS_unshare, CLONE_NEWNS));
	say("unshare_high", syscall(SYS_unshare, 0x100000000UL));
	say("setns", syscall(SYS_setns, -1, 0));
	say("clone_user", try_clone(NEW_USER));
	say("clone_net", try_clone(CLONE_NEWNET));
	say("clone_cgroup", try_clone(0x02000000));
	say("clone_high", try_clone(0x100000000UL | NEW_USER));
	say("clone3", try_clone3());
	say("personality_read_implies_exec", syscall(SYS_personality, 0x0400000));
	say("personality_page_zero", syscall(SYS_personality, 0x0100000));
	say("personality_linux32", syscall(SYS_personality, 8));
	say("personality_high", syscall(SYS_personality, 0x100000000UL | 0x0400000));
	say("pr_set_mm", prctl(35, 1, 0, 0, 0));
	say("pr_sched_core", prctl(62, 1, 0, 0, 0));
	say("tiocsti", ioctl(0, TIOCSTI, "x"));
	say("tiocsti_high", syscall(SYS_ioctl, 0, 0x100000000UL | TIOCSTI, "x"));
	say("tiocsti_sign", syscall(SYS_ioctl, 0, 0xffffffff00000000UL | TIOCSTI, "x"));
	say("tioclinux", syscall(SYS_ioctl, 0, 0x541cUL, "\2"));
	say("tioclinux_high", syscall(SYS_ioctl, 0, 0xdead00000000541cUL, "\2"));
	say("tiocsetd", syscall(SYS_ioctl, 0, 0x5423UL, "\2\0\0\0"));
	say("seccomp_off", prctl(PR_SET_SECCOMP, 0, 0, 0, 0));
	say("no_new_privs_off", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	say("capability_ambient", prctl(47, 2, 21, 0, 0));
	say("unknown_call", syscall(999));
#if defined(__x86_64__)
	say("modify_ldt", syscall(SYS_modify_ldt, 0, NULL, 0));
	say("iopl", syscall(SYS_iopl, 0));
	say("ioperm", syscall(SYS_ioperm, 0, 1, 0));
	say("x32_getpid", syscall(X32 | SYS_getpid));
	say("x32_unshare", syscall(X32 | SYS_unshare, NEW_USER));
	say("x32_ioctl", syscall(X32 | 514, 0, TIOCSTI, "x"));
	say("x32_ptrace", syscall(X32 | 521, 0, 0, 0, 0));
	try_ia32();
#endif
	for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++) {
		int fd = socket(sockets[i].family, sockets[i].type, sockets[i].protocol);

		say(sockets[i].name, fd);
		if (fd >= 0)
			close(fd);
	}
	say("socketpair_tipc", socketpair(30, SOCK_STREAM, 0, pair));
	return 0;
}
