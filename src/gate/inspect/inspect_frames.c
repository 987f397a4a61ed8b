/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_frames.c - where messages end, in what a WebSocket or gRPC brings to the jar
 *
 * A value may be cut by the frames of one message, so the search runs over messages. The tail of a frame waits for the next frame of
 * the message: a frame that goes on is as long as the one that came, and what waited before it, without what waits behind it. All
 * three are known with its head, since the number of bytes that wait depends on no content.
 */
#include "gate/inspect/inspect_frames.h"

#include <string.h>

#define FRAME_FIN 0x80
#define FRAME_RESERVED 0x70
#define FRAME_OPCODE 0x0f
#define FRAME_MASKED 0x80
#define LENGTH_16 126
#define LENGTH_64 127

enum opcode { OPCODE_MORE, OPCODE_TEXT, OPCODE_BINARY, OPCODE_CLOSE = 8, OPCODE_PING, OPCODE_PONG };

/* --- WebSocket ---------------------------------------------------------------------------------------------- */

static size_t head_size(const struct frames *frames)
{
	unsigned length = frames->head_len < 2 ? 0 : frames->head[1] & ~FRAME_MASKED;

	return length == LENGTH_16 ? 4 : length == LENGTH_64 ? 10 : 2;
}

static uint64_t length_of(const struct frames *frames)
{
	uint64_t length = 0;

	if (head_size(frames) == 2)
		return frames->head[1];
	for (size_t i = 2; i < head_size(frames); i++)
		length = length << 8 | frames->head[i];
	return length;
}

static void write_head(unsigned char first, uint64_t length, struct text *out)
{
	int size = length < LENGTH_16 ? 0 : length <= UINT16_MAX ? 2 : 8;

	text_append_char(out, (char)first);
	text_append_char(out, (char)(size == 0 ? length : size == 2 ? LENGTH_16 : LENGTH_64));
	for (int i = size - 1; i >= 0; i--)
		text_append_char(out, (char)(length >> 8 * i));
}

static bool begin_control(struct frames *frames)
{
	enum opcode opcode = frames->head[0] & FRAME_OPCODE;

	text_clear(&frames->control);
	return (opcode == OPCODE_CLOSE || opcode == OPCODE_PING || opcode == OPCODE_PONG) && frames->is_last &&
	       frames->left <= FRAME_CONTROL_MAX;
}

static bool begin_data(struct frames *frames, const struct secrets *secrets, struct text *out)
{
	enum opcode opcode = frames->head[0] & FRAME_OPCODE;
	uint64_t waited = inspect_secret_search_tail(&frames->search), all;

	if (opcode > OPCODE_BINARY || (opcode == OPCODE_MORE) != frames->is_in_message ||
	    __builtin_add_overflow(frames->left, waited, &all) || all > INT64_MAX)
		return false;
	write_head(frames->head[0], frames->is_last ? all : all - MIN_OF(all, (uint64_t)inspect_secrets_tail(secrets)),
		   out);
	frames->is_in_message = true;
	return true;
}

/* The head is whole. */
static bool begin_frame(struct frames *frames, const struct secrets *secrets, struct text *out)
{
	if (frames->head[0] & FRAME_RESERVED || frames->head[1] & FRAME_MASKED)
		return false;
	frames->left = length_of(frames);
	frames->is_last = frames->head[0] & FRAME_FIN;
	frames->is_control = (frames->head[0] & FRAME_OPCODE) >= OPCODE_CLOSE;
	frames->is_in_frame = true;
	return frames->is_control ? begin_control(frames) : begin_data(frames, secrets, out);
}

static bool take_control(struct frames *frames, const struct secrets *secrets, struct http_slice part, struct text *out)
{
	struct text *control = &frames->control;

	text_append(control, part.bytes, part.len);
	if (frames->left || text_failed(control))
		return !text_failed(control);
	if (control->len && !inspect_secrets_hide(secrets, control->data, control->len))
		return false;
	write_head(frames->head[0], control->len, out);
	text_append(out, text_string(control), control->len);
	return true;
}

static bool take_data(struct frames *frames, const struct secrets *secrets, struct http_slice part, struct text *out)
{
	bool is_over = frames->is_last && !frames->left, has_failed;
	struct http_slice ready =
		inspect_secrets_search(secrets, &frames->search, part, is_over ? SEARCH_END : SEARCH_MESSAGE);

	text_append(out, ready.bytes, ready.len);
	has_failed = inspect_secret_search_failed(&frames->search);
	if (is_over) {
		inspect_secret_search_done(&frames->search);
		frames->is_in_message = false;
	}
	return !has_failed;
}

bool inspect_frames_hide(struct frames *frames, const struct secrets *secrets, struct http_slice in, struct text *out)
{
	for (size_t at = 0; at < in.len;) {
		struct http_slice part;
		bool is_taken;

		if (!frames->is_in_frame) {
			frames->head[frames->head_len++] = (unsigned char)in.bytes[at++];
			if (frames->head_len < head_size(frames))
				continue;
			if (!begin_frame(frames, secrets, out))
				return false;
		}
		part = (struct http_slice){in.bytes + at, MIN_OF(in.len - at, frames->left)};
		at += part.len;
		frames->left -= part.len;
		is_taken = frames->is_control ? take_control(frames, secrets, part, out)
					      : take_data(frames, secrets, part, out);
		if (!is_taken)
			return false;
		if (!frames->left) {
			frames->is_in_frame = false;
			frames->head_len = 0;
		}
	}
	return true;
}

void inspect_frames_done(struct frames *frames)
{
	text_done(&frames->control);
	inspect_secret_search_done(&frames->search);
}

/* --- gRPC --------------------------------------------------------------------------------------------------- */

bool inspect_grpc_cut(struct grpc *grpc, struct http_slice *part)
{
	size_t used = 0;

	if (!grpc->is_on)
		return false;
	while (grpc->head_len < sizeof(grpc->head) && used < part->len) {
		unsigned char byte = (unsigned char)part->bytes[used++];

		/* The first says that it is not packed; the others are its length. Else these are no messages. */
		if (!grpc->head_len && byte) {
			grpc->is_on = false;
			return false;
		}
		grpc->head[grpc->head_len++] = byte;
		grpc->left = grpc->left << 8 | byte;
	}
	if (grpc->head_len < sizeof(grpc->head))
		return false;
	part->len = used + MIN_OF(part->len - used, grpc->left);
	grpc->left -= (uint32_t)(part->len - used);
	if (grpc->left)
		return false;
	grpc->head_len = 0;
	return true;
}
