/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_events.h - the lines of --events
 */
#ifndef BELLJAR_ENGINE_ENGINE_EVENTS_H
#define BELLJAR_ENGINE_ENGINE_EVENTS_H

#include "engine/engine_pieces.h"
#include "engine/result/result.h"

struct event_stream {
	uint64_t sequence;
	bool has_bytes;
	struct pieces pieces;
};

/* Write the members that describe how the command was started. */
void engine_event_write_start(const struct plan *plan, const struct observation *seen, struct json_writer *writer);

/* Write the members of a question: its subject, and the rule that would allow it. */
void engine_event_write_question(const struct net_question *question, struct json_writer *writer);

/* Each appends whole lines to @out. @elapsed_us counts from the beginning of the run. */
void engine_event_start(struct event_stream *events, uint64_t elapsed_us, const struct plan *plan,
			const struct observation *seen, struct text *out);
void engine_event_output(struct event_stream *events, uint64_t elapsed_us, enum stream_index stream, const void *bytes,
			 size_t len, struct text *out);
/* The stream has ended, or the cap cut it (@is_cut: drop an incomplete character). */
void engine_event_output_end(struct event_stream *events, uint64_t elapsed_us, enum stream_index stream, bool is_cut,
			     struct text *out);
/* A connection waits until the user answers a question. */
void engine_event_question(struct event_stream *events, uint64_t elapsed_us, const struct net_question *question,
			   struct text *out);
/* Belljar refused something for the first time. */
void engine_event_denied(struct event_stream *events, uint64_t elapsed_us, const struct plan *plan,
			 const struct denial *denial, struct text *out);
void engine_event_limit(struct event_stream *events, uint64_t elapsed_us, enum limit_name name,
			const struct limit_hit *hit, struct text *out);
void engine_event_result(struct event_stream *events, uint64_t elapsed_us, const struct result_source *source,
			 struct text *out);

#endif
