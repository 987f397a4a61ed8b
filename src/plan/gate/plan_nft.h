/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/gate/plan_nft.h - the table of nf_tables that redirects connections to a gate
 *
 * One table, one chain. The first rule that matches decides. A packet that matches none keeps its destination.
 */
#ifndef BELLJAR_PLAN_GATE_PLAN_NFT_H
#define BELLJAR_PLAN_GATE_PLAN_NFT_H

#include "plan/gate/plan_netlink.h"
#include "policy/net_rules.h"

struct nft_target {
	bool is_ipv6;
	const uint8_t *address;
	uint8_t prefix_len;
};

/* Begin a batch, which the kernel applies as a whole or not at all. */
void plan_nft_begin(struct netlink_messages *messages);
/* Begin a batch that creates the table, which redirects only TCP. */
void plan_nft_begin_table(struct netlink_messages *messages);
void plan_nft_end(struct netlink_messages *messages);
/* Add a rule: do not redirect packets to @own. */
void plan_nft_accept(struct netlink_messages *messages, const struct nft_target *own);
/* Add a rule: redirect packets to @target, on one of these ports, to the gate's listener. */
void plan_nft_lead(struct netlink_messages *messages, const struct nft_target *target, const struct net_ports *ports);

#endif
