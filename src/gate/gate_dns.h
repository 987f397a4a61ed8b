/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_dns.h - DNS messages: questions that a jar asks, and answers that the host's name servers give
 *
 * Pure, bounded, without allocation: every byte read here is somebody else's.
 */
#ifndef BELLJAR_GATE_GATE_DNS_H
#define BELLJAR_GATE_GATE_DNS_H

#include "policy/net_rules.h"

#define DNS_MESSAGE_MAX 1500
#define DNS_ADDRESSES_MAX 8
#define DNS_TYPE_A 1
#define DNS_TYPE_AAAA 28
#define DNS_SERVER_FAILURE 2
#define DNS_NO_SUCH_NAME 3
#define DNS_REFUSED 5

struct dns_question {
	char name[NET_NAME_SIZE]; /* clean; empty: that is no host name */
	uint16_t type;
	size_t end;    /* of the question in the message */
	bool has_edns; /* who asks knows extensions */
};

struct dns_address {
	bool is_ipv6;
	uint8_t bytes[16];
};

struct dns_addresses {
	struct dns_address items[DNS_ADDRESSES_MAX];
	size_t count;
	uint32_t ttl_s; /* the least */
};

/* A message from the jar. False: there is nothing to answer. */
bool gate_dns_read_question(const uint8_t *message, size_t len, struct dns_question *question);
/*
 * The answer to it, in @out with room for DNS_MESSAGE_MAX: @code, or if that is 0, the IPv4 address @address in host order (0:
 * there is no such record). @reason goes along where who asks can take it; NULL: none. Returns its length.
 */
size_t gate_dns_write_answer(const uint8_t *message, const struct dns_question *question, unsigned code,
			     uint32_t address, const char *reason, uint8_t *out);

/* A question for a name server: its length. */
size_t gate_dns_write_query(uint16_t id, const char *name, uint16_t type, uint8_t *out);
/*
 * What came back. True: it is the answer to that question; its addresses are added to @addresses, and *@code is how it went.
 */
bool gate_dns_read_answer(const uint8_t *message, size_t len, uint16_t id, const char *name, uint16_t type,
			  struct dns_addresses *addresses, unsigned *code);
/* Is it only the part of an answer that a datagram can hold? */
bool gate_dns_is_cut(const uint8_t *message, size_t len);

#endif
