/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_layers.h - directories over which a policy wants a layer
 */
#ifndef BELLJAR_SURVEY_SURVEY_LAYERS_H
#define BELLJAR_SURVEY_SURVEY_LAYERS_H

#include "survey/survey.h"

/* The workdir, if it is to have one, and policy.cow_dirs. Needs the workdir. 0 or a negative errno with @error set. */
int survey_layers(struct host *host, const struct policy *policy, struct error *error);
/* Forget which stores they have: another jar makes its own. */
void survey_forget_stores(struct host *host);
void survey_layers_done(struct host *host);

#endif
