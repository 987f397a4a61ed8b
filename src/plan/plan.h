/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan.h - the steps that make a policy true on this host
 *
 * All decisions are taken here and nowhere later: the jar carries the steps out in order and knows nothing else. A plan
 * is plain data, needs no privilege to make, and can be printed before anything runs.
 */
#ifndef BELLJAR_PLAN_PLAN_H
#define BELLJAR_PLAN_PLAN_H

#include <linux/filter.h>
#include <sys/types.h>

#include "base/heap.h"
#include "base/json_write.h"
#include "base/list.h"
#include "host/host.h"

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
	STEP_SNAPSHOT = 1 << 7, /* a small file that anyone may read can be copied, which is cheaper than a mount */
	STEP_HOSTS = 1 << 8, /* the table of hosts: the copy names the jar's own IPv6 loopback, if the file does not */
};

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
	bool is_writable; /* all of it: files are made and changed there */
	dev_t device;     /* which object it must be; inode 0: not checked */
	ino_t inode;
};

/* Something asked for that this run does not have, or something the user should know. */
struct plan_remark {
	const char *name;
	const char *why;
	const char *hint;
};

LIST_TYPE(struct plan_landlock_rule, plan_rule_list);
LIST_TYPE(struct plan_remark, plan_remark_list);

/*
 * The jar's own cgroups: the engine makes them before the jar and removes them after it. In version 2 all are one.
 * PLAN_RUN: those of its jar in which the run has one of its own.
 */
struct plan_cgroup {
	int version;        /* 0: there is none */
	const char *memory; /* directories; NULL: that limit is held by something else, or not asked for */
	const char *pids;
	const char *cpu;
	const char *room; /* they are made in this one, our own, which we must leave first; NULL: beside it */
};

struct plan_limits {
	uint64_t timeout_ns;
	uint64_t grace_ns;
	uint64_t cpu_time_ns;
	uint64_t memory_bytes;
	uint64_t pids;
	uint64_t disk_bytes;
	uint64_t file_size_bytes;
	uint64_t fds;
	uint64_t core_bytes;
	uint64_t output_bytes;
	enum overflow_mode overflow;
	enum keep_mode keep;
};

/* What a plan is for. */
enum plan_kind {
	PLAN_ONCE,     /* a jar and its only command */
	PLAN_PREPARED, /* a jar whose only command is not known yet */
	PLAN_KEPT,     /* a jar for many commands */
	PLAN_RUN,      /* one command in a jar of the two kinds above */
};

struct plan {
	enum plan_kind kind;
	const struct plan *jar; /* PLAN_RUN: the jar's plan; it owns the steps, the Landlock rules and the filter */
	enum rung rung;
	uint64_t namespaces;          /* CLONE_NEW* flags the jar's first process is made with */
	struct plan_step_list steps;  /* by the jar's first process, in order */
	struct plan_step_list entry;  /* by every command, between fork and exec */
	struct plan_step_list keeper; /* PLAN_KEPT: by every keeper, before it is told of a command */
	int landlock_abi;
	uint64_t landlock_files, landlock_scopes; /* what the ruleset governs */
	struct plan_rule_list landlock;
	struct sock_filter *filter;
	size_t filter_len;
	uint32_t filter_parts; /* enum seccomp_part, for printing */
	bool filter_asks;      /* it has a listener, and whoever keeps the command answers */
	/*
	 * PLAN_KEPT: its runs are forks of the program `argv`, which it starts with `env` and this filter. The walls are then
	 * in `entry`: that program stands in front of them. All limits are each run's own, none is the jar's.
	 */
	bool has_zygote;
	struct sock_filter *zygote_filter;
	size_t zygote_filter_len;
	const char *
		landlock_probe; /* with it: a device that shows who opened it behind the walls of calls; NULL: there is none */
	struct plan_step_list
		anew; /* with it: made anew for each call; of a STEP_BIND what stands in the jar is taken along */
	struct string_list argv;
	struct string_list env;
	struct plan_limits limits;
	struct plan_cgroup cgroup;
	uint32_t metered;          /* 1 << enum guarantee: what the engine measures while the command runs */
	bool has_counted_writes;   /* of GUARANTEE_DISK: what is written to host directories, too */
	struct string_list redact; /* literal texts */
	bool has_redact_secrets;
	const char *workdir;       /* inside */
	const char *run_directory; /* on the host; NULL on the namespace rung */
	uid_t owner_id; /* root only: the host id whose the command's pipes are, so that it can open /dev/stdout; 0: the caller's */
	uint32_t asked; /* 1 << enum guarantee: what the policy asks for */
	uint32_t optional;
	struct plan_remark_list missing;
	struct plan_remark_list notes;
	struct string_list strings; /* owns what the others point at */
	struct heap_pool
		*pool; /* where all that this points at is, where the jar's first process has only that; NULL */
};

/* The command, as a door understood it. */
struct plan_request {
	const struct string_list *argv;
	bool is_captured;
	bool has_pty;
};

/* Places in the filter for processes that exist only later: the command's keeper, the engine, a kept jar's first process. */
#define PLAN_GUARDED_PIDS 3
/* Version 2: where below its cgroup a kept jar's first process is; there may be none beside the cgroups of runs. */
#define PLAN_CGROUP_LEAF "first"
/* A kept jar has so many processes of its own beside those of its commands: the first one, and keepers. */
#define PLAN_KEEPERS_ROOM 64

int plan_compile(struct plan *plan, const struct policy *policy, const struct host *host,
		 const struct plan_request *request, struct error *error);
/*
 * The plan of a jar without a command: @kind is PLAN_PREPARED or PLAN_KEPT. The limits on memory, processes and disk hold
 * for the sum of its runs; of the keys that are a run's own only cpu_time is used, and for a prepared jar only.
 * With @zygote, which is for PLAN_KEPT, its runs will be forks of that program; else it is NULL.
 */
int plan_compile_jar(struct plan *plan, enum plan_kind kind, const struct policy *policy, const struct host *host,
		     const struct plan_request *zygote, struct error *error);
/*
 * The plan of one command in the jar of @jar, which must outlive it. @policy is the jar's with the run's own keys on top,
 * @host the one the jar was planned for, with the environment that the run takes its variables from. A limit above the
 * jar's is refused (STAGE_POLICY). In a prepared jar memory, pids, disk and cpu_time must be the jar's own: they are held
 * by what was prepared.
 */
int plan_compile_run(struct plan *plan, const struct plan *jar, const struct policy *policy, const struct host *host,
		     const struct plan_request *request, struct error *error);
void plan_done(struct plan *plan);

void plan_print(const struct plan *plan, struct text *out);
void plan_print_json(const struct plan *plan, struct text *out);
void plan_write_limits(const struct plan_limits *limits, struct json_writer *writer, const char *key);
void plan_write_remark(const struct plan_remark *remark, struct json_writer *writer);
void plan_write_remarks(const struct plan_remark_list *list, struct json_writer *writer, const char *key);
const char *step_kind_name(enum step_kind kind);
const char *rung_name(enum rung rung);
/*
 * plan_environment.c: the literal texts that are redacted: those of the policy, and values of variables that look like
 * secrets and are not @inside (NULL: none is). 0 or -ENOMEM.
 */
int plan_secrets(const struct policy *policy, char *const *environment, const struct string_list *inside,
		 struct string_list *secrets);
/* One step in words, for `belljar plan`, for errors and for --timing. */
void plan_describe_step(const struct plan_step *step, struct text *out);

#endif
