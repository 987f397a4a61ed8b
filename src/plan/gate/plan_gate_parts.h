/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/gate/plan_gate_parts.h - shared by the files that plan a gate's network
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
/* Find the first range from @from on. Returns false if there is none. */
bool plan_port_set_next(const struct port_set *set, uint32_t from, struct net_ports *out);
size_t plan_port_set_count(const struct port_set *set);

/* plan_gate.c: add a step that sends these; @words describe its purpose. */
void plan_add_netlink(struct plan_build *build, const struct netlink_messages *messages, int protocol,
		      const char *words, unsigned flags);
/* plan_gate_table.c: redirect every connection that the policy could allow to the gate. 0 or a negative errno. */
int plan_gate_table(struct plan_build *build);
/* plan_gate_sockets.c: plan the sockets of the jar's network for the gate. 0 or a negative errno. */
int plan_gate_sockets(struct plan_build *build);

#endif
