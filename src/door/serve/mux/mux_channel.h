/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/mux/mux_channel.h - what the files of the mux share: the connection, its channels, and the stream behind a channel
 */
#ifndef BELLJAR_DOOR_SERVE_MUX_MUX_CHANNEL_H
#define BELLJAR_DOOR_SERVE_MUX_MUX_CHANNEL_H

#include <dirent.h>

#include "door/serve/mux/mux.h"
#include "door/wire/wire.h"

#define MUX_BUCKETS 1024
/* More than this waits to be written, and no channel gives more. */
#define MUX_HIGH_WATER ((size_t)256 << 10)
/* More than this, answers that no credit holds back, and nothing more is read from the client. */
#define MUX_ANSWERS_MAX ((size_t)32 << 20)

/* The source and target of DATA, in place of a descriptor. */
enum mux_stream_kind {
	MUX_STREAM_NONE,  /* the client may send no DATA */
	MUX_STREAM_LATER, /* the answer may bring one: DATA waits for it */
	MUX_STREAM_INPUT, /* the pipe that is a run's standard input */
	MUX_STREAM_FILE,
	MUX_STREAM_DIRECTORY,
	MUX_STREAM_SOCKET,
	MUX_STREAM_WATCH, /* events of inotify */
};

struct mux_stream {
	enum mux_stream_kind kind;
	int fd; /* -1: none */
	DIR *directory;
	struct loop_watch watch;
	bool may_read;  /* there may be more for the client */
	bool may_write; /* what the client sends is written, and not thrown away */
	bool has_ended; /* the client has sent DATA_END */
	struct text pending;
	size_t pending_at;
	size_t allowed; /* bytes that the client may still send */
	size_t taken;   /* bytes of credit to give back */
};

struct mux_channel {
	struct mux *mux;
	struct mux_channel *next;         /* in its bucket, or among the dead */
	struct mux_channel *next_waiting; /* for room to send, or to be closed */
	uint32_t id;
	struct wire wire; /* its fd is -1: the server has closed it, or there never was one */
	struct mux_stream stream;
	size_t credit;    /* bytes that may still be sent to the client */
	struct text held; /* a frame for which it was not enough */
	enum frame_type held_type;
	bool is_holding;
	bool is_waiting;
	bool is_served; /* the server has sent its last frame */
	bool is_over;   /* END was sent: what the client sends before its own is thrown away */
};

struct mux {
	struct loop *loop;
	struct mux_listener listener;
	int in_fd, out_fd;
	struct loop_watch in, out;
	struct text arrived;
	size_t arrived_at;
	struct text pending;
	size_t pending_at;
	struct mux_channel *buckets[MUX_BUCKETS];
	struct mux_channel *dead;
	struct mux_channel *first_waiting, *last_waiting;
	struct mux_channel *over; /* their sockets are still to be closed */
	size_t channel_count;
	unsigned new_count; /* of channels in this turn */
	struct loop_timer again;
	bool is_greeted;
	bool is_blocked; /* a frame waits until its channel's wire is empty, or for the next turn */
	bool is_ended;
	bool is_broken; /* report the cause to the client */
};

/* --- mux.c --- */

/* Queue a frame; mux_turn() sends it. */
void mux_send(struct mux *mux, uint32_t id, enum frame_type type, const void *payload, size_t len);
void mux_send_error(struct mux *mux, uint32_t id, const struct error *error);
/* The client broke the rules: everything ends. Returns a negative errno. */
int mux_break(struct mux *mux, int errno_value, const char *format, ...) PRINTF_LIKE(3, 4);
/* A frame waited for this channel's wire. */
void mux_unblock(struct mux *mux);

static inline size_t mux_pending(const struct mux *mux)
{
	return mux->pending.len - mux->pending_at;
}

static inline bool mux_is_full(const struct mux *mux)
{
	return mux_pending(mux) >= MUX_HIGH_WATER;
}

/* --- mux_channel.c --- */

struct mux_channel *mux_find(const struct mux *mux, uint32_t id);
/*
 * Make a channel. *@fd_out is the end for the server; -1: it could not be made, and the client got an error. The
 * caller has checked @id. 0 or a negative errno, after mux_break().
 */
int mux_channel_new(struct mux *mux, uint32_t id, enum mux_stream_kind kind, struct mux_channel **out, int *fd_out);
/* Send FAILED on the channel, and end it. */
void mux_channel_fail(struct mux_channel *channel, const struct error *error);
/* Queue a frame that needs no credit, or that has it. */
void mux_channel_send(struct mux_channel *channel, enum frame_type type, const void *payload, size_t len);
void mux_channel_credit(struct mux_channel *channel, size_t count);
/* The client has closed it. */
void mux_channel_close(struct mux_channel *channel);
/* Send END, if nothing more can come. */
void mux_channel_check_over(struct mux_channel *channel);
/* Update what the loop watches for the channel and its stream. */
void mux_channel_update(struct mux_channel *channel);
void mux_channel_free(struct mux_channel *channel);

/* --- mux_stream.c --- */

/* Make the pipe for standard input: *@fd_out is for the server. 0 or a negative errno. */
int mux_stream_open_input(struct mux_channel *channel, int *fd_out);
/* Attach the descriptor of an answer; takes over @fd. */
void mux_stream_attach(struct mux_channel *channel, int fd);
/* Take DATA and DATA_END from the client. 0 or a negative errno, after mux_break(). */
int mux_stream_take(struct mux_channel *channel, const char *bytes, size_t len);
int mux_stream_end(struct mux_channel *channel);
/* Watch it for what can be done now. */
void mux_stream_update(struct mux_channel *channel);
/* Report whether the stream keeps the channel open after the server's last frame. */
bool mux_stream_is_busy(const struct mux_channel *channel);
void mux_stream_done(struct mux_channel *channel);

#endif
