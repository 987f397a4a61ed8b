/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/jar_plan.h - the input of the trusted core: steps, rules, a filter, a command
 *
 * The planner (plan/) fills this in; the core carries it out and decides nothing. It knows neither policies nor hosts: all it
 * depends on is here, so that it can be read and checked by itself.
 */
#ifndef BELLJAR_INSIDE_JAR_PLAN_H
#define BELLJAR_INSIDE_JAR_PLAN_H

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"

/* Properties of a kind of step. */
enum step_trait {
	STEP_MAY_ENTER = 1 << 0,    /* a command may do it for itself; all else is done when the jar is made */
	STEP_NEEDS_USERNS = 1 << 1, /* a refusal means that user namespaces do not work on this host */
	STEP_ANEW = 1 << 2,         /* done again for each call ... */
	STEP_ANEW_PLACE = 1 << 3,   /* ... with what other steps put there ... */
	STEP_ANEW_INSIDE = 1 << 4,  /* ... and this if it lies in such a place */
};

/*
 * Every kind of step, a row each: kind, function in inside/build/, name, stage of its failure, traits; the step in
 * words; its fields in JSON. In the last two a letter means an argument: t target, s source, o source if not target,
 * w whether it is writable, m mode; of `union step_detail`: h holds, i id, u uid, g gid, l limit, b bytes, a acknowledged, c count,
 * r resource, x turned_off, y held. To add a kind: a row here, a function there, and what else it needs in the union.
 */
/* clang-format off */
#define JAR_STEPS(X) \
	/* The run's own cgroup if there is no target. */ \
	X(CGROUP, build_cgroup, "cgroup", LIMITS, STEP_MAY_ENTER, "cgroup %t for:%h", "holds=h") \
	/* Only needed without a user namespace around them. */ \
	X(PRIVATE_MOUNTS, build_private_mounts, "private-mounts", ISOLATE, STEP_NEEDS_USERNS, "cut the mounts off from the host's", "") \
	/* Root only; its capabilities stay until the root is built. */ \
	X(BECOME, build_become, "become", ISOLATE, STEP_NEEDS_USERNS, "become host id %i, which nothing belongs to", "id=i") \
	X(ID_MAPS, build_id_maps, "id-maps", ISOLATE, STEP_NEEDS_USERNS, "user namespace with uid %u and gid %g only", "uid=u gid=g") \
	/* Of what the kernel counts for the user. */ \
	X(USER_LIMIT, build_user_limit, "user-limit", LIMITS, 0, "limit %s of the jar to %l", "limit=l") \
	/* A tmpfs over /, in which the following steps build. */ \
	X(ROOT, build_root, "root", ISOLATE, STEP_NEEDS_USERNS, "an empty root", "") \
	/* Or one that an earlier start has made, read-only; the engine says which. */ \
	X(SKELETON, build_skeleton, "skeleton", ISOLATE, 0, "a root made before, with all that is to be mounted on", "") \
	/* One tmpfs for all private places. */ \
	X(SCRATCH, build_scratch, "scratch", ISOLATE, STEP_NEEDS_USERNS | STEP_ANEW, "private memory-backed space of %b", "size=b") \
	X(DIRECTORY, build_directory, "directory", FILES, STEP_ANEW_INSIDE, "directory %t", "mode=m") \
	X(SYMLINK, build_symlink, "symlink", FILES, STEP_ANEW_INSIDE, "link %t -> %s", "") \
	/* With the content `source`; a read-only mount of its own where there are mounts. */ \
	X(FILE, build_file, "file", FILES, STEP_ANEW_INSIDE, "file %t", "mode=m") \
	/* Of a small file of the host's. */ \
	X(COPY, build_copy, "copy", FILES, 0, "a copy of %t", "mode=m") \
	X(BIND, build_bind, "bind", FILES, STEP_ANEW_INSIDE, "show %t%o%w", "") \
	/* A directory of the host's under a layer that takes all changes: these are its parts. */ \
	X(OVERLAY, build_overlay, "overlay", FILES, STEP_ANEW_INSIDE, "show %t, changes to it in a layer", "") \
	/* A directory of the scratch tmpfs. */ \
	X(PRIVATE, build_private, "private", FILES, STEP_ANEW_PLACE, "private, empty %t", "mode=m") \
	X(TMPFS, build_tmpfs, "tmpfs", FILES, STEP_ANEW_PLACE, "private, empty %t of at most %b", "mode=m size=b") \
	X(HIDE, build_hide, "hide", FILES, STEP_ANEW_INSIDE, "hide %t", "") \
	/* No process in the jar can rename, replace or remove it. */ \
	X(PIN, build_pin, "pin", FILES, 0, "keep the host's %t in its place", "") \
	X(DEVPTS, build_devpts, "devpts", ISOLATE, STEP_NEEDS_USERNS | STEP_ANEW, "at most %l terminals of its own in /dev/pts", "limit=l") \
	/* A masked /proc, as in Docker, forbids a new one. */ \
	X(PROC, build_proc, "proc", ISOLATE, STEP_NEEDS_USERNS | STEP_ANEW, "a /proc that shows the jar only", "") \
	/* For calls, or where uid 0 inside is the host's uid 0. */ \
	X(PROC_LOCK, build_proc_lock, "proc-lock", ISOLATE, STEP_ANEW, "%t read-only", "") \
	X(SEAL, build_seal, "seal", ISOLATE, STEP_NEEDS_USERNS, "the root itself read-only", "") \
	X(ENTER, build_enter, "enter", ISOLATE, STEP_NEEDS_USERNS, "enter the new root", "") \
	X(LOOPBACK, build_loopback, "loopback", ISOLATE, STEP_NEEDS_USERNS, "bring the private loopback up", "") \
	/* Messages of the planner's to the network's kernel side. */ \
	X(NETLINK, build_netlink, "netlink", ISOLATE, STEP_ANEW, "%s", "acknowledged=a") \
	/* Sockets in the jar's network, for the engine alone. */ \
	X(SOCKETS, build_sockets, "sockets", ISOLATE, STEP_ANEW, "hand %c sockets of the jar's network to its gate", "count=c") \
	X(HOSTNAME, build_hostname, "hostname", ISOLATE, 0, "hostname %s", "") \
	/* Root only: the id that it has become. */ \
	X(JOIN, build_join, "join", ISOLATE, STEP_NEEDS_USERNS, "enter the user namespace where that id is 0", "") \
	/* Without mounts: on the host, removed at the end. */ \
	X(RUN_DIRECTORY, build_run_directory, "run-directory", FILES, 0, "directory of the run's own, %t", "") \
	/* Without mounts, to answer the command's filter. */ \
	X(PLACES, build_places, "places", FILES, 0, "hold the writable places, and change mode, owner, times and attributes only there", "") \
	/* Without a pid namespace. */ \
	X(SUBREAPER, build_subreaper, "subreaper", ISOLATE, 0, "adopt every orphan of the tree", "") \
	X(WORKDIR, build_workdir, "workdir", FILES, STEP_MAY_ENTER, "start in %t", "") \
	/* The engine gets a view of the jar. */ \
	X(METER, build_meter, "meter", LIMITS, STEP_ANEW, "let the engine measure:%h", "holds=h") \
	X(RLIMIT, build_rlimit, "rlimit", LIMITS, STEP_MAY_ENTER, "limit %r to %l", "resource=r limit=l") \
	X(SPECULATION, build_speculation, "speculation", ISOLATE, 0, "no speculation past what may be attacked", "turned_off=x held=y") \
	X(PRIVILEGES, build_privileges, "privileges", ISOLATE, STEP_MAY_ENTER, "drop all capabilities, for good", "") \
	X(LANDLOCK, build_landlock, "landlock", ISOLATE, STEP_MAY_ENTER, "Landlock over the same paths", "") \
	X(SECCOMP, build_seccomp, "seccomp", ISOLATE, STEP_MAY_ENTER, "seccomp filter", "") \
	X(SCOPE, build_scope, "scope", ISOLATE, STEP_MAY_ENTER, "signals only to its own processes", "")

