/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_dns.h - DNS messages: questions that a jar asks, and answers that the host's name servers give
 *
 * Pure, bounded, without allocation: every byte read here is untrusted.
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
	bool has_edns; /* the sender knows extensions (EDNS) */
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

/* Read a message from the jar. False: it needs no answer. */
bool gate_dns_read_question(const uint8_t *message, size_t len, struct dns_question *question);
/*
 * Write the answer to @out, which has room for DNS_MESSAGE_MAX: @code, or if that is 0, the IPv4 address @address in
 * host order (0: no such record). Add @reason if the sender knows extensions; NULL: none. Returns the length.
 */
size_t gate_dns_write_answer(const uint8_t *message, const struct dns_question *question, unsigned code,
			     uint32_t address, const char *reason, uint8_t *out);

/* Write a question for a name server. Returns the length. */
size_t gate_dns_write_query(uint16_t id, const char *name, uint16_t type, uint8_t *out);
/*
 * Read a reply. True: it answers that question; add its addresses to @addresses, and set *@code to its response code.
 */
bool gate_dns_read_answer(const uint8_t *message, size_t len, uint16_t id, const char *name, uint16_t type,
			  struct dns_addresses *addresses, unsigned *code);
/* Report whether the answer is truncated, because a datagram could not hold it. */
bool gate_dns_is_cut(const uint8_t *message, size_t len);

#endif
