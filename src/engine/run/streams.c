/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/streams.c - what the command of one run writes: read, redact, count against the cap, hand on, drain at the end
 *
 * The order is fixed. Redaction comes first, because it could not recognise a secret that the cap has cut. Then
 * comes the cap, over both streams in the order of arrival, or over each. Then comes the listener.
 */
#include "engine/run/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "base/redact/redact.h"
#include "base/sys/calls.h"

#define READ_BYTES (64 << 10)

/* --- on their way ------------------------------------------------------------------------------------------- */

static void hand_over(struct stream *stream, const char *bytes, size_t len)
{
	const struct streams_listener *listener = &stream->streams->listener;

	if (len && listener->output && !stream->streams->is_lost)
		stream->is_waiting |= listener->output(listener->owner, stream->index, bytes, len);
	if (stream->streams->is_lost)
		stream->is_waiting = false;
}

static void end_stream(struct stream *stream)
{
	const struct streams_listener *listener = &stream->streams->listener;

	/* Do not report an end before the start: after a failed jar the run may start in another one. */
	if (stream->is_ended || !stream->streams->is_started)
		return;
	stream->is_ended = true;
	if (listener->ended)
		listener->ended(listener->owner, stream->index);
}

static uint64_t room_below(uint64_t limit, uint64_t delivered)
{
	return limit == LIMIT_NONE ? LIMIT_NONE : limit - MIN_OF(limit, delivered);
}

/* Count bytes against the cap, and pass on those that fit. */
static void deliver(struct stream *stream, const char *bytes, size_t len)
{
	static const char *const names[] = {[STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr"};
	struct streams *streams = stream->streams;
	const struct output_limit *limit = &streams->plan->limits.output;
	uint64_t total_room = room_below(limit->total_bytes, streams->delivered_bytes);
	uint64_t own_room = room_below(limit->stream_bytes[stream->index], stream->delivered_bytes);
	uint64_t room = MIN_OF(total_room, own_room);

	if (!len)
		return;
	streams->delivered_bytes += len;
	stream->delivered_bytes += len;
	if (streams->capture && run_capture_add(streams->capture, stream->index, bytes, len) < 0)
		streams->is_truncated = stream->is_cut = true;
	/* A run ended for its output shows exactly the cap; draining after that adds nothing. */
	hand_over(stream, bytes, (size_t)MIN_OF((uint64_t)len, room));
	if (len <= room)
		return;
	streams->is_truncated = stream->is_cut = true;
	/* End the stream, so that its reader does not wait for more. */
	for (size_t i = 0; i < STREAM_COUNT; i++)
		if (&streams->items[i] == stream || len > total_room)
			end_stream(&streams->items[i]);
	if (!streams->listener.overflow)
		return;
	if (len > total_room)
		streams->listener.overflow(streams->listener.owner, "output", limit->total_bytes,
					   streams->delivered_bytes);
	else
		streams->listener.overflow(streams->listener.owner, names[stream->index],
					   limit->stream_bytes[stream->index], stream->delivered_bytes);
}

static void process(struct stream *stream, const char *bytes, size_t len)
{
	struct text *clean = &stream->streams->clean;

	stream->bytes += len;
	if (!stream->redact) {
		deliver(stream, bytes, len);
		return;
	}
	text_clear(clean);
	redact_feed(stream->redact, bytes, len, clean);
	deliver(stream, text_string(clean), clean->len);
}

static void close_stream(struct stream *stream)
{
	struct text *clean = &stream->streams->clean;

	if (stream->fd < 0)
		return;
	loop_remove(&stream->watch);
	if (stream->fd != stream->streams->pty_fd)
		close(stream->fd);
	stream->fd = -1;
	if (stream->redact) {
		text_clear(clean);
		redact_finish(stream->redact, clean);
		deliver(stream, text_string(clean), clean->len);
	}
	end_stream(stream);
}

/* Read once. True if there may be more. */
static bool read_stream(struct stream *stream)
{
	static char buffer[READ_BYTES];
	bool is_draining = stream->streams->is_draining;
	ssize_t count = read(stream->fd, buffer, is_draining ? MIN_OF(sizeof(buffer), stream->left) : sizeof(buffer));

	if (count > 0) {
		stream->left -= is_draining ? (size_t)count : 0;
		process(stream, buffer, (size_t)count);
		return true;
	}
	if (count < 0 && errno == EINTR)
		return true;
	/* The jar is gone, so nothing more counts, even if another process has the pipe. A terminal ends with EIO. */
	if (count == 0 || errno != EAGAIN || is_draining)
		close_stream(stream);
	return false;
}

static void drain(struct streams *streams)
{
	bool is_waiting = false;

	for (size_t i = 0; i < STREAM_COUNT; i++) {
		struct stream *stream = &streams->items[i];

		while (stream->fd >= 0 && (!stream->is_waiting || streams->is_rest_taken))
			if (!read_stream(stream))
				break;
		if (stream->fd >= 0)
			loop_change(&stream->watch, 0);
		is_waiting |= stream->is_waiting && !streams->is_rest_taken;
	}
	if (!is_waiting && streams->listener.drained)
		streams->listener.drained(streams->listener.owner);
}

static void on_output(struct loop_watch *watch, uint32_t events)
{
	struct stream *stream = watch->owner;

	(void)events;
	read_stream(stream);
	if (stream->fd >= 0 && stream->is_waiting)
		loop_change(&stream->watch, 0);
	if (stream->streams->is_draining)
		drain(stream->streams);
}

void run_streams_read(struct streams *streams)
{
	streams->is_started = true;
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		if (streams->items[i].fd >= 0)
			loop_change(&streams->items[i].watch, EPOLLIN);
		else
			end_stream(&streams->items[i]);
	}
}

void run_streams_drain(struct streams *streams, bool is_rest_taken)
{
	streams->is_draining = true;
	streams->is_rest_taken = is_rest_taken;
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		int left = 0;

		/* Only the jar has the other end of its terminal; a process outside may have a pipe's. */
		if (streams->pty_fd >= 0 || ioctl(streams->items[i].fd, FIONREAD, &left) < 0)
			streams->items[i].left = SIZE_MAX;
		else
			streams->items[i].left = (size_t)left;
	}
	drain(streams);
}

