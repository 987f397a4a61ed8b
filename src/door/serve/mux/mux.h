/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/mux/mux.h - many channels over one stream of bytes, for clients that cannot pass descriptors
 *
 * The server gets each channel as a socket, as if a client had sent it. The mux is the client at the other end of that
 * socket, and translates. A frame's header names its channel; frames of their own replace descriptors. Nothing blocks,
 * and every queue that a client can grow is bounded: a channel's bytes need credit, so a channel that the client does
 * not read stops alone.
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
	/* Write the members of the greeting, in an open object. */
	void (*hello)(void *owner, struct json_writer *writer);
	/* The client has opened a channel; @fd is taken over. */
	void (*channel)(void *owner, int fd);
	/* Called once. @error: the client broke the rules, and mux_free() will report it; NULL: the client is gone. */
	void (*ended)(void *owner, const struct error *error);
};

/* Takes over @in_fd and @out_fd, pipes or sockets, also where it fails. NULL: @error says why. */
struct mux *mux_new(struct loop *loop, int in_fd, int out_fd, const struct mux_listener *listener, struct error *error);
/* Send collected output and free finished channels, between two turns of the loop. */
void mux_turn(struct mux *mux);
/* Free the mux. A client that broke the rules gets at most a second to read what is left. */
void mux_free(struct mux *mux);

#endif
