/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/relay.c - carry standard input
 */
#include "run/relay.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>

#define BACKGROUND_RETRY_NS 200000000ULL
#define END_OF_INPUT 4 /* what a person types, Control-D */

static void on_source(struct loop_watch *watch, uint32_t events);
static void on_target(struct loop_watch *watch, uint32_t events);

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void close_target(struct relay *relay)
{
	loop_remove(&relay->target);
	close_fd(&relay->target_fd);
}

static void stop(struct relay *relay)
{
	loop_remove(&relay->source);
	loop_disarm(&relay->retry);
	relay->source_fd = -1;
	close_target(relay);
}

static void on_retry(struct loop_timer *timer)
{
	struct relay *relay = timer->owner;

	loop_change(&relay->source, EPOLLIN);
}

/* Reading from a terminal in the background would stop us, though the command may never read at all. */
static bool is_in_background(const struct relay *relay)
{
	pid_t foreground = relay->is_source_terminal ? tcgetpgrp(relay->source_fd) : -1;

	return foreground > 0 && foreground != getpgrp();
}

static void flush(struct relay *relay)
{
	while (relay->begin < relay->end) {
		ssize_t count = write(relay->target_fd, relay->buffer + relay->begin, relay->end - relay->begin);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno == EAGAIN) {
			loop_change(&relay->target, EPOLLOUT);
			return;
		}
		if (count < 0) {
			stop(relay); /* the command has closed its input */
			return;
		}
		relay->begin += (size_t)count;
	}
	relay->begin = relay->end = 0;
	loop_change(&relay->target, 0);
	if (relay->has_ended)
		stop(relay);
	else
		loop_change(&relay->source, EPOLLIN);
}

static void on_target(struct loop_watch *watch, uint32_t events)
{
	struct relay *relay = watch->owner;

	if (events & (EPOLLERR | EPOLLHUP)) {
		stop(relay);
		return;
	}
	flush(relay);
}

static void on_source(struct loop_watch *watch, uint32_t events)
{
	struct relay *relay = watch->owner;
	ssize_t count;

	(void)events;
	if (is_in_background(relay)) {
		loop_change(&relay->source, 0);
		loop_arm(relay->loop, &relay->retry, now_ns() + BACKGROUND_RETRY_NS, on_retry, relay);
		return;
	}
	count = read(relay->source_fd, relay->buffer, sizeof(relay->buffer));
	if (count < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (count <= 0) {
		relay->has_ended = true;
		loop_remove(&relay->source);
		if (relay->is_target_terminal) {
			relay->buffer[0] = END_OF_INPUT;
			count = 1;
		} else {
			count = 0;
		}
	}
	relay->begin = 0;
	relay->end = (size_t)count;
	loop_change(&relay->source, 0);
	flush(relay);
}

int relay_open(struct relay *relay, struct loop *loop, int source_fd, bool is_source_terminal, int target_fd,
	       bool is_target_terminal)
{
	int rc;

	relay->loop = loop;
	relay->source_fd = source_fd;
	relay->target_fd = target_fd;
	relay->is_source_terminal = is_source_terminal;
	relay->is_target_terminal = is_target_terminal;
	rc = loop_add(loop, &relay->target, target_fd, 0, on_target, relay);
	if (rc < 0)
		return rc;
	return loop_add(loop, &relay->source, source_fd, EPOLLIN, on_source, relay);
}

void relay_done(struct relay *relay)
{
	if (!relay)
		return;
	stop(relay);
}
