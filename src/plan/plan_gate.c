/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_gate.c - a network in which every address is the jar's own, and sockets of it that the gate holds
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
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <string.h>

#include "plan/plan_build.h"
#include "policy/net_secrets.h"

#define LOOPBACK_INDEX 1
#define DNS_PORT 53
#define TABLE_NAME "belljar"
#define CHAIN_NAME "gate"
/* Before the addresses are looked at; what the documentation of TPROXY has. */
#define CHAIN_PRIORITY (-150)
/* Without nf_tables each port has a listener, and one for IPv6. */
#define LISTENERS_MAX 24
#define IPV6_TRANSPARENT_OPTION 75

/* --- netlink messages --------------------------------------------------------------------------------------- */

struct messages {
	struct text *bytes;
	size_t begun; /* where the last message begins */
	uint32_t count;
	uint64_t acknowledged;
};

static void put(struct messages *messages, const void *bytes, size_t len)
{
	static const char padding[NLMSG_ALIGNTO];

	text_append(messages->bytes, bytes, len);
	text_append(messages->bytes, padding, NLMSG_ALIGN(len) - len);
}

static void begin_message(struct messages *messages, unsigned type, unsigned flags, const void *head, size_t head_len)
{
	struct nlmsghdr header = {
		.nlmsg_type = (uint16_t)type,
		.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
		.nlmsg_seq = ++messages->count,
	};

	messages->begun = messages->bytes->len;
	messages->acknowledged += flags & NLM_F_ACK ? 1 : 0;
	put(messages, &header, sizeof(header));
	put(messages, head, head_len);
}

static void end_message(struct messages *messages)
{
	uint32_t len = (uint32_t)(messages->bytes->len - messages->begun);

	if (!text_failed(messages->bytes))
		memcpy(messages->bytes->data + messages->begun, &len, sizeof(len));
}

static void put_attribute(struct messages *messages, unsigned type, const void *bytes, size_t len)
{
	struct nlattr attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = (uint16_t)type};

	put(messages, &attribute, sizeof(attribute));
	put(messages, bytes, len);
}

static void put_string(struct messages *messages, unsigned type, const char *string)
{
	put_attribute(messages, type, string, strlen(string) + 1);
}

static void put_number(struct messages *messages, unsigned type, uint32_t number)
{
	number = htonl(number);
	put_attribute(messages, type, &number, sizeof(number));
}

static size_t open_nest(struct messages *messages, unsigned type)
{
	size_t at = messages->bytes->len;

	put_attribute(messages, type | NLA_F_NESTED, "", 0);
	return at;
}

static void close_nest(struct messages *messages, size_t at)
{
	uint16_t len = (uint16_t)(messages->bytes->len - at);

	if (!text_failed(messages->bytes))
		memcpy(messages->bytes->data + at, &len, sizeof(len));
}

/* --- routes ------------------------------------------------------------------------------------------------- */

static void put_route(struct messages *messages, unsigned char family, uint32_t source)
{
	const struct rtmsg route = {
		.rtm_family = family,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = family == AF_INET ? RT_SCOPE_HOST : 0,
		.rtm_type = RTN_LOCAL,
	};
	const uint32_t loopback = LOOPBACK_INDEX;

	begin_message(messages, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &route, sizeof(route));
	put_attribute(messages, RTA_OIF, &loopback, sizeof(loopback));
	if (source)
		put_attribute(messages, RTA_PREFSRC, &source, sizeof(source));
	end_message(messages);
}

/* An address that is not 127.0.0.1: programs that look for a network want one. It is where all connections come from. */
static void put_address(struct messages *messages, uint32_t address)
{
	const struct ifaddrmsg head = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = LOOPBACK_INDEX};

	begin_message(messages, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head));
	put_attribute(messages, IFA_LOCAL, &address, sizeof(address));
	put_attribute(messages, IFA_ADDRESS, &address, sizeof(address));
	end_message(messages);
}

static void add_netlink_step(struct plan_build *build, const struct messages *messages, int protocol, const char *words,
			     unsigned flags)
{
	struct plan_step *step = plan_add(build, &build->plan->core.steps, STEP_NETLINK);

	build->has_failed |= text_failed(messages->bytes);
	step->source = words;
	step->flags = flags;
	step->value = (uint64_t)protocol;
	step->value2 = messages->acknowledged;
	step->bytes = messages->bytes->data;
	step->byte_count = messages->bytes->len;
}

