/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_stream.h - one side of an inspected connection: a socket, with or without TLS
 *
 * TLS never touches the socket: it works on bytes in memory, which this file moves. So every byte from a socket is
 * counted like those of relayed connections, and this file reads nothing while bytes that it read before wait.
 */
#ifndef BELLJAR_GATE_INSPECT_INSPECT_STREAM_H
#define BELLJAR_GATE_INSPECT_INSPECT_STREAM_H

#include <openssl/ssl.h>

#include "base/text.h"
#include "gate/gate_process.h"

/* Bytes that may wait on either way. */
#define STREAM_IN_MAX (96 << 10)
#define STREAM_OUT_MAX (256 << 10)

struct stream {
	int fd;
	SSL *ssl; /* NULL: none */
	struct gate_page *page;
	struct gate_host *counted;
	bool is_jars;        /* the jar's side: what comes from here goes out */
	bool is_ready;       /* the handshake is over */
	bool is_ended;       /* there is nothing more to come */
	bool is_cut;         /* ... and TLS was not closed properly */
	bool is_shut;        /* nothing more will be sent */
	bool is_socket_over; /* the socket has no more bytes */
	struct text in;      /* what came, in the clear */
	struct text wire;    /* for the socket */
};

void inspect_stream_init(struct stream *stream, int fd, SSL *ssl, struct gate_page *page, struct gate_host *counted,
			 bool is_jars);
void inspect_stream_done(struct stream *stream);

/* Each: 1 if something has changed, 0 if not, -EDQUOT if the byte limit is reached, -EPIPE if the connection is broken. */
int inspect_stream_fill(struct stream *stream);
int inspect_stream_shake_hands(struct stream *stream); /* -EPROTO: it failed */
int inspect_stream_flush(struct stream *stream);
/* Take what came and throw it away. */
int inspect_stream_ignore(struct stream *stream);

/* Only when it is ready. False: no memory, or TLS is broken. */
bool inspect_stream_write(struct stream *stream, const void *bytes, size_t len);
/* Announce the end of the data. */
void inspect_stream_shut(struct stream *stream);
size_t inspect_stream_waiting(const struct stream *stream); /* bytes that the socket has not taken */
uint32_t inspect_stream_events(const struct stream *stream);

#endif
