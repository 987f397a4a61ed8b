/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/mux/mux_stream.c - standard input, a file, a directory or a socket as DATA frames, in place of a descriptor
 *
 * The client's bytes wait in memory, within its credit, and the mux returns the credit for written bytes. If no reader
 * is left, it throws the bytes away and returns the credit too, so that the client does not wait for ever. It reads
 * and writes files directly, one piece in each turn, since the kernel does not report when a file would not block.
 */
#include "door/serve/mux/mux_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* What is given back in one frame, if possible: a client that has all its credit left hears nothing. */
#define GIVE_BACK_BYTES (FRAME_WINDOW_BYTES / 4)
/* What a piece must have room for: a name of the longest kind with its type and its end, or with what inotify tells of it. */
#define ENTRY_MAX_BYTES (sizeof(struct inotify_event) + NAME_MAX + 1)

static void fail_stream(struct mux_channel *channel, const char *what, int errno_value)
{
	struct error error = {0};

	error_set(&error, STAGE_FILES, errno_value, "cannot %s: %s", what, strerror(errno_value));
	mux_channel_fail(channel, &error);
}

/* --- bytes from the client ---------------------------------------------------------------------------------- */

static size_t unwritten(const struct mux_stream *stream)
{
	return stream->pending.len - stream->pending_at;
}

static void give_back(struct mux_channel *channel, size_t count)
{
	struct mux_stream *stream = &channel->stream;
	unsigned char number[4];

	stream->taken += count;
	if (stream->taken < GIVE_BACK_BYTES || stream->has_ended)
		return;
	frame_number_write(number, (uint32_t)stream->taken, sizeof(number));
	mux_channel_send(channel, FRAME_CREDIT, number, sizeof(number));
	stream->allowed += stream->taken;
	stream->taken = 0;
}

static void drop_pending(struct mux_channel *channel)
{
	struct mux_stream *stream = &channel->stream;
	size_t count = unwritten(stream);

	text_done(&stream->pending);
	stream->pending_at = 0;
	give_back(channel, count);
}

/* Throw away what the client sends from now on: it has no reader. */
static void stop_writing(struct mux_channel *channel)
{
	struct mux_stream *stream = &channel->stream;

	if (!stream->may_write)
		return;
	stream->may_write = false;
	if (!stream->has_ended)
		mux_channel_send(channel, FRAME_DATA_STOP, "", 0);
	drop_pending(channel);
}

static ssize_t write_some(const struct mux_stream *stream)
{
	const char *bytes = stream->pending.data + stream->pending_at;
	ssize_t count;

	do
		count = stream->kind == MUX_STREAM_SOCKET
				? send(stream->fd, bytes, unwritten(stream), MSG_DONTWAIT | MSG_NOSIGNAL)
				: write(stream->fd, bytes, unwritten(stream));
	while (count < 0 && errno == EINTR);
	return count < 0 ? -errno : count;
}

static void close_stream(struct mux_stream *stream)
{
	loop_remove(&stream->watch);
	if (stream->directory)
		closedir(stream->directory);
	else if (stream->fd >= 0)
		close(stream->fd);
	stream->directory = NULL;
	stream->fd = -1;
}

/* The client has sent its end, and everything before it is written. */
static void finish_writing(struct mux_channel *channel)
{
	struct mux_stream *stream = &channel->stream;

	stream->may_write = false;
	switch (stream->kind) {
	case MUX_STREAM_INPUT:
		close_stream(stream);
		break;
	case MUX_STREAM_SOCKET:
		shutdown(stream->fd, SHUT_WR);
		break;
	case MUX_STREAM_FILE:
		/* Some file systems say only now that there was no room. */
		if (close(take_fd(&stream->fd)) < 0) {
			fail_stream(channel, "write the file", errno);
			return;
		}
		mux_channel_send(channel, FRAME_DATA_END, "", 0);
		break;
	case MUX_STREAM_NONE:
	case MUX_STREAM_LATER:
	case MUX_STREAM_DIRECTORY:
	case MUX_STREAM_WATCH:
		break;
	}
}

