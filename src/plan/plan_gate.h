/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_gate.h - the plan of a gate: its rules, and the addresses that represent names
 *
 * 198.18.0.0/15 is reserved for tests, so the internet does not use it. Inside a jar, names get addresses from it.
 */
#ifndef BELLJAR_PLAN_PLAN_GATE_H
#define BELLJAR_PLAN_PLAN_GATE_H

#include "inside/jar_plan.h"
#include "policy/net_rules.h"
#include "policy/publish.h"

/* The jar's own address, 198.18.0.1: its resolver's, and the source of its packets. */
#define GATE_SELF_ADDRESS 0xc6120001U
#define GATE_NAMES_ADDRESS 0xc6120000U
#define GATE_NAMES_PREFIX 15
/* 198.18.1.0: the first name's. */
#define GATE_FIRST_NAME 0xc6120100U
#define GATE_LISTENER_PORT 1
/* The port at which the gate makes more sockets of the jar's network, to connect to published ports. */
#define GATE_NURSERY_PORT 2
/*
 * The most connections that wait for the gate to accept them, in the jar and on the host. Beyond it the kernel drops
 * some that the client believes to be open, and the client waits for ever. Not SOMAXCONN, which is only 128 in musl.
 */
#define GATE_BACKLOG 4096

struct plan_gate {
	bool is_wanted; /* there are reachable hosts, published ports, or both */
	bool leads_out; /* net is gate */
	struct net_rule_list rules;
	struct publish published[PUBLISH_MAX];
	size_t published_count;
	struct jar_socket *sockets;
	size_t socket_count;
	struct text routes, ipv6_routes, table; /* messages for the kernel */
	/* A kept jar's rules may change while it lives. Then the kernel redirects names to the gate on every port, and
	   the last of the sockets is for the engine alone, to redirect more addresses. */
	bool may_change;
	/* If the gate inspects requests: the jar's list of authorities, and the gate's arguments. Borrowed. */
	const char *trust_path;     /* NULL: it does not */
	struct string_list secrets; /* names of variables that have a placeholder */
	bool has_vault;
	int vault_fd, program_fd;
	/* The gate asks about connections that no rule decides, so the kernel redirects all TCP to it. */
	bool may_ask;
	uint64_t ask_timeout_ns;
};

/* Write a sample message like plan_gate_lead(), to test whether a host can redirect. */
uint64_t plan_gate_sample(struct text *out);
/* Does the jar's network, as planned, redirect everything that @rule is about to the gate? */
bool plan_gate_leads(const struct plan_gate *gate, const struct net_rule *rule);
/* Write a message that redirects the addresses of @rule. Returns the number of acknowledgements; 0: out of memory. */
uint64_t plan_gate_lead(const struct net_rule *rule, struct text *out);
/* Count the combinations of addresses and ports that the rules need; at most GATE_LED_MAX can be redirected. */
size_t plan_gate_led_count(const struct net_rule_list *rules);
#define GATE_LED_MAX 200

void plan_gate_done(struct plan_gate *gate);

#endif
