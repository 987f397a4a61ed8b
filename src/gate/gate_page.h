/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_page.h - memory that a gate shares with its engine: the gate's settings and its counters
 *
 * The engine writes the first part before the gate starts, and sets limits later. The gate writes the counters; the
 * engine reads them at any time, without a lock. The gate reads hostile bytes, so the engine checks every value that
 * it reads here.
 */
#ifndef BELLJAR_GATE_GATE_PAGE_H
#define BELLJAR_GATE_GATE_PAGE_H

#include <stdatomic.h>
#include <sys/types.h>

#include "gate/gate_resolver.h"
#include "plan/explain/denial.h"
#include "policy/net_rules.h"
#include "policy/publish.h"

#define GATE_HOSTS_MAX 256
#define GATE_HOST_SIZE 256
/* Runs at once that can have rules of their own. */
#define GATE_RUNS_MAX 64
#define GATE_PAGE_MAGIC 0x67617465U
/* At most this much of the host's /etc/hosts is read. */
#define GATE_HOSTS_TEXT_SIZE (256 << 10)

/* Traffic with one host and port. */
struct gate_host {
	char host[GATE_HOST_SIZE];
	uint32_t port;
	_Atomic uint64_t connections, bytes_out, bytes_in;
};

/* Refused attempts at one host and port, for one reason. */
struct gate_denial {
	uint32_t kind, reason, port;
	_Atomic uint32_t is_told; /* the engine was notified since it cleared this */
	_Atomic uint64_t count, last_ns;
	char host[DENIAL_WHAT_SIZE], detail[DENIAL_WHAT_SIZE];
};

struct gate_page {
	/* by the engine, before the start */
	uint32_t magic;
	uint32_t socket_count;           /* descriptors from GATE_FIRST_SOCKET_FD on */
	uint32_t has_vault;              /* behind these: the vault, for an inspecting gate only */
	uint32_t published_count;        /* listeners of the host's, behind these ... */
	uint16_t published[PUBLISH_MAX]; /* ... each for this port of the jar */
	uint32_t rule_count;             /* behind this structure */
	int32_t landlock_abi;
	uint32_t may_ask;        /* ask about hosts that no rule decides about */
	uint64_t ask_timeout_ns; /* the longest wait for an answer */
	uint32_t id;             /* the host id to become; 0: keep the id */
	/* by the engine, at any time */
	_Atomic uint64_t connections_max;     /* at once */
	_Atomic uint64_t bytes_max;           /* both ways, since the gate began */
	_Atomic uint32_t can_ask;             /* a run answers questions, or will */
	_Atomic uint32_t runs[GATE_RUNS_MAX]; /* numbers of active runs; rules of other runs are void; 0: free */
	/* by the engine, before the start, and between GATE_STALE and GATE_FILES: the host's files about names */
	struct resolver_servers servers;
	char hosts_text[GATE_HOSTS_TEXT_SIZE];
	/* by the gate */
	_Atomic uint64_t bytes;
	_Atomic uint64_t connections_refused; /* because there were too many */
	_Atomic uint64_t connections_peak;
	_Atomic uint32_t is_out_of_bytes;
	_Atomic uint32_t host_count;
	struct gate_host hosts[GATE_HOSTS_MAX];
	_Atomic uint32_t denial_count;
	_Atomic uint64_t denials_more; /* those that had no room */
	struct gate_denial denials[DENIALS_MAX];
	struct net_rule rules[];
};

/* Descriptors that a gate's process has open when it starts. */
#define GATE_CONTROL_FD 3
#define GATE_PAGE_FD 4
#define GATE_FIRST_SOCKET_FD 5
/* The arguments of its program. */
#define GATE_ARGUMENT "gate-process"

#endif
