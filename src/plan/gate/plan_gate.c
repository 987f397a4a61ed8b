/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/gate/plan_gate.c - a network in which every address is the jar's own, and sockets of it that the gate holds
 *
 * Two routes make every address local to the jar's loopback. What the policy could allow is led to one listener by nf_tables
 * (TPROXY, so that the listener's connections keep the address that was asked for); all else meets no listener, and the kernel
 * refuses it at once. Where the host has no nf_tables, there is a listener for each port instead. Names get addresses out
 * of a range of their own, one for each name that is asked for (gate/).
 *
 * The messages to the kernel are made here, as bytes: the jar sends them and knows nothing of what they say.
 */
#include "plan/plan_gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "plan/gate/plan_gate_parts.h"
#include "policy/net_secrets.h"

#define LOOPBACK_INDEX 1

/* --- routes ------------------------------------------------------------------------------------------------- */

static void put_route(struct netlink_messages *messages, unsigned char family, uint32_t source)
{
	const struct rtmsg route = {
		.rtm_family = family,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = family == AF_INET ? RT_SCOPE_HOST : 0,
		.rtm_type = RTN_LOCAL,
	};
	const uint32_t loopback = LOOPBACK_INDEX;

	plan_netlink_begin(messages, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &route, sizeof(route));
	plan_netlink_put(messages, RTA_OIF, &loopback, sizeof(loopback));
	if (source)
		plan_netlink_put(messages, RTA_PREFSRC, &source, sizeof(source));
	plan_netlink_end(messages);
}

/* An address that is not 127.0.0.1: programs that look for a network want one. It is where all connections come from. */
static void put_address(struct netlink_messages *messages, uint32_t address)
{
	const struct ifaddrmsg head = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = LOOPBACK_INDEX};

	plan_netlink_begin(messages, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head));
	plan_netlink_put(messages, IFA_LOCAL, &address, sizeof(address));
	plan_netlink_put(messages, IFA_ADDRESS, &address, sizeof(address));
	plan_netlink_end(messages);
}

void plan_add_netlink(struct plan_build *build, const struct netlink_messages *messages, int protocol,
		      const char *words, unsigned flags)
{
	struct plan_step *step = plan_add(build, &build->plan->core.steps, STEP_NETLINK);

	build->has_failed |= text_failed(messages->bytes);
	step->source = words;
	step->flags = flags;
	step->as.netlink.protocol = protocol;
	step->as.netlink.acknowledged = messages->acknowledged;
	step->as.netlink.messages = messages->bytes->data;
	step->as.netlink.len = messages->bytes->len;
}

static void add_routes(struct plan_build *build)
{
	struct netlink_messages ipv4 = {.bytes = &build->plan->gate.routes},
				ipv6 = {.bytes = &build->plan->gate.ipv6_routes};

	put_address(&ipv4, htonl(GATE_SELF_ADDRESS));
	put_route(&ipv4, AF_INET, htonl(GATE_SELF_ADDRESS));
	put_route(&ipv6, AF_INET6, 0);
	plan_add_netlink(build, &ipv4, NETLINK_ROUTE, "make every IPv4 address the jar's own", 0);
	/* Without IPv6 there is no way out by it either. */
	plan_add_netlink(build, &ipv6, NETLINK_ROUTE, "make every IPv6 address the jar's own", STEP_IF_POSSIBLE);
}

/* --- the whole ---------------------------------------------------------------------------------------------- */

static int read_rules(struct plan_build *build)
{
	const struct string_list *texts = &build->policy->allow_net;
	struct net_refusal refusal;

	for (size_t i = 0; i < texts->count; i++) {
		struct net_rule *rule = list_add(&build->plan->gate.rules);

		if (!rule)
			build->has_failed = true;
		else if (net_rule_parse(texts->items[i], rule, &refusal) < 0)
			return error_set(build->error, STAGE_POLICY, 0, "allow_net '%s': %s", texts->items[i],
					 refusal.why);
	}
	return 0;
}

