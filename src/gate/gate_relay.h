/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_relay.h - move bytes from one socket to another, through a pipe in the kernel
 *
 * What the receiver does not take stays in the pipe, and nothing more is read meanwhile: the sender feels that. A pipe is only
 * held while there is something in it, so that connections which say nothing cost two descriptors.
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
	bool is_starved; /* there was no pipe to be had */
	bool is_free;    /* its bytes do not count */
	size_t until;    /* it rests when so many bytes more have gone; 0: it does not */
	bool is_resting; /* the sender is not read */
};

void gate_relay_half_init(struct relay_half *half);
void gate_relay_half_done(struct gate_process *gate, struct relay_half *half);
/*
 * Move what can be moved now. 0, -EDQUOT if no more bytes may go through, or another negative errno: the connection is broken.
 */
int gate_relay_move(struct gate_process *gate, struct relay_half *half, int from_fd, int to_fd, struct gate_host *host,
		    bool is_out);

/*
 * Two sides that are connected: listen to each for what can be done now. @up goes from @client to @server. True: one waits for a
 * pipe, and must be looked after later.
 */
bool gate_relay_listen(struct loop_watch *client, struct loop_watch *server, const struct relay_half *up,
		       const struct relay_half *down);
/* That a side has hung up would be heard for ever: it is not listened to any more if nothing else is wanted of it now. */
void gate_relay_forget_if_gone(struct loop_watch *watch, uint32_t events);

#endif
