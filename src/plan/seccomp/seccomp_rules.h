/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/seccomp/seccomp_rules.h - the table of system calls that the filter of a jar refuses
 *
 * Every row names a call, its part of the filter, the answer to the call, and the conditions on the arguments, which
 * must all hold. The filter allows a call without a matching row, if plan/seccomp/syscall_numbers.h knows the call;
 * otherwise the answer is ENOSYS, so that a newer kernel's calls stay shut until a developer has reviewed them. For
 * one call, the first row that holds gives the answer.
 *
 * Most answers are an errno. For some calls the kernel asks the filter's listener: the caller sleeps, and a process
 * outside the walls carries the call out for it or refuses it (inside/answer/answer.c). The listener never lets the
 * caller continue such a call, since the memory that it points at can change meanwhile. Only traced calls continue.
 *
 * A filter sees the registers and nothing behind a pointer: no path, no socket address, no clone3 flags. Rules
 * that would need one are drawn wider (refuse the call) or left to another wall; the comments in the table say
 * which.
 */
#ifndef BELLJAR_PLAN_SECCOMP_SECCOMP_RULES_H
#define BELLJAR_PLAN_SECCOMP_SECCOMP_RULES_H

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/types.h>

#include "base/base.h"
#include "policy/policy.h"
#include "plan/seccomp/syscall_numbers.h"

/* Parts of the filter. A test leaves one out to show that it, and no other wall, stops an attack. */
enum seccomp_part {
	/* Calls that administer the machine: mount, modules, clock, bpf, perf, keys, io_uring ... */
	SECCOMP_KERNEL = 1 << 0,
	/* No new namespaces, and none entered: clone, clone3, unshare, setns. */
	SECCOMP_NAMESPACES = 1 << 1,
	/* No typing into a terminal from the inside (TIOCSTI, TIOCLINUX), no line disciplines (TIOCSETD). */
	SECCOMP_TERMINAL = 1 << 2,
	/* No execution domain that weakens memory protection; prctl without PR_SET_MM and core scheduling. */
	SECCOMP_PROCESS = 1 << 3,
	/* Unix, internet and route netlink sockets only; the everyday internet protocols only. */
	SECCOMP_SOCKETS = 1 << 4,
	/*
	 * No set-user-id bit: a file in the workdir belongs to the caller, and someone else on the host could
	 * start it.
	 */
	SECCOMP_NO_SETUID_FILES = 1 << 5,
	/*
	 * The same for the set-group-id bit. Directories use it too (git init --shared), so this is for callers
	 * who are root.
	 */
	SECCOMP_NO_SETGID_FILES = 1 << 6,
	/* What the number table does not know is ENOSYS. */
	SECCOMP_UNKNOWN = 1 << 7,

	/* The following make up for namespaces that are not there. */

	/* No internet and no netlink sockets. */
	SECCOMP_NO_INET = 1 << 8,
	/*
	 * No way to a Unix socket by name. Needs SECCOMP_NO_INET, since connect() is refused whole: the filter
	 * cannot see whose address it is. Datagram sockets are refused where they are made, since sendmsg() has
	 * its address behind a pointer and sends to any name even from one end of a socketpair; stream sockets
	 * ignore or refuse such a name. So sendto() and sendmsg() need no rule. The price: connections by name
	 * between processes inside the jar (tmux, PostgreSQL, multiprocessing managers) fail too. So a name is useless,
	 * and the filter refuses bind() as well: it could take abstract names that the host's programs rely on. Socket
	 * pairs, which asyncio, Node and browsers need, work. Leave this part out if Landlock governs such sockets
	 * itself (ABI 9).
	 */
	SECCOMP_NO_UNIX_CONNECT = 1 << 9,
	/* Limits, scheduling and priorities of the calling thread only, since Landlock does not govern them. */
	SECCOMP_OWN_PID_ONLY = 1 << 10,
	/*
	 * No signal to everybody, none to the protected pids or their process groups, no pidfd of and no tracing
	 * of them.
	 */
	SECCOMP_GUARD_PIDS = 1 << 11,
	/*
	 * No signals by way of fcntl(F_SETOWN) or a /proc descriptor. Needed where Landlock has no signal scope
	 * (before ABI 6).
	 */
	SECCOMP_NO_SIGNAL_DETOURS = 1 << 12,
	/* No System V IPC and no message queues: without an IPC namespace they are the host's, and outlive the run. */
	SECCOMP_NO_HOST_IPC = 1 << 13,
	/*
	 * The supervisor changes mode, owner, times and attributes of files, which Landlock does not govern, in places
	 * that the command may write. The filter refuses the few calls that the supervisor does not support.
	 */
	SECCOMP_ASK_METADATA = 1 << 14,

