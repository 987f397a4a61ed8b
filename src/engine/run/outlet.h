/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/outlet.h - write to a descriptor that others share, without ever blocking and without changing it for them
 *
 * O_NONBLOCK belongs to the open file, not to the descriptor: setting it on an inherited stdout would change it for the
 * shell too. A pipe or terminal is therefore opened anew through /proc; a socket is sent to with MSG_DONTWAIT; where
 * neither works, small writes follow a readiness notice. Regular files are written to directly.
 */
#ifndef BELLJAR_ENGINE_RUN_OUTLET_H
#define BELLJAR_ENGINE_RUN_OUTLET_H

#include "base/loop.h"
#include "base/text.h"

struct outlet;

/* Called when bytes were written, so that more may be read, or when the outlet was lost. */
typedef void outlet_function(struct outlet *outlet);

struct outlet {
	struct loop *loop;
	struct loop_watch watch;
	int fd; /* the one written to; owned if it is not @borrowed_fd */
	int borrowed_fd;
	bool is_socket;
	bool is_careful;         /* could not be made non-blocking: only small writes when ready */
	bool is_watching_reader; /* notice a reader that goes away even while there is nothing to write */
	bool is_held;            /* write nothing for now */
	struct text pending;
	int lost_error; /* a positive errno: the descriptor takes no more bytes */
	outlet_function *function;
	void *owner;
};

/* If more is pending than this, the writer should wait. */
#define OUTLET_HIGH_WATER (64 << 10)

int run_outlet_open(struct outlet *outlet, struct loop *loop, int fd, bool is_watching_reader,
		    outlet_function *function, void *owner);
void run_outlet_done(struct outlet *outlet);
/* Write as much as possible now, and keep the rest. */
void run_outlet_write(struct outlet *outlet, const void *bytes, size_t len);

/* Keep all bytes until the outlet is released. */
void run_outlet_hold(struct outlet *outlet, bool is_held);

static inline bool run_outlet_is_full(const struct outlet *outlet)
{
	return outlet->pending.len >= OUTLET_HIGH_WATER;
}

static inline bool run_outlet_is_empty(const struct outlet *outlet)
{
	return !outlet->pending.len || outlet->lost_error;
}

#endif
