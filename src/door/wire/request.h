/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/wire/request.h - parse the JSON of a frame
 *
 * Strict: an unknown key, a value of another type and a number out of bounds are errors. The policy is interpreted
 * elsewhere.
 */
#ifndef BELLJAR_DOOR_WIRE_REQUEST_H
#define BELLJAR_DOOR_WIRE_REQUEST_H

#include "base/json_read.h"
#include "door/wire/wire.h"

enum request_kind {
	REQUEST_RUN,
	REQUEST_OPEN,
	REQUEST_JOIN,
	REQUEST_FILE,
	REQUEST_ASK,
	REQUEST_HELLO,
	REQUEST_CONNECT,
	REQUEST_PROCESSES,
	REQUEST_KILL,
	REQUEST_USAGE,
	REQUEST_NET,
	REQUEST_WORKSPACE,
	REQUEST_LAYER,
	REQUEST_KIND_COUNT,
};

enum request_stdin { REQUEST_STDIN_NULL, REQUEST_STDIN_DESCRIPTOR, REQUEST_STDIN_NONE };
enum request_sink { REQUEST_SINK_NONE, REQUEST_SINK_FRAMES, REQUEST_SINK_PIPES };
enum request_file {
	REQUEST_READ,
	REQUEST_WRITE,
	REQUEST_LIST,
	REQUEST_WATCH,
	REQUEST_STAT,
	REQUEST_MKDIR,
	REQUEST_REMOVE,
	REQUEST_RENAME,
};

enum request_change { REQUEST_ALLOW, REQUEST_DENY };
/* Questions of ASK: the capabilities of this host; whether a jar can have this policy and these keys. */
enum request_question { REQUEST_CAPABILITIES, REQUEST_POLICY };
/* Requests about a workspace; docs/protocol.md has the members of each. */
enum request_verb {
	REQUEST_SHOW,
	REQUEST_DIFF,
	REQUEST_PATCH,
	REQUEST_APPLY,
	REQUEST_DISCARD,
	REQUEST_CHECKPOINT,
	REQUEST_ROLLBACK,
	REQUEST_FORK,
	REQUEST_VERB_COUNT,
};

/* Strings and lists are the document's. */
struct request {
	struct json_value document;
	/* RUN, OPEN */
	const struct json_value *policy; /* a string, an object, or null; NULL: not said */
	const char *base;                /* NULL: not said */
	const char *cwd;                 /* NULL: there is none */
	uint64_t ttl_ns;                 /* OPEN: so long the jar lives; LIMIT_NONE: until it is closed */
	char **prefixes;                 /* of the caller's interpreter; NULL-terminated; NULL: not said */
	/* and JOIN */
	const struct json_value *keys;     /* an object; NULL: not said */
	const struct json_value *run_keys; /* RUN: those of `run`, likewise */
	char **environment;                /* NULL-terminated */
	/* RUN, JOIN; OPEN: the zygote of a jar for calls, if there is to be one */
	char **argv; /* NULL-terminated; NULL: not said */
	size_t argument_count;
	bool is_shell_string;
	bool has_pty;
	bool is_merged;
	bool is_captured;
	bool is_open_ended; /* no timeout unless the policy or a key says one */
	bool is_held;       /* JOIN */
	bool has_cells;     /* JOIN: the client counts the time and the output of each piece of its work */
	bool is_detached;   /* JOIN */
	bool is_start_told;
	bool has_events;
	bool is_asked; /* it answers questions */
	int64_t rows, columns;
	int64_t extra_count;
	int stdin_choice; /* enum request_stdin */
	int sink;         /* enum request_sink */
	/* HELLO */
	const struct json_value *hello; /* the client's version, whatever it is */
	/* ASK, which has the members of OPEN too */
	int question; /* enum request_question */
	/* FILE */
	int operation; /* enum request_file */
	const char *path;
	const char *to; /* RENAME */
	int64_t mode;   /* -1: not said */
	bool makes_parents, is_recursive, follows_link;
	/* NET */
	int change; /* enum request_change; -1: not said */
	const struct json_value *rule;
	/* WORKSPACE, LAYER. Lists are NULL-terminated; NULL: not said */
	int verb;       /* enum request_verb; -1: not said */
	const char *id; /* or a name; LAYER: NULL is the first of the jar's */
	char **paths, **theirs, **ours, **risky;
	const char *note, *checkpoint;
	int64_t count; /* FORK; 0: not said */
	/* CONNECT */
	int64_t port;
	/* KILL */
	int64_t pid, signal;
};

/* *@out need not be initialised; it is written only on success. */
int wire_request_parse(enum request_kind kind, const char *bytes, size_t len, struct request *out, struct error *error);
void wire_request_done(struct request *request);

/* Return how many descriptors must come with it, without the channel for the answer on a session's channel. */
size_t wire_request_descriptors(const struct request *request);

#define AUTO_REQUEST AUTO(wire_request_done) struct request

#endif
