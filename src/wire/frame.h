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

#define WIRE_VERSION 1
#define FRAME_HEADER_BYTES 8
/* To the engine: 1 MiB of JSON and 4 MiB of arguments and environment. */
#define FRAME_MAX_BYTES ((size_t)5 << 20)
/* OUTPUT and CAPTURED: one byte that says which stream, seven zero bytes, then at most this much. */
#define FRAME_STREAM_BYTES 8
#define FRAME_OUTPUT_MAX_BYTES ((size_t)64 << 10)
/* A run's channel, its standard input, two pipes, and what the command gets beyond its standard streams. */
#define FRAME_MAX_EXTRA 64
#define FRAME_MAX_DESCRIPTORS (4 + FRAME_MAX_EXTRA)

enum frame_type {
	/* from the client */
	FRAME_RUN = 1,
	FRAME_OPEN = 2,
	FRAME_ASK = 3,
	FRAME_JOIN = 4,
	FRAME_FILE = 5,
	FRAME_SIGNAL = 6,
	FRAME_CANCEL = 7,
	FRAME_RESIZE = 8,
	FRAME_CLOSE = 9,
	FRAME_GO = 10,
	/* from the engine */
	FRAME_STARTED = 65,
	FRAME_OUTPUT = 66,
	FRAME_CAPTURED = 67,
	FRAME_RESULT = 68,
	FRAME_OPENED = 69,
	FRAME_FAILED = 70,
	FRAME_CLOSED = 71,
	FRAME_DESCRIPTOR = 72,
	FRAME_ANSWER = 73,
};

struct frame_header {
	uint32_t len;
	uint8_t type;
};

void frame_header_write(unsigned char out[FRAME_HEADER_BYTES], enum frame_type type, size_t len);
/* -EPROTO: the bytes that must be zero are not. */
int frame_header_read(const unsigned char bytes[FRAME_HEADER_BYTES], struct frame_header *out);
/* Numbers in payloads are little endian. */
uint32_t frame_number(const void *bytes, size_t size);

#endif
