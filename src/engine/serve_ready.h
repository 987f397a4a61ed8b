/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/serve_ready.h - jars that stand before anybody asks for them
 *
 * After a run the same policy is likely to be asked for again, so a jar for it is made while nobody waits. It is used for
 * one run and never for a second: nothing an earlier command touched is ever handed out. What it shows must still be what
 * a jar made now would show.
 */
#ifndef BELLJAR_ENGINE_SERVE_READY_H
#define BELLJAR_ENGINE_SERVE_READY_H

#include "engine/serve_house.h"

/* What jars must have in common to stand for one another. */
void ready_key(const struct policy *policy, const char *current_directory, struct text *out);
/* One that was made for @key, or NULL; @host is what a survey found just now. What is stale goes. */
struct house *ready_take(struct server *server, const struct text *key, struct host *host);
/* Make one, if there is none. Takes over what it needs of @key, @request and @policy. */
void ready_prepare(struct server *server, struct text *key, struct request *request, struct policy *policy);

#endif
