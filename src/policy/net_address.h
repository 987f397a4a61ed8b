/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/net_address.h - recognise addresses that are not public
 */
#ifndef BELLJAR_POLICY_NET_ADDRESS_H
#define BELLJAR_POLICY_NET_ADDRESS_H

#include "policy/net_rules.h"

enum address_kind {
	ADDRESS_PUBLIC,
	ADDRESS_PRIVATE, /* of a private network: a rule may say "private" */
	ADDRESS_SPECIAL, /* loopback, link-local (cloud metadata), multicast, unspecified: only by its own rule */
};

struct address_place {
	enum address_kind kind;
	unsigned prefix_len; /* of the block that decides the kind */
};

/* Classify @address: 4 bytes, or 16 if @is_ipv6. An IPv4 address inside an IPv6 one counts too. */
struct address_place policy_address_place(bool is_ipv6, const uint8_t *address);
/* Return the IPv4 address inside an IPv6 one, or NULL. */
const uint8_t *policy_address_inside(bool is_ipv6, const uint8_t *address);
/* The part about addresses of the rule that allows a connection. */
struct address_permit {
	enum net_rule_kind kind;
	bool may_be_private;
};

/*
 * May a connection go to this address, by a rule that allows its name, or @by_address? @is_own: it is the host's own.
 */
bool policy_address_may_be_dialled(struct net_verdict by_address, struct address_permit permit, bool is_ipv6,
				   const uint8_t *address, bool is_own);

#endif
