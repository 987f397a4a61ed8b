/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_rules.c - rules about hosts: those of the policy, and those that came while the jar lives
 *
 * The policy's exceptions always win. Otherwise the latest rule about a host and port wins. If no later rule is about
 * them, the policy's rules decide.
 */
#include <errno.h>
#include <string.h>

#include "gate/gate_process.h"
#include "policy/net_address.h"

struct later_rule {
	struct net_rule rule;
	uint64_t order; /* the greatest is the last word */
	uint32_t run;   /* it holds as long as this run goes on; 0: as long as the jar lives */
};

static bool holds(const struct gate_process *gate, const struct later_rule *later)
{
	bool is_on = !later->run;

	for (size_t i = 0; i < GATE_RUNS_MAX && !is_on; i++)
		is_on = gate->page->runs[i] == later->run;
	return is_on;
}

static bool is_same(const struct net_rule *a, const struct net_rule *b)
{
	return a->kind == b->kind && a->is_ipv6 == b->is_ipv6 && a->prefix_len == b->prefix_len &&
	       !memcmp(a->address, b->address, sizeof(a->address)) && !strcmp(a->name, b->name) &&
	       a->port_count == b->port_count && !memcmp(a->ports, b->ports, a->port_count * sizeof(*a->ports));
}

static struct later_rule *find_place(struct gate_process *gate, const struct net_rule *rule, uint32_t run)
{
	if (!gate->later)
		gate->later = calloc(GATE_LATER_MAX, sizeof(*gate->later));
	if (!gate->later)
		return NULL;
	for (size_t i = 0; i < gate->later_count; i++)
		if (gate->later[i].run == run && is_same(&gate->later[i].rule, rule))
			return &gate->later[i];
	for (size_t i = 0; i < gate->later_count; i++)
		if (!holds(gate, &gate->later[i]))
			return &gate->later[i];
	return gate->later_count < GATE_LATER_MAX ? &gate->later[gate->later_count++] : NULL;
}

int gate_rules_add(struct gate_process *gate, const struct net_rule *rule, uint32_t run)
{
	struct later_rule *place = find_place(gate, rule, run);

	if (!place)
		return -ENOSPC;
	*place = (struct later_rule){.rule = *rule, .order = ++gate->later_order, .run = run};
	return 0;
}

/* The target to decide about: a name, or else an address. */
struct target {
	const char *name;
	bool is_ipv6;
	const uint8_t *address;
	uint16_t port;
};

static struct net_verdict ask_list(const struct net_rule_list *list, const struct target *target)
{
	return target->name ? net_decide_name(list, target->name, target->port)
			    : net_decide_address(list, target->is_ipv6, target->address, target->port);
}

/* Of two that allow, one that allows more counts: allowing something takes nothing away. */
static bool is_wider(const struct net_verdict *verdict, const struct net_verdict *said)
{
	return verdict->is_allowed && said->is_allowed &&
	       (net_rule_width(verdict->rule) > net_rule_width(said->rule) ||
		verdict->rule->prefix_len > said->rule->prefix_len);
}

static struct net_verdict decide(const struct gate_process *gate, const struct target *target)
{
	struct net_verdict verdict = ask_list(&gate->rules, target);
	uint64_t last = 0;

	if (verdict.rule && !verdict.is_allowed)
		return verdict;
	for (size_t i = 0; i < gate->later_count; i++) {
		const struct later_rule *later = &gate->later[i];
		const struct net_rule_list one = {.items = (struct net_rule *)&later->rule, .count = 1};
		struct net_verdict said;

		if (later->order <= last || !holds(gate, later))
			continue;
		said = ask_list(&one, target);
		if (!said.rule)
			continue;
		last = later->order;
		if (!is_wider(&verdict, &said))
			verdict = said;
	}
	return verdict;
}

struct net_verdict gate_rules_decide(const struct gate_process *gate, const struct net_rule *rule)
{
	return decide(gate, &(struct target){.name = rule->kind == NET_RULE_ADDRESS ? NULL : rule->name,
					     .is_ipv6 = rule->is_ipv6,
					     .address = rule->address,
					     .port = rule->ports[0].first});
}

struct net_verdict gate_rules_decide_name(const struct gate_process *gate, const char *name, uint16_t port)
{
	return decide(gate, &(struct target){.name = name, .port = port});
}

struct net_verdict gate_rules_decide_address(const struct gate_process *gate, bool is_ipv6, const uint8_t *address,
					     uint16_t port)
{
	struct net_verdict verdict =
		decide(gate, &(struct target){.is_ipv6 = is_ipv6, .address = address, .port = port});
	const uint8_t *inside = policy_address_inside(is_ipv6, address);
	struct net_verdict by_inside = {0};

	/* What denies an IPv4 address denies it in every dress: the kernel dials a mapped one as what it is. */
	if (inside)
		by_inside = decide(gate, &(struct target){.address = inside, .port = port});
	return by_inside.rule && !by_inside.is_allowed ? by_inside : verdict;
}

/* All rules that allow something of the host count together, unless something has denied it since. */
struct net_verdict gate_rules_decide_request(const struct gate_process *gate, const char *name, uint16_t port,
					     const char *method, const char *target)
{
	struct net_verdict verdict = gate_rules_decide_name(gate, name, port), by_policy;
	uint64_t denied = 0;

	if (!verdict.is_allowed || !net_rule_is_limited(verdict.rule))
		return verdict;
	for (size_t i = 0; i < gate->later_count; i++) {
		const struct net_rule_list one = {.items = &gate->later[i].rule, .count = 1};
		struct net_verdict said = net_decide_name(&one, name, port);

		if (said.rule && !said.is_allowed)
			denied = MAX_OF(denied, gate->later[i].order);
	}
	verdict.is_allowed = false;
	for (size_t i = 0; i < gate->later_count && !verdict.is_allowed; i++) {
		const struct net_rule_list one = {.items = &gate->later[i].rule, .count = 1};

		if (gate->later[i].order > denied)
			verdict.is_allowed = net_decide_request(&one, name, port, method, target).is_allowed;
	}
	by_policy = net_decide_request(&gate->rules, name, port, method, target);
	verdict.is_allowed |= !denied && by_policy.is_allowed;
	return verdict;
}
