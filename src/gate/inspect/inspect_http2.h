/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_http2.h - HTTP/2 over one inspected connection: two sessions of nghttp2, and streams between them
 *
 * The gate is a server to the jar and a client to the host. Each side has its own compression, its own numbers of
 * streams and its own windows. Only parsed heads, and bodies, pass from one to the other.
 *
 * The windows that the gate gives bound the bytes that wait: a sender gets its window back when its bytes have gone on
 * to the other side. Windows do not cover heads: the gate does not read from one side while too many heads wait for
 * the other.
 */
#ifndef BELLJAR_GATE_INSPECT_INSPECT_HTTP2_H
#define BELLJAR_GATE_INSPECT_INSPECT_HTTP2_H

#include <nghttp2/nghttp2.h>

#include "gate/inspect/inspect_fields.h"
#include "gate/inspect/inspect_frames.h"
#include "gate/inspect/inspect_request.h"

#define HTTP2_STREAMS_MAX 100
#define HTTP2_STREAM_WINDOW (256 << 10)
#define HTTP2_WINDOW (512 << 10)
/* Bytes of heads that may wait for one side. */
#define HTTP2_HEADS_MAX (256 << 10)

enum http2_end { END_JAR, END_HOST, END_COUNT };

struct http2;

/* One session. */
struct http2_side {
	struct http2 *http2;
	enum http2_end end;
	struct stream *stream;
	nghttp2_session *session;
	struct fields fields; /* of the block that comes in now */
	unsigned continuations;
	size_t waiting_heads; /* bytes of those that have not gone out */
};

/* The bytes from one end over one stream. */
struct http2_flow {
	struct text waiting; /* of the body; it may go on */
	struct secret_search search;
	struct grpc grpc;      /* its messages, where the answer has some */
	size_t unacknowledged; /* bytes of the sender's window that it has not got back */
	struct fields *trailers;
	bool is_over;    /* nothing more will come */
	bool is_dropped; /* throw away what comes */
	uint64_t dropped_bytes;
};

struct http2_stream {
	struct http2 *http2;
	struct http2_stream *next, *previous;
	int32_t ids[END_COUNT];             /* 0: there is none, or it is closed */
	struct http2_flow flows[END_COUNT]; /* by where they come from */
	bool is_head;                       /* an answer to it has no body */
	bool is_grpc;
	bool is_answered;  /* the jar has the head of the answer */
	bool is_sent;      /* ... and the end of it */
	bool is_withdrawn; /* by the host itself */
};

struct http2 {
	struct inspection *inspection;
	struct http2_side sides[END_COUNT];
	struct http2_stream *streams;
	bool is_host_ready; /* it has sent its maximum of streams, or never will */
	bool is_host_over;
	bool is_jar_over;
	uint64_t resets_left, resets_ns;
};

/* --- inspect_http2_stream.c --- */

/* Handle a whole block of headers, in side->fields. 0, or a negative errno: the connection is broken. */
int inspect_http2_on_head(struct http2_side *side, const nghttp2_frame *frame);
void inspect_http2_on_data(struct http2_side *side, struct http2_stream *stream, const uint8_t *bytes, size_t len);
/* Handle the end of a stream by its sender. */
void inspect_http2_on_end(struct http2_side *side, struct http2_stream *stream);
/* Handle the close of a stream on this side. */
void inspect_http2_on_close(struct http2_side *side, struct http2_stream *stream, uint32_t code);
/* The end of the answer is on its way to the jar. */
void inspect_http2_on_sent(struct http2_stream *stream);
/* The host is gone: no stream gets any further. */
void inspect_http2_lose_host(struct http2 *http2);
void inspect_http2_stream_reset(struct http2_stream *stream, enum http2_end end, uint32_t code);
void inspect_http2_stream_free(struct http2_stream *stream);
/* Count the bytes that a frame of headers takes while it waits. */
size_t inspect_http2_count_bytes(const nghttp2_nv *list, size_t count);

#endif
