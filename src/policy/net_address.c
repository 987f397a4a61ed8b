/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/net_address.c - recognise addresses that are not public
 */
#include "policy/net_address.h"

#include <string.h>

struct block {
	uint8_t prefix_len;
	enum address_kind kind;
	uint8_t address[16];
};

static const struct block ipv4_blocks[] = {
	{8, ADDRESS_SPECIAL, {0}},
	{8, ADDRESS_PRIVATE, {10}},
	{10, ADDRESS_PRIVATE, {100, 64}},
	{8, ADDRESS_SPECIAL, {127}},
	{16, ADDRESS_SPECIAL, {169, 254}},
	{12, ADDRESS_PRIVATE, {172, 16}},
	{24, ADDRESS_SPECIAL, {192, 0, 0}},
	{16, ADDRESS_PRIVATE, {192, 168}},
	{15, ADDRESS_PRIVATE, {198, 18}},
	{4, ADDRESS_SPECIAL, {224}},
	{4, ADDRESS_SPECIAL, {240}},
	/* The metadata service of a cloud that uses its own address for it. */
	{32, ADDRESS_SPECIAL, {168, 63, 129, 16}},
};

static const struct block ipv6_blocks[] = {
	{127, ADDRESS_SPECIAL, {0}},
	/* Likewise; listed before the block that contains it. */
	{128, ADDRESS_SPECIAL, {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}},
	{7, ADDRESS_PRIVATE, {0xfc}},
	{10, ADDRESS_SPECIAL, {0xfe, 0x80}},
	{10, ADDRESS_PRIVATE, {0xfe, 0xc0}},
	{8, ADDRESS_SPECIAL, {0xff}},
};

/* IPv6 addresses that contain an IPv4 address: their prefix, and the offset of the IPv4 address. */
static const struct {
	uint8_t prefix_len;
	uint8_t place;
	uint8_t address[16];
} carriers[] = {
	{96, 12, {[10] = 0xff, [11] = 0xff}},           /* mapped */
	{96, 12, {0}},                                  /* compatible */
	{96, 12, {0x00, 0x64, 0xff, 0x9b}},             /* NAT64 */
	{48, 12, {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}}, /* local-use NAT64 */
	{96, 12, {[8] = 0xff, [9] = 0xff}},             /* translated */
	{16, 2, {0x20, 0x02}},                          /* 6to4 */
};

static bool is_within(const uint8_t *address, const uint8_t *block, size_t prefix_len)
{
	for (size_t bit = 0; bit < prefix_len; bit++)
		if ((address[bit / 8] ^ block[bit / 8]) & 0x80 >> bit % 8)
			return false;
	return true;
}

static struct address_place find(const struct block *blocks, size_t count, const uint8_t *address)
{
	for (size_t i = 0; i < count; i++)
		if (is_within(address, blocks[i].address, blocks[i].prefix_len))
			return (struct address_place){blocks[i].kind, blocks[i].prefix_len};
	return (struct address_place){ADDRESS_PUBLIC, 0};
}

const uint8_t *policy_address_inside(bool is_ipv6, const uint8_t *address)
{
	for (size_t i = 0; i < ARRAY_LEN(carriers) && is_ipv6; i++)
		if (is_within(address, carriers[i].address, carriers[i].prefix_len))
			return address + carriers[i].place;
	return NULL;
}

struct address_place policy_address_place(bool is_ipv6, const uint8_t *address)
{
	const uint8_t *inside = policy_address_inside(is_ipv6, address);
	struct address_place place;

	if (!is_ipv6)
		return find(ipv4_blocks, ARRAY_LEN(ipv4_blocks), address);
	place = find(ipv6_blocks, ARRAY_LEN(ipv6_blocks), address);
	if (place.kind != ADDRESS_PUBLIC || !inside)
		return place;
	place = find(ipv4_blocks, ARRAY_LEN(ipv4_blocks), inside);
	if (place.kind != ADDRESS_PUBLIC)
		place.prefix_len += (unsigned)(inside - address) * 8;
	return place;
}

bool policy_address_may_be_dialled(struct net_verdict by_address, struct address_permit permit, bool is_ipv6,
				   const uint8_t *address, bool is_own)
{
	struct address_place place = policy_address_place(is_ipv6, address);

	if (by_address.rule && !by_address.is_allowed)
		return false;
	/* A rule for the block or a part of it means it. A wider rule, such as 0.0.0.0/0, does not. */
	if (by_address.is_allowed && by_address.rule->prefix_len >= place.prefix_len)
		return true;
	if (permit.kind == NET_RULE_ADDRESS || place.kind == ADDRESS_SPECIAL)
		return false;
	return permit.may_be_private || (place.kind == ADDRESS_PUBLIC && !is_own);
}