static void add_routes(struct plan_build *build)
{
	struct messages ipv4 = {.bytes = &build->plan->gate.routes}, ipv6 = {.bytes = &build->plan->gate.ipv6_routes};

	put_address(&ipv4, htonl(GATE_SELF_ADDRESS));
	put_route(&ipv4, AF_INET, htonl(GATE_SELF_ADDRESS));
	put_route(&ipv6, AF_INET6, 0);
	add_netlink_step(build, &ipv4, NETLINK_ROUTE, "make every IPv4 address the jar's own", 0);
	/* Without IPv6 there is no way out by it either. */
	add_netlink_step(build, &ipv6, NETLINK_ROUTE, "make every IPv6 address the jar's own", STEP_IF_POSSIBLE);
}

/* --- nf_tables ---------------------------------------------------------------------------------------------- */

struct expression {
	size_t element, data;
};

static struct expression open_expression(struct messages *messages, const char *name)
{
	struct expression opened = {.element = open_nest(messages, NFTA_LIST_ELEM)};

	put_string(messages, NFTA_EXPR_NAME, name);
	opened.data = open_nest(messages, NFTA_EXPR_DATA);
	return opened;
}

static void close_expression(struct messages *messages, struct expression opened)
{
	close_nest(messages, opened.data);
	close_nest(messages, opened.element);
}

static void put_data(struct messages *messages, unsigned type, const void *bytes, size_t len)
{
	size_t nest = open_nest(messages, type);

	put_attribute(messages, NFTA_DATA_VALUE, bytes, len);
	close_nest(messages, nest);
}

static void load_meta(struct messages *messages, enum nft_meta_keys key)
{
	struct expression meta = open_expression(messages, "meta");

	put_number(messages, NFTA_META_KEY, key);
	put_number(messages, NFTA_META_DREG, NFT_REG32_00);
	close_expression(messages, meta);
}

static void load_payload(struct messages *messages, enum nft_payload_bases base, uint32_t offset, uint32_t len)
{
	struct expression payload = open_expression(messages, "payload");

	put_number(messages, NFTA_PAYLOAD_DREG, NFT_REG32_00);
	put_number(messages, NFTA_PAYLOAD_BASE, base);
	put_number(messages, NFTA_PAYLOAD_OFFSET, offset);
	put_number(messages, NFTA_PAYLOAD_LEN, len);
	close_expression(messages, payload);
}

static void compare(struct messages *messages, enum nft_cmp_ops operation, const void *bytes, size_t len)
{
	struct expression comparison = open_expression(messages, "cmp");

	put_number(messages, NFTA_CMP_SREG, NFT_REG32_00);
	put_number(messages, NFTA_CMP_OP, operation);
	put_data(messages, NFTA_CMP_DATA, bytes, len);
	close_expression(messages, comparison);
}

static void mask(struct messages *messages, const void *bits, size_t len)
{
	static const uint8_t zero[16];
	struct expression bitwise = open_expression(messages, "bitwise");

	put_number(messages, NFTA_BITWISE_SREG, NFT_REG32_00);
	put_number(messages, NFTA_BITWISE_DREG, NFT_REG32_00);
	put_number(messages, NFTA_BITWISE_LEN, (uint32_t)len);
	put_data(messages, NFTA_BITWISE_MASK, bits, len);
	put_data(messages, NFTA_BITWISE_XOR, zero, len);
	close_expression(messages, bitwise);
}

static size_t open_rule(struct messages *messages)
{
	const struct nfgenmsg head = {.nfgen_family = NFPROTO_INET};

	begin_message(messages, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE, NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND,
		      &head, sizeof(head));
	put_string(messages, NFTA_RULE_TABLE, TABLE_NAME);
	put_string(messages, NFTA_RULE_CHAIN, CHAIN_NAME);
	return open_nest(messages, NFTA_RULE_EXPRESSIONS);
}

static void close_rule(struct messages *messages, size_t rule)
{
	close_nest(messages, rule);
	end_message(messages);
}

