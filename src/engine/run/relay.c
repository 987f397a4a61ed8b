/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/relay.c - carry standard input
 *
 * The command may not have the caller's standard input itself where it could do more with it than read: a terminal (TIOCSTI), a
 * device, a socket. Then its bytes are carried to a pipe, or to the command's own terminal, without ever blocking the loop. As
 * little as possible is taken ahead: what the command leaves unread belongs to the caller, as it does without Belljar.
 */
#include "engine/run/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include "base/clock.h"

#define BACKGROUND_RETRY_NS 200000000ULL
/* No event reports that a reader emptied a pipe that was not full: look again, soon at first. */
#define TAKEN_RETRY_LEAST_NS 50000ULL
#define TAKEN_RETRY_MOST_NS 50000000ULL
#define TEE_BYTES (64 << 10)
/* If the command has not read the end of input from its terminal, type it again, soon at first. */
#define END_RETRY_LEAST_NS 100000000ULL
#define END_RETRY_MOST_NS 1000000000ULL
#define CONTROL_D 4

static void on_source(struct loop_watch *watch, uint32_t events);
static void on_retry_end(struct loop_timer *timer);

static void close_target(struct relay *relay)
{
	loop_remove(&relay->target);
	close_fd(&relay->target_fd);
}

static void stop(struct relay *relay)
{
	loop_remove(&relay->source);
	loop_disarm(&relay->retry);
	close_target(relay);
}

/* Not watched rather than watched for nothing: the end of a pipe is reported whatever one asks for. */
static void watch_source(struct relay *relay)
{
	if (!relay->source.loop && !relay->has_ended && !relay->is_held &&
	    loop_add(relay->loop, &relay->source, relay->source_fd, EPOLLIN, on_source, relay) < 0)
		stop(relay);
}

static void on_retry_read(struct loop_timer *timer)
{
	watch_source(timer->owner);
}

/* Reading from a terminal in the background would stop us, though the command may never read at all. */
static bool is_in_background(const struct relay *relay)
{
	pid_t foreground = relay->is_source_terminal ? tcgetpgrp(relay->source_fd) : -1;

	return foreground > 0 && foreground != getpgrp();
}

/* --- the end of input on a terminal --------------------------------------------------------------------------- */

/*
 * Type the end of the input, again and again until the run is over. A pipe stays at its end, but a terminal forgets: an end that
 * was typed before the command changed the terminal's modes is a zero byte afterwards, and one read of it serves one reader. To
 * a line editor the end means nothing on a line that has begun, so an open last line is entered first.
 */
static void type_end(struct relay *relay)
{
	struct termios modes;
	char typed[] = {'\r', CONTROL_D};
	bool is_entered = false;

	if (tcgetattr(relay->target_fd, &modes) == 0) {
		is_entered = relay->is_line_open && !(modes.c_lflag & ICANON);
		if (modes.c_lflag & ICANON)
			typed[1] = (char)modes.c_cc[VEOF];
	}
	/* A terminal without room already has unread ends of input. */
	if (write(relay->target_fd, typed + !is_entered, sizeof(typed) - !is_entered) < 0 && errno != EAGAIN &&
	    errno != EINTR) {
		stop(relay);
		return;
	}
	if (is_entered)
		relay->is_line_open = false;
	loop_arm(relay->loop, &relay->retry, clock_ns() + relay->retry_ns, on_retry_end, relay);
	relay->retry_ns = MIN_OF(relay->retry_ns * 2, END_RETRY_MOST_NS);
}

static void on_retry_end(struct loop_timer *timer)
{
	type_end(timer->owner);
}

static void begin_typing_end(struct relay *relay)
{
	relay->retry_ns = END_RETRY_LEAST_NS;
	type_end(relay);
}

/* --- by copying --------------------------------------------------------------------------------------------- */

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
		watch_source(relay);
}

