/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_layers.h - directories over which a policy wants a layer
 */
#ifndef BELLJAR_HOST_HOST_LAYERS_H
#define BELLJAR_HOST_HOST_LAYERS_H

#include "host/host.h"

/* The workdir, if it is to have one, and policy.cow_dirs. Needs the workdir. 0 or a negative errno with @error set. */
int host_survey_layers(struct host *host, const struct policy *policy, struct error *error);
/* Forget which stores they have: another jar makes its own. */
void host_forget_stores(struct host *host);
void host_layers_done(struct host *host);

#endif
