/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_pieces.h - cut output into pieces that never split a UTF-8 character
 */
#ifndef BELLJAR_ENGINE_ENGINE_PIECES_H
#define BELLJAR_ENGINE_ENGINE_PIECES_H

#include "engine/run/capture.h"

/* Bytes of an incomplete character at the end of the input, kept until the rest arrives. */
#define PIECES_CARRY_MAX 3
#define PIECES_BYTES_MAX (64 << 10)

struct pieces {
	unsigned char carry[STREAM_COUNT][PIECES_CARRY_MAX];
	size_t carry_len[STREAM_COUNT];
};

/* One piece, 1 to PIECES_BYTES_MAX bytes. */
typedef void pieces_function(void *owner, enum stream_index stream, const char *bytes, size_t len);

/* 0 or -ENOMEM. */
int engine_pieces_feed(struct pieces *pieces, enum stream_index stream, const void *bytes, size_t len,
		       pieces_function *function, void *owner);
/* End a stream: drop an incomplete character, or pass it on as a piece. */
void engine_pieces_end(struct pieces *pieces, enum stream_index stream, bool is_dropped, pieces_function *function,
		       void *owner);

#endif
