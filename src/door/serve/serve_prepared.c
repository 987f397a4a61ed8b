/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_prepared.c - jars that are made before anybody asks for them
 *
 * Two wait for each policy that is in use. With one, a client that sends its next run at once would wait until the jar
 * is made; with two, one is made while the other is used. Before a jar is used the engine checks that every fact the
 * planner would see is unchanged (survey/survey_same.c); a jar that is not used for a while goes, and so does the
 * oldest when there are too many.
 */
#include "door/serve/serve_prepared.h"

#include <string.h>

#include "survey/survey_same.h"
#include "policy/policy_build.h"
#include "base/sys/calls.h"

/* The most jars that wait in all: for the four policies used last. */
#define PREPARED_MAX (4 * PREPARED_DEPTH)
/* An unused jar is removed after this time. */
#define IDLE_NS 30000000000ULL

struct prepared {
	struct server_jar server_jar; /* first: it is freed through it */
	struct prepared *next;
	struct loop_timer idle;
};

/* A run went well, and jars for the runs that follow are still to be made. */
struct prepared_wish {
	struct prepared_wish *next;
	struct serve_request *request;
	struct host host;
	unsigned wanted;
};

static void set_key(struct serve_request *request)
{
	text_append_string(&request->jar_key, request->wire.cwd ? request->wire.cwd : "");
	text_append(&request->jar_key, "", 1);
	policy_print_jar(&request->policy, &request->jar_key);
}

static bool is_for(const struct prepared *prepared, const struct serve_request *request)
{
	const struct text *left = &prepared->server_jar.request->jar_key, *right = &request->jar_key;

	return left->len == right->len && !text_failed(left) && !text_failed(right) &&
	       !memcmp(text_string(left), text_string(right), left->len);
}

static void prepared_unlist(struct prepared *prepared)
{
	for (struct prepared **at = &prepared->server_jar.object.server->prepared; *at; at = &(*at)->next) {
		if (*at == prepared) {
			*at = prepared->next;
			break;
		}
	}
	loop_disarm(&prepared->idle);
}

static void prepared_drop(struct prepared *prepared)
{
	prepared_unlist(prepared);
	server_jar_close(&prepared->server_jar);
}

static void prepared_on_idle(struct loop_timer *timer)
{
	prepared_drop(timer->owner);
}

static void prepared_on_gone(struct server_jar *server_jar)
{
	prepared_unlist((struct prepared *)server_jar);
}

static void prepared_kill(struct object *object)
{
	server_jar_close((struct server_jar *)object);
}

static void prepared_free(struct object *object)
{
	struct prepared *prepared = (struct prepared *)object;

	prepared_unlist(prepared);
	server_jar_done(&prepared->server_jar);
	free(prepared);
}

/* Does it show what a jar made now would show? */
static bool is_true(const struct prepared *prepared, const struct host *host)
{
	return prepared->server_jar.jar && !prepared->server_jar.is_gone &&
	       survey_is_same(&prepared->server_jar.launch.host, host);
}

struct server_jar *serve_prepared_take(struct server *server, struct serve_request *request, const struct host *host)
{
	struct prepared *found = NULL, *next;

	set_key(request);
	for (struct prepared *prepared = server->prepared; prepared; prepared = next) {
		next = prepared->next;
		if (!is_for(prepared, request))
			continue;
		if (!is_true(prepared, host))
			prepared_drop(prepared);
		else if (!found || prepared->server_jar.is_standing || !found->server_jar.is_standing)
			found = prepared; /* of two, one that is ready; of these, the older one */
	}
	if (!found)
		return NULL;
	prepared_unlist(found);
	return &found->server_jar;
}

/* The one that has waited longest makes room. */
static void make_room(struct server *server)
{
	size_t count = 0;

	for (struct prepared *prepared = server->prepared, *next; prepared; prepared = next) {
		next = prepared->next;
		if (++count >= PREPARED_MAX)
			prepared_drop(prepared);
	}
}

static void prepare_one(struct server *server, struct serve_request *request, struct host *host)
{
	struct prepared *prepared;

	make_room(server);
	prepared = calloc(1, sizeof(*prepared));
	if (!prepared)
		return;
	prepared->server_jar.object = (struct object){.kill = prepared_kill, .free = prepared_free};
	prepared->server_jar.gone = prepared_on_gone;
	server_jar_init(&prepared->server_jar, server, PLAN_PREPARED, request);
	prepared->next = server->prepared;
	server->prepared = prepared;
	loop_arm(server->loop, &prepared->idle, sys_monotonic_ns() + IDLE_NS, prepared_on_idle, prepared);
	server_jar_build(&prepared->server_jar, host);
}

static void prepared_fill(struct server *server, struct prepared_wish *wish)
{
	struct host *host = &wish->host;
	unsigned count = 0;

	for (const struct prepared *prepared = server->prepared; prepared; prepared = prepared->next)
		count += is_for(prepared, wish->request);
	for (; count < MIN_OF(wish->wanted, PREPARED_DEPTH) && server_has_descriptors(server); count++) {
		prepare_one(server, wish->request, host);
		host = NULL; /* it was taken over; another jar looks for itself */
	}
}

void serve_prepared_want(struct server *server, struct serve_request *request, struct host *host, unsigned wanted)
{
	/* The value of a secret may be another one when the next run comes. */
	struct prepared_wish *wish = request->policy.secrets.count ? NULL : calloc(1, sizeof(*wish));

	if (!wish) {
		survey_done(host);
		return;
	}
	wish->request = serve_request_hold(request);
	wish->host = *host;
	*host = (struct host){0};
	wish->wanted = wanted;
	wish->next = server->wishes;
	server->wishes = wish;
}

static void drop_first_wish(struct server *server)
{
	struct prepared_wish *wish = server->wishes;

	server->wishes = wish->next;
	serve_request_release(wish->request);
	survey_done(&wish->host);
	free(wish);
}

void serve_prepared_make(struct server *server)
{
	for (; server->wishes; drop_first_wish(server))
		prepared_fill(server, server->wishes);
}

void serve_prepared_want_none(struct server *server)
{
	while (server->wishes)
		drop_first_wish(server);
}
