/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer_listener.h - load a filter that asks, pass its listener on, receive and answer its questions
 *
 * No allocation, no stdio, no locks.
 */
#ifndef BELLJAR_INSIDE_ANSWER_ANSWER_LISTENER_H
#define BELLJAR_INSIDE_ANSWER_ANSWER_LISTENER_H

#include <linux/filter.h>
#include <sys/types.h>

#include "base/base.h"

/*
 * Load a filter that asks, and return its listener. The listener's holder receives every call that the filter asks
 * about, and the caller sleeps until the answer. Where the kernel can, signals other than SIGKILL wait meanwhile.
 * Without a holder such calls fail with ENOSYS. -EBUSY: a filter that is in force already has a listener.
 */
int answer_listen(const struct sock_filter *program, size_t len);

/* Whether a received descriptor is a listener; it may be anything. */
bool answer_is_listener(int fd);

/* A system call whose caller sleeps until the answer. */
struct answer_question {
	uint64_t id;
	pid_t pid; /* of the thread */
	int number;
	uint64_t arguments[6];
};

/* Receive a question; does not wait if poll() reported one. -ENOENT: the caller is gone. */
int answer_question_receive(int listener_fd, struct answer_question *question);
/* Whether the caller still waits. If so, what this process opened by the caller's pid since is really the caller's. */
bool answer_question_is_open(int listener_fd, const struct answer_question *question);
/* Make the call return 0, or fail with the negative errno @rc. */
int answer_question_answer(int listener_fd, const struct answer_question *question, int rc);
/* Let the kernel continue the call. */
int answer_question_continue(int listener_fd, const struct answer_question *question);

/* Open two sockets to pass a listener: answer_hand_over(), answer_take_listener(). *@child_end is at least @lowest. */
int answer_open_sockets(int *own_end, int *child_end, int lowest);
/* Send the listener from the child to its supervisor. With @socket_fd -1 the child keeps it. */
int answer_hand_over(int socket_fd, int *listener_fd);
/* Receive the listener into *@listener_fd, without waiting. False: none has arrived, or the peer closed. */
bool answer_take_listener(int socket_fd, int *listener_fd);

#endif
