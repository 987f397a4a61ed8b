/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_run.h - a run on a channel
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_RUN_H
#define BELLJAR_DOOR_SERVE_SERVE_RUN_H

#include "door/serve/server_jar.h"

/* JOIN: a run in @server_jar, on a channel of its own; the run's descriptors of @frame begin with @first. */
void serve_run_join(struct channel *channel, struct server_jar *server_jar, struct wire_frame *frame, size_t first);

#endif