/* Extra fields of some kinds of step. `holds`: limits (enum guarantee), a bit each. */
union step_detail {
	struct { uint32_t holds, version; } cgroup;
	struct { uint32_t holds; bool has_clock; } meter;
	struct { uid_t id; } become;
	struct { uid_t uid; gid_t gid; } id_maps;
	struct { uint64_t limit; } user_limit, devpts;
	struct { uint64_t bytes, files; } scratch, tmpfs; /* bytes LIMIT_NONE: files have no limit either */
	struct { const void *bytes; size_t len; } file;   /* NULL: the string `source` */
	struct { int64_t changed_ns; uint64_t size_bytes; } copy;
	struct { const struct jar_part *parts; size_t count; } overlay;
	struct { const void *messages; size_t len; int protocol; unsigned acknowledged; } netlink;
	struct { const struct jar_socket *items; size_t count; } sockets;
	struct { bool tries_listener; } places; /* find out whether a filter can ask */
	struct { uint64_t limit; int resource; } rlimit;
	struct { uint32_t turned_off, held; } speculation; /* kinds, a bit each; `held` by the kernel, for all */
	struct { uint32_t level; } seccomp;                /* 0: the jar's filter; else this one of `asking`, from 1 on */
};
/* clang-format on */

enum step_kind {
#define STEP_ENUM(kind, ...) STEP_##kind,
	JAR_STEPS(STEP_ENUM) STEP_KIND_COUNT,
};