	/*
	 * No space in a file but by writing to it: the kernel counts what a process writes, not what it reserves or
	 * shares with another file. For runs whose writing is measured.
	 */
	SECCOMP_COUNTED_WRITES = 1 << 15,

	/*
	 * No cutting of a file that was not opened for writing. Before ABI 3 Landlock does not see truncate(), nor
	 * that a file opened for reading only is cut on the way. openat2() has its flags behind a pointer.
	 */
	SECCOMP_NO_TRUNCATE = 1 << 16,

	/*
	 * No child for one's own parent: that of a call is the zygote, outside of the call's pid namespace, which
	 * would never know of it. Needs SECCOMP_NAMESPACES, which refuses clone3.
	 */
	SECCOMP_NO_SIBLINGS = 1 << 17,

	/*
	 * EPERM for ids that are not the jar's own. The kernel says EINVAL where a user namespace does not know an
	 * id, which no program expects that has ever been run by an ordinary user. Takes nothing away: without
	 * capabilities none of this could succeed.
	 */
	SECCOMP_OWN_IDS = 1 << 18,

	/*
	 * No limits, scheduling or priorities of process 1, which keeps the time of the run and ends it. For jars in
	 * which that is the only process of Belljar's; where there are more, SECCOMP_OWN_PID_ONLY stands for it.
	 */
	SECCOMP_GUARD_FIRST = 1 << 19,

	/*
	 * The limit of core dumps stays as it is. Where the kernel hands them to a program, a limit of 1 byte keeps
	 * it from doing so, and a limit of 0 does not.
	 */
	SECCOMP_KEEP_CORE_LIMIT = 1 << 20,

	/* Refuse calls that hide memory or writing from the engine's meter. For runs that it holds to a limit. */
	SECCOMP_METERED = 1 << 21,

	/*
	 * What opens and executes is noted and goes on: the answer is always that the kernel decides. Behind all
	 * other rows, so nothing that they refuse gets here.
	 */
	SECCOMP_TRACE_FILES = 1 << 22,
	/* The same for checks whether a file exists, by rare calls and by stat(). Without mounts nothing hides it. */
	SECCOMP_TRACE_ACCESS = 1 << 23,
	SECCOMP_TRACE_STAT = 1 << 24,
	/* The same for what connects and what changes names. */
	SECCOMP_TRACE_CHANGES = 1 << 25,
	SECCOMP_TRACE = SECCOMP_TRACE_FILES | SECCOMP_TRACE_ACCESS | SECCOMP_TRACE_STAT | SECCOMP_TRACE_CHANGES,

	/*
	 * No listener of the command's own. Of filters that ask about one call the last to be loaded is heard, and
	 * the kernel lets another have a listener once ours is closed, as it is while what a command left behind is
	 * ended: so it could answer for itself. Not for a filter behind which a listener is still to be had.
	 */
	SECCOMP_ONE_LISTENER = 1 << 26,

	/*
	 * No marks of overlayfs on the host's files: a later layer over them would not show what the host has. A
	 * character device 0:0 means "removed", and everybody may make one, also by a rename.
	 */
	SECCOMP_NO_OVERLAY_MARKS = 1 << 28,
	/*
	 * Nor marks in attributes of files, whose names are behind pointers: none can be set, as on a file system
	 * that has none. For jars that write host directories and not only layers over them, in which the kernel
	 * keeps marks apart. Where SECCOMP_ASK_METADATA asks, the supervisor refuses these names.
	 */
	SECCOMP_NO_ATTRIBUTES = 1 << 29,

