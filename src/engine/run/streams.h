/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/streams.h - what the command of one run writes: read, redact, count against the cap, hand on, drain at the end
 *
 * Two pipes, or one terminal. A listener that cannot take more stops the reading, and with it the command. When the jar
 * is gone, what the pipes hold is all that counts, although somebody may hold a copy of the other end.
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
	/* Bytes that may be seen by others. Return true to be asked to wait: see run_streams_resume(). */
	bool (*output)(void *owner, enum stream_index stream, const void *bytes, size_t len);
	/* More than the cap has arrived; told with every byte beyond it. @what: "output", or "stdout" or "stderr" alone. */
	void (*overflow)(void *owner, const char *what, uint64_t limit_bytes, uint64_t delivered_bytes);
	/*
	 * Nothing more of this stream is handed over: the command has closed it or never had it, or the cap is reached. Once for
	 * each stream of a command that was started.
	 */
	void (*ended)(void *owner, enum stream_index stream);
	/* After run_streams_drain(): nothing is left. */
	void (*drained)(void *owner);
};

struct stream {
	struct streams *streams;
	enum stream_index index;
	struct loop_watch watch;
	int fd;          /* -1: at its end */
	bool is_waiting; /* the listener asked to wait */
	bool is_ended;   /* the listener gets no more of it */
	bool is_cut;     /* something of it was dropped */
	int kept_fd;     /* of one that others write to after the end of the command; -1: it is not kept */
	size_t left; /* draining: what was in the pipe when the jar was gone; others may hold its other end and write on */
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
	bool is_lost; /* nobody takes the bytes any more */
	bool is_truncated;
	uint64_t delivered_bytes; /* after redaction, both streams */
	struct text clean;        /* redacted bytes of one read */
};

/* On failure too, run_streams_done() must follow. @plan must outlive the streams. */
int run_streams_init(struct streams *streams, struct loop *loop, const struct plan *plan, bool is_captured,
		     const struct streams_listener *listener, struct error *error);
void run_streams_done(struct streams *streams);

/* A pipe that the command may open anew by its name in /proc. */
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
 * The jar is gone: read what is there, then tell that the streams are drained. @is_rest_taken: the listener gets all of it
 * now, also where it asks to wait; that is no more than the pipes hold.
 */
void run_streams_drain(struct streams *streams, bool is_rest_taken);
/* Nobody takes the bytes any more: they are still counted, and no longer handed on. */
void run_streams_lose(struct streams *streams);
/*
 * Before run_streams_drain(): others go on writing after that. run_streams_discard(): from now on what they write is read and dropped,
 * so that they neither wait nor are ended by SIGPIPE; run_streams_done() ends it.
 */
void run_streams_keep(struct streams *streams);
void run_streams_discard(struct streams *streams);
/* Give up what was not read. */
void run_streams_drop(struct streams *streams);

#endif
