/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_task.h - what a client asks of a session that is no run: files, a connection, processes
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_TASK_H
#define BELLJAR_DOOR_SERVE_SERVE_TASK_H

#include "door/serve/server_jar.h"
#include "door/wire/request.h"

/* Does a frame of this type ask for it? *@kind is how to read it. */
bool serve_is_task(enum frame_type type, enum request_kind *kind);
/* Have it done in the jar, which stands; the answer goes to @channel. */
void serve_task_begin(struct channel *channel, struct server_jar *server_jar, enum request_kind kind,
		      const struct wire_frame *frame);

#endif