static void write_pending(struct mux_channel *channel)
{
	struct mux_stream *stream = &channel->stream;

	while (stream->may_write && stream->fd >= 0 && unwritten(stream)) {
		ssize_t count = write_some(stream);

		if (count == -EAGAIN)
			break;
		if (count < 0 && stream->kind == MUX_STREAM_FILE) {
			fail_stream(channel, "write the file", (int)-count);
			return;
		}
		if (count < 0) {
			stop_writing(channel);
			break;
		}
		stream->pending_at += (size_t)count;
		give_back(channel, (size_t)count);
	}
	if (!unwritten(stream)) {
		text_done(&stream->pending);
		stream->pending_at = 0;
		if (stream->has_ended && stream->may_write && stream->fd >= 0)
			finish_writing(channel);
	}
	/* Close it as soon as it is unused, so that the other side sees the end. */
	if (stream->kind == MUX_STREAM_INPUT && !stream->may_write)
		close_stream(stream);
}

/* Not: a run without input, a jar, what is only read. */
static bool takes_data(const struct mux_stream *stream)
{
	return stream->kind != MUX_STREAM_NONE &&
	       (stream->may_write || stream->kind == MUX_STREAM_INPUT || stream->kind == MUX_STREAM_SOCKET);
}

int mux_stream_take(struct mux_channel *channel, const char *bytes, size_t len)
{
	struct mux_stream *stream = &channel->stream;

	if (!takes_data(stream))
		return mux_break(channel->mux, EPROTO, "the client sent DATA on channel %u, which takes none",
				 channel->id);
	if (stream->has_ended)
		return mux_break(channel->mux, EPROTO, "the client sent DATA on channel %u after DATA_END",
				 channel->id);
	if (len > stream->allowed)
		return mux_break(channel->mux, EPROTO, "the client sent more DATA on channel %u than it had credit for",
				 channel->id);
	stream->allowed -= len;
	if (!stream->may_write) {
		give_back(channel, len);
		return 0;
	}
	text_append(&stream->pending, bytes, len);
	if (text_failed(&stream->pending))
		return mux_break(channel->mux, ENOMEM, "out of memory for what a client sends");
	write_pending(channel);
	mux_channel_update(channel);
	mux_channel_check_over(channel);
	return 0;
}

int mux_stream_end(struct mux_channel *channel)
{
	struct mux_stream *stream = &channel->stream;

	if (!takes_data(stream) || stream->has_ended)
		return mux_break(channel->mux, EPROTO,
				 "the client sent DATA_END on channel %u, which has no DATA to end", channel->id);
	stream->has_ended = true;
	write_pending(channel);
	mux_channel_update(channel);
	mux_channel_check_over(channel);
	return 0;
}

/* --- bytes to the client ------------------------------------------------------------------------------------ */

static char letter_of(unsigned char type)
{
	static const char letters[] = {
		[DT_REG] = 'f',  [DT_DIR] = 'd', [DT_LNK] = 'l', [DT_FIFO] = 'p',
		[DT_SOCK] = 's', [DT_BLK] = 'b', [DT_CHR] = 'c',
	};

	return type < ARRAY_LEN(letters) && letters[type] ? letters[type] : '?';
}

/* Entries as a letter for the type, the name and a NUL. */
static ssize_t read_entries(struct mux_stream *stream, char *bytes, size_t room)
{
	size_t len = 0;

	while (room - len >= ENTRY_MAX_BYTES) {
		struct dirent *entry;
		size_t name_len;

		errno = 0;
		entry = readdir(stream->directory);
		if (!entry)
			return len || !errno ? (ssize_t)len : -errno;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		name_len = strlen(entry->d_name) + 1;
		bytes[len++] = letter_of(entry->d_type);
		memcpy(bytes + len, entry->d_name, name_len);
		len += name_len;
	}
	return (ssize_t)len;
}

static ssize_t read_some(struct mux_stream *stream, char *bytes, size_t room)
{
	ssize_t count;

	if (stream->kind == MUX_STREAM_DIRECTORY)
		return read_entries(stream, bytes, room);
	do
		count = stream->kind == MUX_STREAM_SOCKET ? recv(stream->fd, bytes, room, MSG_DONTWAIT)
							  : read(stream->fd, bytes, room);
	while (count < 0 && errno == EINTR);
	return count < 0 ? -errno : count;
}

static bool wants_to_read(const struct mux_channel *channel)
{
	enum mux_stream_kind kind = channel->stream.kind;
	bool is_whole = kind == MUX_STREAM_DIRECTORY || kind == MUX_STREAM_WATCH;

	return channel->stream.may_read && !channel->is_waiting && channel->credit >= (is_whole ? ENTRY_MAX_BYTES : 1);
}

