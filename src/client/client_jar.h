/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_jar.h - between the files about sessions
 */
#ifndef BELLJAR_CLIENT_CLIENT_JAR_H
#define BELLJAR_CLIENT_CLIENT_JAR_H

#include "client/client_request.h"

/* Send a task to the jar and wait for its ANSWER or DESCRIPTOR. @channel holds the reply; free it in any case. */
int client_jar_ask(struct belljar_jar *jar, const struct client_task *task, struct client_channel *channel,
		   struct client_frame *frame, struct belljar_error *failure);
/* The same for any request on the jar's channel; @frame is a frame of any kind. The jar was checked. */
int client_jar_send(struct belljar_jar *jar, struct client_request *request, enum frame_type type,
		    struct client_channel *channel, struct client_frame *frame, struct belljar_error *failure);
/* Check that the jar is ready, and that this process opened it. */
int client_jar_check(const struct belljar_jar *jar, struct belljar_error *failure);
struct belljar_engine *client_jar_engine(const struct belljar_jar *jar);
/* Set the new text of belljar_jar_info() after the jar was made again. Takes @info over. */
void client_jar_opened_again(struct belljar_jar *jar, char *info);
/* Read the error of a FAILED frame; any other frame is unexpected. */
int client_read_refusal(const struct client_frame *frame, struct belljar_error *failure);

#endif
