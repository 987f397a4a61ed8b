/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_frames.h - where messages of WebSocket and gRPC to the jar end
 *
 * Pure. A client may wait for the last byte of a message, so no byte of it can wait for the next message. The host's
 * framing decides where a message ends; the result of a search does not.
 */
#ifndef BELLJAR_GATE_INSPECT_INSPECT_FRAMES_H
#define BELLJAR_GATE_INSPECT_INSPECT_FRAMES_H

#include "gate/inspect/inspect_secrets.h"

/* --- WebSocket, RFC 6455 --- */

#define FRAME_HEAD_MAX 10
#define FRAME_CONTROL_MAX 125

/* Zeroes to begin with. */
struct frames {
	unsigned char head[FRAME_HEAD_MAX];
	size_t head_len;
	uint64_t left; /* of the frame */
	bool is_in_frame;
	bool is_control, is_last; /* the frame */
	bool is_in_message;
	struct text control;
	struct secret_search search; /* of the message, over all of its frames */
};

/*
 * Write the frames in @in that may go on to @out, as many, with the secrets in their messages made unreadable. Part of
 * a frame may go out in a later frame of the same message. False: a host may not send such frames without an
 * extension.
 */
bool inspect_frames_hide(struct frames *frames, const struct secrets *secrets, struct http_slice in, struct text *out);
void inspect_frames_done(struct frames *frames);

/* --- gRPC --- */

/* Zeroes to begin with. */
struct grpc {
	bool is_on; /* the body is made of messages */
	unsigned char head[5];
	size_t head_len;
	uint32_t left;
};

/* Shorten @part to what belongs to one message. True: the message ends with it. */
bool inspect_grpc_cut(struct grpc *grpc, struct http_slice *part);

#endif
