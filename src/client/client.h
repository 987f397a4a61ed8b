/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client.h - what the files of libbelljar share: the error record, input structs, the engine
 *
 * Functions inside the library fill a record of their caller's; only the public ones, which stand at the end of each
 * file, hand it to the program with client_publish().
 */
#ifndef BELLJAR_CLIENT_CLIENT_H
#define BELLJAR_CLIENT_CLIENT_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/json_read.h"
#include "belljar.h"
#include "client/client_channel.h"

struct belljar_error {
	struct error error;
	char *missing; /* JSON text; NULL: "[]" */
};

void client_error_done(struct belljar_error *failure);
#define AUTO_FAILURE AUTO(client_error_done) struct belljar_error

/* Hand @failure to the program if @rc is negative. Returns @rc. */
int client_publish(int rc, struct belljar_error *failure, struct belljar_error **error);
int client_no_memory(struct belljar_error *failure);
/* Read the error of a FAILED frame, or of a result with the outcome `failed`. */
int client_read_failure(const struct json_value *document, struct belljar_error *failure);
/* Parse the payload of a frame from the engine; it must be an object. */
int client_parse(const char *payload, size_t len, struct json_value *out, struct belljar_error *failure);

/*
 * Copy an input struct of the size that the program was built with. Missing members become zero; unknown ones must be
 * zero. @known_size: the size of the struct in this library; @copy has room for it.
 */
int client_copy_struct(const void *given, size_t known_size, void *copy, struct belljar_error *failure);

struct belljar_engine {
	atomic_int references; /* the program's own, and one for each handle and jar */
	pid_t owner;           /* the process that opened it */
	pid_t pid;
	int pidfd; /* open until the last reference is gone, to find out how the engine ended */
	int door;  /* our end of the door socket */
	atomic_bool is_closed;
};

void client_engine_hold(struct belljar_engine *engine);
void client_engine_release(struct belljar_engine *engine);
/* -EINVAL for NULL, -ECHILD in a process that only inherited it. */
int client_engine_check(const struct belljar_engine *engine, struct belljar_error *failure);
/* Report whether this process opened it. */
bool client_engine_is_ours(const struct belljar_engine *engine);
/* Report how the engine ended, after a channel broke. */
int client_engine_lost(const struct belljar_engine *engine, struct belljar_error *failure);

/* Open a channel and send its first frame. @fds are borrowed. */
int client_engine_connect(struct belljar_engine *engine, const struct client_message *message, int *channel_out,
			  struct belljar_error *failure);
/* Wait for the next frame of a channel. It is valid until the next call. */
int client_engine_await(struct belljar_engine *engine, struct client_channel *channel, struct client_frame *out,
			struct belljar_error *failure);
/* Report an unexpected answer. */
int client_engine_nonsense(struct belljar_error *failure);

/* --- between client_run.c and client_jar.c --- */

/* Take @fd over as the channel of a run that was asked for, also on failure. */
int client_handle_new(struct belljar_engine *engine, int fd, const struct belljar_command *command,
		      struct belljar_handle **out, struct belljar_error *failure);
/* Wait for the end, take the result and free the handle. */
int client_handle_finish(struct belljar_handle *handle, struct belljar_result **out, struct belljar_error **error);

#endif
