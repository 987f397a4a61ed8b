/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect.h - what the files of belljar-gate share
 *
 * belljar-gate is the gate's process with inspection: it decrypts and parses connections to hosts whose rules need it,
 * instead of relaying them. It alone has the key of a certificate authority that one jar trusts.
 */
#ifndef BELLJAR_GATE_INSPECT_INSPECT_H
#define BELLJAR_GATE_INSPECT_INSPECT_H

#include <openssl/ssl.h>

#include "gate/gate_process.h"
#include "gate/inspect/inspect_secrets.h"
#include "gate/inspect/inspect_stream.h"

/* --- inspect_authority.c: the certificate authority of one jar --- */

struct authority;

/* A key and its certificate. NULL: the library refuses. */
struct authority *inspect_authority_new(void);
/* Read the output of inspect_authority_write(). */
struct authority *inspect_authority_read(const uint8_t *bytes, size_t len);
bool inspect_authority_write(const struct authority *authority, struct text *out);
void inspect_authority_free(struct authority *authority); /* accepts NULL */
bool inspect_authority_write_pem(const struct authority *authority, struct text *out);
bool inspect_authority_write_der(const struct authority *authority, struct text *out);
/* Make @ssl a server named @name. */
bool inspect_authority_use(struct authority *authority, SSL *ssl, const char *name);

/* --- inspect_trust.c: what the jar trusts --- */

/* Add an authority to Java's list; false: the list is in another format. */
bool inspect_trust_add_to_java(const struct text *list, const struct text *certificate_der, struct text *out);

/* --- inspect_connection.c: both sides of one connection, from the handshakes to the end --- */

struct inspector {
	struct authority *authority;
	SSL_CTX *server_context; /* towards the jar */
	SSL_CTX *client_context; /* towards hosts */
	struct secrets secrets;
	size_t count; /* of connections that are inspected now */
};

/* The protocol of both sides. */
struct protocol {
	bool (*begin)(struct inspection *inspection); /* false: no memory */
	/* Process bytes that have come: 1 if anything was done, 0, or a negative errno: the connection is broken. */
	int (*work)(struct inspection *inspection);
	/* Report whether all requests of the jar so far have gone out. */
	bool (*has_sent)(const struct inspection *inspection);
	void (*end)(struct inspection *inspection);
};

struct inspection {
	struct inspector *inspector;
	struct gate_process *gate;
	const char *host;
	uint16_t port;
	struct stream client, server;
	bool is_safe;       /* the connection is encrypted, and the host proved its identity */
	bool has_secret;    /* a secret is for this host: search its responses */
	char failure[320];  /* why the host cannot get requests; empty: it can */
	bool is_heard;      /* the jar's side has listed the protocols that it speaks */
	bool is_host_known; /* the host has chosen one of them, or failed */
	bool is_http2;
	unsigned char offered[16]; /* of those, the ones that are known here, as ALPN has them */
	size_t offered_len;
	const struct protocol *protocol; /* NULL: the jar's handshake is not over */
	void *exchange;                  /* the protocol's own */
	bool is_closing;                 /* nothing more is wanted of either side */
	uint64_t deadline_ns;            /* then it is broken; 0: never */
};

extern const struct gate_inspection_methods inspect_connection_methods;
/* inspect_exchange.c, inspect_http2.c */
extern const struct protocol inspect_http1_protocol, inspect_http2_protocol;

/* Read the jar's side to its end, so that a reset does not lose the response. */
void inspect_close(struct inspection *inspection);

/* Prepare a context for inspected connections. */
void inspect_prepare_context(SSL_CTX *server_context);

#endif