	/* No file in memory that could be executed. For jars that execute only what no command can write. */
	SECCOMP_TRUSTED_EXEC = 1 << 27,

	SECCOMP_PART_ALL = (1 << 30) - 1,
};

#define SECCOMP_PROTECTED_MAX 4

/*
 * A plan is made before the processes it protects exist. Their place is held by numbers that no process can have (the
 * kernel's pids end at 2^22) and that no other rule uses; STEP_SECCOMP puts the real ones in. One that stays in
 * refuses nothing.
 */

struct seccomp_profile {
	uint32_t parts; /* enum seccomp_part */
	/* For SECCOMP_GUARD_PIDS: processes, or leaders of process groups. */
	pid_t protected_pids[SECCOMP_PROTECTED_MAX];
	size_t protected_count;
	/* For SECCOMP_OWN_IDS: those that the command has inside. */
	uid_t uid;
	gid_t gid;
	/* The listener gets the calls of seccomp_is_told(), refuses and counts them. */
	bool tells;
};

/*
 * The parts a rung has on a host with all Landlock can give up to ABI 8. The planner adds and removes by the
 * host's ABI.
 */
void seccomp_profile_init(struct seccomp_profile *profile, enum rung rung, enum net_mode net);

enum seccomp_test {
	SECCOMP_TEST_NONE, /* no condition; ends the list */
	/* Only the low 32 bits count, for that is all the kernel takes of an int, an ioctl command or a pid. */
	SECCOMP_TEST_EQUALS,  /* (argument & mask) == value */
	SECCOMP_TEST_DIFFERS, /* argument != value */
	/* The high half counts if the mask has bits there. */
	SECCOMP_TEST_HAS_ANY, /* (argument & mask) != 0 */
	/* The low 32 bits, as a signed number. */
	SECCOMP_TEST_PROTECTED,       /* the argument is a protected pid */
	SECCOMP_TEST_PROTECTED_GROUP, /* minus the argument is one */
	/* The low 32 bits are neither the command's own id nor -1, which stands for no change. */
	SECCOMP_TEST_FOREIGN_USER,
	SECCOMP_TEST_FOREIGN_GROUP,
};

struct seccomp_condition {
	enum seccomp_test test : 8;
	uint8_t argument; /* 0 to 5 */
	uint32_t value;
	uint64_t mask;
};

#define SECCOMP_CONDITION_MAX 5
#define SECCOMP_WHEN_SIZE 68

struct seccomp_rule {
	enum syscall_id call;
	uint32_t part;
	uint32_t answer; /* what the kernel does: SECCOMP_RET_ERRNO and the errno, or SECCOMP_RET_USER_NOTIF */
	/* The conditions in words, after "if"; "" if there are none. Not a pointer, which would need a relocation. */
	char when[SECCOMP_WHEN_SIZE];
	struct seccomp_condition conditions[SECCOMP_CONDITION_MAX];
};

extern const struct seccomp_rule seccomp_rules[];
extern const size_t seccomp_rule_count;

/* The errno of an answer, 0 for one that is none. */
static inline int seccomp_answer_errno(uint32_t answer)
{
	return (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO ? (int)(answer & SECCOMP_RET_DATA) : 0;
}

/* Parts with calls that programs rarely make and that the filter does not hand to the listener otherwise. */
#define SECCOMP_TOLD (SECCOMP_KERNEL | SECCOMP_NAMESPACES | SECCOMP_TERMINAL)

/*
 * Does the ledger report the refusals of this row? EPERM means that the program may not. Programs do without calls that
 * return ENOSYS, and try some of them (clone3) all the time.
 */
static inline bool seccomp_is_told(const struct seccomp_rule *rule)
{
	return rule->part & SECCOMP_TOLD && rule->answer == (SECCOMP_RET_ERRNO | EPERM);
}

/* More rows than this the compiler has no room for; the table asserts it. */
#define SECCOMP_RULE_MAX 320

static inline size_t seccomp_condition_count(const struct seccomp_rule *rule)
{
	size_t count = 0;

	while (count < SECCOMP_CONDITION_MAX && rule->conditions[count].test != SECCOMP_TEST_NONE)
		count++;
	return count;
}

#endif
