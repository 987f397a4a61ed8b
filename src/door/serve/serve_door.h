/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_door.h - the door for programs: many jars and runs for one client process, over sockets or over
 * standard input and output
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_DOOR_H
#define BELLJAR_DOOR_SERVE_SERVE_DOOR_H

#include "base/error.h"

struct engine_serve_request {
	/* One end of a SOCK_SEQPACKET pair, whose other end the client has; -1: standard input and output. See docs/protocol.md */
	int door_fd;
	char *const *environment;
	char *argv_memory; /* see engine_request */
	size_t argv_memory_len;
};

/* Serve until the client's end closes; then nothing of any jar is left. 0 or a negative errno. */
int serve_engine(const struct engine_serve_request *request, struct error *error);

#endif
