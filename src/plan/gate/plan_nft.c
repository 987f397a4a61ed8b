/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/gate/plan_nft.c - the table of nf_tables that leads connections to a gate
 *
 * TPROXY leaves a connection the address that was asked for, and needs no connection tracking, which would cost twice the time of
 * a round trip.
 */
#include "plan/gate/plan_nft.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include "plan/plan_gate.h"

#define TABLE_NAME "belljar"
#define CHAIN_NAME "gate"
/* Before the addresses are looked at; what the documentation of TPROXY has. */
#define CHAIN_PRIORITY (-150)

struct expression {
	size_t element, data;
};

static struct expression open_expression(struct netlink_messages *messages, const char *name)
{
	struct expression opened = {.element = plan_netlink_open_nest(messages, NFTA_LIST_ELEM)};

	plan_netlink_put_string(messages, NFTA_EXPR_NAME, name);
	opened.data = plan_netlink_open_nest(messages, NFTA_EXPR_DATA);
	return opened;
}

static void close_expression(struct netlink_messages *messages, struct expression opened)
{
	plan_netlink_close_nest(messages, opened.data);
	plan_netlink_close_nest(messages, opened.element);
}

static void put_data(struct netlink_messages *messages, unsigned type, const void *bytes, size_t len)
{
	size_t nest = plan_netlink_open_nest(messages, type);

	plan_netlink_put(messages, NFTA_DATA_VALUE, bytes, len);
	plan_netlink_close_nest(messages, nest);
}

static void load_meta(struct netlink_messages *messages, enum nft_meta_keys key)
{
	struct expression meta = open_expression(messages, "meta");

	plan_netlink_put_number(messages, NFTA_META_KEY, key);
	plan_netlink_put_number(messages, NFTA_META_DREG, NFT_REG32_00);
	close_expression(messages, meta);
}

static void load_payload(struct netlink_messages *messages, enum nft_payload_bases base, uint32_t offset, uint32_t len)
{
	struct expression payload = open_expression(messages, "payload");

	plan_netlink_put_number(messages, NFTA_PAYLOAD_DREG, NFT_REG32_00);
	plan_netlink_put_number(messages, NFTA_PAYLOAD_BASE, base);
	plan_netlink_put_number(messages, NFTA_PAYLOAD_OFFSET, offset);
	plan_netlink_put_number(messages, NFTA_PAYLOAD_LEN, len);
	close_expression(messages, payload);
}

static void compare(struct netlink_messages *messages, enum nft_cmp_ops operation, const void *bytes, size_t len)
{
	struct expression comparison = open_expression(messages, "cmp");

	plan_netlink_put_number(messages, NFTA_CMP_SREG, NFT_REG32_00);
	plan_netlink_put_number(messages, NFTA_CMP_OP, operation);
	put_data(messages, NFTA_CMP_DATA, bytes, len);
	close_expression(messages, comparison);
}

static void mask(struct netlink_messages *messages, const void *bits, size_t len)
{
	static const uint8_t zero[16];
	struct expression bitwise = open_expression(messages, "bitwise");

	plan_netlink_put_number(messages, NFTA_BITWISE_SREG, NFT_REG32_00);
	plan_netlink_put_number(messages, NFTA_BITWISE_DREG, NFT_REG32_00);
	plan_netlink_put_number(messages, NFTA_BITWISE_LEN, (uint32_t)len);
	put_data(messages, NFTA_BITWISE_MASK, bits, len);
	put_data(messages, NFTA_BITWISE_XOR, zero, len);
	close_expression(messages, bitwise);
}

static size_t open_rule(struct netlink_messages *messages)
{
	const struct nfgenmsg head = {.nfgen_family = NFPROTO_INET};

	plan_netlink_begin(messages, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE,
			   NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND, &head, sizeof(head));
	plan_netlink_put_string(messages, NFTA_RULE_TABLE, TABLE_NAME);
	plan_netlink_put_string(messages, NFTA_RULE_CHAIN, CHAIN_NAME);
	return plan_netlink_open_nest(messages, NFTA_RULE_EXPRESSIONS);
}

