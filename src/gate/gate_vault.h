/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_vault.h - files that the engine and belljar-gate share
 *
 * Before a jar is planned, `belljar-gate make` makes an authority for it. It reads a request, and writes three files
 * in memory: the vault, which the engine passes to the gate's process and never reads, and the two lists of
 * authorities that the jar gets. On failure the vault has the reason.
 */
#ifndef BELLJAR_GATE_GATE_VAULT_H
#define BELLJAR_GATE_GATE_VAULT_H

#include "gate/gate_page.h"

#define VAULT_ARGUMENT "make"
#define VAULT_REQUEST_FD 3
#define VAULT_FD 4
#define VAULT_BUNDLE_FD 5
#define VAULT_JAVA_FD 6
/* Lists of authorities are some hundred kilobytes. */
#define VAULT_FILE_MAX (8U << 20)
#define VAULT_MAGIC 0x7661756cU

/* Engine and gate share the layout of a page: both are of one build. */
#define VAULT_VERSION_FORMAT "%s %zu %zu"
#define VAULT_VERSION_ARGUMENTS BELLJAR_VERSION, sizeof(struct gate_page), sizeof(struct net_rule)

/* In front of the vault; the parts follow in this order. */
struct vault_header {
	uint32_t magic;
	uint32_t authority_len; /* of its key and certificate */
	uint32_t trust_len;     /* of the authorities that hosts are checked by */
	uint32_t secrets_len;   /* of a JSON list */
};

#endif
