/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/explain/plan_explain_host.c - may a command reach this host and port?
 *
 * The same functions decide as in the gate. A cure names one host and one port, never more. What gives away the machine's own
 * credentials has none.
 */
#include <arpa/inet.h>
#include <string.h>

#include "plan/explain/plan_explain.h"
#include "policy/net_address.h"

#define NAME_SERVER_PORT 53

/* --- endpoints ---------------------------------------------------------------------------------------------- */

static bool read_port(const char *digits, uint16_t *out)
{
	char *rest;
	unsigned long port;

	if (*digits < '0' || *digits > '9')
		return false;
	port = strtoul(digits, &rest, 10);
	if (*rest || !port || port > UINT16_MAX)
		return false;
	*out = (uint16_t)port;
	return true;
}

bool plan_read_endpoint(const char *text, struct plan_endpoint *out)
{
	const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
	char host[NET_NAME_SIZE];
	size_t len;

	*out = (struct plan_endpoint){0};
	/* Several colons without brackets: an IPv6 address without a port. */
	if (colon && (bracket ? colon < bracket : strchr(text, ':') != colon))
		colon = NULL;
	len = colon ? (size_t)(colon - text) : strlen(text);
	if (colon && !read_port(colon + 1, &out->port))
		return false;
	if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (!len || len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	out->is_ipv6 = inet_pton(AF_INET6, host, out->address) == 1;
	out->is_address = out->is_ipv6 || inet_pton(AF_INET, host, out->address) == 1;
	return out->is_address || net_name_clean(host, len, out->name);
}

static void format_host(const struct plan_endpoint *endpoint, struct text *out)
{
	char address[INET6_ADDRSTRLEN];

	if (!endpoint->is_address) {
		text_append_string(out, endpoint->name);
		return;
	}
	inet_ntop(endpoint->is_ipv6 ? AF_INET6 : AF_INET, endpoint->address, address, sizeof(address));
	text_append_format(out, endpoint->is_ipv6 && endpoint->port ? "[%s]" : "%s", address);
}

void plan_format_endpoint(const struct plan_endpoint *endpoint, struct text *out)
{
	format_host(endpoint, out);
	if (endpoint->port)
		text_append_format(out, ":%u", endpoint->port);
}

/* --- cures -------------------------------------------------------------------------------------------------- */

/* @rule is a text, or a JSON object. */
static void cure_by_rule(struct plan_explanation *out, const char *rule, bool is_object, bool needs_gate)
{
	struct json_writer writer = {.text = &out->policy};

	/* The option implies a gate; a file may say otherwise. */
	text_append_format(&out->flag, is_object ? "--allow-net '%s'" : "--allow-net %s", rule);
	json_open_object(&writer, NULL);
	if (needs_gate)
		json_write_string(&writer, "net", "gate");
	json_open_array(&writer, "allow_net");
	if (is_object)
		json_write_raw(&writer, NULL, rule, strlen(rule));
	else
		json_write_string(&writer, NULL, rule);
	json_close_array(&writer);
	json_close_object(&writer);
}

static void warn_of_machine(struct plan_explanation *out)
{
	text_append_string(&out->warning,
			   "addresses of this kind belong to the machine and its neighbours: at 169.254.169.254 clouds "
			   "give out credentials; Belljar proposes no change");
}

static void cure(const struct plan_network_rules *network, const struct plan_endpoint *endpoint,
		 struct plan_explanation *out)
{
	struct plan_endpoint wanted = *endpoint;
	AUTO_TEXT rule = {0};

	if (!network->may_have_gate) {
		text_append_string(&out->warning, "this host's rung has no gate; `belljar doctor` says what it lacks");
		return;
	}
	if (endpoint->is_address &&
	    policy_address_place(endpoint->is_ipv6, endpoint->address).kind == ADDRESS_SPECIAL) {
		warn_of_machine(out);
		return;
	}
	if (!endpoint->is_address && !strcmp(endpoint->name, NET_HOST_NAME))
		text_append_format(&rule, "host:%u", endpoint->port ? endpoint->port : 443);
	else if (endpoint->is_address && !endpoint->port) {
		wanted.port = 443;
		plan_format_endpoint(&wanted, &rule);
	} else
		plan_format_endpoint(&wanted, &rule);
	cure_by_rule(out, text_string(&rule), false, network->net == NET_NONE);
}

/* A rule for this method and this path alone. */
static void cure_request(const struct plan_endpoint *endpoint, struct plan_explanation *out)
{
	AUTO_TEXT rule = {0}, ports = {0};
	struct json_writer writer = {.text = &rule};

	text_append_format(&ports, "%u", endpoint->port);
	json_open_object(&writer, NULL);
	json_write_string(&writer, "host", endpoint->name);
	json_write_string(&writer, "ports", text_string(&ports));
	json_open_array(&writer, "methods");
	json_write_string(&writer, NULL, endpoint->method);
	json_close_array(&writer);
	json_open_array(&writer, "paths");
	json_write_bytes(&writer, NULL, endpoint->path, strcspn(endpoint->path, "?#"));
	json_close_array(&writer);
	json_write_string(&writer, "tls", "inspect");
	json_close_object(&writer);
	cure_by_rule(out, text_string(&rule), true, false);
}

/* --- the answer --------------------------------------------------------------------------------------------- */

struct plan_network_rules plan_network_rules(const struct plan *plan)
{
	const struct plan *jar = plan->jar ? plan->jar : plan;

	return (struct plan_network_rules){jar->net, jar->rung == RUNG_NAMESPACE, &jar->gate.rules, false};
}

static struct net_verdict decide(const struct net_rule_list *rules, const struct plan_endpoint *endpoint)
{
	if (endpoint->is_address)
		return net_decide_address(rules, endpoint->is_ipv6, endpoint->address, endpoint->port);
	if (endpoint->method)
		return net_decide_request(rules, endpoint->name, endpoint->port, endpoint->method, endpoint->path);
	return net_decide_name(rules, endpoint->name, endpoint->port);
}

/* As the gate has it. */
static bool may_be_asked_about(const struct plan_endpoint *endpoint)
{
	if (!endpoint->is_address)
		return strcmp(endpoint->name, NET_HOST_NAME) != 0;
	return policy_address_place(endpoint->is_ipv6, endpoint->address).kind != ADDRESS_SPECIAL;
}

static void explain_by_rules(const struct plan_network_rules *network, const struct plan_endpoint *endpoint,
			     struct plan_explanation *out)
{
	struct net_verdict verdict = decide(network->rules, endpoint);
	struct address_permit permit = {0};
	AUTO_TEXT rule = {0};

	if (verdict.rule)
		permit = (struct address_permit){verdict.rule->kind, verdict.rule->may_be_private};
	if (verdict.rule)
		net_rule_format(verdict.rule, &rule);
	if (!verdict.rule) {
		text_append_format(&out->why, "no rule of allow_net matches it%s",
				   network->is_asked && may_be_asked_about(endpoint) ? ": it is asked about" : "");
		cure(network, endpoint, out);
	} else if (!verdict.is_allowed && !verdict.rule->is_deny) {
		text_append_format(&out->why, "by the rule %s", text_string(&rule));
		cure_request(endpoint, out);
	} else if (!verdict.is_allowed) {
		text_append_format(&out->why, "by the rule %s%s%s", text_string(&rule),
				   verdict.rule->reason[0] ? ": " : "", verdict.rule->reason);
		text_append_string(&out->warning,
				   "a rule denies it, and deny rules win over all others: Belljar proposes no change");
	} else if (endpoint->is_address &&
		   !policy_address_may_be_dialled(verdict, permit, endpoint->is_ipv6, endpoint->address, false)) {
		text_append_format(&out->why, "the rule %s is too wide for an address of this kind",
				   text_string(&rule));
		cure(network, endpoint, out);
	} else {
		out->is_allowed = true;
		text_append_format(&out->why, "by the rule %s", text_string(&rule));
	}
}

/* The jar's own loopback needs no rule. */
static bool is_own_loopback(const struct plan_endpoint *endpoint)
{
	static const uint8_t ipv6_loopback[16] = {[15] = 1};

	if (!endpoint->is_address)
		return !strcmp(endpoint->name, "localhost");
	return endpoint->is_ipv6 ? !memcmp(endpoint->address, ipv6_loopback, 16) : endpoint->address[0] == 127;
}

void plan_explain_host(const struct plan_network_rules *network, const struct plan_endpoint *endpoint,
		       struct plan_explanation *out)
{
	if (network->net == NET_HOST) {
		out->is_allowed = true;
		text_append_string(&out->why, "net is 'host'");
	} else if (is_own_loopback(endpoint) && network->may_have_gate) {
		out->is_allowed = true;
		text_append_string(&out->why, "it is the jar's own loopback, not the host's");
	} else if (network->net == NET_NONE) {
		text_append_string(&out->why, "net is 'none'");
		if (is_own_loopback(endpoint))
			text_append_string(&out->warning, "without a network namespace there is no private loopback");
		else if (endpoint->is_address && endpoint->port == NAME_SERVER_PORT && network->may_have_gate)
			/* The name is in what would have been sent. */
			text_append_string(
				&out->warning,
				"the jar has no network; run again with --net gate to see which host the command wanted, and the change that allows it");
		else
			cure(network, endpoint, out);
	} else {
		explain_by_rules(network, endpoint, out);
	}
}

void plan_explain_address(const struct plan_endpoint *endpoint, const struct plan_endpoint *address,
			  struct plan_explanation *out)
{
	struct json_writer writer;
	AUTO_TEXT rule = {0}, text = {0};

	format_host(address, &text);
	text_append_format(&out->why, "the name resolves to %s, and its rule does not allow addresses of this kind",
			   text_string(&text));
	if (policy_address_place(address->is_ipv6, address->address).kind == ADDRESS_SPECIAL) {
		warn_of_machine(out);
		return;
	}
	writer = (struct json_writer){.text = &rule};
	json_open_object(&writer, NULL);
	json_write_string(&writer, "host", endpoint->name);
	text_clear(&text);
	text_append_format(&text, "%u", endpoint->port);
	json_write_string(&writer, "ports", text_string(&text));
	json_write_bool(&writer, "private", true);
	json_close_object(&writer);
	cure_by_rule(out, text_string(&rule), true, false);
}

/* --- for all questions -------------------------------------------------------------------------------------- */

void plan_explanation_done(struct plan_explanation *explanation)
{
	if (!explanation)
		return;
	text_done(&explanation->why);
	text_done(&explanation->flag);
	text_done(&explanation->policy);
	text_done(&explanation->warning);
}

void plan_write_cure(const struct plan_explanation *explanation, struct json_writer *writer, const char *key)
{
	if (!explanation->flag.len) {
		json_write_null(writer, key);
		return;
	}
	json_open_object(writer, key);
	json_write_string(writer, "flag", text_string(&explanation->flag));
	json_write_raw(writer, "policy", text_string(&explanation->policy), explanation->policy.len);
	json_close_object(writer);
}

void plan_explain_request(const struct plan_endpoint *endpoint, const char *request, struct plan_explanation *out)
{
	const char *space = strchr(request, ' ');
	struct net_rule rule = {.kind = NET_RULE_NAME, .is_inspected = true, .port_count = 1};
	AUTO_TEXT text = {0};

	text_append_string(&out->why, "no rule about this host allows that method and path");
	rule.ports[0] = (struct net_ports){endpoint->port, endpoint->port};
	memcpy(rule.name, endpoint->name, sizeof(rule.name));
	if (!space || !endpoint->port || net_method_add(&rule, request, (size_t)(space - request)) < 0 ||
	    net_path_add(&rule, space + 1, strcspn(space + 1, "?")) < 0 || strchr(space, '\'') || strchr(space, '*'))
		return;
	net_rule_format(&rule, &text);
	cure_by_rule(out, text_string(&text), true, false);
}
