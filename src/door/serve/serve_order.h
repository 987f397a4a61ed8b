/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_order.h - what a client wants done with a workspace: WORKSPACE, LAYER
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_ORDER_H
#define BELLJAR_DOOR_SERVE_SERVE_ORDER_H

#include "door/serve/serve.h"
#include "door/wire/request.h"

struct serve_order;

/* Read it. It is @channel's from now on, and what is wrong with it is told there: then it is NULL. */
struct serve_order *serve_order_read(struct channel *channel, const struct wire_frame *frame);
/* Which of the jar's workspaces, an id; NULL: the first. */
const char *serve_order_which(const struct serve_order *order);
/* Must the jar that has the workspace be gone? */
bool serve_order_needs_jar_gone(const struct serve_order *order);

/*
 * Carry it out in a child of the server, on the workspace @id, of those that @environment leads to. over() when that is done,
 * perhaps from within this call; NULL: it is answered then.
 */
void serve_order_start(struct serve_order *order, const char *id, char *const *environment, void (*over)(void *owner),
		       void *owner);
/* Give it up: over() follows soon. */
void serve_order_kill(struct serve_order *order);
/* Say what became of it, which ends it. @opened: JSON, the members of OPENED of the jar as it is now; NULL: nothing to say. */
void serve_order_answer(struct serve_order *order, const char *opened);
/* It cannot be carried out. */
void serve_order_fail(struct serve_order *order, const struct error *error);

#endif
