/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/seccomp/seccomp_rules.c - which system calls a jar is refused, and why
 *
 * EPERM is the answer where a program should learn that it may not. ENOSYS is the answer where it then takes
 * another way (clone3, io_uring); for sockets it is what a kernel without that family or protocol says, since
 * libraries have met such kernels. Nothing is killed: a program that asks for too much goes on, and can say what
 * it missed.
 *
 * Allowed on purpose: ptrace, process_vm_readv and their like (gdb and strace work; the pid namespace, or
 * Landlock's own rule for tracing, ends at the jar's wall); seccomp and landlock_* (a nested sandbox only takes
 * away); the memory policy of oneself (numpy, the JVM); openat2 and pidfds. Seccomp is checked after a tracer had
 * its say, so changing the call number of a traced process does not get around the filter.
 *
 * Constants are spelled out: they are ABI, the same on both architectures, and newer than some build machines' headers.
 */
#include "plan/seccomp/seccomp_rules.h"

#include <errno.h>

#include "inside/jar_plan.h"

#define ONLY_LOW_WORD 0xffffffffU

/* clang-format off */
#define EQUALS(number, expected) {SECCOMP_TEST_EQUALS, number, expected, ONLY_LOW_WORD}
#define MASKED(number, bits, expected) {SECCOMP_TEST_EQUALS, number, expected, bits}
#define DIFFERS(number, expected) {SECCOMP_TEST_DIFFERS, number, expected, ONLY_LOW_WORD}
#define HAS_ANY(number, bits) {SECCOMP_TEST_HAS_ANY, number, 0, bits}
#define IS_NOT_NULL(number) {SECCOMP_TEST_HAS_ANY, number, 0, UINT64_MAX}
#define PROTECTED(number) {SECCOMP_TEST_PROTECTED, number, 0, ONLY_LOW_WORD}
#define PROTECTED_GROUP(number) {SECCOMP_TEST_PROTECTED_GROUP, number, 0, ONLY_LOW_WORD}
#define FOREIGN_USER(number) {SECCOMP_TEST_FOREIGN_USER, number, 0, ONLY_LOW_WORD}
#define FOREIGN_GROUP(number) {SECCOMP_TEST_FOREIGN_GROUP, number, 0, ONLY_LOW_WORD}