/* A secret is of use where its host can be reached, and nowhere else. */
static int check_secrets(struct plan_build *build)
{
	const struct policy *policy = build->policy;
	struct net_rule_list rules = {0};
	AUTO_FREE struct net_rule *items = NULL;
	struct net_refusal refusal;
	struct net_secret secret;

	for (size_t i = 0; i < policy->allow_net.count; i++) {
		struct net_rule *rule = list_add(&rules);

		items = rules.items;
		if (!rule || net_rule_parse(policy->allow_net.items[i], rule, &refusal) < 0)
			return error_set(build->error, STAGE_PLAN, ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < policy->secrets.count; i++) {
		if (net_secret_parse(policy->secrets.items[i], &secret, &refusal) < 0)
			return error_set(build->error, STAGE_POLICY, 0, "secrets: %s", refusal.why);
		if (!net_decide_name(&rules, secret.host, 0).is_allowed) {
			error_set(build->error, STAGE_POLICY, 0,
				  "the secret %s is for the host %s, which no rule allows", secret.name, secret.host);
			return error_hint(build->error, "add --allow-net %s", secret.host);
		}
		if (string_list_add(&build->plan->gate.secrets, secret.name) < 0)
			build->has_failed = true;
	}
	return 0;
}

/* A look into requests needs a program of its own, and authorities to check hosts by. */
static int check_inspection(struct plan_build *build)
{
	const struct host_trust *trust = &build->host->trust;

	if (!trust->program) {
		error_set(
			build->error, STAGE_HOST, ENOENT,
			"secrets, and rules with methods, paths or \"inspect\", need the program belljar-gate, which is not installed");
		return error_hint(
			build->error,
			"the packages for Python and Node include it. In Belljar's source, `./dev build library && meson install -C build/lib` "
			"installs it in /usr/local/bin; Belljar also finds it beside belljar, or by the variable BELLJAR_GATE. Or allow whole hosts");
	}
	if (!trust->source || !trust->paths.count) {
		error_set(build->error, STAGE_HOST, ENOENT,
			  "this host has no list of certificate authorities to verify inspected hosts with");
		return error_hint(build->error, "install the package ca-certificates");
	}
	build->plan->gate.trust_path = plan_string(build, trust->paths.items[0]);
	return check_secrets(build);
}

static int read_published(struct plan_build *build)
{
	const struct string_list *texts = &build->policy->publish;
	struct plan_gate *gate = &build->plan->gate;

	for (size_t i = 0; i < texts->count && gate->published_count < PUBLISH_MAX; i++) {
		const char *why = policy_publish_parse(texts->items[i], &gate->published[gate->published_count++]);

		if (why)
			return error_set(build->error, STAGE_POLICY, 0, "publish '%s': %s", texts->items[i], why);
	}
	return 0;
}

static int check_published(struct plan_build *build)
{
	if (build->policy->net == NET_HOST) {
		error_set(build->error, STAGE_POLICY, 0,
			  "publish: with net 'host' a server in the jar listens on the host itself");
		return error_hint(build->error, "leave publish out, or set net to 'none' or 'gate'");
	}
	if (plan_is_for_calls(build->plan)) {
		error_set(build->error, STAGE_POLICY, 0, "publish: each call has a network of its own");
		return error_hint(build->error, "run the server as a command");
	}
	return build->plan->rung == RUNG_NAMESPACE ? 0 : plan_needs_namespace(build, "publish");
}

int plan_check_network(struct plan_build *build)
{
	const struct policy *policy = build->policy;

	if (policy->publish.count) {
		int rc = check_published(build);

		if (rc < 0)
			return rc;
	}
	if (policy->net == NET_HOST && policy->allow_net.count) {
		error_set(build->error, STAGE_POLICY, 0,
			  "allow_net names hosts, and net 'host' gives the command all of the host's network");
		return error_hint(build->error, "set net to 'gate', or leave allow_net out");
	}
	if (policy->net == NET_HOST && policy->ask == ASK_NET) {
		error_set(build->error, STAGE_POLICY, 0,
			  "ask 'net': net 'host' gives the command all of the host's network");
		return error_hint(build->error, "set net to 'gate', or leave ask out");
	}
	if (policy->net == NET_NONE && policy->ask == ASK_NET)
		plan_note(build, "network", "net is 'none': Belljar has nothing to ask about", "set net to 'gate'");
	if (policy->net == NET_NONE && policy->allow_net.count)
		plan_note(build, "network", "net is 'none': no host of allow_net can be reached", "set net to 'gate'");
	if (policy->net == NET_GATE && build->plan->rung != RUNG_NAMESPACE)
		return plan_needs_namespace(build, "net 'gate'");
	if (policy->net != NET_GATE && policy->secrets.count) {
		error_set(build->error, STAGE_POLICY, 0, "secrets need a gate, and net is '%s'",
			  policy->net == NET_HOST ? "host" : "none");
		return error_hint(build->error, "allow the secret's host with allow_net");
	}
	return policy->net == NET_GATE && policy_is_inspecting(policy) ? check_inspection(build) : 0;
}

int plan_gate(struct plan_build *build)
{
	struct plan_gate *gate = &build->plan->gate;
	int rc;

	gate->leads_out = build->policy->net == NET_GATE;
	gate->is_wanted = gate->leads_out || build->policy->publish.count;
	if (!gate->is_wanted)
		return 0;
	gate->may_change = gate->leads_out && build->plan->kind == PLAN_SESSION;
	gate->may_ask = gate->leads_out && build->policy->ask == ASK_NET;
	gate->ask_timeout_ns = build->policy->ask_timeout_ns;
	rc = read_published(build);
	if (rc == 0 && gate->leads_out)
		rc = read_rules(build);
	if (rc < 0)
		return rc;
	if (gate->leads_out) {
		add_routes(build);
		if (!build->host->lacks_nft)
			rc = plan_gate_table(build);
	}
	return rc < 0 ? rc : plan_gate_sockets(build);
}

void plan_gate_done(struct plan_gate *gate)
{
	free(gate->rules.items);
	free(gate->sockets);
	string_list_done(&gate->secrets);
	text_done(&gate->routes);
	text_done(&gate->ipv6_routes);
	text_done(&gate->table);
}
