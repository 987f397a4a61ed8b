/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/gate/engine_gate_changes.c - rules that come while the jar lives, from the engine's side
 *
 * The engine reports that a rule holds when the gate has confirmed it. If the gate does not answer in time, the
 * engine reports that the rule may hold or not.
 */
#include <errno.h>

#include "engine/gate/engine_gate_parts.h"
#include "base/sys/calls.h"

#define CONFIRM_NS 5000000000ULL

struct gate_change {
	struct gate *gate;
	struct gate_change *next;
	uint32_t number;
	struct loop_timer timer;
	void (*function)(void *owner, int rc);
	void *owner;
};

void engine_gate_forget_change(struct gate_change *change)
{
	for (struct gate_change **at = &change->gate->changes; *at; at = &(*at)->next) {
		if (*at == change) {
			*at = change->next;
			break;
		}
	}
	loop_disarm(&change->timer);
	free(change);
}

static void finish(struct gate_change *change, int rc)
{
	void (*function)(void *owner, int rc) = change->function;
	void *owner = change->owner;

	engine_gate_forget_change(change);
	function(owner, rc);
}

static void on_timer(struct loop_timer *timer)
{
	finish(timer->owner, -ETIMEDOUT);
}

/* --- addresses that the kernel redirects to the gate -------------------------------------------------------- */

static bool is_led(const struct gate *gate, const struct net_rule *rule)
{
	struct plan_gate network = gate->plan->gate;

	if (plan_gate_leads(&network, rule))
		return true;
	network.rules = gate->led;
	return network.table.len && rule->kind == NET_RULE_ADDRESS && plan_gate_leads(&network, rule);
}

static int lead(struct gate *gate, const struct net_rule *rule)
{
	AUTO_TEXT message = {0};
	struct net_rule *led;
	uint64_t awaited;
	int rc;

	if (gate->rules_fd < 0 || rule->kind != NET_RULE_ADDRESS)
		return -EOPNOTSUPP;
	if (plan_gate_led_count(&gate->plan->gate.rules) + plan_gate_led_count(&gate->led) + rule->port_count >
	    GATE_LED_MAX)
		return -ENOSPC;
	awaited = plan_gate_lead(rule, &message);
	led = awaited ? list_add(&gate->led) : NULL;
	if (!led)
		return -ENOMEM;
	*led = *rule;
	rc = sys_netlink(gate->rules_fd, message.data, message.len, awaited);
	if (rc < 0)
		gate->led.count--;
	return rc;
}

int engine_gate_change(struct gate *gate, const struct net_rule *rule, void (*function)(void *owner, int rc),
		       void *owner, struct gate_change **out)
{
	struct gate_change *change;
	int rc;

	if (rule->is_inspected && !gate->plan->gate.has_vault)
		return -EPROTONOSUPPORT;
	if (!rule->is_deny && !is_led(gate, rule)) {
		rc = lead(gate, rule);
		if (rc < 0)
			return rc;
	}
	change = calloc(1, sizeof(*change));
	if (!change)
		return -ENOMEM;
	*change =
		(struct gate_change){.gate = gate, .number = ++gate->last_change, .function = function, .owner = owner};
	rc = engine_gate_send(gate, &(struct gate_message){.kind = GATE_RULE, .number = change->number, .rule = *rule});
	if (rc < 0) {
		free(change);
		return rc;
	}
	loop_arm(gate->loop, &change->timer, sys_monotonic_ns() + CONFIRM_NS, on_timer, change);
	change->next = gate->changes;
	gate->changes = change;
	*out = change;
	return 0;
}

void engine_gate_changes_done(struct gate *gate, uint32_t number, int rc)
{
	for (struct gate_change *change = gate->changes; change; change = change->next) {
		if (change->number == number) {
			finish(change, rc);
			return;
		}
	}
}

void engine_gate_changes_fail(struct gate *gate, int rc)
{
	while (gate->changes)
		finish(gate->changes, rc);
}
