/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan.h - the steps that enforce a policy on this host
 *
 * The planner takes all decisions: the jar only carries the steps out, in order. A plan is plain data. Making it
 * needs no privilege, and Belljar can print it before anything runs.
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

/* A path that matches a pattern of the policy: an entry like others, with the pattern as its rule. */
struct plan_match {
	const char *key; /* "hide", "ro", "rw" */
	const char *pattern, *path;
};

LIST_TYPE(struct plan_match, plan_match_list);

/*
 * The jar's own cgroups. The engine makes them before the jar and removes them after it. In version 2 all are one.
 * PLAN_RUN: the cgroups of its jar, in which the run gets its own.
 */
struct plan_cgroup {
	int version;        /* 0: there is none */
	const char *memory; /* directories; NULL: another mechanism holds that limit, or the policy has none */
	const char *pids;
	const char *cpu;
	const char *room; /* our own cgroup, in which they are made, and which we must leave first; NULL: beside it */
};

/* The purpose of a plan. */
enum plan_kind {
	PLAN_ONCE,     /* a jar and its only command */
	PLAN_PREPARED, /* a jar for one command that is not known yet */
	PLAN_SESSION,  /* a jar for many commands */
	PLAN_CALLS,    /* a jar for many calls: forks of one program, the zygote */
	PLAN_RUN,      /* one command or call in a jar of the three kinds above */
};

struct plan {
	enum plan_kind kind;
	const struct plan *jar; /* PLAN_RUN: the jar's plan; it owns the steps, the Landlock rules and the filter */
	enum rung rung;
	enum net_mode net;     /* of a run it is the jar's */
	struct jar_plan core;  /* the part that the jar carries out; the rest is for the engine and for people */
	uint32_t filter_parts; /* enum seccomp_part, for printing */
	bool writes_host;      /* a command can write to directories of the host, not only to layers over them */
	struct limits limits;
	uint64_t own_limits; /* policy.own_limits of a run */
	struct plan_cgroup cgroup;
	struct plan_gate gate; /* of a run it is the jar's */
	/*
	 * The parts of the root that are the same for every start: directories, links, copies, mount points. The engine
	 * has them made once and puts the path into STEP_SKELETON. Empty: the steps make them.
	 */
	struct plan_step_list skeleton;
	struct jar_part *parts;    /* of all STEP_OVERLAY, one after the other */
	uint32_t metered;          /* 1 << enum guarantee: limits that the engine measures while the command runs */
	bool has_counted_writes;   /* GUARANTEE_DISK includes writes to host directories */
	struct string_list redact; /* literal texts */
	bool has_redact_secrets;
	const char *home;  /* the caller's home directory; NULL: none */
	const char *agent; /* the socket of the caller's SSH agent; NULL: none */
	bool is_traced;    /* record the paths that the command opens and executes, and its connections */
	uid_t owner_id;    /* root only: owner of the command's pipes, so that it can open /dev/stdout; 0: the caller */
	uint32_t asked;    /* 1 << enum guarantee: the guarantees that the policy asks for */
	uint32_t optional;
	struct plan_remark_list missing;
	struct plan_remark_list notes;
	struct string_list own; /* Belljar's own files in the jar, read-only under any policy */
	struct plan_match_list matches;
	struct string_list strings; /* owns the strings of the others */
};

/* Is it a jar in which each run has its own minder? */
static inline bool plan_has_minders(const struct plan *plan)
{
	return plan->kind == PLAN_SESSION || plan->kind == PLAN_CALLS;
}

static inline bool plan_is_for_calls(const struct plan *plan)
{
	return plan->kind == PLAN_CALLS;
}

/* How a layer stores the changes to a directory. */
enum layer_kind {
	LAYER_OVERLAY, /* the kernel's overlay: only the differences */
	LAYER_COPY,    /* a whole copy */
};

/* Return the kind that @host uses. The code that makes the store calls this before there is a plan. */
enum layer_kind plan_layer_kind(const struct host *host, const struct host_layer *layer);
/* Are the kernel's marks in a layer user attributes? Else they are trusted ones. */
bool plan_layer_has_user_xattrs(const struct host *host);

/* The command, as a door understood it. */
struct plan_request {
	const struct string_list *argv;
	bool is_captured;
	bool has_pty;
	const char *input_name;        /* the file that the command reads as standard input, as the caller named it */
	const struct host_path *input; /* NULL: it reads no named file */
	unsigned runs_beside;          /* in a kept jar: the other runs in progress */
};

/* Places in the filter for processes that exist only later: the command's minder, the engine, a kept jar's first process. */
#define PLAN_GUARDED_PIDS 3
/* Version 2: the child cgroup of a kept jar's first process, since a cgroup with children may have no processes. */
#define PLAN_CGROUP_LEAF "first"
/* The most processes of a kept jar beside those of its commands: the first one, and minders. */
#define PLAN_MINDERS_ROOM 64
/* Minders among these that wait for a command: two, so that consecutive runs find one ready. */
#define PLAN_SPARE_MINDERS 2
/* Beside minders: the first process, and those that carry out tasks. */
#define PLAN_OWN_ROOM 8

int plan_compile(struct plan *plan, const struct policy *policy, const struct host *host,
		 const struct plan_request *request, struct error *error);
/*
 * Plan a jar without a command: @kind is PLAN_PREPARED, PLAN_SESSION or PLAN_CALLS. The limits on memory, processes and
 * disk hold for the sum of its runs. Of the keys of a single run only cpu_time counts, and only for a prepared jar.
 * @zygote is the program of PLAN_CALLS; else it is NULL.
 */
int plan_compile_jar(struct plan *plan, enum plan_kind kind, const struct policy *policy, const struct host *host,
		     const struct plan_request *zygote, struct error *error);
/*
 * Plan one command in the jar of @jar, which must outlive the plan. @policy is the jar's with the run's own keys on
 * top, and no limit above the jar's (policy_hold()). @host is the one of the jar's plan, with the environment from
 * which the run takes its variables. In a prepared jar memory, pids, disk and cpu_time must be the jar's own, since
 * the jar holds them already.
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
 * plan_environment.c: list the literal texts to redact: those of the policy, and values of variables that look like
 * secrets and are not @inside (NULL: none is). Returns 0 or -ENOMEM.
 */
int plan_secrets(const struct policy *policy, char *const *environment, const struct string_list *inside,
		 struct string_list *secrets);
/* Is the variable of that name a secret, or a path to one, such as an agent's socket? */
bool plan_is_secret_variable(const char *name, size_t len);
/* Describe one step, for `belljar plan`, for errors and for --timing. */
void plan_describe_step(const struct plan_step *step, struct text *out);

#endif
