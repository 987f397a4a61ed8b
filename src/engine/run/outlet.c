/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/outlet.c - write to a shared descriptor without blocking
 */
#include "engine/run/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The bytes that a pipe takes without blocking once it is writable. */
#define CAREFUL_BYTES 4096

static void on_ready(struct loop_watch *watch, uint32_t events);

static void lose(struct outlet *outlet, int error)
{
	if (outlet->lost_error)
		return;
	outlet->lost_error = error;
	text_clear(&outlet->pending);
	loop_remove(&outlet->watch);
}

static ssize_t write_once(const struct outlet *outlet, const void *bytes, size_t len)
{
	if (outlet->is_socket)
		return send(outlet->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return write(outlet->fd, bytes, outlet->is_careful && len > CAREFUL_BYTES ? CAREFUL_BYTES : len);
}

/* Bytes written; 0: it would block; the outlet may be lost afterwards. */
static size_t write_some(struct outlet *outlet, const char *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t count = write_once(outlet, bytes + done, len - done);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno == EAGAIN)
			break;
		if (count < 0) {
			lose(outlet, errno);
			break;
		}
		done += (size_t)count;
		if (outlet->is_careful)
			break; /* the next piece waits for the next notice */
	}
	return done;
}

static void set_interest(struct outlet *outlet)
{
	if (!outlet->lost_error)
		loop_change(&outlet->watch, outlet->pending.len && !outlet->is_held ? EPOLLOUT : 0);
}

static void on_ready(struct loop_watch *watch, uint32_t events)
{
	struct outlet *outlet = watch->owner;
	size_t done;

	if (outlet->is_held && !(events & (EPOLLERR | EPOLLHUP)))
		return;
	if (events & (EPOLLERR | EPOLLHUP) && !(events & EPOLLOUT && outlet->pending.len)) {
		/* Without is_watching_reader the next write finds the error. */
		if (!outlet->is_watching_reader) {
			loop_remove(&outlet->watch);
			if (!outlet->pending.len)
				return;
		} else {
			lose(outlet, EPIPE);
			outlet->function(outlet);
			return;
		}
	}
	done = write_some(outlet, outlet->pending.data, outlet->pending.len);
	text_consume(&outlet->pending, outlet->lost_error ? 0 : done);
	set_interest(outlet);
	outlet->function(outlet);
}

/* A description of our own of the same pipe or terminal, so that O_NONBLOCK stays ours. */
static int reopen(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int run_outlet_open(struct outlet *outlet, struct loop *loop, int fd, bool is_watching_reader,
		    outlet_function *function, void *owner)
{
	struct stat status;
	int rc;

	*outlet = (struct outlet){
		.loop = loop,
		.fd = fd,
		.borrowed_fd = fd,
		.is_watching_reader = is_watching_reader,
		.function = function,
		.owner = owner,
	};
	if (fstat(fd, &status) < 0) {
		outlet->lost_error = errno;
		return 0;
	}
	/* Opening it anew would otherwise make it writable. */
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
		outlet->lost_error = EBADF;
		return 0;
	}
	outlet->is_socket = S_ISSOCK(status.st_mode);
	if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
		int own = reopen(fd);

		if (own >= 0)
			outlet->fd = own;
		else
			outlet->is_careful = true;
	}
	rc = loop_add(loop, &outlet->watch, outlet->fd, 0, on_ready, outlet);
	/* The same descriptor for both streams, which could not be opened anew. */
	if (rc == -EEXIST) {
		outlet->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		rc = outlet->fd < 0 ? -errno : loop_add(loop, &outlet->watch, outlet->fd, 0, on_ready, outlet);
	}
	if (rc < 0)
		run_outlet_done(outlet);
	return rc;
}

void run_outlet_done(struct outlet *outlet)
{
	loop_remove(&outlet->watch);
	if (outlet->fd != outlet->borrowed_fd)
		close_fd(&outlet->fd);
	text_done(&outlet->pending);
}

void run_outlet_write(struct outlet *outlet, const void *bytes, size_t len)
{
	size_t done = 0;

	if (!len)
		return;
	if (!outlet->lost_error && !outlet->pending.len && !outlet->is_careful && !outlet->is_held)
		done = write_some(outlet, bytes, len);
	if (outlet->lost_error) {
		outlet->function(outlet);
		return;
	}
	text_append(&outlet->pending, (const char *)bytes + done, len - done);
	if (text_failed(&outlet->pending)) {
		lose(outlet, ENOMEM);
		outlet->function(outlet);
		return;
	}
	if (!outlet->watch.loop && outlet->pending.len && !outlet->is_held)
		loop_add(outlet->loop, &outlet->watch, outlet->fd, EPOLLOUT, on_ready, outlet);
	else
		set_interest(outlet);
}

void run_outlet_hold(struct outlet *outlet, bool is_held)
{
	outlet->is_held = is_held;
	if (outlet->lost_error)
		return;
	if (!is_held && !outlet->watch.loop && outlet->pending.len)
		loop_add(outlet->loop, &outlet->watch, outlet->fd, EPOLLOUT, on_ready, outlet);
	else
		set_interest(outlet);
}
