/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve/serve_prepared.c - jars that stand before anybody asks for them
 */
#include "serve/serve_prepared.h"

#include <string.h>

#include "host/host_same.h"
#include "policy/policy_build.h"
#include "sys/calls.h"

/* So many at a time, for the policies used last: two each for four of them. */
#define READY_MAX 8
/* One that nobody has asked for goes after this long. */
#define IDLE_NS 30000000000ULL
/* After so many in a row that had to wait for one to be made there are two. */
#define HURRIED_RUNS 3
/* The second of two is replaced as long as they are asked for sooner than this. */
#define HURRY_NS 20000000ULL

struct ready {
	struct server_jar server_jar; /* first: it is freed through it */
	struct ready *next;
	struct text key;
	unsigned hurry; /* of the run after which it was made */
	uint64_t made_ns;
	struct loop_timer idle;
};

void prepared_key(const struct policy *policy, const char *current_directory, struct text *out)
{
	text_append_string(out, current_directory ? current_directory : "");
	text_append(out, "", 1);
	policy_print_jar(policy, out);
}

static bool is_same_key(const struct text *left, const struct text *right)
{
	return left->len == right->len && !text_failed(left) && !text_failed(right) &&
	       !memcmp(text_string(left), text_string(right), left->len);
}

static void unlist(struct ready *ready)
{
	for (struct ready **at = &ready->server_jar.object.server->ready; *at; at = &(*at)->next) {
		if (*at == ready) {
			*at = ready->next;
			break;
		}
	}
	loop_disarm(&ready->idle);
}

static void drop(struct ready *ready)
{
	unlist(ready);
	server_jar_close(&ready->server_jar);
}

static void on_idle(struct loop_timer *timer)
{
	drop(timer->owner);
}

static void on_gone(struct server_jar *server_jar)
{
	unlist((struct ready *)server_jar);
}

static void kill_prepared(struct object *object)
{
	server_jar_close((struct server_jar *)object);
}

static void free_prepared(struct object *object)
{
	struct ready *ready = (struct ready *)object;

	unlist(ready);
	server_jar_done(&ready->server_jar);
	text_done(&ready->key);
	free(ready);
}

/* Is what it shows what a jar would show that was made now? */
static bool is_true(const struct ready *ready, const struct host *host)
{
	return ready->server_jar.jar && !ready->server_jar.is_gone &&
	       host_is_same(&ready->server_jar.launch.host, host);
}

struct server_jar *prepared_take(struct server *server, const struct text *key, const struct host *host,
				 unsigned *hurry)
{
	struct ready *found = NULL, *next;
	unsigned count = 0;

	*hurry = 0;
	for (struct ready *ready = server->ready; ready; ready = next) {
		next = ready->next;
		if (!is_same_key(&ready->key, key))
			continue;
		if (!is_true(ready, host)) {
			drop(ready);
			continue;
		}
		count++;
		if (!found || ready->server_jar.is_standing || !found->server_jar.is_standing)
			found = ready; /* of two, one that stands, the older one */
	}
	if (!found)
		return NULL;
	/* Somebody has to wait for it; or there are two, and nobody waits because there are. */
	if (!found->server_jar.is_standing || (count > 1 && sys_monotonic_ns() - found->made_ns < HURRY_NS))
		*hurry = found->hurry + 1;
	unlist(found);
	return &found->server_jar;
}

unsigned prepared_missing(const struct server *server, const struct text *key, unsigned hurry)
{
	unsigned missing = hurry < HURRIED_RUNS ? 1 : 2;

	for (const struct ready *ready = server->ready; ready; ready = ready->next)
		missing -= missing && is_same_key(&ready->key, key);
	return missing;
}

/* The one that has waited longest makes room. */
static void make_room(struct server *server)
{
	size_t count = 0;

	for (struct ready *ready = server->ready, *next; ready; ready = next) {
		next = ready->next;
		if (++count >= READY_MAX)
			drop(ready);
	}
}

void prepared_prepare(struct server *server, struct text *key, struct request *request, struct policy *policy,
		      struct host *host, unsigned hurry)
{
	struct ready *ready;

	make_room(server);
	ready = calloc(1, sizeof(*ready));
	if (!ready)
		return;
	ready->key = *key;
	*key = (struct text){0};
	ready->server_jar.object = (struct object){.kill = kill_prepared, .free = free_prepared};
	ready->server_jar.gone = on_gone;
	server_jar_init(&ready->server_jar, server, PLAN_PREPARED, request, policy);
	ready->next = server->ready;
	server->ready = ready;
	ready->hurry = hurry;
	ready->made_ns = sys_monotonic_ns();
	loop_arm(server->loop, &ready->idle, ready->made_ns + IDLE_NS, on_idle, ready);
	server_jar_build(&ready->server_jar, host);
}
