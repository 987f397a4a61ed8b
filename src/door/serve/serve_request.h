/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_request.h - a RUN, OPEN or JOIN that was read: its JSON and its policy
 *
 * A run and the jars that are prepared for runs like it come from the same request, and share it by counting
 * references: nothing is copied or parsed twice. It does not change after it was read.
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_REQUEST_H
#define BELLJAR_DOOR_SERVE_SERVE_REQUEST_H

#include "door/serve/serve.h"
#include "policy/policy.h"
#include "door/wire/request.h"

struct serve_request {
	unsigned references;
	struct request wire; /* as it was sent */
	struct policy policy;
	struct text
		jar_key; /* what jars must have in common to stand for one another; serve_prepared_take() fills it in */
};

struct server_jar;

/*
 * RUN, OPEN: the engine's own defaults hold where neither the policy nor a key says. JOIN: the policy is @jar's with
 * the run's own keys on top, keys that are fixed for the jar are refused, and limits above the jar's are lowered to
 * them; for the others @jar is NULL.
 */
int serve_request_read(struct server *server, enum request_kind kind, const struct server_jar *jar,
		       const struct wire_frame *frame, struct serve_request **out, struct error *error);
/* Check that exactly @expected descriptors came with the frame. */
int serve_check_descriptors_sent(const struct wire_frame *frame, size_t expected, struct error *error);
struct serve_request *serve_request_hold(struct serve_request *request);
void serve_request_release(struct serve_request *request);

#endif
