/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve/serve_look.h - LOOK: what processes of a session changed that other programs execute or obey
 */
#ifndef BELLJAR_SERVE_SERVE_LOOK_H
#define BELLJAR_SERVE_SERVE_LOOK_H

#include "serve/serve.h"
#include "serve/server_jar.h"

/* Search, and answer on @channel. */
void serve_look_begin(struct channel *channel, struct server_jar *server_jar, struct wire_frame *frame);

#endif
