/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/relay.h - carry bytes from the caller's standard input to the command's
 *
 * The descriptor itself is not handed over: it would be a way to the caller's terminal, pipe, file or network. Yet the
 * caller loses no more of its input than the command took. Of a pipe, bytes are duplicated with tee() and taken out only
 * when the command has read them; of a file, the position is put back at the end. From terminals and sockets, which allow
 * neither, the relay reads ahead.
 */
#ifndef BELLJAR_ENGINE_RUN_RELAY_H
#define BELLJAR_ENGINE_RUN_RELAY_H

#include "base/loop.h"

#define RELAY_BYTES 16384

struct relay {
	struct loop *loop;
	struct loop_watch source;
	struct loop_watch target;
	struct loop_timer retry; /* for changes without an event: see relay.c */
	uint64_t retry_ns;
	int source_fd;        /* -1: nothing more to relay */
	bool is_source_owned; /* opened again here, as a separate open file */
	bool is_source_pipe;
	bool is_source_socket;
	int file_fd;             /* the caller's regular file, borrowed; -1: not a file */
	int target_fd;           /* owned */
	int peek_fd;             /* the other end of the target, to see what was not read; owned; -1: none */
	bool is_target_terminal; /* the relay types the end of input instead of closing */
	bool is_line_open;       /* the last byte carried did not end a line */
	bool is_source_terminal;
	bool has_ended;
	bool is_held;
	size_t duplicated; /* bytes in both pipes, or taken since the last look */
	size_t begin, end;
	char buffer[RELAY_BYTES];
};

/* Takes over @target_fd, which must be non-blocking, and @peek_fd, its other end or -1. */
int run_relay_open(struct relay *relay, struct loop *loop, int source_fd, bool is_source_terminal, int target_fd,
		   int peek_fd, bool is_target_terminal);
/* Read nothing from the source until it is released. */
void run_relay_hold(struct relay *relay, bool is_held);
void run_relay_done(struct relay *relay);

#endif
