/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve/serve_request.h - from the JSON of a request to a policy
 */
#ifndef BELLJAR_ENGINE_SERVE_REQUEST_H
#define BELLJAR_ENGINE_SERVE_REQUEST_H

#include "serve/serve.h"
#include "policy/policy.h"
#include "wire/request.h"

/* RUN, OPEN: the policy it asks for, with this door's own defaults where nobody says. Written only on success. */
int serve_policy(struct server *server, const struct request *request, struct policy *out, struct error *error);
/* JOIN: the jar's policy with the run's own keys on top; keys that are fixed for the jar are refused. */
int serve_policy_of_run(const struct request *request, const struct policy *jar, struct policy *out,
			struct error *error);

#endif