static void read_some(struct relay *relay)
{
	/* A socket may be the caller's own description, and another reader faster: never wait for it. */
	ssize_t count = relay->is_source_socket
				? recv(relay->source_fd, relay->buffer, sizeof(relay->buffer), MSG_DONTWAIT)
				: read(relay->source_fd, relay->buffer, sizeof(relay->buffer));

	if (count < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	loop_remove(&relay->source);
	relay->begin = 0;
	relay->end = count > 0 ? (size_t)count : 0;
	if (count <= 0) {
		relay->has_ended = true;
		if (relay->is_target_terminal) {
			begin_typing_end(relay);
			return;
		}
	} else {
		relay->is_line_open = relay->buffer[relay->end - 1] != '\n' && relay->buffer[relay->end - 1] != '\r';
	}
	flush(relay);
}

/* --- by duplicating ----------------------------------------------------------------------------------------- */

/* Take out of the caller's pipe what the command has taken out of ours. True if nothing is outstanding. */
static bool settle(struct relay *relay)
{
	int unread = 0;
	size_t taken;

	if (ioctl(relay->peek_fd, FIONREAD, &unread) < 0)
		return false;
	/* The command may write into its own input; what is there beyond our bytes is its own affair. */
	taken = relay->duplicated - MIN_OF(relay->duplicated, (size_t)unread);
	while (taken) {
		ssize_t count = read(relay->source_fd, relay->buffer, MIN_OF(taken, sizeof(relay->buffer)));

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			break; /* another reader was faster */
		taken -= (size_t)count;
		relay->duplicated -= (size_t)count;
		relay->retry_ns = TAKEN_RETRY_LEAST_NS;
	}
	return relay->duplicated == 0;
}

/* Whether the caller's pipe has no writer left, and our pipe holds all of it. */
static bool is_all_duplicated(const struct relay *relay)
{
	struct pollfd state = {.fd = relay->source_fd, .events = POLLIN};
	int left = 0;

	return poll(&state, 1, 0) > 0 && state.revents & POLLHUP && ioctl(relay->source_fd, FIONREAD, &left) == 0 &&
	       (size_t)left <= relay->duplicated;
}

static void duplicate(struct relay *relay);

static void on_retry_duplicate(struct loop_timer *timer)
{
	duplicate(timer->owner);
}

static void duplicate(struct relay *relay)
{
	ssize_t count;

	if (!settle(relay)) {
		/* A full pipe reports when it has room again; any other needs looking at. */
		loop_arm(relay->loop, &relay->retry, clock_ns() + relay->retry_ns, on_retry_duplicate, relay);
		relay->retry_ns = MIN_OF(relay->retry_ns * 2, TAKEN_RETRY_MOST_NS);
		return;
	}
	count = tee(relay->source_fd, relay->target_fd, TEE_BYTES, SPLICE_F_NONBLOCK);
	if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
		watch_source(relay);
		return;
	}
	if (count < 0) {
		stop(relay);
		return;
	}
	relay->duplicated = (size_t)count;
	relay->retry_ns = TAKEN_RETRY_LEAST_NS;
	if (count == 0 || is_all_duplicated(relay)) {
		relay->has_ended = true;
		stop(relay); /* what is outstanding is settled at the end */
		return;
	}
	loop_arm(relay->loop, &relay->retry, clock_ns() + relay->retry_ns, on_retry_duplicate, relay);
}

/* --- events ------------------------------------------------------------------------------------------------- */

static void on_target(struct loop_watch *watch, uint32_t events)
{
	struct relay *relay = watch->owner;

	if (events & (EPOLLERR | EPOLLHUP)) {
		stop(relay);
		return;
	}
	if (relay->is_source_pipe)
		duplicate(relay);
	else
		flush(relay);
}

static void on_source(struct loop_watch *watch, uint32_t events)
{
	struct relay *relay = watch->owner;

	(void)events;
	if (relay->is_source_pipe) {
		loop_remove(&relay->source);
		duplicate(relay);
	} else if (is_in_background(relay)) {
		loop_remove(&relay->source);
		loop_arm(relay->loop, &relay->retry, clock_ns() + BACKGROUND_RETRY_NS, on_retry_read, relay);
	} else {
		read_some(relay);
	}
}

/* --- beginning and end -------------------------------------------------------------------------------------- */

/* A description of our own of a pipe or terminal: a reader beside us must not be able to make our read wait. */
static int reopen(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void choose_source(struct relay *relay, int fd)
{
	struct stat status;
	int own = -1;

	relay->source_fd = fd;
	relay->file_fd = -1;
	if (fstat(fd, &status) < 0)
		return;
	if (S_ISREG(status.st_mode))
		relay->file_fd = fd;
	relay->is_source_socket = S_ISSOCK(status.st_mode);
	if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode))
		own = reopen(fd);
	relay->is_source_owned = own >= 0;
	if (own >= 0)
		relay->source_fd = own;
	relay->is_source_pipe = S_ISFIFO(status.st_mode) && own >= 0 && relay->peek_fd >= 0;
}

int run_relay_open(struct relay *relay, struct loop *loop, int source_fd, bool is_source_terminal, int target_fd,
		   int peek_fd, bool is_target_terminal)
{
	int rc;

	relay->loop = loop;
	relay->target_fd = target_fd;
	relay->peek_fd = peek_fd;
	relay->is_source_terminal = is_source_terminal;
	relay->is_target_terminal = is_target_terminal;
	relay->retry_ns = TAKEN_RETRY_LEAST_NS;
	choose_source(relay, source_fd);
	/* Room in a pipe that was full is news only once. */
	rc = loop_add(loop, &relay->target, target_fd, relay->is_source_pipe ? EPOLLOUT | EPOLLET : 0, on_target,
		      relay);
	if (rc < 0)
		return rc;
	watch_source(relay);
	return 0;
}

void run_relay_hold(struct relay *relay, bool is_held)
{
	relay->is_held = is_held;
	/* Bytes that were duplicated already need no event. */
	if (is_held)
		loop_remove(&relay->source);
	else if (relay->source_fd >= 0 && relay->target_fd >= 0 && relay->begin == relay->end && !relay->retry.loop)
		watch_source(relay);
}

void run_relay_done(struct relay *relay)
{
	int unread = 0;

	if (!relay)
		return;
	if (relay->is_source_pipe && relay->peek_fd >= 0)
		settle(relay);
	/* Put the position back before bytes read ahead: the file's next reader continues after the command. */
	if (relay->file_fd >= 0 && relay->peek_fd >= 0 && ioctl(relay->peek_fd, FIONREAD, &unread) == 0) {
		unread += (int)(relay->end - relay->begin);
		if (unread > 0)
			lseek(relay->file_fd, -(off_t)unread, SEEK_CUR);
	}
	stop(relay);
	relay->file_fd = -1;
	close_fd(&relay->peek_fd);
	if (relay->is_source_owned)
		close_fd(&relay->source_fd);
	relay->source_fd = -1;
	relay->is_source_pipe = false;
}
