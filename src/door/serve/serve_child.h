/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_child.h - a child of the server for slow work, so that the loop does not wait
 */
#ifndef BELLJAR_DOOR_SERVE_SERVE_CHILD_H
#define BELLJAR_DOOR_SERVE_SERVE_CHILD_H

#include "door/serve/serve.h"

/* In the child: a pipe for its report, and a file for long output. It has no other descriptor of the server's. */
#define SERVE_CHILD_FD 3
#define SERVE_CHILD_FILE_FD 4

struct serve_child {
	struct server *server; /* NULL: it was not started, or it is over */
	pid_t pid;
	int pipe_fd;
	struct loop_watch watch;
	struct text told; /* what it wrote to SERVE_CHILD_FD */
	void (*over)(void *owner);
	void *owner;
};

struct serve_child_request {
	void (*work)(const void *context); /* in the child, which ends after it */
	const void *context;
	int file_fd;               /* what SERVE_CHILD_FILE_FD is there; -1: nothing */
	void (*over)(void *owner); /* it has ended, by itself or killed, and `told` is all there is */
	void *owner;
};

/* @child is zero. 0 or a negative errno. */
int serve_child_start(struct serve_child *child, struct server *server, const struct serve_child_request *request);
/* Begin to end it; over() follows. */
void serve_child_kill(struct serve_child *child);
/* End it if need be; over() does not follow. */
void serve_child_done(struct serve_child *child);
/* Write all bytes, or end the process. Only in the child. */
void serve_child_write(int fd, const void *bytes, size_t len);

#endif
