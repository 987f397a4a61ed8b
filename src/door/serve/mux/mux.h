/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/mux/mux.h - many channels over one stream of bytes, for clients that cannot pass descriptors
 *
 * Whoever serves channels gets each as a socket, as if a client had sent it: this side of the socket is the client then,
 * and translates. A frame's header names its channel; what descriptors would carry travels in frames of its own. Nothing
 * blocks, and nothing an outsider can grow is without a bound: a channel's bytes need credit, so one that nobody reads
 * stops by itself and holds nobody up.
 */
#ifndef BELLJAR_DOOR_SERVE_MUX_MUX_H
#define BELLJAR_DOOR_SERVE_MUX_MUX_H

#include "base/error.h"
#include "base/loop.h"

struct json_writer;
struct mux;

/* Called from within the loop. None of them may free the mux. */
struct mux_listener {
	void *owner;
	/* Say who speaks: members of an object that is open. */
	void (*hello)(void *owner, struct json_writer *writer);
	/* The client has opened a channel; @fd is taken over. */
	void (*channel)(void *owner, int fd);
	/* Called once. @error: the client broke the rules, and mux_free() will tell it; NULL: the client is gone. */
	void (*ended)(void *owner, const struct error *error);
};

/* Takes over @in_fd and @out_fd, pipes or sockets, also where it fails. NULL: @error says why. */
struct mux *mux_new(struct loop *loop, int in_fd, int out_fd, const struct mux_listener *listener, struct error *error);
/* Between two turns of the loop: send what has come together, free what is finished. */
void mux_turn(struct mux *mux);
/* The client may have a second to take what is left, if it broke the rules. */
void mux_free(struct mux *mux);

#endif
