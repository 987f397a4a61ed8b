/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/wire/frame.h - the frames of the engine's protocol: types, header, bounds
 *
 * docs/protocol.md describes each. A frame is eight bytes of header and a payload. If a channel is a socket,
 * descriptors travel with the frame's first byte. If channels share a stream of bytes, the header names the channel.
 */
#ifndef BELLJAR_DOOR_WIRE_FRAME_H
#define BELLJAR_DOOR_WIRE_FRAME_H

#include "base/base.h"

#define WIRE_VERSION 2
#define FRAME_HEADER_BYTES 8
/* Where channels share a stream: the greatest number of a channel, and how many may be open. */
#define FRAME_CHANNEL_MAX 0xffffffU
#define FRAME_CHANNELS_OPEN_MAX 4096
#define FRAME_CHANNEL_BYTES 4
/* The credit of either side on a new channel, and the most that it can get. */
#define FRAME_WINDOW_BYTES ((size_t)256 << 10)
#define FRAME_CREDIT_MAX_BYTES ((size_t)1 << 30)
/* To the engine: 1 MiB of JSON and 4 MiB of arguments and environment. */
#define FRAME_MAX_BYTES ((size_t)5 << 20)
/* OUTPUT and CAPTURED: one byte that says which stream, seven zero bytes, then at most this much. */
#define FRAME_STREAM_BYTES 8
#define FRAME_OUTPUT_MAX_BYTES ((size_t)64 << 10)
#define FRAME_DATA_MAX_BYTES ((size_t)64 << 10)
/* Any other from the engine. */
#define FRAME_ANSWER_MAX_BYTES ((size_t)16 << 20)
/* A run's channel, its standard input, two pipes, and what the command gets beyond its standard streams. */
#define FRAME_MAX_EXTRA 64
#define FRAME_MAX_DESCRIPTORS (4 + FRAME_MAX_EXTRA)

/* The sender of a frame. */
enum frame_sender { FRAME_FROM_CLIENT, FRAME_FROM_ENGINE, FRAME_FROM_BOTH };

/* Other properties of a kind of frame. */
enum frame_trait {
	FRAME_BEGINS = 1,   /* a channel can begin with it */
	FRAME_LAST = 2,     /* the channel ends with it */
	FRAME_JOINS = 4,    /* it brings another channel, which gets the answer: the first descriptor */
	FRAME_FEEDS = 8,    /* its request can bring a descriptor to read standard input from */
	FRAME_OPENS = 16,   /* it brings one descriptor: a file or a socket */
	FRAME_COUNTED = 32, /* where channels share a stream: only within the credit that the other side has given */
	FRAME_SHARED = 64,  /* only where channels share a stream */
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
	X(NET, 16, FRAME_FROM_CLIENT, FRAME_JOINS)                                                                     \
	X(REPLY, 17, FRAME_FROM_CLIENT, 0)                                                                             \
	X(WORKSPACE, 18, FRAME_FROM_CLIENT, FRAME_BEGINS)                                                              \
	X(LAYER, 19, FRAME_FROM_CLIENT, FRAME_JOINS)                                                                   \
	X(LOOK, 20, FRAME_FROM_CLIENT, FRAME_JOINS)                                                                    \
	X(STARTED, 65, FRAME_FROM_ENGINE, 0)                                                                           \
	X(OUTPUT, 66, FRAME_FROM_ENGINE, FRAME_COUNTED)                                                                \
	X(CAPTURED, 67, FRAME_FROM_ENGINE, FRAME_COUNTED)                                                              \
	X(RESULT, 68, FRAME_FROM_ENGINE, FRAME_LAST)                                                                   \
	X(OPENED, 69, FRAME_FROM_ENGINE, 0)                                                                            \
	X(FAILED, 70, FRAME_FROM_ENGINE, FRAME_LAST)                                                                   \
	X(CLOSED, 71, FRAME_FROM_ENGINE, FRAME_LAST)                                                                   \
	X(DESCRIPTOR, 72, FRAME_FROM_ENGINE, FRAME_LAST | FRAME_OPENS)                                                 \
	X(ANSWER, 73, FRAME_FROM_ENGINE, FRAME_LAST)                                                                   \
	X(EVENT, 74, FRAME_FROM_ENGINE, 0)                                                                             \
	X(DATA, 128, FRAME_FROM_BOTH, FRAME_COUNTED | FRAME_SHARED)                                                    \
	X(DATA_END, 129, FRAME_FROM_BOTH, FRAME_SHARED)                                                                \
	X(DATA_STOP, 130, FRAME_FROM_ENGINE, FRAME_SHARED)                                                             \
	X(CREDIT, 131, FRAME_FROM_BOTH, FRAME_SHARED)                                                                  \
	X(END, 132, FRAME_FROM_BOTH, FRAME_SHARED)

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
	uint32_t channel; /* 0 where a channel has a socket of its own */
};

/* Return the row of a type; NULL: there is no such type. */
const struct frame_row *frame_row(unsigned type);
/* Return the traits of a type, 0 if there is no such type. */
unsigned frame_traits(unsigned type);

void frame_header_write(unsigned char out[FRAME_HEADER_BYTES], enum frame_type type, size_t len, uint32_t channel);
void frame_header_read(const unsigned char bytes[FRAME_HEADER_BYTES], struct frame_header *out);
/* Numbers are little endian. */
void frame_number_write(unsigned char *out, uint32_t number, size_t size);
uint32_t frame_number(const void *bytes, size_t size);

#endif
