/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect/inspect.h - what the files of belljar-gate share
 *
 * belljar-gate is the gate's process with more to it: connections to hosts whose rules need it are not relayed but read. It
 * alone has the key of a certificate authority that one jar trusts.
 */
#ifndef BELLJAR_INSPECT_INSPECT_H
#define BELLJAR_INSPECT_INSPECT_H

#include <openssl/ssl.h>

#include "gate/gate_process.h"
#include "inspect/inspect_secrets.h"

/* --- inspect_authority.c: the certificate authority of one jar --- */

struct authority;

/* A key and its certificate. NULL: the library refuses. */
struct authority *authority_new(void);
/* From what authority_write() has written. */
struct authority *authority_read(const uint8_t *bytes, size_t len);
bool authority_write(const struct authority *authority, struct text *out);
void authority_free(struct authority *authority); /* accepts NULL */
bool authority_write_pem(const struct authority *authority, struct text *out);
bool authority_write_der(const struct authority *authority, struct text *out);
/* Make @ssl a server of that name. */
bool authority_use(struct authority *authority, SSL *ssl, const char *name);

/* --- inspect_trust.c: what the jar trusts --- */

/* Java's list of authorities with one more; false: it is in another format. */
bool trust_add_to_java(const struct text *list, const struct text *certificate_der, struct text *out);

/* --- inspect_exchange.c: requests and answers over one connection --- */

struct inspector {
	struct authority *authority;
	SSL_CTX *server_context; /* towards the jar */
	SSL_CTX *client_context; /* towards hosts */
	struct secrets secrets;
	size_t count; /* of connections that are inspected now */
};

extern const struct gate_inspection_methods exchange_methods;

#endif
