/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan.h - the steps that make a policy true on this host
 *
 * All decisions are taken here and nowhere later: the jar carries the steps out in order and knows nothing else. A plan
 * is plain data, needs no privilege to make, and can be printed before anything runs.
 */
#ifndef BELLJAR_PLAN_PLAN_H
#define BELLJAR_PLAN_PLAN_H

#include <sys/types.h>

#include "base/json_write.h"
#include "base/list.h"
#include "survey/survey.h"
#include "inside/jar_plan.h"
#include "plan/plan_gate.h"

/* Something asked for that this run does not have, or something the user should know. */
/* When people read a remark. Results always have it. */
enum remark_time {
	REMARK_ALWAYS,
	REMARK_AFTER_FAILURE, /* the command failed; or as REMARK_ON_REQUEST */
	REMARK_ON_REQUEST,    /* they ask for more, or the command did not start */
};

struct plan_remark {
	const char *name;
	const char *why;
	const char *hint;
	enum remark_time time;
};

LIST_TYPE(struct plan_remark, plan_remark_list);

/* What a pattern of the policy matches: an entry like others, whose rule is the pattern. */
struct plan_match {
	const char *key; /* "hide", "ro", "rw" */
	const char *pattern, *path;
};

LIST_TYPE(struct plan_match, plan_match_list);

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

/* What a plan is for. */
enum plan_kind {
	PLAN_ONCE,     /* a jar and its only command */
	PLAN_PREPARED, /* a jar whose only command is not known yet */
	PLAN_SESSION,  /* a jar for many commands */
	PLAN_CALLS,    /* a jar for many calls: forks of one program, the zygote */
	PLAN_RUN,      /* one command or call in a jar of the three kinds above */
};

struct plan {
	enum plan_kind kind;
	const struct plan *jar; /* PLAN_RUN: the jar's plan; it owns the steps, the Landlock rules and the filter */
	enum rung rung;
	enum net_mode net;     /* of a run it is the jar's */
	struct jar_plan core;  /* what is carried out; the rest is for the engine and for people */
	uint32_t filter_parts; /* enum seccomp_part, for printing */
	bool writes_host;      /* a command can write to directories of the host, not only to layers over them */
	struct limits limits;
	uint64_t own_limits; /* policy.own_limits of a run */
	struct plan_cgroup cgroup;
	struct plan_gate gate; /* of a run it is the jar's */
	/*
	 * What of the root is the same for every start: directories, links, copies, mount points. The engine has it made once, and
	 * says in STEP_SKELETON where it is. Empty: the steps make it.
	 */
	struct plan_step_list skeleton;
	struct jar_part *parts;    /* of all STEP_OVERLAY, one after the other */
	uint32_t metered;          /* 1 << enum guarantee: what the engine measures while the command runs */
	bool has_counted_writes;   /* of GUARANTEE_DISK: what is written to host directories, too */
	struct string_list redact; /* literal texts */
	bool has_redact_secrets;
	const char *home;  /* the caller's home directory; NULL: none */
	const char *agent; /* the socket of the caller's SSH agent; NULL: none */
	bool is_traced;    /* what the command opens, executes and connects to is noted */
	uid_t owner_id; /* root only: the host id whose the command's pipes are, so that it can open /dev/stdout; 0: the caller's */
	uint32_t asked; /* 1 << enum guarantee: what the policy asks for */
	uint32_t optional;
	struct plan_remark_list missing;
	struct plan_remark_list notes;
	struct string_list own; /* where Belljar's own files stand in the jar, read-only whatever the policy says */
	struct plan_match_list matches;
	struct string_list strings; /* owns what the others point at */
};

/* A jar in which each run has a minder of its own, beside others. */
static inline bool plan_has_minders(const struct plan *plan)
{
	return plan->kind == PLAN_SESSION || plan->kind == PLAN_CALLS;
}

static inline bool plan_is_for_calls(const struct plan *plan)
{
	return plan->kind == PLAN_CALLS;
}

/* How the changes to a directory are kept apart. */
enum layer_kind {
	LAYER_OVERLAY, /* the kernel's overlay: what differs */
	LAYER_COPY,    /* a whole copy */
};

/* Which one it is on @host. Whoever makes the store asks before there is a plan. */
enum layer_kind plan_layer_kind(const struct host *host, const struct host_layer *layer);
/* Are the kernel's marks in a layer user attributes? Else they are trusted ones. */
bool plan_layer_has_user_xattrs(const struct host *host);

/* The command, as a door understood it. */
struct plan_request {
	const struct string_list *argv;
	bool is_captured;
	bool has_pty;
	const char *input_name;        /* the file that the command reads as standard input, as the caller named it */
	const struct host_path *input; /* NULL: it reads none that was named */
	unsigned runs_beside;          /* in a kept jar: those that are on now */
};

/* Places in the filter for processes that exist only later: the command's minder, the engine, a kept jar's first process. */
#define PLAN_GUARDED_PIDS 3
/* Version 2: where below its cgroup a kept jar's first process is; there may be none beside the cgroups of runs. */
#define PLAN_CGROUP_LEAF "first"
/* A kept jar has so many processes of its own beside those of its commands at most: the first one, and minders. */
#define PLAN_MINDERS_ROOM 64
/* Of these, minders that wait for a command: two, so that runs one after the other find one ready. */
#define PLAN_SPARE_MINDERS 2
/* Beside minders: the first process, and those that carry out tasks. */
#define PLAN_OWN_ROOM 8

int plan_compile(struct plan *plan, const struct policy *policy, const struct host *host,
		 const struct plan_request *request, struct error *error);
/*
 * The plan of a jar without a command: @kind is PLAN_PREPARED, PLAN_SESSION or PLAN_CALLS. The limits on memory, processes and disk hold
 * for the sum of its runs; of the keys that are a run's own only cpu_time is used, and for a prepared jar only.
 * @zygote is the program of PLAN_CALLS; else it is NULL.
 */
int plan_compile_jar(struct plan *plan, enum plan_kind kind, const struct policy *policy, const struct host *host,
		     const struct plan_request *zygote, struct error *error);
/*
 * The plan of one command in the jar of @jar, which must outlive it. @policy is the jar's with the run's own keys on top,
 * and no limit above the jar's (policy_hold()); @host the one the jar was planned for, with the environment that the run
 * takes its variables from. In a prepared jar memory, pids, disk and cpu_time must be the jar's own: they are held
 * by what was prepared.
 */
int plan_compile_run(struct plan *plan, const struct plan *jar, const struct policy *policy, const struct host *host,
		     const struct plan_request *request, struct error *error);
void plan_done(struct plan *plan);

void plan_print(const struct plan *plan, struct text *out);
void plan_print_json(const struct plan *plan, struct text *out);
void plan_write_limits(const struct limits *limits, struct json_writer *writer, const char *key);
void plan_write_remark(const struct plan_remark *remark, struct json_writer *writer);
void plan_write_remarks(const struct plan_remark_list *list, struct json_writer *writer, const char *key);
const char *plan_rung_name(enum rung rung);
/*
 * plan_environment.c: the literal texts that are redacted: those of the policy, and values of variables that look like
 * secrets and are not @inside (NULL: none is). 0 or -ENOMEM.
 */
int plan_secrets(const struct policy *policy, char *const *environment, const struct string_list *inside,
		 struct string_list *secrets);
/* Is the variable of that name itself a secret, or the way to one, such as an agent's socket? */
bool plan_is_secret_variable(const char *name, size_t len);
/* One step in words, for `belljar plan`, for errors and for --timing. */
void plan_describe_step(const struct plan_step *step, struct text *out);

#endif
