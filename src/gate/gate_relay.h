/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_relay.h - move bytes from one socket to another, through a pipe in the kernel
 *
 * Bytes that the receiver does not take stay in the pipe, and the gate reads no more meanwhile, so the sender has to
 * wait. A connection holds a pipe only while bytes are in it, so an idle connection costs two descriptors.
 */
#ifndef BELLJAR_GATE_GATE_RELAY_H
#define BELLJAR_GATE_GATE_RELAY_H

#include "gate/gate_process.h"

/* One direction of a connection. */
struct relay_half {
	struct gate_pipe pipe;
	size_t held;     /* bytes in it */
	bool is_ended;   /* the sender has no more */
	bool is_shut;    /* and the receiver knows */
	bool is_starved; /* no pipe was free */
	bool is_free;    /* its bytes do not count */
	size_t until;    /* it rests after this many more bytes; 0: never */
	bool is_resting; /* the sender is not read */
};

void gate_relay_half_init(struct relay_half *half);
void gate_relay_half_done(struct gate_process *gate, struct relay_half *half);
/*
 * Move bytes without blocking. 0, -EDQUOT if no bytes are left to use, or another negative errno: it is broken.
 */
int gate_relay_move(struct gate_process *gate, struct relay_half *half, int from_fd, int to_fd, struct gate_host *host,
		    bool is_out);

/*
 * Two sides that are connected: listen to each for what can be done now. @up goes from @client to @server. True: one
 * waits for a pipe, and must be looked after later.
 */
bool gate_relay_listen(struct loop_watch *client, struct loop_watch *server, const struct relay_half *up,
		       const struct relay_half *down);
/* Stop watching a side that has hung up if nothing else is wanted of it; else the loop would report it for ever. */
void gate_relay_forget_if_gone(struct loop_watch *watch, uint32_t events);

#endif
