/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_plan.h - what the trusted core is given: steps, rules, a filter, a command
 *
 * The planner (plan/) fills this in; the core carries it out and decides nothing. It knows neither policies nor hosts: all it
 * depends on is here, so that it can be read and checked by itself.
 */
#ifndef BELLJAR_JAR_JAR_PLAN_H
#define BELLJAR_JAR_JAR_PLAN_H

#include <linux/filter.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/text.h"

enum step_kind {
	STEP_CGROUP, /* be in the cgroup `target` (NULL: the run's own), version `value2`, for the guarantees in `value` */
	STEP_PRIVATE_MOUNTS, /* cut the mounts off from the host's (only needed without a user namespace around them) */
	STEP_BECOME,         /* root only: be host id `value`, keep the capabilities until the root is built */
	STEP_ID_MAPS,    /* write this user namespace's maps: inside `value`, outside `value2`, gid inside `value3` */
	STEP_USER_LIMIT, /* of what the kernel counts for the user, this user namespace has at most `value` of `source` */
	STEP_ROOT,       /* a fresh tmpfs over /, in which the following steps build */
	STEP_SCRATCH,    /* one tmpfs for all private places; `value` bytes */
	STEP_DIRECTORY, /* a directory `target` with `mode` */
	STEP_SYMLINK,   /* `target` pointing at `source` */
	STEP_FILE,      /* `target` with the content `source`, as a read-only mount of its own where there are mounts */
	STEP_COPY,      /* a file `target` with `mode` and the content of the host's `source`, which is small */
	STEP_BIND,      /* the host's `source` at `target` */
	STEP_PRIVATE,   /* an empty directory of the scratch tmpfs at `target`, `mode` */
	STEP_TMPFS,     /* a tmpfs of its own at `target`, `value` bytes */
	STEP_HIDE,      /* nothing at `target`, where there was something */
	STEP_PIN,       /* the host's directory `target`: nobody in the jar can rename, replace or remove it */
	STEP_DEVPTS,    /* pseudo terminals of the jar's own, at most `value` */
	STEP_PROC,
	STEP_PROC_LOCK, /* /proc or a part of it read-only: for calls, or where uid 0 inside is the host's uid 0 */
	STEP_SEAL,      /* the root itself read-only */
	STEP_ENTER,     /* make it / */
	STEP_LOOPBACK,
	STEP_HOSTNAME,
	STEP_JOIN,          /* root only: enter the user namespace in which STEP_BECOME's id is 0 */
	STEP_RUN_DIRECTORY, /* without mounts: a directory `target` of the run's own on the host, removed at its end */
	STEP_PLACES, /* without mounts: hold what the command may write, to answer its filter; `value`: try whether one can ask */
	STEP_SUBREAPER, /* without a pid namespace: orphans of the tree come to the jar's first process */
	STEP_WORKDIR,   /* start in `target` */
	STEP_METER,  /* hand the engine a view of the jar, to measure the guarantees in `value`; a clock if `value2` */
	STEP_RLIMIT, /* resource `value`, limit `value2` */
	STEP_PRIVILEGES, /* no capabilities, none to be had, no new privileges */
	STEP_LANDLOCK,
	STEP_SECCOMP,
	STEP_SCOPE, /* signals go no further than to this process and what it starts */
	STEP_KIND_COUNT,
};

enum step_flag {
	STEP_READ_ONLY = 1 << 0,
	STEP_RECURSIVE = 1 << 1,
	STEP_ON_FILE = 1 << 2,   /* the target is a file, not a directory */
	STEP_DEVICE = 1 << 3,    /* a device node: nodev must not be set */
	STEP_ID_MAPPED = 1 << 4, /* the workdir of a command started by root */
	STEP_IN_PLACE = 1 << 5,  /* the target lies in a host directory: it must exist, nothing is created */
	STEP_NO_EXEC = 1 << 6,
	STEP_FOLLOW = 1 << 7, /* links on the way to the source are followed: only root can put any there */
	STEP_COUNT_WRITES =
		1 << 8, /* STEP_METER: hold what tells how much this process and its children have written */
	STEP_UNPRIVILEGED = 1 << 9, /* STEP_PRIVILEGES: who has no right to give capabilities up for good need not */
};

/* What STEP_COPY copies is not longer. */
#define JAR_COPY_BYTES_MAX (32 << 10)

struct plan_step {
	enum step_kind kind;
	unsigned flags;
	const char *source; /* strings are the plan's */
	const char *target;
	mode_t mode;
	uint64_t value, value2, value3;
	dev_t device; /* which object `source` must be; inode 0: not checked */
	ino_t inode;
	dev_t place_device; /* STEP_IN_PLACE: which object must stand at `target`; inode 0: not checked */
	ino_t place_inode;
};

LIST_TYPE(struct plan_step, plan_step_list);

struct plan_landlock_rule {
	const char *path;
	uint64_t access;
	bool is_writable;   /* all of it: files are made and changed there */
	bool may_be_absent; /* then there is nothing to allow */
	dev_t device;       /* which object it must be; inode 0: not checked */
	ino_t inode;
};

LIST_TYPE(struct plan_landlock_rule, plan_rule_list);

/*
 * A jar for calls: its runs are forks of the program `argv` of its plan, the zygote, which starts with `env` and this filter. The
 * walls are then in `entry`: that program stands in front of them. All limits are each run's own, none is the jar's.
 */
struct jar_zygote_plan {
	struct sock_filter *filter;
	size_t filter_len;
	const char
		*landlock_probe; /* a device that shows who opened it behind the walls of calls; NULL: there is none */
	struct plan_step_list anew; /* made anew for each call; of a STEP_BIND what stands in the jar is taken along */
};

/*
 * In a filter: a process that exists only when the filter is loaded. 0: the parent of whoever loads it, 1: the engine, 2: the
 * jar's first process. No real process has such a number.
 */
#define JAR_PID_PLACEHOLDER(slot) ((pid_t)(0x7b000000 + (slot)))

struct jar_plan {
	uint64_t namespaces;          /* CLONE_NEW* flags the jar's first process is made with */
	struct plan_step_list steps;  /* by the jar's first process, in order */
	struct plan_step_list entry;  /* by every command, between fork and exec */
	struct plan_step_list minder; /* PLAN_SESSION: by every minder, before it is told of a command */
	int landlock_abi;
	uint64_t landlock_files, landlock_scopes; /* what the ruleset governs */
	struct plan_rule_list landlock;
	struct sock_filter *filter;
	size_t filter_len;
	bool filter_asks; /* it has a listener, and whoever watches over the command answers */
	bool has_zygote;
	struct jar_zygote_plan zygote;
	struct string_list argv;
	struct string_list env;
	struct string_list candidates; /* files that may be the command, in the order in which they are tried */
	const char *shell;             /* what runs a script without a first line that says what runs it */
	const char *workdir;           /* inside */
	const char *run_directory;     /* on the host; NULL where the jar has mounts of its own */
};

/* Put @pid in the place of JAR_PID_PLACEHOLDER(@slot), and of its negative. Returns how many comparisons changed. */
size_t jar_set_filter_pid(struct sock_filter *filter, size_t len, unsigned slot, pid_t pid);

#endif
