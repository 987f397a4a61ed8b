/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve/serve_door.h - the door for programs: many jars and runs for one client process, over sockets
 */
#ifndef BELLJAR_SERVE_SERVE_DOOR_H
#define BELLJAR_SERVE_SERVE_DOOR_H

#include "base/error.h"

struct engine_serve_request {
	int door_fd; /* one end of a SOCK_SEQPACKET pair, whose other end the client has; see docs/protocol.md */
	char *const *environment;
	char *argv_memory; /* see engine_request */
	size_t argv_memory_len;
};

/* Serve until the other end of the door socket closes; then nothing of any jar is left. 0 or a negative errno. */
int engine_serve(const struct engine_serve_request *request, struct error *error);

#endif
