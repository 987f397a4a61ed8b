/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve/serve_door.h - the door for programs: many jars and runs for one host process, over sockets
 */
#ifndef BELLJAR_ENGINE_ENGINE_SERVE_H
#define BELLJAR_ENGINE_ENGINE_SERVE_H

#include "base/error.h"

struct engine_serve_request {
	int door_fd; /* one end of a SOCK_SEQPACKET pair, whose other end the host has; see docs/protocol.md */
	char *const *environment;
	char *area; /* see engine_request */
	size_t area_len;
};

/* Serve until the other end of the root closes; then nothing of any jar is left. 0 or a negative errno. */
int engine_serve(const struct engine_serve_request *request, struct error *error);

#endif