enum step_flag {
	STEP_READ_ONLY = 1 << 0,
	STEP_RECURSIVE = 1 << 1,
	STEP_ON_FILE = 1 << 2,   /* the target is a file, not a directory */
	STEP_DEVICE = 1 << 3,    /* a device node: nodev must not be set */
	STEP_ID_MAPPED = 1 << 4, /* the workdir of a command started by root */
	STEP_IN_PLACE = 1 << 5,  /* the target lies in a host directory: it must exist, nothing is created */
	STEP_NO_EXEC = 1 << 6,
	STEP_FOLLOW = 1 << 7,       /* links on the way to the source are followed: only root can put any there */
	STEP_COUNT_WRITES = 1 << 8, /* STEP_METER: hold the file that counts this tree's written bytes */
	STEP_UNPRIVILEGED = 1 << 9, /* STEP_PRIVILEGES: ignore that the kernel refuses to drop the bounding set */
	STEP_IF_POSSIBLE = 1 << 10, /* STEP_NETLINK: a refusal does not weaken the walls */
	STEP_MAY_BE_GONE = 1 << 11, /* the target lies in a layer, where an earlier command may have removed it */
	STEP_STANDS = 1 << 12,      /* the target is part of STEP_SKELETON */
};

/* The longest file that STEP_COPY copies. */
#define JAR_COPY_BYTES_MAX (32 << 10)
#define JAR_ASKING_MAX 3 /* levels of the ledger */

/* Directories of STEP_OVERLAY: the one with `upper` and `work`, then those beneath, topmost first, the host's own last. */
#define JAR_PARTS_MAX 34

struct jar_part {
	const char *path;
	dev_t device; /* which object it must be; inode 0: not checked */
	ino_t inode;
};

#define JAR_SOCKETS_MAX 64
#define JAR_SOCKET_OPTIONS_MAX 3

/* One socket of STEP_SOCKETS; no process in the jar ever has it. */
struct jar_socket {
	int type, protocol;
	int backlog;        /* 0: it does not listen */
	bool may_be_absent; /* a kernel without IPv6 has none */
	struct {
		int level, name;
	} options[JAR_SOCKET_OPTIONS_MAX]; /* set to 1; name 0: none */
	union {
		struct sockaddr any;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} address;
};

struct plan_step {
	enum step_kind kind;
	unsigned flags;
	const char *source; /* strings are the plan's */
	const char *target;
	mode_t mode;
	union step_detail as;
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

struct jar_filter {
	struct sock_filter *program; /* NULL: there is none */
	size_t len;
};

/*
 * A jar for calls: its runs are forks of the zygote, the program `argv` of its plan, which starts with `env` and this
 * filter. The zygote is outside the walls; the steps in `entry` restrict each fork. All limits are each run's own.
 */
struct jar_zygote_plan {
	struct jar_filter filter;
	const char *landlock_probe; /* a device that shows who opened it behind the walls; NULL: there is none */
	struct plan_step_list anew; /* carried out again for each call; a STEP_BIND then uses the jar's own mount */
};

/* In a filter: 0: the parent of the process that loads it, 1: the engine, 2: the first process. No process has such a number. */
#define JAR_PID_PLACEHOLDER(slot) ((pid_t)(0x7b000000 + (slot)))

/*
 * The sixth argument of Belljar's own calls before exec: a filter that traces lets them pass, since the process that would
 * answer still waits. A command can use this value too: it escapes tracing, not the filter.
 */
#define JAR_OWN_CALL 0x6a617231U

struct jar_plan {
	uint64_t namespaces;          /* CLONE_NEW* flags the jar's first process is made with */
	const char *birth_cgroup;     /* the version 2 cgroup that it is born in; STEP_CGROUP checks it; NULL: none */
	struct plan_step_list steps;  /* by the jar's first process, in order */
	struct plan_step_list entry;  /* by every command, between fork and exec */
	struct plan_step_list minder; /* where there are any: by every minder, before it gets a command */
	int landlock_abi;
	uint64_t landlock_files, landlock_scopes; /* what the ruleset governs */
	struct plan_rule_list landlock;
	struct jar_filter filter;
	bool filter_asks;                         /* it has a listener, and the command's supervisor answers */
	struct jar_filter asking[JAR_ASKING_MAX]; /* of a session's runs, by their level */
	struct jar_zygote_plan zygote;            /* PLAN_CALLS */
	struct string_list argv;
	struct string_list env;
	struct string_list candidates; /* files that may be the command, in the order in which they are tried */
	const char *shell;             /* runs a script that has no #! line */
	const char *workdir;           /* inside */
	const char *run_directory;     /* on the host; NULL where the jar has mounts of its own */
};

/* The rows of JAR_STEPS. */
struct step_row {
	const char *name;
	enum stage stage;
	unsigned traits;    /* enum step_trait */
	const char *words;  /* for plan_describe_step() */
	const char *fields; /* for the JSON form */
};

extern const struct step_row inside_step_rows[STEP_KIND_COUNT];

#endif
