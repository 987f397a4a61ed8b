/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/streams.h - what the command of one run writes: read, redact, count against the cap, hand on, drain at the end
 *
 * Two pipes, or one terminal. A listener that cannot take more stops the reading, and with it the command. Once
 * the jar is gone, only what the pipes hold counts, although another process may hold a copy of the other end.
 */
#ifndef BELLJAR_ENGINE_RUN_STREAMS_H
#define BELLJAR_ENGINE_RUN_STREAMS_H

#include "base/loop.h"
#include "base/text.h"
#include "plan/plan.h"
#include "engine/run/capture.h"

struct streams;
struct redactor;
struct redact_stream;

/* Any may be NULL. */
struct streams_listener {
	void *owner;
	/* Bytes after redaction and the cap. Return true to stop the reading until run_streams_resume(). */
	bool (*output)(void *owner, enum stream_index stream, const void *bytes, size_t len);
	/* The output is over the cap; called for every read beyond it. @what: "output", "stdout" or "stderr". */
	void (*overflow)(void *owner, const char *what, uint64_t limit_bytes, uint64_t delivered_bytes);
	/*
	 * The listener gets no more of this stream: the command closed it or never had it, or it reached the
	 * cap. Called once for each stream of a command that started.
	 */
	void (*ended)(void *owner, enum stream_index stream);
	/* After run_streams_drain(): nothing is left. */
	void (*drained)(void *owner);
};

struct stream {
	struct streams *streams;
	enum stream_index index;
	struct loop_watch watch;
	int fd;                   /* -1: at its end */
	bool is_waiting;          /* the listener asked to wait */
	bool is_ended;            /* the listener gets no more of it */
	bool is_cut;              /* bytes of it were dropped */
	int kept_fd;              /* if other processes write to it after the command's end; else -1 */
	size_t left;              /* draining: bytes in the pipe when the jar was gone; others may still write */
	uint64_t bytes;           /* as the command wrote them */
	uint64_t delivered_bytes; /* after redaction */
	struct redact_stream *redact;
};

struct streams {
	struct loop *loop;
	const struct plan *plan;
	struct streams_listener listener;
	struct stream items[STREAM_COUNT];
	struct redactor *redactor;
	struct capture *capture; /* NULL: not kept */
	int pty_fd;              /* the command's terminal, which is then its only stream; -1: none */
	bool is_started;         /* run_streams_read() was called */
	bool is_draining;
	bool is_rest_taken;
	bool is_lost; /* the reader takes no more bytes */
	bool is_truncated;
	uint64_t delivered_bytes; /* after redaction, both streams */
	struct text clean;        /* redacted bytes of one read */
};

/* On failure too, run_streams_done() must follow. @plan must outlive the streams. */
int run_streams_init(struct streams *streams, struct loop *loop, const struct plan *plan, bool is_captured,
		     const struct streams_listener *listener, struct error *error);
void run_streams_done(struct streams *streams);

/* Make a pipe that the command may open again by its name in /proc. */
int run_streams_pipe(const struct plan *plan, int *reader, int *writer, struct error *error);
/* Make the two pipes, or one for both. @writers is the command's side, owned by the caller; -1 where none was made. */
int run_streams_make_pipes(struct streams *streams, bool is_merged, int writers[STREAM_COUNT], struct error *error);
/* The command has a terminal: @fd is its master, owned from here on. A negative errno if it cannot be watched. */
int run_streams_take_pty(struct streams *streams, int fd);
/* Prepare to read the pipes. Nothing is read before run_streams_read(). */
int run_streams_watch(struct streams *streams);
void run_streams_read(struct streams *streams);
/* The listener that asked to wait can take more. */
void run_streams_resume(struct streams *streams, enum stream_index index);
/*
 * The jar is gone: read what the pipes hold, then call drained(). @is_rest_taken: pass all of it to the
 * listener now, even if it asks to wait.
 */
void run_streams_drain(struct streams *streams, bool is_rest_taken);
/* The reader takes no more bytes: count them, and do not pass them on. */
void run_streams_lose(struct streams *streams);
/*
 * Keep the pipes, before run_streams_drain(): other processes go on writing. run_streams_discard(): read and
 * drop what they write, so that they neither block nor get SIGPIPE, until run_streams_done().
 */
void run_streams_keep(struct streams *streams);
void run_streams_discard(struct streams *streams);
/* Drop what was not read. */
void run_streams_drop(struct streams *streams);

#endif
