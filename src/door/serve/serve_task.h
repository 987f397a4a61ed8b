/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_task.h - requests to a session other than runs: files, a connection, processes
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_TASK_H
#define BELLJAR_DOOR_SERVE_SERVE_TASK_H

#include "door/serve/server_jar.h"
#include "door/wire/request.h"

/* Report whether frames of this type are tasks. *@kind is the kind of their request. */
bool serve_is_task(enum frame_type type, enum request_kind *kind);
/* Carry a task out in the jar, which is ready; the answer goes to @channel. */
void serve_task_begin(struct channel *channel, struct server_jar *server_jar, enum request_kind kind,
		      const struct wire_frame *frame);

#endif
