/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_pieces.c - cut output into pieces that never split a UTF-8 character
 */
#include "engine/engine_pieces.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"

int engine_pieces_feed(struct pieces *pieces, enum stream_index stream, const void *bytes, size_t len,
		       pieces_function *function, void *owner)
{
	AUTO_TEXT joined = {0};
	const char *from = bytes;
	size_t at = 0, tail;

	if (pieces->carry_len[stream]) {
		text_append(&joined, pieces->carry[stream], pieces->carry_len[stream]);
		text_append(&joined, bytes, len);
		if (text_failed(&joined))
			return -ENOMEM;
		from = joined.data;
		len = joined.len;
	}
	tail = utf8_cut_tail((const unsigned char *)from, len);
	while (at < len - tail) {
		size_t piece = MIN_OF(len - tail - at, (size_t)PIECES_BYTES_MAX);

		if (at + piece < len - tail)
			piece -= utf8_cut_tail((const unsigned char *)from + at, piece);
		function(owner, stream, from + at, piece);
		at += piece;
	}
	memcpy(pieces->carry[stream], from + len - tail, tail);
	pieces->carry_len[stream] = tail;
	return 0;
}

void engine_pieces_end(struct pieces *pieces, enum stream_index stream, bool is_dropped, pieces_function *function,
		       void *owner)
{
	size_t len = pieces->carry_len[stream];

	pieces->carry_len[stream] = 0;
	if (len && !is_dropped)
		function(owner, stream, (const char *)pieces->carry[stream], len);
}
