/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/gate/plan_gate_ports.c - sets of ports
 */
#include "plan/gate/plan_gate_parts.h"

void plan_port_set_add(struct port_set *set, const struct net_rule *rule)
{
	for (size_t i = 0; i < rule->port_count; i++)
		for (uint32_t port = rule->ports[i].first; port <= rule->ports[i].last; port++)
			set->bits[port / 8] |= (uint8_t)(1U << port % 8);
}

bool plan_port_set_has(const struct port_set *set, uint32_t port)
{
	return port < 65536 && set->bits[port / 8] >> port % 8 & 1;
}

bool plan_port_set_next(const struct port_set *set, uint32_t from, struct net_ports *out)
{
	while (from < 65536 && !plan_port_set_has(set, from))
		from++;
	if (from == 65536)
		return false;
	out->first = out->last = (uint16_t)from;
	while (plan_port_set_has(set, out->last + 1U))
		out->last++;
	return true;
}

size_t plan_port_set_count(const struct port_set *set)
{
	size_t count = 0;

	for (uint32_t port = 1; port < 65536; port++)
		count += plan_port_set_has(set, port);
	return count;
}
