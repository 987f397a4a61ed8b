/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/net_address.h - addresses that are not the internet's
 */
#ifndef BELLJAR_POLICY_NET_ADDRESS_H
#define BELLJAR_POLICY_NET_ADDRESS_H

#include "policy/net_rules.h"

enum address_kind {
	ADDRESS_PUBLIC,
	ADDRESS_PRIVATE, /* of a network of somebody's own: a rule may say "private" */
	ADDRESS_SPECIAL, /* loopback, link-local with the clouds' metadata, multicast, unspecified: only by its own rule */
};

struct address_place {
	enum address_kind kind;
	unsigned prefix_len; /* of the block that makes it so */
};

/* @address has 4 bytes, or 16 if @is_ipv6. An IPv4 address inside of an IPv6 one is judged too. */
struct address_place policy_address_place(bool is_ipv6, const uint8_t *address);
/* The IPv4 address inside of an IPv6 one; NULL: there is none. */
const uint8_t *policy_address_inside(bool is_ipv6, const uint8_t *address);
/* The rule that allows a connection, as far as addresses are concerned. */
struct address_permit {
	enum net_rule_kind kind;
	bool may_be_private;
};

/*
 * May a rule, which allows a name, or what rules say @by_address, lead to this address? @is_own: it is the host's own.
 */
bool policy_address_may_be_dialled(struct net_verdict by_address, struct address_permit permit, bool is_ipv6,
				   const uint8_t *address, bool is_own);

#endif