static void read_piece(struct mux_channel *channel)
{
	struct mux_stream *stream = &channel->stream;
	char bytes[FRAME_DATA_MAX_BYTES];
	ssize_t count = read_some(stream, bytes, MIN_OF(sizeof(bytes), channel->credit));

	if (count == -EAGAIN)
		return;
	if (count < 0 && stream->kind != MUX_STREAM_SOCKET) {
		fail_stream(channel, "read the file", (int)-count);
		return;
	}
	if (count > 0) {
		mux_channel_send(channel, FRAME_DATA, bytes, (size_t)count);
		return;
	}
	/* A connection that was reset has nothing more to say, and takes nothing. */
	if (count < 0)
		stop_writing(channel);
	stream->may_read = false;
	mux_channel_send(channel, FRAME_DATA_END, "", 0);
}

/* --- in the loop -------------------------------------------------------------------------------------------- */

static void on_ready(struct loop_watch *watch, uint32_t events)
{
	struct mux_channel *channel = watch->owner;
	struct mux_stream *stream = &channel->stream;

	if (stream->kind == MUX_STREAM_INPUT && events & EPOLLERR)
		stop_writing(channel);
	if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		write_pending(channel);
	if (stream->fd >= 0 && wants_to_read(channel) && events & ~(uint32_t)EPOLLOUT)
		read_piece(channel);
	mux_channel_update(channel);
	mux_channel_check_over(channel);
}

/* Not watched rather than watched for nothing: a hang-up is reported whatever one asks for. Of an input it is wanted. */
void mux_stream_update(struct mux_channel *channel)
{
	struct mux_stream *stream = &channel->stream;
	uint32_t events =
		(wants_to_read(channel) ? EPOLLIN : 0) | (unwritten(stream) && stream->may_write ? EPOLLOUT : 0);

	if (stream->fd < 0 || channel->is_over)
		return;
	if (!events && stream->kind != MUX_STREAM_INPUT)
		loop_remove(&stream->watch);
	else if (stream->watch.loop)
		loop_change(&stream->watch, events);
	else if (loop_add(channel->mux->loop, &stream->watch, stream->fd, events, on_ready, channel) < 0)
		fail_stream(channel, "watch what a channel has open", ENOMEM);
}

bool mux_stream_is_busy(const struct mux_channel *channel)
{
	const struct mux_stream *stream = &channel->stream;

	if (stream->kind == MUX_STREAM_NONE || stream->kind == MUX_STREAM_LATER || stream->kind == MUX_STREAM_INPUT)
		return false;
	return stream->may_read || (stream->may_write && stream->fd >= 0);
}

/* --- beginning and end -------------------------------------------------------------------------------------- */

int mux_stream_open_input(struct mux_channel *channel, int *fd_out)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	channel->stream.kind = MUX_STREAM_INPUT;
	channel->stream.fd = ends[1];
	*fd_out = ends[0];
	mux_stream_update(channel);
	return 0;
}

static enum mux_stream_kind kind_of(int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return MUX_STREAM_NONE;
	if (S_ISREG(status.st_mode))
		return MUX_STREAM_FILE;
	if (S_ISDIR(status.st_mode))
		return MUX_STREAM_DIRECTORY;
	if (S_ISSOCK(status.st_mode))
		return MUX_STREAM_SOCKET;
	return status.st_mode & S_IFMT ? MUX_STREAM_NONE : MUX_STREAM_WATCH; /* an inode of no type */
}

void mux_stream_attach(struct mux_channel *channel, int fd)
{
	struct mux_stream *stream = &channel->stream;
	int access = fcntl(fd, F_GETFL) & O_ACCMODE;
	bool is_socket;

	close_stream(stream);
	stream->fd = fd;
	stream->kind = kind_of(fd);
	is_socket = stream->kind == MUX_STREAM_SOCKET;
	if (stream->kind == MUX_STREAM_DIRECTORY)
		stream->directory = fdopendir(fd);
	if (stream->kind == MUX_STREAM_NONE || (stream->kind == MUX_STREAM_DIRECTORY && !stream->directory)) {
		fail_stream(channel, "read what was opened", EOPNOTSUPP);
		return;
	}
	stream->may_read = is_socket || access != O_WRONLY;
	stream->may_write = is_socket || access != O_RDONLY;
	if (!stream->may_write && (unwritten(stream) || stream->has_ended))
		mux_break(channel->mux, EPROTO, "the client sent DATA on channel %u, which takes none", channel->id);
	else
		write_pending(channel);
}

void mux_stream_done(struct mux_channel *channel)
{
	struct mux_stream *stream = &channel->stream;

	close_stream(stream);
	stream->may_read = false;
	stream->may_write = false;
	text_done(&stream->pending);
	stream->pending_at = 0;
}