static void close_rule(struct netlink_messages *messages, size_t rule)
{
	plan_netlink_close_nest(messages, rule);
	plan_netlink_end(messages);
}

static void put_accept(struct netlink_messages *messages)
{
	struct expression immediate = open_expression(messages, "immediate");
	size_t data, verdict;

	plan_netlink_put_number(messages, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = plan_netlink_open_nest(messages, NFTA_IMMEDIATE_DATA);
	verdict = plan_netlink_open_nest(messages, NFTA_DATA_VERDICT);
	plan_netlink_put_number(messages, NFTA_VERDICT_CODE, NF_ACCEPT);
	plan_netlink_close_nest(messages, verdict);
	plan_netlink_close_nest(messages, data);
	close_expression(messages, immediate);
}

static void put_tproxy(struct netlink_messages *messages, uint32_t family)
{
	const uint16_t port = htons(GATE_LISTENER_PORT);
	struct expression part = open_expression(messages, "immediate");

	plan_netlink_put_number(messages, NFTA_IMMEDIATE_DREG, NFT_REG32_01);
	put_data(messages, NFTA_IMMEDIATE_DATA, &port, sizeof(port));
	close_expression(messages, part);
	part = open_expression(messages, "tproxy");
	plan_netlink_put_number(messages, NFTA_TPROXY_FAMILY, family);
	plan_netlink_put_number(messages, NFTA_TPROXY_REG_PORT, NFT_REG32_01);
	close_expression(messages, part);
}

static void match_address(struct netlink_messages *messages, const struct nft_target *target)
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

void plan_nft_accept(struct netlink_messages *messages, const struct nft_target *own)
{
	size_t rule = open_rule(messages);

	match_address(messages, own);
	put_accept(messages);
	close_rule(messages, rule);
}

void plan_nft_lead(struct netlink_messages *messages, const struct nft_target *target, const struct net_ports *ports)
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

void plan_nft_begin(struct netlink_messages *messages)
{
	const struct nfgenmsg batch = {.res_id = htons(NFNL_SUBSYS_NFTABLES)};

	plan_netlink_begin(messages, NFNL_MSG_BATCH_BEGIN, 0, &batch, sizeof(batch));
	plan_netlink_end(messages);
}

void plan_nft_begin_table(struct netlink_messages *messages)
{
	const struct nfgenmsg head = {.nfgen_family = NFPROTO_INET};
	const uint8_t tcp = IPPROTO_TCP;
	size_t nest;

	plan_nft_begin(messages);
	plan_netlink_begin(messages, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE, NLM_F_ACK | NLM_F_CREATE, &head,
			   sizeof(head));
	plan_netlink_put_string(messages, NFTA_TABLE_NAME, TABLE_NAME);
	plan_netlink_end(messages);
	plan_netlink_begin(messages, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN, NLM_F_ACK | NLM_F_CREATE, &head,
			   sizeof(head));
	plan_netlink_put_string(messages, NFTA_CHAIN_TABLE, TABLE_NAME);
	plan_netlink_put_string(messages, NFTA_CHAIN_NAME, CHAIN_NAME);
	nest = plan_netlink_open_nest(messages, NFTA_CHAIN_HOOK);
	plan_netlink_put_number(messages, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	plan_netlink_put_number(messages, NFTA_HOOK_PRIORITY, (uint32_t)CHAIN_PRIORITY);
	plan_netlink_close_nest(messages, nest);
	plan_netlink_put_string(messages, NFTA_CHAIN_TYPE, "filter");
	plan_netlink_end(messages);
	/* Only TCP is led anywhere. */
	nest = open_rule(messages);
	load_meta(messages, NFT_META_L4PROTO);
	compare(messages, NFT_CMP_NEQ, &tcp, sizeof(tcp));
	put_accept(messages);
	close_rule(messages, nest);
}

void plan_nft_end(struct netlink_messages *messages)
{
	const struct nfgenmsg batch = {.res_id = htons(NFNL_SUBSYS_NFTABLES)};

	plan_netlink_begin(messages, NFNL_MSG_BATCH_END, 0, &batch, sizeof(batch));
	plan_netlink_end(messages);
}
