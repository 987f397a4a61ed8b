/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/gate/plan_nft.h - the table of nf_tables that leads connections to a gate
 *
 * One table, one chain. Of its rules the first that matches decides; what none matches goes where it would have gone.
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

/* A batch: all of it holds, or nothing. */
void plan_nft_begin(struct netlink_messages *messages);
/* A batch that begins with the table, in which only TCP is led anywhere. */
void plan_nft_begin_table(struct netlink_messages *messages);
void plan_nft_end(struct netlink_messages *messages);
/* A rule: what goes there is left alone. */
void plan_nft_accept(struct netlink_messages *messages, const struct nft_target *own);
/* A rule: what goes there, to one of these ports, is led to the gate's listener. */
void plan_nft_lead(struct netlink_messages *messages, const struct nft_target *target, const struct net_ports *ports);

#endif
