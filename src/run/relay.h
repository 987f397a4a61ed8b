/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/relay.h - carry bytes from the caller's standard input to the command's
 *
 * Used where the descriptor itself must not be handed over: a terminal could be written to, a socket or a directory
 * could be a way out. Reads stop while the command does not take what was read.
 */
#ifndef BELLJAR_RUN_RELAY_H
#define BELLJAR_RUN_RELAY_H

#include "base/loop.h"

#define RELAY_BYTES 16384

struct relay {
	struct loop *loop;
	struct loop_watch source;
	struct loop_watch target;
	struct loop_timer retry; /* a terminal we are in the background of: look again later */
	int source_fd;		 /* borrowed; -1: nothing to relay */
	int target_fd;		 /* owned */
	bool is_target_terminal; /* the end of input is typed, not shown by closing */
	bool is_source_terminal;
	bool has_ended;
	size_t begin, end;
	char buffer[RELAY_BYTES];
};

/* Takes over @target_fd, which must be non-blocking. */
int relay_open(struct relay *relay, struct loop *loop, int source_fd, bool is_source_terminal, int target_fd,
	       bool is_target_terminal);
void relay_done(struct relay *relay);

#endif
