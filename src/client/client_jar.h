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
/* The same for any request on the jar's channel; @frame is whatever came. The jar was checked. */
int client_jar_send(struct belljar_jar *jar, struct client_request *request, enum frame_type type,
		    struct client_channel *channel, struct client_frame *frame, struct belljar_error *failure);
/* Is it one that stands, and ours? */
int client_jar_check(const struct belljar_jar *jar, struct belljar_error *failure);
struct belljar_engine *client_jar_engine(const struct belljar_jar *jar);
/* It was made anew: @info, taken over, is what belljar_jar_info() says from now on. */
void client_jar_opened_again(struct belljar_jar *jar, char *info);
/* What a FAILED frame says; anything else is unexpected. */
int client_read_refusal(const struct client_frame *frame, struct belljar_error *failure);

#endif
