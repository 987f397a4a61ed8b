/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/gate/plan_gate_parts.h - what the files that plan a gate's network share
 */
#ifndef BELLJAR_PLAN_GATE_PLAN_GATE_PARTS_H
#define BELLJAR_PLAN_GATE_PLAN_GATE_PARTS_H

#include "plan/plan_build.h"
#include "plan/gate/plan_netlink.h"

#define GATE_DNS_PORT 53

/* plan_gate_ports.c */
/* The ports of all names together: they share one range of addresses. */
struct port_set {
	uint8_t bits[65536 / 8];
};

void plan_port_set_add(struct port_set *set, const struct net_rule *rule);
bool plan_port_set_has(const struct port_set *set, uint32_t port);
/* The first range from @from on; false: there is none. */
bool plan_port_set_next(const struct port_set *set, uint32_t from, struct net_ports *out);
size_t plan_port_set_count(const struct port_set *set);

/* plan_gate.c: a step that sends these; @words say what for. */
void plan_add_netlink(struct plan_build *build, const struct netlink_messages *messages, int protocol,
		      const char *words, unsigned flags);
/* plan_gate_table.c: what the policy could allow is led to the gate. 0 or a negative errno. */
int plan_gate_table(struct plan_build *build);
/* plan_gate_sockets.c: the sockets of the jar's network that the gate is given. 0 or a negative errno. */
int plan_gate_sockets(struct plan_build *build);

#endif
