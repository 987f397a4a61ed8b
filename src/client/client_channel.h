/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_channel.h - frames over one channel to the engine, from the client's side
 */
#ifndef BELLJAR_CLIENT_CLIENT_CHANNEL_H
#define BELLJAR_CLIENT_CLIENT_CHANNEL_H

#include "base/text.h"
#include "door/wire/frame.h"

/* A frame to be sent. Everything is borrowed. */
struct client_message {
	enum frame_type type;
	const char *payload;
	size_t len;
	const int *fds;
	size_t fd_count;
};

/* A frame that came. */
struct client_frame {
	enum frame_type type;
	const char *payload;
	size_t len;
};

/* The reading side. */
struct client_channel {
	int fd;             /* owned */
	int received_fd;    /* the last descriptor that came; -1: none. Owned */
	struct text buffer; /* of it, what is before @at was handed out */
	size_t at;
	size_t read_bytes; /* room for the next read */
};

/* Takes @fd over. */
void client_channel_init(struct client_channel *channel, int fd);
void client_channel_done(struct client_channel *channel);

/* Return the descriptor, or a duplicate above 2, so that it is not taken for a standard stream. -errno. */
int client_raise_fd(int fd);
/* Make the two ends of a new channel, close-on-exec. */
int client_channel_pair(int *ours_out, int *theirs_out);

/* Send a whole frame, and block until the engine has taken it. -EPIPE: the engine takes nothing more. */
int client_send(int fd, const struct client_message *message);
/* The same for a short frame without descriptors, from any thread at any time. -EAGAIN: the engine reads nothing. */
int client_send_short(int fd, enum frame_type type, const void *payload, size_t len);

/* Read once, without waiting. The number of bytes; 0: the other side has closed; -EAGAIN: nothing there; -errno. */
ssize_t client_receive(struct client_channel *channel);
/* Get the next whole frame. 1; 0: none yet; -EPROTO. It is valid until the next client_receive(). */
int client_next_frame(struct client_channel *channel, struct client_frame *out);

#endif