static void put_accept(struct messages *messages)
{
	struct expression immediate = open_expression(messages, "immediate");
	size_t data, verdict;

	put_number(messages, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = open_nest(messages, NFTA_IMMEDIATE_DATA);
	verdict = open_nest(messages, NFTA_DATA_VERDICT);
	put_number(messages, NFTA_VERDICT_CODE, NF_ACCEPT);
	close_nest(messages, verdict);
	close_nest(messages, data);
	close_expression(messages, immediate);
}

static void put_tproxy(struct messages *messages, uint32_t family)
{
	const uint16_t port = htons(GATE_LISTENER_PORT);
	struct expression part = open_expression(messages, "immediate");

	put_number(messages, NFTA_IMMEDIATE_DREG, NFT_REG32_01);
	put_data(messages, NFTA_IMMEDIATE_DATA, &port, sizeof(port));
	close_expression(messages, part);
	part = open_expression(messages, "tproxy");
	put_number(messages, NFTA_TPROXY_FAMILY, family);
	put_number(messages, NFTA_TPROXY_REG_PORT, NFT_REG32_01);
	close_expression(messages, part);
}

struct target {
	bool is_ipv6;
	const uint8_t *address;
	uint8_t prefix_len;
};

static void match_address(struct messages *messages, const struct target *target)
{
	const uint8_t family = target->is_ipv6 ? NFPROTO_IPV6 : NFPROTO_IPV4;
	size_t len = target->is_ipv6 ? 16 : 4;
	uint8_t bits[16] = {0};

	for (size_t bit = 0; bit < target->prefix_len; bit++)
		bits[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	load_meta(messages, NFT_META_NFPROTO);
	compare(messages, NFT_CMP_EQ, &family, sizeof(family));
	load_payload(messages, NFT_PAYLOAD_NETWORK_HEADER, target->is_ipv6 ? 24 : 16, (uint32_t)len);
	if (target->prefix_len < len * 8)
		mask(messages, bits, len);
	compare(messages, NFT_CMP_EQ, target->address, len);
}

/* The jar's own: 127.0.0.0/8, ::1, and its own address. */
static void put_own(struct messages *messages, const struct target *own)
{
	size_t rule = open_rule(messages);

	match_address(messages, own);
	put_accept(messages);
	close_rule(messages, rule);
}

static void put_led(struct messages *messages, const struct target *target, const struct net_ports *ports)
{
	const uint16_t first = htons(ports->first), last = htons(ports->last);
	size_t rule = open_rule(messages);

	match_address(messages, target);
	load_payload(messages, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
	if (first == last) {
		compare(messages, NFT_CMP_EQ, &first, sizeof(first));
	} else {
		compare(messages, NFT_CMP_GTE, &first, sizeof(first));
		compare(messages, NFT_CMP_LTE, &last, sizeof(last));
	}
	put_tproxy(messages, target->is_ipv6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
	close_rule(messages, rule);
}

static void begin_table(struct messages *messages)
{
	const struct nfgenmsg batch = {.res_id = htons(NFNL_SUBSYS_NFTABLES)}, head = {.nfgen_family = NFPROTO_INET};
	const uint8_t tcp = IPPROTO_TCP;
	size_t nest;

	begin_message(messages, NFNL_MSG_BATCH_BEGIN, 0, &batch, sizeof(batch));
	end_message(messages);
	begin_message(messages, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE, NLM_F_ACK | NLM_F_CREATE, &head,
		      sizeof(head));
	put_string(messages, NFTA_TABLE_NAME, TABLE_NAME);
	end_message(messages);
	begin_message(messages, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN, NLM_F_ACK | NLM_F_CREATE, &head,
		      sizeof(head));
	put_string(messages, NFTA_CHAIN_TABLE, TABLE_NAME);
	put_string(messages, NFTA_CHAIN_NAME, CHAIN_NAME);
	nest = open_nest(messages, NFTA_CHAIN_HOOK);
	put_number(messages, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	put_number(messages, NFTA_HOOK_PRIORITY, (uint32_t)CHAIN_PRIORITY);
	close_nest(messages, nest);
	put_string(messages, NFTA_CHAIN_TYPE, "filter");
	end_message(messages);
	/* Only TCP is led anywhere. */
	nest = open_rule(messages);
	load_meta(messages, NFT_META_L4PROTO);
	compare(messages, NFT_CMP_NEQ, &tcp, sizeof(tcp));
	put_accept(messages);
	close_rule(messages, nest);
}

static void end_table(struct messages *messages)
{
	const struct nfgenmsg batch = {.res_id = htons(NFNL_SUBSYS_NFTABLES)};

	begin_message(messages, NFNL_MSG_BATCH_END, 0, &batch, sizeof(batch));
	end_message(messages);
}

/* --- which ports -------------------------------------------------------------------------------------------- */

/* The ports of all names together: they share one range of addresses. */
struct port_set {
	uint8_t bits[65536 / 8];
};

static void add_ports(struct port_set *set, const struct net_rule *rule)
{
	for (size_t i = 0; i < rule->port_count; i++)
		for (uint32_t port = rule->ports[i].first; port <= rule->ports[i].last; port++)
			set->bits[port / 8] |= (uint8_t)(1U << port % 8);
}

static bool has_port(const struct port_set *set, uint32_t port)
{
	return port < 65536 && set->bits[port / 8] >> port % 8 & 1;
}

/* The first range from @from on; false: there is none. */
static bool next_ports(const struct port_set *set, uint32_t from, struct net_ports *out)
{
	while (from < 65536 && !has_port(set, from))
		from++;
	if (from == 65536)
		return false;
	out->first = out->last = (uint16_t)from;
	while (has_port(set, out->last + 1U))
		out->last++;
	return true;
}

static size_t count_ports(const struct port_set *set)
{
	size_t count = 0;

	for (uint32_t port = 1; port < 65536; port++)
		count += has_port(set, port);
	return count;
}

static bool leads_ipv6(const struct net_rule_list *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		if (rules->items[i].is_ipv6 && !rules->items[i].is_deny)
			return true;
	return false;
}

static int refuse_many(struct plan_build *build)
{
	error_set(build->error, STAGE_PLAN, E2BIG, "allow_net: more than %d combinations of addresses and ports",
		  GATE_LED_MAX);
	return error_hint(build->error, "use larger prefixes, or ranges of ports");
}

static int add_table(struct plan_build *build)
{
	static const uint8_t loopback[4] = {127}, ipv6_loopback[16] = {[15] = 1};
	const uint32_t self = htonl(GATE_SELF_ADDRESS), names = htonl(GATE_NAMES_ADDRESS);
	const struct target own[] = {
		{false, loopback, 8}, {false, (const uint8_t *)&self, 32}, {true, ipv6_loopback, 128}};
	const struct target fake = {false, (const uint8_t *)&names, GATE_NAMES_PREFIX};
	const struct net_rule_list *rules = &build->plan->gate.rules;
	struct messages messages = {.bytes = &build->plan->gate.table};
	/* Whichever name server is asked, the gate answers. */
	static const struct net_ports but_dns[] = {{1, DNS_PORT - 1}, {DNS_PORT + 1, 65535}};
	static const uint8_t every[16];
	struct port_set set = {{0}};
	struct net_ports ports;
	size_t count = 0;

	begin_table(&messages);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		put_own(&messages, &own[i]);
	for (size_t i = 0; i < rules->count; i++)
		if (rules->items[i].kind != NET_RULE_ADDRESS && !rules->items[i].is_deny)
			add_ports(&set, &rules->items[i]);
	if (build->plan->gate.may_change || build->plan->gate.may_ask)
		memset(&set, 0xff, sizeof(set));
	set.bits[0] &= 0xfe; /* there is no port 0 */
	for (uint32_t from = 0; next_ports(&set, from, &ports) && count <= GATE_LED_MAX;
	     from = ports.last + 1U, count++)
		put_led(&messages, &fake, &ports);
	for (size_t i = 0; i < rules->count; i++) {
		const struct net_rule *rule = &rules->items[i];
		const struct target target = {rule->is_ipv6, rule->address, rule->prefix_len};

		if (rule->kind != NET_RULE_ADDRESS || rule->is_deny)
			continue;
		for (size_t j = 0; j < rule->port_count && count <= GATE_LED_MAX; j++, count++)
			put_led(&messages, &target, &rule->ports[j]);
	}
	if (count > GATE_LED_MAX)
		return refuse_many(build);
	if (build->plan->gate.may_ask) {
		for (size_t i = 0; i < ARRAY_LEN(but_dns) * 2; i++)
			put_led(&messages, &(struct target){i % 2, every, 0}, &but_dns[i / 2]);
	}
	end_table(&messages);
	add_netlink_step(build, &messages, NETLINK_NETFILTER, "lead what the policy could allow to the gate", 0);
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
	const struct target fake = {false, (const uint8_t *)&names, GATE_NAMES_PREFIX};
	const struct net_ports port = {443, 443};
	struct messages messages = {.bytes = out};

	begin_table(&messages);
	put_led(&messages, &fake, &port);
	end_table(&messages);
	return text_failed(out) ? 0 : messages.acknowledged;
}

bool plan_gate_leads(const struct plan_gate *gate, const struct net_rule *rule)
{
	struct port_set wanted = {{0}}, led = {{0}};

	add_ports(&wanted, rule);
	if (gate->table.len && (gate->may_ask || (rule->kind != NET_RULE_ADDRESS && gate->may_change)))
		return true;
	for (size_t i = 0; i < gate->rules.count && gate->table.len; i++)
		if (rule->kind == NET_RULE_ADDRESS
			    ? is_within(rule, &gate->rules.items[i])
			    : gate->rules.items[i].kind != NET_RULE_ADDRESS && !gate->rules.items[i].is_deny)
			add_ports(&led, &gate->rules.items[i]);
	for (uint32_t port = 1; port < 65536; port++)
		if (has_port(&wanted, port) &&
		    !(gate->table.len ? has_port(&led, port) : has_listener(gate, rule->is_ipv6, port)))
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
	const struct nfgenmsg batch = {.res_id = htons(NFNL_SUBSYS_NFTABLES)};
	const struct target target = {rule->is_ipv6, rule->address, rule->prefix_len};
	struct messages messages = {.bytes = out};

	begin_message(&messages, NFNL_MSG_BATCH_BEGIN, 0, &batch, sizeof(batch));
	end_message(&messages);
	for (size_t i = 0; i < rule->port_count; i++)
		put_led(&messages, &target, &rule->ports[i]);
	end_table(&messages);
	return text_failed(out) ? 0 : messages.acknowledged;
}

/* --- sockets ------------------------------------------------------------------------------------------------ */

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
		made = add_socket(build, SOCK_DGRAM, is_ipv6, DNS_PORT);
		add_option(made, is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, is_ipv6 ? IPV6_RECVPKTINFO : IP_PKTINFO);
		/* Else it may not answer from an address that no interface has. */
		if (is_ipv6)
			add_option(made, IPPROTO_IPV6, IPV6_TRANSPARENT_OPTION);
		add_socket(build, SOCK_STREAM, is_ipv6, DNS_PORT);
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

/* They only see: what nobody listens for is refused by the kernel, and the ledger tells of it. */
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

static int add_port_listeners(struct plan_build *build)
{
	const struct net_rule_list *rules = &build->plan->gate.rules;
	struct port_set set = {{0}};
	AUTO_TEXT names = {0};

	for (size_t i = 0; i < rules->count; i++)
		if (!rules->items[i].is_deny)
			add_ports(&set, &rules->items[i]);
	if (build->plan->gate.may_ask)
		add_ports(&set, &(struct net_rule){.ports = {{80, 80}, {443, 443}}, .port_count = 2});
	if (count_ports(&set) > LISTENERS_MAX) {
		error_set(build->error, STAGE_HOST, EOPNOTSUPP,
			  "allow_net: this host has no nf_tables, and without it a gate can have %d ports, not %zu",
			  LISTENERS_MAX, count_ports(&set));
		return error_hint(build->error,
				  "allow fewer ports, or load the kernel modules nf_tables and nft_tproxy");
	}
	for (uint32_t port = 1; port < 65536; port++) {
		if (!has_port(&set, port))
			continue;
		text_append_format(&names, "%s%u", names.len ? ", " : "", port);
		if (port == DNS_PORT)
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

static int add_sockets(struct plan_build *build)
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
	step->value = gate->socket_count;
	step->bytes = gate->sockets;
	step->byte_count = gate->socket_count * sizeof(*gate->sockets);
	return rc;
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
			"secrets, and rules with methods, paths or \"inspect\", need the program belljar-gate, which is not here");
		return error_hint(
			build->error,
			"packages for Python and Node have none, since it uses the distribution's OpenSSL: in Belljar's source, "
			"`./dev build library && meson install -C build/lib` puts it into /usr/local/bin; another one beside belljar, "
			"or named in the variable BELLJAR_GATE, will do. Or allow the hosts as a whole");
	}
	if (!trust->source || !trust->paths.count) {
		error_set(build->error, STAGE_HOST, ENOENT,
			  "this host has no list of certificate authorities to check inspected hosts by");
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
		const char *why = publish_parse(texts->items[i], &gate->published[gate->published_count++]);

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
		return error_hint(build->error, "leave publish out, or say net 'none' or 'gate'");
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
		return error_hint(build->error, "say net 'gate', or leave allow_net out");
	}
	if (policy->net == NET_HOST && policy->ask == ASK_NET) {
		error_set(build->error, STAGE_POLICY, 0,
			  "ask 'net': net 'host' gives the command all of the host's network");
		return error_hint(build->error, "say net 'gate', or leave ask out");
	}
	if (policy->net == NET_NONE && policy->ask == ASK_NET)
		plan_note(build, "network", "net is 'none': nothing is asked about", "say net 'gate'");
	if (policy->net == NET_NONE && policy->allow_net.count)
		plan_note(build, "network", "net is 'none': no host of allow_net can be reached", "say net 'gate'");
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
			rc = add_table(build);
	}
	return rc < 0 ? rc : add_sockets(build);
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
