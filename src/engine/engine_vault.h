/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_vault.h - have belljar-gate make the certificates for a jar whose requests it inspects
 *
 * The key of the jar's certificate authority and the values of secrets go from one process of belljar-gate to the
 * next in a memory file, which the engine holds and does not read. The engine copies secrets from the caller's
 * variables into the request, as late as it can, and wipes its copy. belljar-gate reads secrets that are in files.
 */
#ifndef BELLJAR_ENGINE_ENGINE_VAULT_H
#define BELLJAR_ENGINE_ENGINE_VAULT_H

#include "survey/survey.h"

struct vault {
	bool is_made;
	int fd;
	int program_fd; /* belljar-gate */
};

/* Fill in host->trust.bundle and .java, and @vault. 0 or a negative errno. */
int engine_vault_make(struct vault *vault, struct host *host, const struct policy *policy, struct error *error);
void engine_vault_done(struct vault *vault);

#endif
