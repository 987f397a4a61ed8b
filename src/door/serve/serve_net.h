/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_net.h - a rule for the network of a session
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_NET_H
#define BELLJAR_DOOR_SERVE_SERVE_NET_H

#include "door/serve/server_jar.h"

/* Begin a NET request; the answer goes to @channel. */
void serve_net_begin(struct channel *channel, struct server_jar *server_jar, const struct wire_frame *frame);

#endif
