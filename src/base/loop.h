/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/loop.h - wait for descriptors and deadlines, single-threaded
 *
 * The struct that embeds a watch owns it; the loop only borrows it. Callbacks may add, change and remove any watch,
 * their own included. Descriptors that epoll cannot watch (regular files) count as always ready.
 */
#ifndef BELLJAR_BASE_LOOP_H
#define BELLJAR_BASE_LOOP_H

#include "base/base.h"

struct loop;
struct loop_watch;
struct loop_timer;

/* @events is a set of EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP. */
typedef void loop_watch_function(struct loop_watch *watch, uint32_t events);
typedef void loop_timer_function(struct loop_timer *timer);

struct loop_watch {
	struct loop *loop; /* NULL: not in a loop */
	int fd;
	uint32_t events;
	bool is_always_ready;
	loop_watch_function *function;
	void *owner;
	struct loop_watch *next_ready; /* list of those always ready */
};

struct loop_timer {
	struct loop *loop; /* NULL: not armed */
	uint64_t deadline_ns;
	loop_timer_function *function;
	void *owner;
	struct loop_timer *next;
};

struct loop *loop_new(void); /* NULL: no memory or no descriptor; see errno */
void loop_free(struct loop *loop);

/* Watch @fd for @events (0: only errors and hang-ups). Returns 0 or a negative errno. */
int loop_add(struct loop *loop, struct loop_watch *watch, int fd, uint32_t events, loop_watch_function *function,
	     void *owner);
void loop_change(struct loop_watch *watch, uint32_t events);
void loop_remove(struct loop_watch *watch); /* no error if it is in no loop */

/* Arm, or arm again, for an absolute time of clock_ns(). */
void loop_arm(struct loop *loop, struct loop_timer *timer, uint64_t deadline_ns, loop_timer_function *function,
	      void *owner);
void loop_disarm(struct loop_timer *timer);

/* Run the loop until no timer is armed, or until @until_ns, to finish background work. */
void loop_drain(struct loop *loop, uint64_t until_ns);
/* Wait for the next events and deadlines and call back. Returns 0 or a negative errno. */
int loop_turn(struct loop *loop);

#endif
