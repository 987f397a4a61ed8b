/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/corpus_calls.c - system calls that a jar has no use for, each once
 */
#include "prove/corpus.h"

#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>

#define X32 0x40000000
#define NEW_USER 0x10000000
#define CALL_CLONE3 435
#define BAD 1 /* no address */
#define TCP_UPPER_PROTOCOL 31
#define ENABLE_VERITY 0x40806685
#define ADD_ENCRYPTION_KEY 0xc0506617

static const uint64_t clone_arguments[8] = {NEW_USER, 0, 0, 0, SIGCHLD};
static int pair[2];

/* clang-format off */
const struct corpus_call prove_corpus_calls[] = {
	{"mount", SYS_mount, {BAD, BAD, BAD, 0, BAD}},
	{"umount2", SYS_umount2, {(long)"/", 0x1000}},
	{"pivot_root", SYS_pivot_root},
	{"chroot", SYS_chroot, {BAD}},
	{"open_tree", 428, {-1, (long)"", 0x40000000}},
	{"move_mount", 429, {-1, (long)"", -1, (long)"", 0x40000000}},
	{"fsopen", 430},
	{"fsmount", 432, {-1}},
	{"fspick", 433, {-1, (long)""}},
	{"mount_setattr", 442, {-1, (long)""}},
	{"bpf", SYS_bpf, {0, 0, 1 << 20}},
	{"perf_event_open", SYS_perf_event_open, {0, 0, -1, -1, -1}},
	{"userfaultfd", SYS_userfaultfd, {-1}},
	{"io_uring_setup", 425, {1}},
	{"io_uring_enter", 426, {-1}},
	{"io_uring_register", 427, {-1}},
	{"keyctl", SYS_keyctl, {99999}},
	{"add_key", SYS_add_key, {(long)"user", (long)"attack", (long)"x", 1, -4}},
	{"request_key", SYS_request_key, {(long)"user", (long)"attack", 0, -4}},
	{"init_module", SYS_init_module},
	{"finit_module", SYS_finit_module, {-1, (long)""}},
	{"delete_module", SYS_delete_module, {(long)"no_such_module"}},
	{"kexec_load", SYS_kexec_load, {0, 99999, BAD, -1}},
	{"reboot", SYS_reboot},
	{"swapoff", SYS_swapoff},
	{"acct", SYS_acct, {(long)"/no/such"}},
	{"sethostname", SYS_sethostname, {(long)"attack", 6}},
	{"clock_settime", SYS_clock_settime},
	{"settimeofday", SYS_settimeofday},
	{"syslog", SYS_syslog, {10}},
	{"quotactl", SYS_quotactl},
	{"lsm_set_self_attr", 460},
	{"unshare_user", SYS_unshare, {NEW_USER}},
	{"unshare_mount", SYS_unshare, {CLONE_NEWNS}},
	{"unshare_high", SYS_unshare, {1L << 32}},
	{"setns", SYS_setns, {-1}},
	{"clone_user", SYS_clone, {NEW_USER | SIGCHLD}, "clone"},
	{"clone_net", SYS_clone, {CLONE_NEWNET | SIGCHLD}},
	{"clone_cgroup", SYS_clone, {0x02000000 | SIGCHLD}},
	{"clone_high", SYS_clone, {1L << 32 | NEW_USER | SIGCHLD}},
	{"clone3", CALL_CLONE3, {(long)clone_arguments, sizeof(clone_arguments)}},
	{"personality_read_implies_exec", SYS_personality, {0x0400000}},
	{"personality_page_zero", SYS_personality, {0x0100000}},
	{"personality_linux32", SYS_personality, {8}},
	{"personality_high", SYS_personality, {1L << 32 | 0x0400000}},
	{"pr_set_mm", SYS_prctl, {35, 1}},
	{"pr_sched_core", SYS_prctl, {62, 1}},
	{"tiocsti", SYS_ioctl, {0, TIOCSTI, (long)"x"}},
	{"tiocsti_high", SYS_ioctl, {0, 1L << 32 | TIOCSTI, (long)"x"}},
	{"tiocsti_sign", SYS_ioctl, {0, (long)(0xffffffff00000000UL | TIOCSTI), (long)"x"}},
	{"tioclinux", SYS_ioctl, {0, 0x541c, (long)"\2"}},
	{"tioclinux_high", SYS_ioctl, {0, (long)(0xdead00000000541cUL), (long)"\2"}},
	{"tiocsetd", SYS_ioctl, {0, 0x5423, (long)"\2\0\0\0"}},
	{"seccomp_off", SYS_prctl, {PR_SET_SECCOMP}},
	{"no_new_privs_off", SYS_prctl, {PR_SET_NO_NEW_PRIVS}},
	{"capability_ambient", SYS_prctl, {47, 2, 21}},
	{"unknown_call", 999},
	{"open_by_handle_at", SYS_open_by_handle_at, {-1}},
	{"mincore", SYS_mincore, {BAD, 1}},
	{"kcmp", SYS_kcmp, {CORPUS_PID, CORPUS_PID, -1}},
	{"vmsplice", SYS_vmsplice, {-1}},
	{"memfd_secret", 447, {0x40}}, /* flags that do not exist */
	{"io_setup", SYS_io_setup},
	{"tcp_ulp", SYS_setsockopt, {-1, IPPROTO_TCP, TCP_UPPER_PROTOCOL, (long)"tls", sizeof("tls")}, "setsockopt"},
	{"socket_filter", SYS_setsockopt, {-1, SOL_SOCKET, SO_ATTACH_FILTER, BAD, 16}, "setsockopt"},
	{"verity", SYS_ioctl, {-1, ENABLE_VERITY, BAD}, "ioctl"},
	{"encryption_key", SYS_ioctl, {-1, ADD_ENCRYPTION_KEY, BAD}, "ioctl"},
	{"out_of_band", SYS_sendto, {-1, (long)"x", 1, MSG_OOB | MSG_NOSIGNAL}, "send"},
#if defined(__x86_64__)
	{"modify_ldt", SYS_modify_ldt},
	{"iopl", SYS_iopl},
	{"ioperm", SYS_ioperm, {0, 1}},
	{"x32_getpid", X32 | SYS_getpid},
	{"x32_unshare", X32 | SYS_unshare, {NEW_USER}},
	{"x32_ioctl", X32 | 514, {0, TIOCSTI, (long)"x"}},
	{"x32_ptrace", X32 | 521},
#endif
	{"socket_inet", SYS_socket, {AF_INET, SOCK_STREAM}},
	{"socket_raw", SYS_socket, {AF_INET, SOCK_RAW, 1}},
	{"socket_raw_tcp", SYS_socket, {AF_INET, SOCK_RAW, 6}},
	{"socket_packet", SYS_socket, {17, SOCK_RAW}},
	{"socket_vsock", SYS_socket, {40, SOCK_STREAM}},
	{"socket_alg", SYS_socket, {38, SOCK_SEQPACKET}},
	{"socket_xdp", SYS_socket, {44, SOCK_RAW}},
	{"socket_bluetooth", SYS_socket, {31, SOCK_RAW, 1}},
	{"socket_tipc", SYS_socket, {30, SOCK_STREAM}},
	{"socket_can", SYS_socket, {29, SOCK_RAW, 1}},
	{"socket_key", SYS_socket, {15, SOCK_RAW, 2}},
	{"socket_kcm", SYS_socket, {41, SOCK_DGRAM}},
	{"socket_rds", SYS_socket, {21, SOCK_SEQPACKET}},
	{"socket_smc", SYS_socket, {43, SOCK_STREAM}},
	{"socket_qipcrtr", SYS_socket, {42, SOCK_DGRAM}},
	{"socket_nfc", SYS_socket, {39, SOCK_STREAM}},
	{"socket_sctp", SYS_socket, {AF_INET, SOCK_STREAM, 132}},
	{"socket_mptcp", SYS_socket, {AF_INET, SOCK_STREAM, 262}},
	{"socket_netlink_audit", SYS_socket, {16, SOCK_RAW, 9}},
	{"socket_netlink_netfilter", SYS_socket, {16, SOCK_RAW, 12}},
	{"socket_netlink_generic", SYS_socket, {16, SOCK_RAW, 16}},
	{"socket_netlink_uevent", SYS_socket, {16, SOCK_RAW, 15}},
	{"socketpair_tipc", SYS_socketpair, {30, SOCK_STREAM, 0, (long)pair}},
	{0},
};
/* clang-format on */
