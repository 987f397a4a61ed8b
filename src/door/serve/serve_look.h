/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_look.h - LOOK: changed files of a session that other programs execute or read as configuration
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_LOOK_H
#define BELLJAR_DOOR_SERVE_SERVE_LOOK_H

#include "door/serve/serve.h"
#include "door/serve/server_jar.h"

/* Search, and answer on @channel. */
void serve_look_begin(struct channel *channel, struct server_jar *server_jar, struct wire_frame *frame);

#endif
