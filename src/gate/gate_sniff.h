/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_sniff.h - which host the first bytes of a connection are for: TLS server name, HTTP Host
 *
 * Pure and bounded. Ambiguous bytes are refused: the server will parse them again, and could read them in another way.
 */
#ifndef BELLJAR_GATE_GATE_SNIFF_H
#define BELLJAR_GATE_GATE_SNIFF_H

#include "policy/net_rules.h"

/* A client must name its host within this many bytes, or the gate refuses it. */
#define SNIFF_BYTES_MAX (64 << 10)

enum sniff {
	SNIFF_MORE,  /* more bytes are needed */
	SNIFF_FOUND, /* it is for `name` */
	SNIFF_NONE,  /* neither TLS nor HTTP/1, or HTTP/1.0 without a Host */
	SNIFF_BAD,   /* TLS or HTTP that does not name its host, or names it twice */
};

struct sniffed {
	char name[NET_NAME_SIZE]; /* clean; empty if it is not a name, but an address, for example */
	uint16_t port;            /* of HTTP; 0: not given */
	size_t hello_len;         /* of TLS: the records that its ClientHello came in */
};

enum sniff gate_sniff_first_bytes(const uint8_t *bytes, size_t len, struct sniffed *out);

/*
 * A server may ask for a second ClientHello, and some read the name from that. Check the server's first bytes:
 * SNIFF_FOUND: it asks; SNIFF_NONE: it does not.
 */
enum sniff gate_sniff_retry(const uint8_t *bytes, size_t len);
/* Read the client's second ClientHello. Early data of the first one may come before it. */
enum sniff gate_sniff_second_hello(const uint8_t *bytes, size_t len, struct sniffed *out);

#endif
