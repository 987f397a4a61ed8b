/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_sniff.h - which host the first bytes of a connection are for: TLS server name, HTTP Host
 *
 * Pure and bounded. What could be read in two ways is refused: another program will read it again.
 */
#ifndef BELLJAR_GATE_GATE_SNIFF_H
#define BELLJAR_GATE_GATE_SNIFF_H

#include "policy/net_rules.h"

/* A client that has not said whom it wants in so many bytes is refused. */
#define SNIFF_BYTES_MAX (64 << 10)

enum sniff {
	SNIFF_MORE,  /* more bytes are needed */
	SNIFF_FOUND, /* it is for `name` */
	SNIFF_NONE,  /* neither TLS nor HTTP/1, or HTTP/1.0 without a Host */
	SNIFF_BAD,   /* TLS or HTTP that does not say whom it is for, or says it twice */
};

struct sniffed {
	char name[NET_NAME_SIZE]; /* clean; empty for what is no name, such as an address */
	uint16_t port;            /* of HTTP; 0: not said */
	size_t hello_len;         /* of TLS: the records that its ClientHello came in */
};

enum sniff gate_sniff_first_bytes(const uint8_t *bytes, size_t len, struct sniffed *out);

/*
 * A server may ask for a second ClientHello, and some take the name out of that. Are these its first bytes? SNIFF_FOUND: it asks;
 * SNIFF_NONE: it does not.
 */
enum sniff gate_sniff_retry(const uint8_t *bytes, size_t len);
/* What a client says then: early data of the first time may come before it. */
enum sniff gate_sniff_second_hello(const uint8_t *bytes, size_t len, struct sniffed *out);

#endif
