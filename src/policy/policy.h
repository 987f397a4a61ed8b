/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy.h - a policy: plain data, the same in a file, in flags and on the wire
 *
 * A policy is built in order: preset, file, flags from left to right, then tightened. Every value is stored in one
 * unit (nanoseconds, bytes, counts); LIMIT_NONE is "no limit". Paths are absolute and lexically clean, but not yet
 * looked up: that is the planner's work, on the host's facts.
 */
#ifndef BELLJAR_POLICY_POLICY_H
#define BELLJAR_POLICY_POLICY_H

#include "base/error.h"
#include "base/text.h"

enum workdir_mode { WORKDIR_RW, WORKDIR_RO };
/* Where a command's changes to the workdir go: to the host's files, or to a layer over them. */
enum workspace_mode { WORKSPACE_DIRECT, WORKSPACE_COW };
/* From none to all, so that "at most" is a comparison. */
enum net_mode { NET_NONE, NET_GATE, NET_HOST };
/* What Belljar asks about if no rule decides; "at most" is a comparison. */
enum ask_mode { ASK_NONE, ASK_NET };
enum overflow_mode { OVERFLOW_TRUNCATE, OVERFLOW_KILL };
enum keep_mode { KEEP_HEAD, KEEP_TAIL, KEEP_BOTH };
enum ledger_level { LEDGER_BASIC, LEDGER_FILES, LEDGER_TRACE };
/* Which files a command may execute: all visible ones, or only those that no command can write. */
enum exec_mode { EXEC_ANY, EXEC_TRUSTED };
/* Whether the processor may speculate past checks, as far as the kernel can turn that off for a process. */
enum speculation_mode { SPECULATION_ON, SPECULATION_OFF };
/* The facts about the machine in /proc: all, all but boot id and kernel command line, or only those programs need. */
enum machine_facts { FACTS_HOST, FACTS_FEW, FACTS_NONE };
/* From weak to strong, so that "at least" is a comparison. */
enum rung { RUNG_PROCESS, RUNG_LANDLOCK, RUNG_NAMESPACE };

/* By enum rung; NULL-terminated. */
extern const char *const policy_rung_names[];
/* Return the rung of that name; RUNG_PROCESS for any other name. */
enum rung policy_rung_named(const char *name);

/* How the workdir was chosen: only a default may be replaced by a private one. */
enum workdir_choice { WORKDIR_DEFAULT, WORKDIR_NAMED, WORKDIR_PRIVATE };

enum mount_access { MOUNT_RO, MOUNT_RW };

/* The limit on output: for both streams together, or for each. */
struct output_limit {
	uint64_t total_bytes;
	uint64_t stream_bytes[2]; /* stdout, stderr; both LIMIT_NONE where @total_bytes is not */
};

static inline bool policy_output_is_split(const struct output_limit *limit)
{
	return limit->stream_bytes[0] != LIMIT_NONE || limit->stream_bytes[1] != LIMIT_NONE;
}

/* Is there a limit on output, and so on the bytes to keep? */
static inline bool policy_output_is_bounded(const struct output_limit *limit)
{
	return limit->total_bytes != LIMIT_NONE ||
	       (limit->stream_bytes[0] != LIMIT_NONE && limit->stream_bytes[1] != LIMIT_NONE);
}

struct policy_mount {
	char *path; /* on the host; or a pattern */
	char *dest; /* in the jar; the same as path unless DEST was given */
	enum mount_access access;
	bool is_optional;
	bool is_pattern; /* a pattern (policy_patterns.h); `dest` is then the same text */
	unsigned order;  /* later wins over earlier for the same dest */
};

struct policy_tmpfs {
	char *path;
	uint64_t size_bytes; /* LIMIT_NONE: the planner's default */
};

struct policy_env {
	char *name;
	char *value;
};

#define POLICY_LIST(type, name)                                                                                        \
	struct {                                                                                                       \
		type *items;                                                                                           \
		size_t count;                                                                                          \
		size_t capacity;                                                                                       \
	} name

/* Bits of policy.optional: keys of `enforced` that may be missing. */
enum guarantee {
	GUARANTEE_RUNG,
	GUARANTEE_FILESYSTEM,
	GUARANTEE_NETWORK,
	GUARANTEE_PROCESSES,
	GUARANTEE_SYSCALLS,
	GUARANTEE_MEMORY,
	GUARANTEE_PIDS,
	GUARANTEE_CPU_TIME,
	GUARANTEE_DISK,
	GUARANTEE_EXEC,
	GUARANTEE_SPECULATION,
	GUARANTEE_COUNT,
};

/* Limits of a run, or of a jar with all its runs; LIMIT_NONE: no limit. */
struct limits {
	uint64_t timeout_ns;
	uint64_t grace_ns;
	uint64_t cpu_time_ns;
	uint64_t memory_bytes;
	uint64_t pids;
	uint64_t disk_bytes;
	uint64_t file_size_bytes;
	uint64_t fds;
	uint64_t core_bytes;
	uint64_t net_connections;
	uint64_t net_bytes;
	struct output_limit output;
	enum overflow_mode overflow;
	enum keep_mode keep;
};

struct policy {
	char *workdir; /* NULL where the choice is WORKDIR_PRIVATE, or WORKDIR_DEFAULT (then: the current directory) */
	enum workdir_choice workdir_choice;
	enum workdir_mode workdir_mode;
	enum workspace_mode workspace;
	char *workspace_name;        /* NULL: not kept */
	struct string_list cow_dirs; /* other directories with a layer over each */
	char *cd;                    /* in the jar; may be relative to the workdir; NULL: the workdir */
	/* ro and rw in the order they were given. No dest occurs twice, also not in tmpfs: the last one given won. */
	POLICY_LIST(struct policy_mount, mounts);
	struct string_list hide; /* patterns: a path has a '\' before each character that would mean others */
	bool has_hide_secrets;   /* ... and the files of secret_files.h */
	POLICY_LIST(struct policy_tmpfs, tmpfs); /* the default private places and home included */
	bool has_system;
	bool has_toolchains;
	bool has_protect;
	enum exec_mode exec;
	enum speculation_mode speculation;
	enum machine_facts machine_facts;
	enum net_mode net;
	struct string_list allow_net; /* rules in their canonical form: net_rules.h */
	struct string_list secrets;   /* likewise: net_secrets.h */
	enum ask_mode ask;
	uint64_t ask_timeout_ns;
	struct string_list publish;  /* in their canonical form: publish.h */
	char *hostname;              /* NULL: the caller's */
	struct string_list pass_env; /* names; a '*' at the end matches any rest */
	POLICY_LIST(struct policy_env, env);
	struct limits limits;
	enum ledger_level ledger;
	struct string_list redact;
	bool has_redact_secrets;
	bool has_redact_env;
	enum rung rung;
	uint32_t optional;   /* 1 << enum guarantee */
	uint64_t given_keys; /* 1 << index in policy_keys[]: said by a preset other than agent, a file, or a flag */
	struct string_list files; /* it was read from these: no command may change them, since later runs read them */
	uint64_t replaced_keys;   /* those of given_keys that a document set: a list then keeps none of the default */
	uint64_t own_limits; /* 1 << index in policy_keys[]: limits below the jar's that a run in it named itself */
};

/* Does any rule or secret need the gate to inspect requests? */
bool policy_is_inspecting(const struct policy *policy);

#endif