#define REFUSE(name, part, error) {SYSCALL_##name, part, SECCOMP_RET_ERRNO | (error), "", {{SECCOMP_TEST_NONE, 0, 0, 0}}}
#define REFUSE_IF(name, part, error, when, ...) {SYSCALL_##name, part, SECCOMP_RET_ERRNO | (error), when, {__VA_ARGS__}}
/* Nothing is done, and the caller is told that it was. */
#define IGNORE_IF(name, part, when, ...) REFUSE_IF(name, part, 0, when, __VA_ARGS__)
#define ASK(name, part) {SYSCALL_##name, part, SECCOMP_RET_USER_NOTIF, "", {{SECCOMP_TEST_NONE, 0, 0, 0}}}
#define TRACE(name, part) {SYSCALL_##name, part, SECCOMP_RET_USER_NOTIF, "it is not Belljar's own", {DIFFERS(5, JAR_OWN_CALL)}}
#define TRACE_PATH(name, part, flags) \
	{SYSCALL_##name, part, SECCOMP_RET_USER_NOTIF, "it names a path, and is not Belljar's own", {MASKED(flags, EMPTY_PATH, 0), DIFFERS(5, JAR_OWN_CALL)}}
/* clang-format on */

/* What clone() takes: the low 32 bits, of which the low 8 are the exit signal and thus hide CLONE_NEWTIME. */
#define CLONE_NAMESPACES 0x7e020000U
#define CLONE_PARENT_FLAG 0x00008000U
/* The rest of unshare(): FS, FILES, SYSVSEM, and VM, SIGHAND, THREAD, which do nothing in a single thread. */
#define UNSHARE_HARMLESS UINT64_C(0x00050f00)

#define TIOCSTI_COMMAND 0x5412
#define TIOCLINUX_COMMAND 0x541c
#define TIOCSETD_COMMAND 0x5423
#define FICLONE_COMMAND 0x40049409
#define FICLONERANGE_COMMAND 0x4020940d
/* struct space_resv and struct fsxattr; the numbers are XFS's, and the first two and the last but one every file system's. */
#define FS_IOC_RESVSP_COMMAND 0x40305828
#define FS_IOC_RESVSP64_COMMAND 0x4030582a
#define XFS_IOC_ALLOCSP_COMMAND 0x4030580a
#define XFS_IOC_FREESP_COMMAND 0x4030580b
#define XFS_IOC_ALLOCSP64_COMMAND 0x40305824
#define XFS_IOC_FREESP64_COMMAND 0x40305825
#define FS_IOC_ZERO_RANGE_COMMAND 0x40305839
#define FS_IOC_FSSETXATTR_COMMAND 0x401c5820
#define FALLOCATE_PUNCH_HOLE 0x2U
#define MAP_HUGETLB_FLAG 0x40000U
#define MFD_HUGETLB_FLAG 0x4U
#define OPEN_ACCESS_MODE 0x3U
#define EMPTY_PATH 0x1000U
#define OPEN_TRUNCATE 0x200U
#define FILE_TYPE 0170000U
#define CHARACTER_DEVICE 0020000U
#define RENAME_WHITEOUT_FLAG 4U
#define FIOSETOWN_COMMAND 0x8901
#define SIOCSPGRP_COMMAND 0x8902
#define F_SETOWN_COMMAND 8
#define F_SETOWN_EX_COMMAND 15
#define F_SETLEASE_COMMAND 1024
#define F_SETDELEG_COMMAND 1040

#define PERSONALITY_QUERY 0xffffffffU
#define PERSONALITY_NO_RANDOMIZE 0x0040000U

#define PR_SET_DUMPABLE_OPTION 4
#define PR_SET_MM_OPTION 35
#define PR_SCHED_CORE_OPTION 62

#define FAMILY_UNIX 1
#define FAMILY_INET 2
#define FAMILY_INET6 10
#define FAMILY_NETLINK 16
#define SOCKET_DATAGRAM 2
/* Without the bit that makes SOCK_RAW of it: for a Unix socket that is another word for datagram. */
#define DATAGRAM_TYPE_BITS 0xeU
#define PROTOCOL_DEFAULT 0
#define PROTOCOL_ICMP 1
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define PROTOCOL_ICMPV6 58
#define NETLINK_PROTOCOL_ROUTE 0

#define MODE_SETUID 04000
#define MODE_SETGID 02000

#define PRIORITY_OF_PROCESS 0
#define PRIORITY_OF_USER 2
#define IO_PRIORITY_OF_PROCESS 1
#define IO_PRIORITY_OF_USER 3
#define FIRST_PID 1

#define SET_MODE_FILTER 1
#define FILTER_WITH_LISTENER 0x8

#define LEVEL_TCP 6
#define TCP_ULP_OPTION 31
#define LEVEL_SOCKET 1
#define SO_SNDBUF_OPTION 7
#define SO_ZEROCOPY_OPTION 60
#define SO_ATTACH_FILTER_OPTION 26
#define SO_ATTACH_BPF_OPTION 50 /* and 51, SO_ATTACH_REUSEPORT_CBPF */
#define SO_ATTACH_REUSEPORT_EBPF_OPTION 52
#define TCP_FASTOPEN_CONNECT_OPTION 30
#define OOB_OR_FASTOPEN_FLAGS 0x20000001U
#define MADV_MERGEABLE_ADVICE 12
#define PR_SET_MEMORY_MERGE_OPTION 67
#define MPOL_MOVE_ALL_FLAG 0x4U
#define MFD_NOEXEC_SEAL_FLAG 0x8U
#define SHM_LOCK_COMMAND 11
#define SHM_HUGETLB_FLAG 04000U

#define CORE_RESOURCE 4

/* What is written into inodes and super blocks by ioctl, most of it to files that need not be open for writing. */
#define FSCRYPT_SET_POLICY_COMMAND 0x800c6613
#define FSCRYPT_SET_SALT_COMMAND 0x40106614
#define FSCRYPT_ADD_KEY_COMMAND 0xc0506617
#define FSCRYPT_REMOVE_KEY_COMMAND 0xc0406618
#define FSCRYPT_REMOVE_KEY_ALL_COMMAND 0xc0406619
#define FSVERITY_ENABLE_COMMAND 0x40806685
#define FS_SETFLAGS_COMMAND 0x40086602
#define FS_SETXATTR_COMMAND 0x401c5820
#define FS_SETVERSION_COMMAND 0x40087602
#define EXT4_SETVERSION_COMMAND 0x40086604
#define FAT_SETATTRIBUTES_COMMAND 0x40047211
#define FIDEDUPERANGE_COMMAND 0xc0189436
/* The letters of whole file systems. Btrfs's has the three commands above that all may have. */
#define COMMAND_LETTER 0xff00U
#define BTRFS_LETTER 0x9400
#define BCACHEFS_LETTER 0xbc00
#define F2FS_LETTER 0xf500

const struct seccomp_rule seccomp_rules[] = {
	/* Mounts. The jar's are locked by the kernel too; this keeps its mount code out of reach altogether. */
	REFUSE(mount, SECCOMP_KERNEL, EPERM),
	REFUSE(umount2, SECCOMP_KERNEL, EPERM),
	REFUSE(pivot_root, SECCOMP_KERNEL, EPERM),
	REFUSE(chroot, SECCOMP_KERNEL, EPERM),
	REFUSE(open_tree, SECCOMP_KERNEL, EPERM),
	REFUSE(open_tree_attr, SECCOMP_KERNEL, EPERM),
	REFUSE(move_mount, SECCOMP_KERNEL, EPERM),
	REFUSE(fsopen, SECCOMP_KERNEL, EPERM),
	REFUSE(fsconfig, SECCOMP_KERNEL, EPERM),
	REFUSE(fsmount, SECCOMP_KERNEL, EPERM),
	REFUSE(fspick, SECCOMP_KERNEL, EPERM),
	REFUSE(mount_setattr, SECCOMP_KERNEL, EPERM),
	REFUSE(swapon, SECCOMP_KERNEL, EPERM),
	REFUSE(swapoff, SECCOMP_KERNEL, EPERM),
	REFUSE(quotactl, SECCOMP_KERNEL, EPERM),
	REFUSE(quotactl_fd, SECCOMP_KERNEL, EPERM),
	/* libmount then reads /proc/self/mountinfo. */
	REFUSE(statmount, SECCOMP_KERNEL, ENOSYS),
	REFUSE(listmount, SECCOMP_KERNEL, ENOSYS),

	/*
	 * A file handle opens any file of its filesystem, visible or not. Who asks for one copes with a refusal:
	 * some filesystems have none.
	 */
	REFUSE(open_by_handle_at, SECCOMP_KERNEL, EPERM),
	REFUSE(name_to_handle_at, SECCOMP_KERNEL, EOPNOTSUPP),
	/* Reports on files below a mark, past what the caller can reach. */
	REFUSE(fanotify_init, SECCOMP_KERNEL, EPERM),
	REFUSE(fanotify_mark, SECCOMP_KERNEL, EPERM),

	/* The kernel's own code, and where it comes from. */
	REFUSE(init_module, SECCOMP_KERNEL, EPERM),
	REFUSE(finit_module, SECCOMP_KERNEL, EPERM),
	REFUSE(delete_module, SECCOMP_KERNEL, EPERM),
	REFUSE(create_module, SECCOMP_KERNEL, EPERM),
	REFUSE(query_module, SECCOMP_KERNEL, EPERM),
	REFUSE(get_kernel_syms, SECCOMP_KERNEL, EPERM),
	REFUSE(kexec_load, SECCOMP_KERNEL, EPERM),
	REFUSE(kexec_file_load, SECCOMP_KERNEL, EPERM),
	REFUSE(reboot, SECCOMP_KERNEL, EPERM),

	/*
	 * Large and young parts of the kernel that a jar has no use for. EPERM is also what they say where a
	 * sysctl closes them.
	 */
	REFUSE(bpf, SECCOMP_KERNEL, EPERM),
	REFUSE(perf_event_open, SECCOMP_KERNEL, EPERM),
	REFUSE(userfaultfd, SECCOMP_KERNEL, EPERM),
	/* Memory that no other process can read or count. Many kernels disable it, so programs cope without it. */
	REFUSE(memfd_secret, SECCOMP_KERNEL, ENOSYS),
	/* The kernel counts rings for the whole host (fs.aio-max-nr): one jar could take all. Databases use threads. */
	REFUSE(io_setup, SECCOMP_KERNEL, ENOSYS),
	/*
	 * A ring carries out calls this filter never sees. Node, Java and liburing's users ask once, and then use
	 * epoll.
	 */
	REFUSE(io_uring_setup, SECCOMP_KERNEL, ENOSYS),
	REFUSE(io_uring_enter, SECCOMP_KERNEL, ENOSYS),
	REFUSE(io_uring_register, SECCOMP_KERNEL, ENOSYS),

	/* Keyrings belong to the user, not to a namespace: the session's keys would be in reach. */
	REFUSE(add_key, SECCOMP_KERNEL, EPERM),
	REFUSE(request_key, SECCOMP_KERNEL, EPERM),
	REFUSE(keyctl, SECCOMP_KERNEL, EPERM),
	/* A change of profile within another security module. Reading (lsm_get_self_attr) is harmless. */
	REFUSE(lsm_set_self_attr, SECCOMP_KERNEL, EPERM),

	/* The machine: name, clock, log, ports, accounting. */
	REFUSE(sethostname, SECCOMP_KERNEL, EPERM),
	REFUSE(setdomainname, SECCOMP_KERNEL, EPERM),
	REFUSE(clock_settime, SECCOMP_KERNEL, EPERM),
	REFUSE(clock_adjtime, SECCOMP_KERNEL, EPERM),
	REFUSE(settimeofday, SECCOMP_KERNEL, EPERM),
	REFUSE(adjtimex, SECCOMP_KERNEL, EPERM),
	REFUSE(syslog, SECCOMP_KERNEL, EPERM),
	REFUSE(iopl, SECCOMP_KERNEL, EPERM),
	REFUSE(ioperm, SECCOMP_KERNEL, EPERM),
	REFUSE(acct, SECCOMP_KERNEL, EPERM),
	REFUSE(vhangup, SECCOMP_KERNEL, EPERM),
	REFUSE(nfsservctl, SECCOMP_KERNEL, EPERM),
	REFUSE(lookup_dcookie, SECCOMP_KERNEL, EPERM),
	/* Old and without users; modify_ldt serves 16-bit code and has a long record of kernel bugs. */
	REFUSE(modify_ldt, SECCOMP_KERNEL, EPERM),
	REFUSE(uselib, SECCOMP_KERNEL, EPERM),
	REFUSE(ustat, SECCOMP_KERNEL, EPERM),
	REFUSE(sysfs, SECCOMP_KERNEL, EPERM),
	REFUSE(_sysctl, SECCOMP_KERNEL, EPERM),

	/*
	 * A new user namespace gives back every capability inside it, and with them most of the kernel's attack
	 * surface. The flags of clone3 lie behind a pointer, so it does not exist here; the C libraries then use
	 * clone. unshare() lists what is harmless instead: its flags grow, also above 32 bits.
	 */
	REFUSE(clone3, SECCOMP_NAMESPACES, ENOSYS),
	REFUSE_IF(clone, SECCOMP_NAMESPACES, EPERM, "a namespace flag is set", HAS_ANY(0, CLONE_NAMESPACES)),
	REFUSE_IF(unshare, SECCOMP_NAMESPACES, EPERM, "a flag other than files, fs, sysvsem is set",
		  HAS_ANY(0, ~UNSHARE_HARMLESS)),
	REFUSE(setns, SECCOMP_NAMESPACES, EPERM),
	/* What the kernel says to the first process of a pid namespace. */
	REFUSE_IF(clone, SECCOMP_NO_SIBLINGS, EINVAL, "the child would be its parent's", HAS_ANY(0, CLONE_PARENT_FLAG)),

	/*
	 * These inject typed or pasted text for the next reader of the terminal. The kernel takes the low 32 bits of a
	 * command, so the filter does too: with bits set above them it is still the same command. A line discipline
	 * is a kernel module loaded on request, usable on any pty.
	 */
	REFUSE_IF(ioctl, SECCOMP_TERMINAL, EPERM, "the command is TIOCSTI", EQUALS(1, TIOCSTI_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_TERMINAL, EPERM, "the command is TIOCLINUX", EQUALS(1, TIOCLINUX_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_TERMINAL, EPERM, "the command is TIOCSETD", EQUALS(1, TIOCSETD_COMMAND)),

	/*
	 * Encryption and verity of the host's file systems: keys belong to the file system, and a file made immutable
	 * in this way stays so. The code is rarely used. A file system without them returns EOPNOTSUPP.
	 */
	REFUSE_IF(ioctl, SECCOMP_KERNEL, EOPNOTSUPP, "it sets an encryption policy",
		  EQUALS(1, FSCRYPT_SET_POLICY_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_KERNEL, EOPNOTSUPP, "it makes a salt for encryption",
		  EQUALS(1, FSCRYPT_SET_SALT_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_KERNEL, EOPNOTSUPP, "it adds an encryption key", EQUALS(1, FSCRYPT_ADD_KEY_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_KERNEL, EOPNOTSUPP, "it removes an encryption key",
		  EQUALS(1, FSCRYPT_REMOVE_KEY_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_KERNEL, EOPNOTSUPP, "it removes an encryption key of all users",
		  EQUALS(1, FSCRYPT_REMOVE_KEY_ALL_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_KERNEL, EOPNOTSUPP, "it enables verity", EQUALS(1, FSVERITY_ENABLE_COMMAND)),

	/*
	 * A process that opens a leased file waits until the lease ends, or for 45 seconds, even if the holder cannot
	 * write to it. A jar could so delay the host's programs and other jars on its skeleton. Non-owners get EACCES.
	 */
	REFUSE_IF(fcntl, SECCOMP_KERNEL, EACCES, "the command is F_SETLEASE", EQUALS(1, F_SETLEASE_COMMAND)),
	REFUSE_IF(fcntl, SECCOMP_KERNEL, EACCES, "the command is F_SETDELEG", EQUALS(1, F_SETDELEG_COMMAND)),
	/*
	 * Another protocol on top of TCP (TLS, SMC, IPsec): modules loaded on request, with a long record of kernel
	 * bugs. What a kernel without them says; TLS libraries then do it themselves.
	 */
	REFUSE_IF(setsockopt, SECCOMP_KERNEL, ENOENT, "it is TCP_ULP", EQUALS(1, LEVEL_TCP), EQUALS(2, TCP_ULP_OPTION)),
	/* Fast open connects without connect(), and programs that ask for it connect in the usual way then. */
	REFUSE_IF(setsockopt, SECCOMP_KERNEL, ENOPROTOOPT, "it is TCP_FASTOPEN_CONNECT", EQUALS(1, LEVEL_TCP),
		  EQUALS(2, TCP_FASTOPEN_CONNECT_OPTION)),
	/*
	 * The memory that it pins counts for the user, against RLIMIT_MEMLOCK: one jar could take all that the user's
	 * programs may have. What a kernel without it says; who asks copies instead.
	 */
	REFUSE_IF(setsockopt, SECCOMP_KERNEL, ENOPROTOOPT, "it is SO_ZEROCOPY", EQUALS(1, LEVEL_SOCKET),
		  EQUALS(2, SO_ZEROCOPY_OPTION)),

	/*
	 * Out-of-band bytes of Unix sockets have a long record of kernel bugs; only FTP and telnet use those of TCP.
	 * None arrive where none are sent. MSG_FASTOPEN is TCP_FASTOPEN_CONNECT by another door.
	 */
	REFUSE_IF(sendto, SECCOMP_KERNEL, EOPNOTSUPP, "the flags have MSG_OOB or MSG_FASTOPEN",
		  HAS_ANY(3, OOB_OR_FASTOPEN_FLAGS)),
	REFUSE_IF(sendmmsg, SECCOMP_KERNEL, EOPNOTSUPP, "the flags have MSG_OOB or MSG_FASTOPEN",
		  HAS_ANY(3, OOB_OR_FASTOPEN_FLAGS)),
	REFUSE_IF(sendmsg, SECCOMP_KERNEL, EOPNOTSUPP, "the flags have MSG_OOB or MSG_FASTOPEN",
		  HAS_ANY(2, OOB_OR_FASTOPEN_FLAGS)),
	/* Other BPF programs that the kernel compiles to machine code. Fails as on a socket with a locked filter. */
	REFUSE_IF(setsockopt, SECCOMP_KERNEL, EPERM, "it is SO_ATTACH_FILTER", EQUALS(1, LEVEL_SOCKET),
		  EQUALS(2, SO_ATTACH_FILTER_OPTION)),
	REFUSE_IF(setsockopt, SECCOMP_KERNEL, EPERM, "it is SO_ATTACH_BPF or SO_ATTACH_REUSEPORT_CBPF",
		  EQUALS(1, LEVEL_SOCKET), MASKED(2, ~1U, SO_ATTACH_BPF_OPTION)),
	REFUSE_IF(setsockopt, SECCOMP_KERNEL, EPERM, "it is SO_ATTACH_REUSEPORT_EBPF", EQUALS(1, LEVEL_SOCKET),
		  EQUALS(2, SO_ATTACH_REUSEPORT_EBPF_OPTION)),

	/*
	 * What tells one process about the memory of others: which pages of a shared file the machine has in its
	 * cache, whether two processes share an object, whether a page was merged with an equal one elsewhere.
	 * libunwind asks mincore() and takes ENOSYS for an answer. A kernel without merging says EINVAL.
	 */
	REFUSE(mincore, SECCOMP_KERNEL, ENOSYS),
	REFUSE(cachestat, SECCOMP_KERNEL, ENOSYS),
	REFUSE(kcmp, SECCOMP_KERNEL, ENOSYS),
	REFUSE_IF(madvise, SECCOMP_KERNEL, EINVAL, "the advice is MADV_MERGEABLE", EQUALS(2, MADV_MERGEABLE_ADVICE)),
	REFUSE_IF(prctl, SECCOMP_KERNEL, EINVAL, "the option is PR_SET_MEMORY_MERGE",
		  EQUALS(0, PR_SET_MEMORY_MERGE_OPTION)),
	/*
	 * Pages in a pipe stay after the process has given them back, large ones whole for each of a pipe's places:
	 * no limit on memory counts them. Programs write instead.
	 */
	REFUSE(vmsplice, SECCOMP_KERNEL, ENOSYS),
	/* The placement of other processes' pages. For their own pages numpy, the JVM and databases use it. */
	REFUSE_IF(move_pages, SECCOMP_KERNEL, EPERM, "it is for another pid", DIFFERS(0, 0)),
	REFUSE_IF(migrate_pages, SECCOMP_KERNEL, EPERM, "it is for another pid", DIFFERS(0, 0)),
	REFUSE_IF(mbind, SECCOMP_KERNEL, EPERM, "it moves pages that others use", HAS_ANY(5, MPOL_MOVE_ALL_FLAG)),

	/*
	 * READ_IMPLIES_EXEC, MMAP_PAGE_ZERO and the rest help exploits; gdb and setarch -R want only the one that
	 * is left.
	 */
	REFUSE_IF(personality, SECCOMP_PROCESS, EPERM, "the persona is other than Linux, ADDR_NO_RANDOMIZE or a query",
		  DIFFERS(0, 0), DIFFERS(0, PERSONALITY_NO_RANDOMIZE), DIFFERS(0, PERSONALITY_QUERY)),
	/*
	 * PR_SET_MM redraws the memory map that /proc shows. Core scheduling keeps the other thread of a core idle.
	 * The rest concerns the caller alone: PR_SET_PTRACER only opens it to others, PR_SET_DUMPABLE matters to a
	 * meter alone (SECCOMP_METERED), and a subreaper inside the jar is itself a child of the jar's first process.
	 */
	REFUSE_IF(prctl, SECCOMP_PROCESS, EPERM, "the option is PR_SET_MM", EQUALS(0, PR_SET_MM_OPTION)),
	REFUSE_IF(prctl, SECCOMP_PROCESS, EPERM, "the option is PR_SCHED_CORE", EQUALS(0, PR_SCHED_CORE_OPTION)),

	/* First, so that these errnos win over those of the next group. ESOCKTNOSUPPORT: syslog() then stays silent. */
	REFUSE_IF(socket, SECCOMP_NO_UNIX_CONNECT, ESOCKTNOSUPPORT, "it is a Unix datagram or raw socket",
		  EQUALS(0, FAMILY_UNIX), MASKED(1, DATAGRAM_TYPE_BITS, SOCKET_DATAGRAM)),
	REFUSE_IF(socketpair, SECCOMP_NO_UNIX_CONNECT, ESOCKTNOSUPPORT, "it is a pair of datagram or raw sockets",
		  MASKED(1, DATAGRAM_TYPE_BITS, SOCKET_DATAGRAM)),
	/* As Landlock says it, from the ABI on that can. */
	REFUSE(connect, SECCOMP_NO_UNIX_CONNECT, EACCES),
	REFUSE(bind, SECCOMP_NO_UNIX_CONNECT, EACCES),

	/* EAFNOSUPPORT is what makes a runtime go on without IPv6, or without a network, instead of failing. */
	REFUSE_IF(socket, SECCOMP_NO_INET, EAFNOSUPPORT, "the family is other than Unix", DIFFERS(0, FAMILY_UNIX)),

	/*
	 * Other families reach past a network namespace (vsock: the hypervisor) or are seldom used code, loaded on
	 * request (TIPC, RDS, AF_ALG, Bluetooth); so are SCTP, DCCP and L2TP behind the internet families. Go
	 * tries MPTCP first and takes EPROTONOSUPPORT for an answer; libaudit does so for its netlink protocol,
	 * and ss reads /proc/net instead.
	 */
	REFUSE_IF(socket, SECCOMP_SOCKETS, EAFNOSUPPORT, "the family is other than Unix, inet, inet6, netlink",
		  DIFFERS(0, FAMILY_UNIX), DIFFERS(0, FAMILY_INET), DIFFERS(0, FAMILY_INET6),
		  DIFFERS(0, FAMILY_NETLINK)),
	REFUSE_IF(socket, SECCOMP_SOCKETS, EPROTONOSUPPORT, "it is inet with a protocol other than TCP, UDP, ICMP",
		  EQUALS(0, FAMILY_INET), DIFFERS(2, PROTOCOL_DEFAULT), DIFFERS(2, PROTOCOL_TCP),
		  DIFFERS(2, PROTOCOL_UDP), DIFFERS(2, PROTOCOL_ICMP)),
	REFUSE_IF(socket, SECCOMP_SOCKETS, EPROTONOSUPPORT, "it is inet6 with a protocol other than TCP, UDP, ICMPv6",
		  EQUALS(0, FAMILY_INET6), DIFFERS(2, PROTOCOL_DEFAULT), DIFFERS(2, PROTOCOL_TCP),
		  DIFFERS(2, PROTOCOL_UDP), DIFFERS(2, PROTOCOL_ICMPV6)),
	REFUSE_IF(socket, SECCOMP_SOCKETS, EPROTONOSUPPORT, "it is netlink with a protocol other than route",
		  EQUALS(0, FAMILY_NETLINK), DIFFERS(2, NETLINK_PROTOCOL_ROUTE)),
	/* TIPC has pairs too. The errno is the one other families give. */
	REFUSE_IF(socketpair, SECCOMP_SOCKETS, EOPNOTSUPP, "the family is other than Unix", DIFFERS(0, FAMILY_UNIX)),

	/*
	 * Creating a file with the bit already set (open, mknod) needs no rule: the file is empty, and the kernel
	 * takes the bit away with the first byte that is written to it. Only these calls put it onto a file with
	 * content.
	 */
	REFUSE_IF(chmod, SECCOMP_NO_SETUID_FILES, EPERM, "the mode has the set-user-id bit", HAS_ANY(1, MODE_SETUID)),
	REFUSE_IF(fchmod, SECCOMP_NO_SETUID_FILES, EPERM, "the mode has the set-user-id bit", HAS_ANY(1, MODE_SETUID)),
	REFUSE_IF(fchmodat, SECCOMP_NO_SETUID_FILES, EPERM, "the mode has the set-user-id bit",
		  HAS_ANY(2, MODE_SETUID)),
	REFUSE_IF(fchmodat2, SECCOMP_NO_SETUID_FILES, EPERM, "the mode has the set-user-id bit",
		  HAS_ANY(2, MODE_SETUID)),
	REFUSE_IF(chmod, SECCOMP_NO_SETGID_FILES, EPERM, "the mode has the set-group-id bit", HAS_ANY(1, MODE_SETGID)),
	REFUSE_IF(fchmod, SECCOMP_NO_SETGID_FILES, EPERM, "the mode has the set-group-id bit", HAS_ANY(1, MODE_SETGID)),
	REFUSE_IF(fchmodat, SECCOMP_NO_SETGID_FILES, EPERM, "the mode has the set-group-id bit",
		  HAS_ANY(2, MODE_SETGID)),
	REFUSE_IF(fchmodat2, SECCOMP_NO_SETGID_FILES, EPERM, "the mode has the set-group-id bit",
		  HAS_ANY(2, MODE_SETGID)),

	/* See the part: what would fail anyway fails as everywhere. */
	REFUSE_IF(chown, SECCOMP_OWN_IDS, EPERM, "the owner is another user", FOREIGN_USER(1)),
	REFUSE_IF(chown, SECCOMP_OWN_IDS, EPERM, "it is another group", FOREIGN_GROUP(2)),
	REFUSE_IF(lchown, SECCOMP_OWN_IDS, EPERM, "the owner is another user", FOREIGN_USER(1)),
	REFUSE_IF(lchown, SECCOMP_OWN_IDS, EPERM, "it is another group", FOREIGN_GROUP(2)),
	REFUSE_IF(fchown, SECCOMP_OWN_IDS, EPERM, "the owner is another user", FOREIGN_USER(1)),
	REFUSE_IF(fchown, SECCOMP_OWN_IDS, EPERM, "it is another group", FOREIGN_GROUP(2)),
	REFUSE_IF(fchownat, SECCOMP_OWN_IDS, EPERM, "the owner is another user", FOREIGN_USER(2)),
	REFUSE_IF(fchownat, SECCOMP_OWN_IDS, EPERM, "it is another group", FOREIGN_GROUP(3)),
	REFUSE_IF(setuid, SECCOMP_OWN_IDS, EPERM, "it is another user", FOREIGN_USER(0)),
	REFUSE_IF(setgid, SECCOMP_OWN_IDS, EPERM, "it is another group", FOREIGN_GROUP(0)),
	REFUSE_IF(setreuid, SECCOMP_OWN_IDS, EPERM, "the real one is another user", FOREIGN_USER(0)),
	REFUSE_IF(setreuid, SECCOMP_OWN_IDS, EPERM, "the effective one is another user", FOREIGN_USER(1)),
	REFUSE_IF(setregid, SECCOMP_OWN_IDS, EPERM, "the real one is another group", FOREIGN_GROUP(0)),
	REFUSE_IF(setregid, SECCOMP_OWN_IDS, EPERM, "the effective one is another group", FOREIGN_GROUP(1)),
	REFUSE_IF(setresuid, SECCOMP_OWN_IDS, EPERM, "the real one is another user", FOREIGN_USER(0)),
	REFUSE_IF(setresuid, SECCOMP_OWN_IDS, EPERM, "the effective one is another user", FOREIGN_USER(1)),
	REFUSE_IF(setresuid, SECCOMP_OWN_IDS, EPERM, "the saved one is another user", FOREIGN_USER(2)),
	REFUSE_IF(setresgid, SECCOMP_OWN_IDS, EPERM, "the real one is another group", FOREIGN_GROUP(0)),
	REFUSE_IF(setresgid, SECCOMP_OWN_IDS, EPERM, "the effective one is another group", FOREIGN_GROUP(1)),
	REFUSE_IF(setresgid, SECCOMP_OWN_IDS, EPERM, "the saved one is another group", FOREIGN_GROUP(2)),

	/*
	 * A process of the same user may change all of these for any other, and by RLIMIT_CPU have the kernel kill
	 * it. Pid 0 is the caller, which is how the C library and nearly every program says it; a thread that sets
	 * the affinity or policy of another thread, by its id, is refused too, since the filter cannot know whose
	 * id it is.
	 */
	REFUSE_IF(prlimit64, SECCOMP_OWN_PID_ONLY, EPERM, "a limit is set for another pid", DIFFERS(0, 0),
		  IS_NOT_NULL(2)),
	REFUSE_IF(sched_setparam, SECCOMP_OWN_PID_ONLY, EPERM, "it is for another pid", DIFFERS(0, 0)),
	REFUSE_IF(sched_setscheduler, SECCOMP_OWN_PID_ONLY, EPERM, "it is for another pid", DIFFERS(0, 0)),
	REFUSE_IF(sched_setaffinity, SECCOMP_OWN_PID_ONLY, EPERM, "it is for another pid", DIFFERS(0, 0)),
	REFUSE_IF(sched_setattr, SECCOMP_OWN_PID_ONLY, EPERM, "it is for another pid", DIFFERS(0, 0)),
	REFUSE_IF(setpriority, SECCOMP_OWN_PID_ONLY, EPERM, "it is for a group or a user",
		  DIFFERS(0, PRIORITY_OF_PROCESS)),
	REFUSE_IF(setpriority, SECCOMP_OWN_PID_ONLY, EPERM, "it is for another pid", DIFFERS(1, 0)),
	REFUSE_IF(ioprio_set, SECCOMP_OWN_PID_ONLY, EPERM, "it is for a group or a user",
		  DIFFERS(0, IO_PRIORITY_OF_PROCESS)),
	REFUSE_IF(ioprio_set, SECCOMP_OWN_PID_ONLY, EPERM, "it is for another pid", DIFFERS(1, 0)),
	/* Takes a descriptor out of another process. Landlock's rule for tracing holds it too. */
	REFUSE(pidfd_getfd, SECCOMP_OWN_PID_ONLY, EPERM),

	/* The same for process 1 alone. All processes of a user, or of its group, are process 1 too. */
	REFUSE_IF(prlimit64, SECCOMP_GUARD_FIRST, EPERM, "a limit is set for process 1", EQUALS(0, FIRST_PID),
		  IS_NOT_NULL(2)),
	REFUSE_IF(sched_setparam, SECCOMP_GUARD_FIRST, EPERM, "it is for process 1", EQUALS(0, FIRST_PID)),
	REFUSE_IF(sched_setscheduler, SECCOMP_GUARD_FIRST, EPERM, "it is for process 1", EQUALS(0, FIRST_PID)),
	REFUSE_IF(sched_setaffinity, SECCOMP_GUARD_FIRST, EPERM, "it is for process 1", EQUALS(0, FIRST_PID)),
	REFUSE_IF(sched_setattr, SECCOMP_GUARD_FIRST, EPERM, "it is for process 1", EQUALS(0, FIRST_PID)),
	REFUSE_IF(setpriority, SECCOMP_GUARD_FIRST, EPERM, "it is for a user", EQUALS(0, PRIORITY_OF_USER)),
	REFUSE_IF(setpriority, SECCOMP_GUARD_FIRST, EPERM, "it is for process 1 or its group", EQUALS(1, FIRST_PID)),
	REFUSE_IF(ioprio_set, SECCOMP_GUARD_FIRST, EPERM, "it is for a user", EQUALS(0, IO_PRIORITY_OF_USER)),
	REFUSE_IF(ioprio_set, SECCOMP_GUARD_FIRST, EPERM, "it is for process 1 or its group", EQUALS(1, FIRST_PID)),

	/* Many programs lower it to 0, for the sake of their secrets, and take a refusal for the end. */
	IGNORE_IF(setrlimit, SECCOMP_KEEP_CORE_LIMIT, "it is the limit of core dumps", EQUALS(0, CORE_RESOURCE)),
	IGNORE_IF(prlimit64, SECCOMP_KEEP_CORE_LIMIT, "it sets the limit of core dumps", EQUALS(1, CORE_RESOURCE),
		  IS_NOT_NULL(2)),

	/*
	 * The supervisor has the same uid. Landlock's signal scope holds this too where there is one; two walls
	 * here.
	 */
	REFUSE_IF(kill, SECCOMP_GUARD_PIDS, EPERM, "it is for every process", EQUALS(0, 0xffffffffU)),
	REFUSE_IF(kill, SECCOMP_GUARD_PIDS, EPERM, "it is for Belljar", PROTECTED(0)),
	REFUSE_IF(kill, SECCOMP_GUARD_PIDS, EPERM, "it is for Belljar's process group", PROTECTED_GROUP(0)),
	REFUSE_IF(tkill, SECCOMP_GUARD_PIDS, EPERM, "it is for Belljar", PROTECTED(0)),
	REFUSE_IF(tgkill, SECCOMP_GUARD_PIDS, EPERM, "it is for Belljar", PROTECTED(0)),
	REFUSE_IF(rt_sigqueueinfo, SECCOMP_GUARD_PIDS, EPERM, "it is for Belljar", PROTECTED(0)),
	REFUSE_IF(rt_tgsigqueueinfo, SECCOMP_GUARD_PIDS, EPERM, "it is for Belljar", PROTECTED(0)),
	REFUSE_IF(pidfd_open, SECCOMP_GUARD_PIDS, EPERM, "it is for Belljar", PROTECTED(0)),
	REFUSE_IF(ptrace, SECCOMP_GUARD_PIDS, EPERM, "it is for Belljar", PROTECTED(1)),
	REFUSE_IF(process_vm_readv, SECCOMP_GUARD_PIDS, EPERM, "it is for Belljar", PROTECTED(0)),
	REFUSE_IF(process_vm_writev, SECCOMP_GUARD_PIDS, EPERM, "it is for Belljar", PROTECTED(0)),

	/*
	 * A descriptor's owner gets SIGIO, or with F_SETSIG any signal, SIGKILL too, and only the uid is checked;
	 * the pid is in the argument for one of four ways to set it, behind a pointer for the others.
	 * pidfd_send_signal takes a descriptor of /proc/PID for a pidfd; Go tries it once and then uses kill.
	 */
	REFUSE_IF(fcntl, SECCOMP_NO_SIGNAL_DETOURS, EPERM, "the command is F_SETOWN", EQUALS(1, F_SETOWN_COMMAND),
		  DIFFERS(2, 0)),
	REFUSE_IF(fcntl, SECCOMP_NO_SIGNAL_DETOURS, EPERM, "the command is F_SETOWN_EX",
		  EQUALS(1, F_SETOWN_EX_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_NO_SIGNAL_DETOURS, EPERM, "the command is FIOSETOWN", EQUALS(1, FIOSETOWN_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_NO_SIGNAL_DETOURS, EPERM, "the command is SIOCSPGRP", EQUALS(1, SIOCSPGRP_COMMAND)),
	REFUSE(pidfd_send_signal, SECCOMP_NO_SIGNAL_DETOURS, ENOSYS),

	/*
	 * The ids are small numbers, so any segment of the user can be attached by guessing: refusing shmget alone
	 * is not enough. As on a kernel built without them. POSIX semaphores and shared memory are files and go on
	 * working.
	 */
	REFUSE(shmget, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(shmat, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(shmctl, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(shmdt, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(semget, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(semop, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(semctl, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(semtimedop, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(msgget, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(msgsnd, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(msgrcv, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(msgctl, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(mq_open, SECCOMP_NO_HOST_IPC, ENOSYS),
	REFUSE(mq_unlink, SECCOMP_NO_HOST_IPC, ENOSYS),
	/*
	 * In the jar's own IPC namespace: locked and huge pages count for the user, as those of SO_ZEROCOPY do. What
	 * mlock() locks counts for the process. The kernel says the same to who has no right to it.
	 */
	REFUSE_IF(shmctl, SECCOMP_KERNEL, EPERM, "the command is SHM_LOCK", EQUALS(1, SHM_LOCK_COMMAND)),
	REFUSE_IF(shmget, SECCOMP_KERNEL, EPERM, "the pages are from the pool of huge ones",
		  HAS_ANY(2, SHM_HUGETLB_FLAG)),

	/* The error of a file system without it: programs then write, and cp reads and writes. Holes are allowed. */
	REFUSE_IF(fallocate, SECCOMP_COUNTED_WRITES, EOPNOTSUPP, "it makes no hole",
		  MASKED(1, FALLOCATE_PUNCH_HOLE, 0)),
	REFUSE(copy_file_range, SECCOMP_COUNTED_WRITES, EOPNOTSUPP),
	REFUSE_IF(ioctl, SECCOMP_COUNTED_WRITES, EOPNOTSUPP, "the command is FICLONE", EQUALS(1, FICLONE_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_COUNTED_WRITES, EOPNOTSUPP, "the command is FICLONERANGE",
		  EQUALS(1, FICLONERANGE_COMMAND)),
	/* fallocate() by its older names. */
	REFUSE_IF(ioctl, SECCOMP_COUNTED_WRITES, EOPNOTSUPP, "the command is FS_IOC_RESVSP",
		  EQUALS(1, FS_IOC_RESVSP_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_COUNTED_WRITES, EOPNOTSUPP, "the command is FS_IOC_RESVSP64",
		  EQUALS(1, FS_IOC_RESVSP64_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_COUNTED_WRITES, EOPNOTSUPP, "the command is FS_IOC_ZERO_RANGE",
		  EQUALS(1, FS_IOC_ZERO_RANGE_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_COUNTED_WRITES, EOPNOTSUPP, "the command is XFS_IOC_ALLOCSP",
		  EQUALS(1, XFS_IOC_ALLOCSP_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_COUNTED_WRITES, EOPNOTSUPP, "the command is XFS_IOC_ALLOCSP64",
		  EQUALS(1, XFS_IOC_ALLOCSP64_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_COUNTED_WRITES, EOPNOTSUPP, "the command is XFS_IOC_FREESP",
		  EQUALS(1, XFS_IOC_FREESP_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_COUNTED_WRITES, EOPNOTSUPP, "the command is XFS_IOC_FREESP64",
		  EQUALS(1, XFS_IOC_FREESP64_COMMAND)),
	/* XFS: with a hint of a gigabyte the first byte that is written takes a gigabyte. */
	REFUSE_IF(ioctl, SECCOMP_COUNTED_WRITES, EOPNOTSUPP, "the command is FS_IOC_FSSETXATTR",
		  EQUALS(1, FS_IOC_FSSETXATTR_COMMAND)),
	REFUSE(file_setattr, SECCOMP_COUNTED_WRITES, EOPNOTSUPP),

	/* Agents that keep keys ask for this and go on without. */
	REFUSE_IF(prctl, SECCOMP_METERED, EPERM, "it forbids others to look at the process",
		  EQUALS(0, PR_SET_DUMPABLE_OPTION), EQUALS(1, 0)),
	/* What a host without such pages says. They are in no process's count of resident ones. */
	REFUSE_IF(mmap, SECCOMP_METERED, ENOMEM, "the pages are from the pool of huge ones",
		  HAS_ANY(3, MAP_HUGETLB_FLAG)),
	REFUSE_IF(memfd_create, SECCOMP_METERED, ENOMEM, "the pages are from the pool of huge ones",
		  HAS_ANY(1, MFD_HUGETLB_FLAG)),
	/*
	 * Data that waits in Unix sockets counts against the sender's buffer, not as memory of a process. The usual
	 * buffer has 208 KiB; the host may allow megabytes. The program gets no error, as the kernel too gives less.
	 */
	IGNORE_IF(setsockopt, SECCOMP_METERED, "it is SO_SNDBUF", EQUALS(1, LEVEL_SOCKET), EQUALS(2, SO_SNDBUF_OPTION)),

	/* A file in memory lies on no mount that could forbid to execute it. */
	REFUSE_IF(memfd_create, SECCOMP_TRUSTED_EXEC, EACCES, "the file could be executed",
		  MASKED(1, MFD_NOEXEC_SEAL_FLAG, 0)),

	REFUSE(truncate, SECCOMP_NO_TRUNCATE, EPERM),
	REFUSE_IF(open, SECCOMP_NO_TRUNCATE, EPERM, "it cuts the file and is not for writing",
		  MASKED(1, OPEN_ACCESS_MODE, 0), HAS_ANY(1, OPEN_TRUNCATE)),
	REFUSE_IF(openat, SECCOMP_NO_TRUNCATE, EPERM, "it cuts the file and is not for writing",
		  MASKED(2, OPEN_ACCESS_MODE, 0), HAS_ANY(2, OPEN_TRUNCATE)),
	REFUSE(openat2, SECCOMP_NO_TRUNCATE, ENOSYS),

	/*
	 * By path and by descriptor: Landlock lets a process open a file that it may only read, and does not govern
	 * O_PATH. Rows above have refused the calls that are never allowed. New calls fail as on a kernel without
	 * them, so that the C library or the program uses the older one.
	 */
	REFUSE_IF(seccomp, SECCOMP_ONE_LISTENER, EBUSY, "it is a filter with a listener", EQUALS(0, SET_MODE_FILTER),
		  HAS_ANY(1, FILTER_WITH_LISTENER)),
	REFUSE_IF(mknod, SECCOMP_NO_OVERLAY_MARKS, EPERM, "it is a character device",
		  MASKED(1, FILE_TYPE, CHARACTER_DEVICE)),
	REFUSE_IF(mknodat, SECCOMP_NO_OVERLAY_MARKS, EPERM, "it is a character device",
		  MASKED(2, FILE_TYPE, CHARACTER_DEVICE)),
	REFUSE_IF(renameat2, SECCOMP_NO_OVERLAY_MARKS, EINVAL, "it leaves a whiteout",
		  HAS_ANY(4, RENAME_WHITEOUT_FLAG)),
	REFUSE(setxattr, SECCOMP_NO_ATTRIBUTES, EOPNOTSUPP),
	REFUSE(lsetxattr, SECCOMP_NO_ATTRIBUTES, EOPNOTSUPP),
	REFUSE(fsetxattr, SECCOMP_NO_ATTRIBUTES, EOPNOTSUPP),
	REFUSE(setxattrat, SECCOMP_NO_ATTRIBUTES, EOPNOTSUPP),
	ASK(chmod, SECCOMP_ASK_METADATA),
	ASK(fchmod, SECCOMP_ASK_METADATA),
	ASK(fchmodat, SECCOMP_ASK_METADATA),
	ASK(fchmodat2, SECCOMP_ASK_METADATA),
	ASK(chown, SECCOMP_ASK_METADATA),
	ASK(fchown, SECCOMP_ASK_METADATA),
	ASK(lchown, SECCOMP_ASK_METADATA),
	ASK(fchownat, SECCOMP_ASK_METADATA),
	ASK(utime, SECCOMP_ASK_METADATA),
	ASK(utimes, SECCOMP_ASK_METADATA),
	ASK(futimesat, SECCOMP_ASK_METADATA),
	ASK(utimensat, SECCOMP_ASK_METADATA),
	ASK(setxattr, SECCOMP_ASK_METADATA),
	ASK(lsetxattr, SECCOMP_ASK_METADATA),
	ASK(fsetxattr, SECCOMP_ASK_METADATA),
	ASK(removexattr, SECCOMP_ASK_METADATA),
	ASK(lremovexattr, SECCOMP_ASK_METADATA),
	ASK(fremovexattr, SECCOMP_ASK_METADATA),
	REFUSE(setxattrat, SECCOMP_ASK_METADATA, ENOSYS),
	REFUSE(removexattrat, SECCOMP_ASK_METADATA, ENOSYS),
	REFUSE(file_setattr, SECCOMP_ASK_METADATA, ENOSYS),
	REFUSE_IF(ioctl, SECCOMP_ASK_METADATA, EOPNOTSUPP, "it sets flags of a file", EQUALS(1, FS_SETFLAGS_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_ASK_METADATA, EOPNOTSUPP, "it sets extended flags of a file",
		  EQUALS(1, FS_SETXATTR_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_ASK_METADATA, EOPNOTSUPP, "it sets the version of a file",
		  EQUALS(1, FS_SETVERSION_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_ASK_METADATA, EOPNOTSUPP, "it sets the version of a file of ext4",
		  EQUALS(1, EXT4_SETVERSION_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_ASK_METADATA, EOPNOTSUPP, "it sets attributes of a file of FAT",
		  EQUALS(1, FAT_SETATTRIBUTES_COMMAND)),
	/* These make, remove and change subvolumes and more wherever a directory can be read. */
	REFUSE_IF(ioctl, SECCOMP_ASK_METADATA, ENOTTY, "it is a command of btrfs",
		  MASKED(1, COMMAND_LETTER, BTRFS_LETTER), DIFFERS(1, FICLONE_COMMAND),
		  DIFFERS(1, FICLONERANGE_COMMAND), DIFFERS(1, FIDEDUPERANGE_COMMAND)),
	REFUSE_IF(ioctl, SECCOMP_ASK_METADATA, ENOTTY, "it is a command of bcachefs",
		  MASKED(1, COMMAND_LETTER, BCACHEFS_LETTER)),
	REFUSE_IF(ioctl, SECCOMP_ASK_METADATA, ENOTTY, "it is a command of f2fs",
		  MASKED(1, COMMAND_LETTER, F2FS_LETTER)),

	/* inside/answer/answer_trace.c has the same calls. */
	TRACE(open, SECCOMP_TRACE_FILES),
	TRACE(openat, SECCOMP_TRACE_FILES),
	TRACE(openat2, SECCOMP_TRACE_FILES),
	TRACE(creat, SECCOMP_TRACE_FILES),
	TRACE(execve, SECCOMP_TRACE_FILES),
	TRACE(execveat, SECCOMP_TRACE_FILES),
	TRACE(stat, SECCOMP_TRACE_STAT),
	TRACE(lstat, SECCOMP_TRACE_STAT),
	TRACE(access, SECCOMP_TRACE_ACCESS),
	TRACE(faccessat, SECCOMP_TRACE_ACCESS),
	TRACE(faccessat2, SECCOMP_TRACE_ACCESS),
	TRACE(chdir, SECCOMP_TRACE_ACCESS),
	/* The C library's fstat() names no path. */
	TRACE_PATH(newfstatat, SECCOMP_TRACE_STAT, 3),
	TRACE_PATH(statx, SECCOMP_TRACE_STAT, 2),
	TRACE(connect, SECCOMP_TRACE_CHANGES),
	TRACE(mkdir, SECCOMP_TRACE_CHANGES),
	TRACE(mkdirat, SECCOMP_TRACE_CHANGES),
	TRACE(rmdir, SECCOMP_TRACE_CHANGES),
	TRACE(unlink, SECCOMP_TRACE_CHANGES),
	TRACE(unlinkat, SECCOMP_TRACE_CHANGES),
	TRACE(rename, SECCOMP_TRACE_CHANGES),
	TRACE(renameat, SECCOMP_TRACE_CHANGES),
	TRACE(renameat2, SECCOMP_TRACE_CHANGES),
	TRACE(link, SECCOMP_TRACE_CHANGES),
	TRACE(linkat, SECCOMP_TRACE_CHANGES),
	TRACE(symlink, SECCOMP_TRACE_CHANGES),
	TRACE(symlinkat, SECCOMP_TRACE_CHANGES),
	TRACE(mknod, SECCOMP_TRACE_CHANGES),
	TRACE(mknodat, SECCOMP_TRACE_CHANGES),
	TRACE(truncate, SECCOMP_TRACE_CHANGES),
};
const size_t seccomp_rule_count = ARRAY_LEN(seccomp_rules);
_Static_assert(ARRAY_LEN(seccomp_rules) <= SECCOMP_RULE_MAX, "the compiler's tables hold every rule");

void seccomp_profile_init(struct seccomp_profile *profile, enum rung rung, enum net_mode net)
{
	*profile = (struct seccomp_profile){
		.parts = SECCOMP_KERNEL | SECCOMP_NAMESPACES | SECCOMP_TERMINAL | SECCOMP_PROCESS | SECCOMP_SOCKETS |
			 SECCOMP_NO_SETUID_FILES | SECCOMP_UNKNOWN | SECCOMP_ONE_LISTENER | SECCOMP_NO_OVERLAY_MARKS,
	};
	if (rung == RUNG_NAMESPACE) {
		profile->parts |= SECCOMP_OWN_IDS | SECCOMP_GUARD_FIRST;
		return;
	}
	profile->parts |= SECCOMP_OWN_PID_ONLY | SECCOMP_GUARD_PIDS | SECCOMP_NO_HOST_IPC | SECCOMP_ASK_METADATA;
	if (net != NET_HOST)
		profile->parts |= SECCOMP_NO_INET | SECCOMP_NO_UNIX_CONNECT;
}
