/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer.h - answer what a command's filter asks about: carry it out, refuse it and count, or only note it
 *
 * Changes of mode, owner, times and attributes of files are carried out on the landlock rung, whose rules do not govern these calls.
 * What a traced command opens, executes and connects to is noted. Everything here is called by whoever watches over the command,
 * and by the child that becomes it: no allocation, no stdio, no locks.
 */
#ifndef BELLJAR_INSIDE_ANSWER_ANSWER_H
#define BELLJAR_INSIDE_ANSWER_ANSWER_H

#include <sys/types.h>

#include "inside/answer/answer_listener.h"
#include "base/base.h"
#include "inside/control.h"

struct stat;

/* An object that the command may write, with all that lies in it if it is a directory. */
struct answer_place {
	dev_t device;
	ino_t inode;
};

struct answer_places {
	struct answer_place *items;
	size_t count;
	/* Of a command behind rules that do not hold for who answers: whether they allow this access to @path. NULL: they hold for both. */
	bool (*is_allowed)(const void *owner, const char *path, enum jar_access access);
	const void *owner;
};

/* Room for @max places, as long as this process lives. 0 or a negative errno. */
int answer_open_places(struct answer_places *places, size_t max);
/* Hold the object at @path, which must be that one unless @inode is 0; nothing if there is none. 0 or a negative errno. */
int answer_add_place(struct answer_places *places, const char *path, dev_t device, ino_t inode);
/* Whether the object lies in a place that the command may write. */
bool answer_is_in_place(const struct answer_places *places, int fd, const struct stat *object);

/* Whether a filter can have a listener here: 0 or a negative errno. */
int answer_try_listener(void);
/* Answer some of what the filter asks about, without waiting for more. *@listener_fd is closed when nobody can ask any more. */
void answer_some(const struct answer_places *places, int *listener_fd);
/*
 * Fill in JAR_DENIED or JAR_TRIED for what was not told yet, or, if @is_end, JAR_DENIED or JAR_TRIED_AGAIN for what has happened more
 * often since. False: there is nothing.
 */
bool answer_next_refusal(struct jar_message *message, bool is_end);
/* Whether there is an answer to a call other than that there is no such call. */
bool answer_knows(int number);
/* Whether a call is only noted, and goes on. */
bool answer_traces(int number);

#endif
