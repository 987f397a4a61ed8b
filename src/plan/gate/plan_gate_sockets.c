/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/gate/plan_gate_sockets.c - the sockets of the jar's network that its gate holds
 *
 * For names, for connections, for what is refused, and for what the jar publishes. Where the host has no nf_tables,
 * nothing can be led to one listener: each port has one of its own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>

#include "plan/gate/plan_gate_parts.h"

/* Without nf_tables each port has a listener, and one for IPv6. */
#define LISTENERS_MAX 24
#define IPV6_TRANSPARENT_OPTION 75

static void add_option(struct jar_socket *made, int level, int name)
{
	size_t i = 0;

	while (made->options[i].name)
		i++;
	made->options[i].level = level;
	made->options[i].name = name;
}

static struct jar_socket *add_socket(struct plan_build *build, int type, bool is_ipv6, uint16_t port)
{
	static struct jar_socket spare;
	struct plan_gate *gate = &build->plan->gate;
	struct jar_socket *made = gate->socket_count < JAR_SOCKETS_MAX ? &gate->sockets[gate->socket_count++] : &spare;

	*made = (struct jar_socket){
		.type = type, .may_be_absent = is_ipv6, .backlog = type == SOCK_STREAM ? GATE_BACKLOG : 0};
	if (is_ipv6) {
		made->address.ipv6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
		add_option(made, IPPROTO_IPV6, IPV6_V6ONLY);
	} else {
		made->address.ipv4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	}
	return made;
}

/* They answer whatever server is asked, and say so in its name. */
static void add_dns_sockets(struct plan_build *build)
{
	struct jar_socket *made;

	for (int is_ipv6 = 0; is_ipv6 <= 1; is_ipv6++) {
		made = add_socket(build, SOCK_DGRAM, is_ipv6, GATE_DNS_PORT);
		add_option(made, is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, is_ipv6 ? IPV6_RECVPKTINFO : IP_PKTINFO);
		/* Else it may not answer from an address that no interface has. */
		if (is_ipv6)
			add_option(made, IPPROTO_IPV6, IPV6_TRANSPARENT_OPTION);
		add_socket(build, SOCK_STREAM, is_ipv6, GATE_DNS_PORT);
	}
}

static struct jar_socket *add_loopback_socket(struct plan_build *build, bool is_ipv6, uint16_t port)
{
	struct jar_socket *made = add_socket(build, SOCK_STREAM, is_ipv6, port);

	if (is_ipv6)
		made->address.ipv6.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
	else
		made->address.ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return made;
}

/* On a port that no program of the jar can ask for: it is below 1024. */
static void add_listener(struct plan_build *build, bool is_ipv6)
{
	struct jar_socket *made = add_loopback_socket(build, is_ipv6, GATE_LISTENER_PORT);

	add_option(made, is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, is_ipv6 ? IPV6_TRANSPARENT_OPTION : IP_TRANSPARENT);
}

/* By which the engine, which may do so as the jar's maker, leads more addresses to the gate. */
static void add_rules_socket(struct plan_build *build)
{
	struct jar_socket *made = add_socket(build, SOCK_RAW, false, 0);

	made->protocol = NETLINK_NETFILTER;
	made->address.any.sa_family = AF_NETLINK;
}

/* Sockets that only watch: the kernel refuses packets without a listener, and the ledger reports them. */
static void add_watching_sockets(struct plan_build *build)
{
	struct jar_socket *made;

	add_socket(build, SOCK_RAW, false, 0)->protocol = IPPROTO_TCP;
	add_socket(build, SOCK_RAW, false, 0)->protocol = IPPROTO_UDP;
	made = add_socket(build, SOCK_RAW, true, 0);
	made->protocol = IPPROTO_TCP;
	made->options[0].name = IPV6_RECVPKTINFO;
}

/* A listener, and a socket that connects to it: of such a pair the gate makes as many others as it needs. */
static void add_nursery(struct plan_build *build, bool is_ipv6)
{
	add_loopback_socket(build, is_ipv6, GATE_NURSERY_PORT);
	add_loopback_socket(build, is_ipv6, 0)->backlog = 0;
}

static bool leads_ipv6(const struct net_rule_list *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		if (rules->items[i].is_ipv6 && !rules->items[i].is_deny)
			return true;
	return false;
}

static int add_port_listeners(struct plan_build *build)
{
	const struct net_rule_list *rules = &build->plan->gate.rules;
	struct port_set set = {{0}};
	AUTO_TEXT names = {0};

	for (size_t i = 0; i < rules->count; i++)
		if (!rules->items[i].is_deny)
			plan_port_set_add(&set, &rules->items[i]);
	if (build->plan->gate.may_ask)
		plan_port_set_add(&set, &(struct net_rule){.ports = {{80, 80}, {443, 443}}, .port_count = 2});
	if (plan_port_set_count(&set) > LISTENERS_MAX) {
		error_set(build->error, STAGE_HOST, EOPNOTSUPP,
			  "allow_net: this host has no nf_tables, and without it a gate can have %d ports, not %zu",
			  LISTENERS_MAX, plan_port_set_count(&set));
		return error_hint(build->error,
				  "allow fewer ports, or load the kernel modules nf_tables and nft_tproxy");
	}
	for (uint32_t port = 1; port < 65536; port++) {
		if (!plan_port_set_has(&set, port))
			continue;
		text_append_format(&names, "%s%u", names.len ? ", " : "", port);
		if (port == GATE_DNS_PORT)
			continue;
		add_socket(build, SOCK_STREAM, false, (uint16_t)port);
		if (leads_ipv6(rules) || build->plan->gate.may_ask)
			add_socket(build, SOCK_STREAM, true, (uint16_t)port);
	}
	build->has_failed |= text_failed(&names);
	if (names.len)
		plan_note(
			build, "network",
			plan_format(
				build,
				"this host has no nf_tables: servers in the jar cannot use the ports %s, and an address "
				"that is not allowed is reset there, not refused",
				text_string(&names)),
			"load the kernel modules nf_tables and nft_tproxy");
	if (build->plan->gate.may_ask)
		plan_note(build, "network",
			  "this host has no nf_tables: only connections to those ports can be asked about",
			  "load the kernel modules nf_tables and nft_tproxy");
	return 0;
}

int plan_gate_sockets(struct plan_build *build)
{
	struct plan_gate *gate = &build->plan->gate;
	struct plan_step *step;
	int rc = 0;

	gate->sockets = calloc(JAR_SOCKETS_MAX, sizeof(*gate->sockets));
	if (!gate->sockets) {
		build->has_failed = true;
		return 0;
	}
	if (gate->leads_out)
		add_dns_sockets(build);
	if (gate->leads_out && build->host->lacks_nft) {
		rc = add_port_listeners(build);
	} else if (gate->leads_out) {
		add_listener(build, false);
		if (leads_ipv6(&gate->rules) || gate->may_change || gate->may_ask)
			add_listener(build, true);
	}
	if (gate->leads_out)
		add_watching_sockets(build);
	if (gate->may_change && !build->host->lacks_nft)
		add_rules_socket(build);
	for (int is_ipv6 = 0; is_ipv6 <= 1 && gate->published_count; is_ipv6++)
		add_nursery(build, is_ipv6);
	step = plan_add(build, &build->plan->core.steps, STEP_SOCKETS);
	step->as.sockets.items = gate->sockets;
	step->as.sockets.count = gate->socket_count;
	return rc;
}
