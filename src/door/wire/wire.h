/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/wire/wire.h - frames in and out over one stream socket, in a loop, without ever blocking
 *
 * It never reads past the current frame: the kernel delivers descriptors with the bytes that they were sent with, so
 * descriptors that arrive belong to that frame. Frames that cannot be sent at once wait. A sender of many frames
 * checks wire_is_full(), and waits for drained().
 */
#ifndef BELLJAR_DOOR_WIRE_WIRE_H
#define BELLJAR_DOOR_WIRE_WIRE_H

#include "base/error.h"
#include "base/loop.h"
#include "base/text.h"
#include "door/wire/frame.h"

struct wire_frame {
	enum frame_type type;
	const char *payload; /* NUL-terminated, for convenience; borrowed */
	size_t len;
	int *fds; /* the wire's; a caller that takes one puts -1 in its place; the wire closes the others */
	size_t fd_count;
};

/* Called from within the loop. None of them may free the wire. */
struct wire_listener {
	void *owner;
	void (*frame)(void *owner, struct wire_frame *frame);
	/* The waiting frames have been sent. */
	void (*drained)(void *owner);
	/* Nothing more will be read. @error: the bytes are not a valid frame; NULL: the other side has closed. */
	void (*ended)(void *owner, const struct error *error);
};

struct wire {
	struct loop *loop;
	struct loop_watch watch;
	struct wire_listener listener;
	int fd; /* owned */
	bool is_reading;
	bool is_lost; /* nothing more can be sent */
	unsigned char header[FRAME_HEADER_BYTES];
	size_t header_len;
	struct text payload;
	int fds[FRAME_MAX_DESCRIPTORS];
	size_t fd_count;
	size_t max_bytes; /* of a payload that is read: FRAME_MAX_BYTES, unless changed after wire_open() */
	struct text pending;
	size_t pending_at;  /* what of @pending was sent already */
	int pending_fds[2]; /* go with the next byte of @pending */
	size_t pending_fd_count;
};

/* With more than this pending, the sender should wait. */
#define WIRE_HIGH_WATER ((size_t)128 << 10)

/* Takes over @fd, also where it fails. -ENOTSOCK: it is no stream socket between processes. */
int wire_open(struct wire *wire, struct loop *loop, int fd, const struct wire_listener *listener);
void wire_done(struct wire *wire);
/* Stop calling frame() and ended(). */
void wire_stop_reading(struct wire *wire);
void wire_resume_reading(struct wire *wire);

/* @fd goes with the frame, which must then be the first; -1: none. Borrowed. */
void wire_send(struct wire *wire, enum frame_type type, const void *payload, size_t len, int fd);
/*
 * A frame that takes over @fds, at most two. The wire must be empty: they go with its first byte. 0, or a negative errno: nothing of
 * it was sent, and the wire is as it was. ETOOMANYREFS: too many descriptors of the user's are on their way.
 */
int wire_send_descriptors(struct wire *wire, enum frame_type type, const void *payload, size_t len, int *fds,
			  size_t fd_count);
/* OUTPUT or CAPTURED; @len at most FRAME_OUTPUT_MAX_BYTES. */
void wire_send_stream(struct wire *wire, enum frame_type type, unsigned stream, const void *bytes, size_t len);

static inline bool wire_is_full(const struct wire *wire)
{
	return wire->pending.len - wire->pending_at >= WIRE_HIGH_WATER;
}

static inline bool wire_is_empty(const struct wire *wire)
{
	return wire->pending.len == wire->pending_at || wire->is_lost;
}

#endif
