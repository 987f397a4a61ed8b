/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_jar.h - between the files about sessions
 */
#ifndef BELLJAR_CLIENT_CLIENT_JAR_H
#define BELLJAR_CLIENT_CLIENT_JAR_H

#include "client/client_request.h"

/* Ask the jar for something and wait for its ANSWER or DESCRIPTOR. @channel, to be freed in any case, holds what came. */
int client_jar_ask(struct belljar_jar *jar, const struct client_task *task, struct client_channel *channel,
		   struct client_frame *frame, struct belljar_error *failure);

#endif
