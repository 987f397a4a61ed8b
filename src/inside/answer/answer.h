/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer.h - answer what a command's filter asks about: carry it out, refuse it and count, or only note it
 *
 * On the landlock rung, change mode, owner, times and attributes of files: Landlock's rules do not govern
 * these calls. Note what a traced command opens, executes and connects to. The command's supervisor and
 * the child that becomes the command call these functions: no allocation, no stdio, no locks.
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
	/* Whether the command's rules allow @access to @path. NULL: this process is behind the same rules. */
	bool (*is_allowed)(const void *owner, const char *path, enum jar_access access);
	const void *owner;
};

/* Make room for @max places, for the life of this process. 0 or a negative errno. */
int answer_open_places(struct answer_places *places, size_t max);
/* Hold the object at @path, if there is one: @device and @inode, or any if @inode is 0. 0 or a negative errno. */
int answer_add_place(struct answer_places *places, const char *path, dev_t device, ino_t inode);
/* Whether the object lies in a place that the command may write. */
bool answer_is_in_place(const struct answer_places *places, int fd, const struct stat *object);

/* Whether a filter can have a listener here: 0 or a negative errno. */
int answer_try_listener(void);
/* Answer some questions of the filter without waiting. Closes *@listener_fd once no process has the filter any more. */
void answer_some(const struct answer_places *places, int *listener_fd);
/*
 * Fill in JAR_DENIED or JAR_TRIED for what was not reported yet. With @is_end also JAR_DENIED or
 * JAR_TRIED_AGAIN for what happened again since. False: there is nothing to report.
 */
bool answer_next_refusal(struct jar_message *message, bool is_end);
/* Whether this process can answer the call with something other than ENOSYS. */
bool answer_knows(int number);
/* Whether this process only notes the call and lets the kernel continue it. */
bool answer_traces(int number);

#endif
