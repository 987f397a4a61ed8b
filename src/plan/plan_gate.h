/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_gate.h - what a gate needs to know: its rules, and the addresses that stand for names
 *
 * 198.18.0.0/15 is for tests of networks and in use nowhere on the internet. Inside a jar, names get addresses out of it.
 */
#ifndef BELLJAR_PLAN_PLAN_GATE_H
#define BELLJAR_PLAN_PLAN_GATE_H

#include "inside/jar_plan.h"
#include "policy/net_rules.h"
#include "policy/publish.h"

/* The jar's own address, 198.18.0.1: of its resolver, and the source of what it sends. */
#define GATE_SELF_ADDRESS 0xc6120001U
#define GATE_NAMES_ADDRESS 0xc6120000U
#define GATE_NAMES_PREFIX 15
/* 198.18.1.0: the first name's. */
#define GATE_FIRST_NAME 0xc6120100U
#define GATE_LISTENER_PORT 1
/* Where the gate makes further sockets of the jar's network, to connect to what the jar publishes. */
#define GATE_NURSERY_PORT 2
/*
 * Connections that may wait until the gate accepts them, in the jar and on the host. Where more come, the kernel forgets some whose
 * client thinks that they stand, and waits for ever. Not SOMAXCONN: that is the C library's number, 128 in musl's.
 */
#define GATE_BACKLOG 4096

struct plan_gate {
	bool is_wanted; /* for what follows: hosts that can be reached, ports that are published, or both */
	bool leads_out; /* net is gate */
	struct net_rule_list rules;
	struct publish published[PUBLISH_MAX];
	size_t published_count;
	struct jar_socket *sockets;
	size_t socket_count;
	struct text routes, ipv6_routes, table; /* messages for the kernel */
	/* A kept jar's rules may change while it lives: then names are led to the gate on every port, and the last of the
	   sockets, for the engine alone, is one by which the engine can lead more addresses there. */
	bool may_change;
	/* Where requests are looked into: the jar's list of authorities, and what its gate is started with. Borrowed. */
	const char *trust_path;     /* NULL: they are not */
	struct string_list secrets; /* names of variables that have a placeholder */
	bool has_vault;
	int vault_fd, program_fd;
	/* What no rule decides is asked: all TCP is led to the gate. */
	bool may_ask;
	uint64_t ask_timeout_ns;
};

/* A message for the kernel that leads something to a gate, to try whether a host can; as plan_gate_lead(). */
uint64_t plan_gate_sample(struct text *out);
/* Does the jar's network, as it was planned, lead everything that @rule is about to the gate? */
bool plan_gate_leads(const struct plan_gate *gate, const struct net_rule *rule);
/* A message for the kernel that leads the addresses of @rule there too. How many acknowledgements follow; 0: no memory. */
uint64_t plan_gate_lead(const struct net_rule *rule, struct text *out);
/* So many combinations of addresses and ports can be led in all. */
size_t plan_gate_led_count(const struct net_rule_list *rules);
#define GATE_LED_MAX 200

void plan_gate_done(struct plan_gate *gate);

#endif
