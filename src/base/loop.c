/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/loop.c - epoll, a sorted list of deadlines, and a list of descriptors that are always ready
 *
 * A callback may remove a watch that has an event pending in the same turn. The events of a turn are therefore held in
 * the loop, and removing a watch strikes out its pending events.
 */
#include "base/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "base/clock.h"

#define EVENTS_PER_TURN 64
#define NUMBER_EPOLL_PWAIT2 441
/* The most time per turn that timers take before descriptors get theirs. */
#define TIMERS_PER_TURN_NS 1000000ULL

struct loop {
	int epoll_fd;
	struct loop_timer *timers; /* earliest first */
	struct loop_watch *ready;
	struct epoll_event events[EVENTS_PER_TURN];
	int event_count;
};

struct loop *loop_new(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return NULL;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		free(loop);
		return NULL;
	}
	return loop;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	close(loop->epoll_fd);
	free(loop);
}

int loop_add(struct loop *loop, struct loop_watch *watch, int fd, uint32_t events, loop_watch_function *function,
	     void *owner)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	*watch = (struct loop_watch){.fd = fd, .events = events, .function = function, .owner = owner};
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		if (errno != EPERM)
			return -errno;
		watch->is_always_ready = true;
		watch->next_ready = loop->ready;
		loop->ready = watch;
	}
	watch->loop = loop;
	return 0;
}

void loop_change(struct loop_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	if (!watch->loop || watch->events == events)
		return;
	watch->events = events;
	if (!watch->is_always_ready)
		epoll_ctl(watch->loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
}

void loop_remove(struct loop_watch *watch)
{
	struct loop *loop = watch->loop;

	if (!loop)
		return;
	watch->loop = NULL;
	if (watch->is_always_ready) {
		for (struct loop_watch **at = &loop->ready; *at; at = &(*at)->next_ready) {
			if (*at == watch) {
				*at = watch->next_ready;
				break;
			}
		}
		return;
	}
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	for (int i = 0; i < loop->event_count; i++)
		if (loop->events[i].data.ptr == watch)
			loop->events[i].data.ptr = NULL;
}

void loop_disarm(struct loop_timer *timer)
{
	if (!timer->loop)
		return;
	for (struct loop_timer **at = &timer->loop->timers; *at; at = &(*at)->next) {
		if (*at == timer) {
			*at = timer->next;
			break;
		}
	}
	timer->loop = NULL;
}

void loop_arm(struct loop *loop, struct loop_timer *timer, uint64_t deadline_ns, loop_timer_function *function,
	      void *owner)
{
	struct loop_timer **at = &loop->timers;

	loop_disarm(timer);
	*timer = (struct loop_timer){.loop = loop, .deadline_ns = deadline_ns, .function = function, .owner = owner};
	while (*at && (*at)->deadline_ns <= deadline_ns)
		at = &(*at)->next;
	timer->next = *at;
	*at = timer;
}

#define WAIT_FOREVER UINT64_MAX

static uint64_t wait_ns(const struct loop *loop)
{
	uint64_t now;

	for (const struct loop_watch *watch = loop->ready; watch; watch = watch->next_ready)
		if (watch->events)
			return 0;
	if (!loop->timers)
		return WAIT_FOREVER;
	now = clock_ns();
	return loop->timers->deadline_ns <= now ? 0 : loop->timers->deadline_ns - now;
}

static int wait_for_events(struct loop *loop, uint64_t timeout_ns)
{
	struct timespec timeout = {(time_t)(timeout_ns / 1000000000ULL), (long)(timeout_ns % 1000000000ULL)};
	int count = (int)syscall(NUMBER_EPOLL_PWAIT2, loop->epoll_fd, loop->events, EVENTS_PER_TURN,
				 timeout_ns == WAIT_FOREVER ? NULL : &timeout, NULL, 0);

	if (count >= 0 || errno != ENOSYS)
		return count;
	/* Before Linux 5.11: round up to milliseconds, since waking too early would spin until the deadline. */
	return epoll_wait(loop->epoll_fd, loop->events, EVENTS_PER_TURN,
			  timeout_ns == WAIT_FOREVER ? -1 : (int)MIN_OF((timeout_ns + 999999) / 1000000, 3600000ULL));
}

static void call_timers(struct loop *loop)
{
	uint64_t now = loop->timers ? clock_ns() : 0;

	while (loop->timers && loop->timers->deadline_ns <= now) {
		struct loop_timer *timer = loop->timers;

		loop_disarm(timer);
		timer->function(timer);
		/* The earliest first: those that are left are the first of the next turn. */
		if (clock_ns() - now > TIMERS_PER_TURN_NS)
			return;
	}
}

/* Call one per turn, since the callback may change the list. Move it to the end, so that each gets its turn. */
static void call_always_ready(struct loop *loop)
{
	struct loop_watch **at = &loop->ready, *watch;

	while (*at && !(*at)->events)
		at = &(*at)->next_ready;
	watch = *at;
	if (!watch)
		return;
	*at = watch->next_ready;
	watch->next_ready = NULL;
	while (*at)
		at = &(*at)->next_ready;
	*at = watch;
	watch->function(watch, watch->events);
}

int loop_turn(struct loop *loop)
{
	int count = wait_for_events(loop, wait_ns(loop));

	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	loop->event_count = count;
	for (int i = 0; i < loop->event_count; i++) {
		struct loop_watch *watch = loop->events[i].data.ptr;

		if (watch)
			watch->function(watch, loop->events[i].events);
	}
	loop->event_count = 0;
	call_always_ready(loop);
	call_timers(loop);
	return 0;
}

void loop_drain(struct loop *loop, uint64_t until_ns)
{
	while (loop->timers && clock_ns() < until_ns)
		if (loop_turn(loop) < 0)
			return;
}
