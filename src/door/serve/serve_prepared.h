/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_prepared.h - jars that are made before a client asks for them
 *
 * After a run the client is likely to ask for the same policy again, so the engine makes jars for it while it is idle.
 * Each is used for one run and never for a second: nothing an earlier command touched is ever handed out.
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_PREPARED_H
#define BELLJAR_DOOR_SERVE_SERVE_PREPARED_H

#include "door/serve/server_jar.h"

/*
 * A jar that was made for requests like @request and still shows what a jar made now would show, or NULL. @host is
 * what a survey found just now. Jars that show something else are closed.
 */
struct server_jar *serve_prepared_take(struct server *server, struct serve_request *request, const struct host *host);
/*
 * A run of @request went well: @wanted jars should wait for runs like it, at most PREPARED_DEPTH. Takes over @host,
 * what the run's own survey found. Nothing is made before serve_prepared_make().
 */
#define PREPARED_DEPTH 2
void serve_prepared_want(struct server *server, struct serve_request *request, struct host *host, unsigned wanted);
/* Make the jars that are wanted. The server calls it between two turns of its loop, when everybody has been answered. */
void serve_prepared_make(struct server *server);
/* Forget what is wanted. */
void serve_prepared_want_none(struct server *server);

#endif
