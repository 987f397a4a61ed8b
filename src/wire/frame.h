/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire/frame.h - the frames of the engine's protocol: types, header, bounds
 *
 * docs/protocol.md says what each is for. A frame is eight bytes of header and a payload; descriptors travel with its
 * first byte.
 */
#ifndef BELLJAR_WIRE_FRAME_H
#define BELLJAR_WIRE_FRAME_H

#include "base/base.h"

#define WIRE_VERSION 2
#define FRAME_HEADER_BYTES 8
/* To the engine: 1 MiB of JSON and 4 MiB of arguments and environment. */
#define FRAME_MAX_BYTES ((size_t)5 << 20)
/* OUTPUT and CAPTURED: one byte that says which stream, seven zero bytes, then at most this much. */
#define FRAME_STREAM_BYTES 8
#define FRAME_OUTPUT_MAX_BYTES ((size_t)64 << 10)
/* A run's channel, its standard input, two pipes, and what the command gets beyond its standard streams. */
#define FRAME_MAX_EXTRA 64
#define FRAME_MAX_DESCRIPTORS (4 + FRAME_MAX_EXTRA)

/* Who sends a frame. */
enum frame_sender { FRAME_FROM_CLIENT, FRAME_FROM_ENGINE };

/* What else is to be known of a kind of frame. */
enum frame_trait {
	FRAME_BEGINS = 1, /* a channel can begin with it */
	FRAME_LAST = 2,   /* the channel ends with it */
	FRAME_JOINS = 4,  /* it brings another channel, which gets the answer: the first descriptor */
	FRAME_FEEDS = 8,  /* its request can bring a descriptor to read standard input from */
	FRAME_OPENS = 16, /* it brings one descriptor: a file or a socket */
};

/* Every kind of frame: name, number, who sends it, traits. docs/protocol.md has the same table; a test compares them. */
#define FRAMES(X)                                                                                                      \
	X(RUN, 1, FRAME_FROM_CLIENT, FRAME_BEGINS | FRAME_FEEDS)                                                       \
	X(OPEN, 2, FRAME_FROM_CLIENT, FRAME_BEGINS)                                                                    \
	X(ASK, 3, FRAME_FROM_CLIENT, FRAME_BEGINS)                                                                     \
	X(JOIN, 4, FRAME_FROM_CLIENT, FRAME_JOINS | FRAME_FEEDS)                                                       \
	X(FILE, 5, FRAME_FROM_CLIENT, FRAME_JOINS)                                                                     \
	X(SIGNAL, 6, FRAME_FROM_CLIENT, 0)                                                                             \
	X(CANCEL, 7, FRAME_FROM_CLIENT, 0)                                                                             \
	X(RESIZE, 8, FRAME_FROM_CLIENT, 0)                                                                             \
	X(CLOSE, 9, FRAME_FROM_CLIENT, 0)                                                                              \
	X(GO, 10, FRAME_FROM_CLIENT, 0)                                                                                \
	X(HELLO, 11, FRAME_FROM_CLIENT, FRAME_BEGINS)                                                                  \
	X(CONNECT, 12, FRAME_FROM_CLIENT, FRAME_JOINS)                                                                 \
	X(PROCESSES, 13, FRAME_FROM_CLIENT, FRAME_JOINS)                                                               \
	X(KILL, 14, FRAME_FROM_CLIENT, FRAME_JOINS)                                                                    \
	X(USAGE, 15, FRAME_FROM_CLIENT, FRAME_JOINS)                                                                   \
	X(STARTED, 65, FRAME_FROM_ENGINE, 0)                                                                           \
	X(OUTPUT, 66, FRAME_FROM_ENGINE, 0)                                                                            \
	X(CAPTURED, 67, FRAME_FROM_ENGINE, 0)                                                                          \
	X(RESULT, 68, FRAME_FROM_ENGINE, FRAME_LAST)                                                                   \
	X(OPENED, 69, FRAME_FROM_ENGINE, 0)                                                                            \
	X(FAILED, 70, FRAME_FROM_ENGINE, FRAME_LAST)                                                                   \
	X(CLOSED, 71, FRAME_FROM_ENGINE, FRAME_LAST)                                                                   \
	X(DESCRIPTOR, 72, FRAME_FROM_ENGINE, FRAME_LAST | FRAME_OPENS)                                                 \
	X(ANSWER, 73, FRAME_FROM_ENGINE, FRAME_LAST)                                                                   \
	X(EVENT, 74, FRAME_FROM_ENGINE, 0)

#define FRAME_TYPE(name, number, sender, traits) FRAME_##name = (number),
enum frame_type { FRAMES(FRAME_TYPE) };
#undef FRAME_TYPE

struct frame_row {
	const char *name;
	enum frame_sender sender;
	unsigned traits; /* enum frame_trait */
};

struct frame_header {
	uint32_t len;
	uint8_t type;
};

/* What is known of a type; NULL: there is no such type. */
const struct frame_row *frame_row(unsigned type);

void frame_header_write(unsigned char out[FRAME_HEADER_BYTES], enum frame_type type, size_t len);
/* -EPROTO: the bytes that must be zero are not. */
int frame_header_read(const unsigned char bytes[FRAME_HEADER_BYTES], struct frame_header *out);
/* Numbers in payloads are little endian. */
uint32_t frame_number(const void *bytes, size_t size);

#endif