void run_streams_resume(struct streams *streams, enum stream_index index)
{
	struct stream *stream = &streams->items[index];

	if (!stream->is_waiting)
		return;
	stream->is_waiting = false;
	if (streams->is_draining)
		drain(streams);
	else if (stream->fd >= 0)
		loop_change(&stream->watch, EPOLLIN);
}

void run_streams_lose(struct streams *streams)
{
	bool was_waiting = false;

	if (streams->is_lost)
		return;
	streams->is_lost = true;
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		was_waiting |= streams->items[i].is_waiting;
		streams->items[i].is_waiting = false;
	}
	/* A listener that asked to wait will not ask for more. If none did, the draining is under way. */
	if (streams->is_draining && was_waiting)
		drain(streams);
}

static void on_discarded(struct loop_watch *watch, uint32_t events)
{
	static char buffer[READ_BYTES];
	struct stream *stream = watch->owner;
	ssize_t count = read(stream->kept_fd, buffer, sizeof(buffer));

	(void)events;
	if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	loop_remove(&stream->watch);
	close_fd(&stream->kept_fd);
}

void run_streams_keep(struct streams *streams)
{
	for (size_t i = 0; i < STREAM_COUNT; i++)
		if (streams->items[i].fd >= 0)
			streams->items[i].kept_fd = fcntl(streams->items[i].fd, F_DUPFD_CLOEXEC, 3);
}

void run_streams_discard(struct streams *streams)
{
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		struct stream *stream = &streams->items[i];

		if (stream->kept_fd >= 0)
			loop_add(streams->loop, &stream->watch, stream->kept_fd, EPOLLIN, on_discarded, stream);
	}
}

void run_streams_drop(struct streams *streams)
{
	streams->is_truncated = true;
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		streams->items[i].is_cut |= streams->items[i].fd >= 0;
		close_stream(&streams->items[i]);
		streams->items[i].is_waiting = false;
	}
}

/* --- making and freeing ------------------------------------------------------------------------------------- */

int run_streams_init(struct streams *streams, struct loop *loop, const struct plan *plan, bool is_captured,
		     const struct streams_listener *listener, struct error *error)
{
	int rc;

	*streams = (struct streams){.loop = loop, .plan = plan, .listener = *listener, .pty_fd = -1};
	for (size_t i = 0; i < STREAM_COUNT; i++)
		streams->items[i] =
			(struct stream){.streams = streams, .index = (enum stream_index)i, .fd = -1, .kept_fd = -1};
	rc = redactor_new(&plan->redact, plan->has_redact_secrets, &streams->redactor, error);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < STREAM_COUNT && streams->redactor; i++) {
		streams->items[i].redact = redact_stream_new(streams->redactor);
		if (!streams->items[i].redact)
			return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	}
	if (is_captured && !(streams->capture = run_capture_new(&plan->limits.output, plan->limits.keep)))
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	return 0;
}

int run_streams_pipe(const struct plan *plan, int *reader, int *writer, struct error *error)
{
	int ends[2] = {-1, -1}, rc = pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0;

	if (rc == 0) {
		*reader = ends[0];
		*writer = ends[1];
	}
	if (rc == 0 && plan->owner_id && fchown(*reader, plan->owner_id, plan->owner_id) < 0)
		rc = -errno;
	return rc < 0 ? error_set(error, STAGE_ENGINE, -rc, "cannot make a pipe: %s", strerror(-rc)) : 0;
}

int run_streams_make_pipes(struct streams *streams, bool is_merged, int writers[STREAM_COUNT], struct error *error)
{
	int rc = 0;

	for (size_t i = 0; i < (is_merged ? STREAM_STDERR : STREAM_COUNT) && rc == 0; i++)
		rc = run_streams_pipe(streams->plan, &streams->items[i].fd, &writers[i], error);
	return rc;
}

int run_streams_watch(struct streams *streams)
{
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		struct stream *stream = &streams->items[i];
		int rc;

		if (stream->fd < 0)
			continue;
		fcntl(stream->fd, F_SETFL, O_NONBLOCK);
		rc = loop_add(streams->loop, &stream->watch, stream->fd, 0, on_output, stream);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int run_streams_take_pty(struct streams *streams, int fd)
{
	streams->pty_fd = fd;
	streams->items[STREAM_STDOUT].fd = fd;
	return run_streams_watch(streams);
}

void run_streams_done(struct streams *streams)
{
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		loop_remove(&streams->items[i].watch);
		if (streams->items[i].fd != streams->pty_fd)
			close_fd(&streams->items[i].fd);
		close_fd(&streams->items[i].kept_fd);
		redact_stream_free(streams->items[i].redact);
	}
	close_fd(&streams->pty_fd);
	redactor_free(streams->redactor);
	run_capture_free(streams->capture);
	text_done(&streams->clean);
}
