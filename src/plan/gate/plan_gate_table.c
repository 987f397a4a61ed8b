/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/gate/plan_gate_table.c - the addresses and ports that the kernel redirects to the gate, at first and later
 *
 * The kernel redirects only connections that the policy could allow, and refuses all others at once. Names have one
 * range of addresses, redirected on the ports of all names together; the gate decides which name has which port.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>

#include "plan/gate/plan_gate_parts.h"
#include "plan/gate/plan_nft.h"

static int refuse_many(struct plan_build *build)
{
	error_set(build->error, STAGE_PLAN, E2BIG, "allow_net: more than %d combinations of addresses and ports",
		  GATE_LED_MAX);
	return error_hint(build->error, "use larger prefixes, or ranges of ports");
}

int plan_gate_table(struct plan_build *build)
{
	static const uint8_t loopback[4] = {127}, ipv6_loopback[16] = {[15] = 1};
	const uint32_t self = htonl(GATE_SELF_ADDRESS), names = htonl(GATE_NAMES_ADDRESS);
	/* The jar's own. */
	const struct nft_target own[] = {
		{false, loopback, 8}, {false, (const uint8_t *)&self, 32}, {true, ipv6_loopback, 128}};
	const struct nft_target fake = {false, (const uint8_t *)&names, GATE_NAMES_PREFIX};
	const struct net_rule_list *rules = &build->plan->gate.rules;
	struct netlink_messages messages = {.bytes = &build->plan->gate.table};
	/* Whichever name server is asked, the gate answers. */
	static const struct net_ports but_dns[] = {{1, GATE_DNS_PORT - 1}, {GATE_DNS_PORT + 1, 65535}};
	static const uint8_t every[16];
	struct port_set set = {{0}};
	struct net_ports ports;
	size_t count = 0;

	plan_nft_begin_table(&messages);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		plan_nft_accept(&messages, &own[i]);
	for (size_t i = 0; i < rules->count; i++)
		if (rules->items[i].kind != NET_RULE_ADDRESS && !rules->items[i].is_deny)
			plan_port_set_add(&set, &rules->items[i]);
	if (build->plan->gate.may_change || build->plan->gate.may_ask)
		memset(&set, 0xff, sizeof(set));
	set.bits[0] &= 0xfe; /* there is no port 0 */
	for (uint32_t from = 0; plan_port_set_next(&set, from, &ports) && count <= GATE_LED_MAX;
	     from = ports.last + 1U, count++)
		plan_nft_lead(&messages, &fake, &ports);
	for (size_t i = 0; i < rules->count; i++) {
		const struct net_rule *rule = &rules->items[i];
		const struct nft_target target = {rule->is_ipv6, rule->address, rule->prefix_len};

		if (rule->kind != NET_RULE_ADDRESS || rule->is_deny)
			continue;
		for (size_t j = 0; j < rule->port_count && count <= GATE_LED_MAX; j++, count++)
			plan_nft_lead(&messages, &target, &rule->ports[j]);
	}
	if (count > GATE_LED_MAX)
		return refuse_many(build);
	if (build->plan->gate.may_ask) {
		for (size_t i = 0; i < ARRAY_LEN(but_dns) * 2; i++)
			plan_nft_lead(&messages, &(struct nft_target){i % 2, every, 0}, &but_dns[i / 2]);
	}
	plan_nft_end(&messages);
	plan_add_netlink(build, &messages, NETLINK_NETFILTER, "lead what the policy could allow to the gate", 0);
	return 0;
}

/* --- later -------------------------------------------------------------------------------------------------- */

static bool is_within(const struct net_rule *rule, const struct net_rule *wider)
{
	if (wider->kind != NET_RULE_ADDRESS || wider->is_deny || wider->is_ipv6 != rule->is_ipv6 ||
	    wider->prefix_len > rule->prefix_len)
		return false;
	for (size_t bit = 0; bit < wider->prefix_len; bit++)
		if ((rule->address[bit / 8] ^ wider->address[bit / 8]) & 0x80 >> bit % 8)
			return false;
	return true;
}

/* Without nf_tables: is there a listener? */
static bool has_listener(const struct plan_gate *gate, bool is_ipv6, uint32_t port)
{
	for (size_t i = 0; i < gate->socket_count; i++) {
		const struct jar_socket *made = &gate->sockets[i];

		/* The port stands in the same place for both families. */
		if (made->type == SOCK_STREAM && made->address.any.sa_family == (is_ipv6 ? AF_INET6 : AF_INET) &&
		    ntohs(made->address.ipv4.sin_port) == port)
			return true;
	}
	return false;
}

uint64_t plan_gate_sample(struct text *out)
{
	const uint32_t names = htonl(GATE_NAMES_ADDRESS);
	const struct nft_target fake = {false, (const uint8_t *)&names, GATE_NAMES_PREFIX};
	const struct net_ports port = {443, 443};
	struct netlink_messages messages = {.bytes = out};

	plan_nft_begin_table(&messages);
	plan_nft_lead(&messages, &fake, &port);
	plan_nft_end(&messages);
	return text_failed(out) ? 0 : messages.acknowledged;
}

bool plan_gate_leads(const struct plan_gate *gate, const struct net_rule *rule)
{
	struct port_set wanted = {{0}}, led = {{0}};

	plan_port_set_add(&wanted, rule);
	if (gate->table.len && (gate->may_ask || (rule->kind != NET_RULE_ADDRESS && gate->may_change)))
		return true;
	for (size_t i = 0; i < gate->rules.count && gate->table.len; i++)
		if (rule->kind == NET_RULE_ADDRESS
			    ? is_within(rule, &gate->rules.items[i])
			    : gate->rules.items[i].kind != NET_RULE_ADDRESS && !gate->rules.items[i].is_deny)
			plan_port_set_add(&led, &gate->rules.items[i]);
	for (uint32_t port = 1; port < 65536; port++)
		if (plan_port_set_has(&wanted, port) &&
		    !(gate->table.len ? plan_port_set_has(&led, port) : has_listener(gate, rule->is_ipv6, port)))
			return false;
	return true;
}

size_t plan_gate_led_count(const struct net_rule_list *rules)
{
	size_t count = 1;

	for (size_t i = 0; i < rules->count; i++)
		if (rules->items[i].kind == NET_RULE_ADDRESS && !rules->items[i].is_deny)
			count += rules->items[i].port_count;
	return count;
}

uint64_t plan_gate_lead(const struct net_rule *rule, struct text *out)
{
	const struct nft_target target = {rule->is_ipv6, rule->address, rule->prefix_len};
	struct netlink_messages messages = {.bytes = out};

	plan_nft_begin(&messages);
	for (size_t i = 0; i < rule->port_count; i++)
		plan_nft_lead(&messages, &target, &rule->ports[i]);
	plan_nft_end(&messages);
	return text_failed(out) ? 0 : messages.acknowledged;
}
