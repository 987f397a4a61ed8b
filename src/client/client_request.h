/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_request.h - requests of the program as frames: JSON and descriptors
 */
#ifndef BELLJAR_CLIENT_CLIENT_REQUEST_H
#define BELLJAR_CLIENT_CLIENT_REQUEST_H

#include "client/client.h"

/* One request and what it owns. */
struct client_request {
	struct text json;
	int fds[FRAME_MAX_DESCRIPTORS]; /* borrowed, but for @input_fd */
	size_t fd_count;
	int input_fd; /* the command's input; -1: none */
};

#define AUTO_REQUEST_OUT AUTO(client_request_done) struct client_request
void client_request_done(struct client_request *request);

struct client_run_request {
	bool is_join;       /* JOIN, else RUN */
	bool is_start_told; /* report when the command has begun; a caller that only waits for the end need not wake up */
};
int client_request_run(struct client_request *request, const struct belljar_command *command,
		       const struct client_run_request *how, struct belljar_error *failure);
/* Add the engine's end of the run's own channel to a JOIN on the jar's channel; borrowed. */
void client_request_give_channel(struct client_request *request, int channel);
int client_request_open(struct client_request *request, const struct belljar_jar_options *options,
			struct belljar_error *failure);

/* A request to a jar other than a run. Members that are NULL or 0 are left out. */
struct client_task {
	enum frame_type type;
	const char *operation, *path, *to, *rule;
	uint32_t flags; /* BELLJAR_PARENTS ... */
	bool has_mode;
	uint32_t mode;
	uint16_t port;
	int pid, signal;
};
void client_request_task(struct client_request *request, const struct client_task *task);

/* A request about a workspace. Members that are NULL or 0 are left out. */
struct client_order {
	const char *operation;
	const char *id; /* WORKSPACE, with the program's own environment and directory; NULL: LAYER */
	const char *const *paths;
	const char *const *risky;
	const char *const *theirs;
	const char *const *ours;
	const char *note, *checkpoint;
	uint32_t count;
};
int client_request_order(struct client_request *request, const struct client_order *order,
			 struct belljar_error *failure);
/* Finish the JSON, and add the engine's end of the channel for the answer; borrowed. */
int client_request_finish(struct client_request *request, int channel, struct belljar_error *failure);

struct client_message client_request_message(const struct client_request *request, enum frame_type type);

/* How the value of an option is written in JSON: see client_request.c. Exposed for the test that compares with the keys. */
enum client_shape { SHAPE_VALUE, SHAPE_WORD, SHAPE_WORKDIR, SHAPE_LIST, SHAPE_VARIABLES };
enum client_shape client_option_shape(const char *name, size_t len);

#endif
