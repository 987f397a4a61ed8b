/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve/serve_prepared.h - jars that stand before anybody asks for them
 *
 * After a run the same policy is likely to be asked for again, so a jar for it is made while nobody waits. It is used for
 * one run and never for a second: nothing an earlier command touched is ever handed out. What it shows must still be what
 * a jar made now would show.
 */
#ifndef BELLJAR_ENGINE_SERVE_READY_H
#define BELLJAR_ENGINE_SERVE_READY_H

#include "serve/server_jar.h"

/* What jars must have in common to stand for one another. */
void prepared_key(const struct policy *policy, const char *current_directory, struct text *out);
/*
 * One that was made for @key, or NULL; @host is what a survey found just now. What is stale goes. *@hurry: how many runs
 * in a row have come so soon that one would not do.
 */
struct server_jar *prepared_take(struct server *server, const struct text *key, const struct host *host,
				 unsigned *hurry);
/* How many there should be for @key, and are not: of one, or of two where there is hurry. */
unsigned prepared_missing(const struct server *server, const struct text *key, unsigned hurry);
/* Make one more. Takes over what it needs of @key, @request and @policy; @host as in server_jar_build(). */
void prepared_prepare(struct server *server, struct text *key, struct request *request, struct policy *policy,
		      struct host *host, unsigned hurry);

#endif
