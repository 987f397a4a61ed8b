/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_order.h - a client's requests about workspaces: WORKSPACE, LAYER
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_ORDER_H
#define BELLJAR_DOOR_SERVE_SERVE_ORDER_H

#include "door/serve/serve.h"
#include "door/wire/request.h"

struct serve_order;

/* Read an order; @channel owns it from now on. NULL: it is invalid, and @channel got the error. */
struct serve_order *serve_order_read(struct channel *channel, const struct wire_frame *frame);
/* Return the id of the workspace, one of the jar's; NULL: the first. */
const char *serve_order_which(const struct serve_order *order);
/* Report whether the jar that has the workspace must be gone. */
bool serve_order_needs_jar_gone(const struct serve_order *order);

/*
 * Carry it out in a child of the server, on the workspace @id, of those that @environment leads to. over() when that
 * is done, perhaps from within this call; NULL: it is answered then.
 */
void serve_order_start(struct serve_order *order, const char *id, char *const *environment, void (*over)(void *owner),
		       void *owner);
/* Give it up: over() follows soon. */
void serve_order_kill(struct serve_order *order);
/* Send the outcome and free the order. @opened: JSON, the members of OPENED of the jar as it is now; NULL: none. */
void serve_order_answer(struct serve_order *order, const char *opened);
/* Send an error and free the order. */
void serve_order_fail(struct serve_order *order, const struct error *error);

#endif
