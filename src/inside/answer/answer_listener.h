/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer_listener.h - a filter that asks: load it, pass its listener on, hear and answer what it asks
 *
 * No allocation, no stdio, no locks.
 */
#ifndef BELLJAR_INSIDE_ANSWER_ANSWER_LISTENER_H
#define BELLJAR_INSIDE_ANSWER_ANSWER_LISTENER_H

#include <linux/filter.h>
#include <sys/types.h>

#include "base/base.h"

/*
 * Load a filter that asks, and return its listener. Whoever holds that hears of every call that the filter asks about; the
 * caller of such a call sleeps until it is answered. Where the kernel can, signals other than SIGKILL wait meanwhile.
 * Without a holder such calls fail with ENOSYS. -EBUSY: a filter that is in force already has a listener.
 */
int answer_listen(const struct sock_filter *program, size_t len);

/* Whether a descriptor that somebody has sent is a listener; it may be anything. */
bool answer_is_listener(int fd);

/* A call that somebody waits for. */
struct answer_question {
	uint64_t id;
	pid_t pid; /* of the thread */
	int number;
	uint64_t arguments[6];
};

/* Never waits where poll() has said that there is one; -ENOENT: who asked is gone. */
int answer_question_receive(int listener_fd, struct answer_question *question);
/* Whether who asked still waits: then everything that was opened by its pid since the question came is its own. */
bool answer_question_is_open(int listener_fd, const struct answer_question *question);
/* The call returns 0, or fails with the negative errno @rc. */
int answer_question_answer(int listener_fd, const struct answer_question *question, int rc);
/* The kernel goes on with the call as if nobody had asked. */
int answer_question_continue(int listener_fd, const struct answer_question *question);

/* Two sockets for answer_send_listener() and answer_take_listener(); the child's has a number not below @lowest. */
int answer_open_sockets(int *own_end, int *child_end, int lowest);
/* From a child that loads the filter to whoever watches over it; without a socket, -1, it stays where it is. */
int answer_hand_over(int socket_fd, int *listener_fd);
/* Take it, without waiting, in place of *@listener_fd. False: there is none, and will be none if the other end is closed. */
bool answer_take_listener(int socket_fd, int *listener_fd);

#endif
