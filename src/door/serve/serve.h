/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve.h - what the files of the server share: the server, its channels, and what hangs on them
 *
 * The client sends channels over the door socket. The first frame of a channel decides what the channel is for: its
 * role. Behind it is an object: a run, a session, a file that is being opened, or a question. The server's list owns
 * it, not the channel: it may live a little longer, until nothing of it is left. Nothing is freed from within a
 * callback: what is finished sets is_dead, and is swept between two turns of the loop.
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_H
#define BELLJAR_DOOR_SERVE_SERVE_H

#include "engine/engine_helper.h"
#include "survey/survey_ids.h"
#include "inside/jar.h"
#include "policy/policy.h"
#include "base/reap/reap.h"
#include "door/wire/wire.h"

struct json_writer;
struct mux;
struct server;
struct channel;
struct prepared;
struct prepared_wish;

/* Jars that have a number of their own, for survey_jar_id(). */
#define SERVE_JAR_NUMBERS HOST_IDS_IN_BLOCK

/* The role of a channel, from its first frame on. */
struct channel_role {
	void (*frame)(struct channel *channel, struct wire_frame *frame);
	/* The queue is empty, or nearly; may be NULL. */
	void (*drained)(struct channel *channel);
	/* The channel is ending without a last frame of the object's own; it must not be used after this. */
	void (*gone)(struct channel *channel);
};

struct channel {
	struct server *server;
	struct channel *next;
	struct wire wire;
	const struct channel_role *role; /* NULL: nothing hangs on it */
	void *object;
	bool is_ending; /* its last frame was queued */
	bool is_dead;
};

/* The head of a run, a jar, a file or a question, embedded in each. The server keeps it until it is finished. */
struct object {
	struct server *server;
	struct object *next;
	/* Begin to end it at once, without waiting; may be called again. */
	void (*kill)(struct object *object);
	/* Free it, waiting if need be. */
	void (*free)(struct object *object);
	bool is_dead;
};

struct server {
	struct loop *loop;
	struct mux *mux;     /* NULL: channels come through the door socket */
	struct error broken; /* the client's violation that ends the server */
	int door_fd;
	struct loop_watch door;
	int client_fd; /* pidfd of the client; -1: unavailable, then only the door socket shows its end */
	struct loop_watch client;
	int null_fd;    /* /dev/null, for commands without input */
	int reserve_fd; /* closed for a moment to report that descriptors have run out */
	struct jar_argv_memory argv_memory;
	char *const *environment;
	struct reap_family family;
	unsigned starting;             /* runs that have no descriptors of their own yet, while a helper looks */
	struct engine_helpers helpers; /* each knows the directory that runs are in, for runs to come */
	struct channel *channels;
	struct object *objects;
	struct prepared *prepared; /* prepared jars, the youngest first; they are among the objects too */
	struct prepared_wish *wishes;
	struct policy agent; /* the preset, once it was read */
	bool has_agent;
	bool is_client_gone;
	unsigned char jar_numbers[SERVE_JAR_NUMBERS / 8]; /* bits of those in use */
	unsigned next_number;
};

/* --- serve_channel.c --- */

/* Takes over @fd. With @role the channel is that from the start. NULL: it is no channel, or there is no memory. */
struct channel *serve_channel_open(struct server *server, int fd, const struct channel_role *role, void *object);
void serve_channel_set_role(struct channel *channel, const struct channel_role *role, void *object);
/* Close the channel when everything is sent. The role gets no more calls. */
void serve_channel_end(struct channel *channel);
/* Send FAILED, then end the channel. @plan has the missing features; may be NULL. */
struct plan;
void serve_channel_fail(struct channel *channel, const struct error *error, const struct plan *plan);
/* @risky: the risky files of a jar that ended; NULL: it has no such list. */
struct risky_list;
void serve_channel_fail_with(struct channel *channel, const struct error *error, const struct plan *plan,
			     const struct risky_list *risky);
/* The same for a frame that is not allowed here. */
void serve_channel_refuse(struct channel *channel, struct wire_frame *frame);
void serve_channel_free(struct channel *channel);

/* --- serve.c --- */

void server_add(struct server *server, struct object *object);
/* Report whether enough descriptors are left for another run or jar; the second with an error. */
bool server_has_descriptors(const struct server *server);
int server_check_descriptors(const struct server *server, struct error *error);
unsigned server_take_number(struct server *server);
void server_return_number(struct server *server, unsigned number);

/* --- what first frames begin --- */

void serve_run_begin(struct channel *channel, struct wire_frame *frame);
void serve_jar_begin(struct channel *channel, struct wire_frame *frame);
void serve_ask_begin(struct channel *channel, struct wire_frame *frame);
void serve_order_begin(struct channel *channel, struct wire_frame *frame);
void serve_hello_begin(struct channel *channel, struct wire_frame *frame);
/* The members of its answer. */
void serve_hello_write(struct json_writer *writer);

#endif
