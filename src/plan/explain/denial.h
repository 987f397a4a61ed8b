/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/explain/denial.h - the refusals in a jar as plain data, without texts and cures
 *
 * Equal attempts are one denial with a count. A recorder keeps at most DENIALS_MAX denials and counts the rest, since a
 * command can make any number.
 */
#ifndef BELLJAR_PLAN_EXPLAIN_DENIAL_H
#define BELLJAR_PLAN_EXPLAIN_DENIAL_H

#include "base/base.h"
#include "base/list.h"
#include "plan/explain/plan_explain.h"

#define DENIALS_MAX 256
/* The limit for system calls, which count apart. */
#define DENIED_CALLS_MAX 64
#define DENIAL_WHAT_SIZE 256
#define DENIAL_PROCESS_SIZE 16

enum denial_kind {
	DENIAL_NET,  /* a connection to a host and port, or a datagram */
	DENIAL_NAME, /* a name that was looked up */
	DENIAL_HTTP, /* a request over a connection that is looked into */
	DENIAL_CALL, /* a system call */
	DENIAL_FILE, /* a path that was to be read, written or executed */
	DENIAL_KIND_COUNT,
};

enum denial_reason {
	DENIAL_BY_RULE,    /* the rules say so, or none is about it */
	DENIAL_OTHER_NAME, /* the first bytes name the host `detail` */
	DENIAL_NO_NAME,    /* the first bytes name no host */
	DENIAL_ADDRESS,    /* the name resolves to `detail`, which its rule does not include */
	DENIAL_MANY_NAMES, /* the gate has no room for another name */
	DENIAL_DATAGRAM,   /* no rule can allow it */
	DENIAL_REQUEST,    /* the rules about the host do not allow `detail`, a method and a path */
	DENIAL_MALFORMED,  /* `detail` says what was wrong with it */
	DENIAL_UNTRUSTED,  /* the host could not be trusted; `detail` says why */
	DENIAL_UNTRUSTING, /* the client does not trust the jar's authority */
	DENIAL_ANSWER,     /* the user or program that the gate asked said no, or did not answer */
	DENIAL_REASON_COUNT,
};

/* The helper's findings about a path of the host; one block of memory. */
struct denial_path {
	enum plan_access access;
	const char *path;
	const char *why, *flag, *policy, *warning; /* as in struct plan_explanation; empty: there is none */
};

struct denial {
	enum denial_kind kind;
	enum denial_reason reason;
	uint16_t port; /* DENIAL_NET */
	uint64_t count;
	uint64_t last_ns;            /* the last attempt, by the monotonic clock */
	char what[DENIAL_WHAT_SIZE]; /* a host, or the name of a call */
	char detail[DENIAL_WHAT_SIZE];
	char process[DENIAL_PROCESS_SIZE]; /* its name; empty: not known */
	bool is_inferred;                  /* read from the command's memory, which the command could have forged */
	struct denial_path *path;          /* DENIAL_FILE */
};

LIST_TYPE(struct denial, denial_list);

struct denied_seen {
	struct denial_list list;
	uint64_t more;       /* attempts at other things */
	uint64_t more_calls; /* the same, of system calls */
	uint64_t more_paths; /* the same, of paths */
};

#endif
