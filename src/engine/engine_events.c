/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_events.c - the lines of --events
 */
#include "engine/engine_events.h"

#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"

static const char *const stream_names[] = {[STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr"};

static void open_event(struct event_stream *events, struct json_writer *writer, const char *name, uint64_t elapsed_us)
{
	json_open_object(writer, NULL);
	json_write_string(writer, "event", name);
	json_write_unsigned(writer, "seq", events->sequence++);
	json_write_milliseconds(writer, "t_ms", elapsed_us);
}

static void close_event(struct json_writer *writer)
{
	json_close_object(writer);
	text_append_char(writer->text, '\n');
}

void event_start(struct event_stream *events, uint64_t elapsed_us, const struct plan *plan,
		 const struct observation *seen, struct text *out)
{
	struct json_writer writer = {.text = out};

	open_event(events, &writer, "start", elapsed_us);
	json_open_array(&writer, "argv");
	for (size_t i = 0; i < plan->argv.count; i++)
		json_write_string(&writer, NULL, plan->argv.items[i]);
	json_close_array(&writer);
	json_write_string(&writer, "workdir", plan->workdir);
	json_write_string(&writer, "rung", rung_name(plan->rung));
	result_write_enforced(plan, seen, &writer);
	result_write_missing(plan, &writer);
	plan_write_limits(&plan->limits, &writer, "limits");
	close_event(&writer);
}

static void write_output(struct event_stream *events, uint64_t elapsed_us, enum stream_index stream, const char *bytes,
			 size_t len, struct text *out)
{
	struct json_writer writer = {.text = out};

	open_event(events, &writer, "output", elapsed_us);
	json_write_string(&writer, "stream", stream_names[stream]);
	if (events->has_bytes) {
		AUTO_TEXT encoded = {0};

		base64_append(&encoded, bytes, len);
		json_write_string(&writer, "base64", text_string(&encoded));
	} else {
		json_write_bytes(&writer, "text", bytes, len);
	}
	json_write_unsigned(&writer, "bytes", len);
	close_event(&writer);
}

void event_output(struct event_stream *events, uint64_t elapsed_us, enum stream_index stream, const void *bytes,
		  size_t len, struct text *out)
{
	AUTO_TEXT joined = {0};
	size_t at = 0, tail;

	text_append(&joined, events->carry[stream], events->carry_len[stream]);
	text_append(&joined, bytes, len);
	out->has_failed |= text_failed(&joined);
	tail = utf8_cut_tail((const unsigned char *)text_string(&joined), joined.len);
	while (at < joined.len - tail) {
		size_t piece = MIN_OF(joined.len - tail - at, (size_t)EVENT_BYTES_MAX);

		if (at + piece < joined.len - tail)
			piece -= utf8_cut_tail((const unsigned char *)joined.data + at, piece);
		write_output(events, elapsed_us, stream, joined.data + at, piece, out);
		at += piece;
	}
	memcpy(events->carry[stream], text_string(&joined) + joined.len - tail, tail);
	events->carry_len[stream] = tail;
}

void event_output_end(struct event_stream *events, uint64_t elapsed_us, enum stream_index stream, bool is_cut,
		      struct text *out)
{
	size_t len = events->carry_len[stream];

	events->carry_len[stream] = 0;
	/* As bytes, what was cut is still exact; as text, half a character is nothing. */
	if (len && (!is_cut || events->has_bytes))
		write_output(events, elapsed_us, stream, (const char *)events->carry[stream], len, out);
}

void event_limit(struct event_stream *events, uint64_t elapsed_us, enum limit_name name, const struct limit_hit *hit,
		 struct text *out)
{
	struct json_writer writer = {.text = out};

	open_event(events, &writer, "limit", elapsed_us);
	result_write_limit(name, hit, &writer, "limit");
	close_event(&writer);
}

void event_result(struct event_stream *events, uint64_t elapsed_us, const struct result_source *source,
		  struct text *out)
{
	struct json_writer writer = {.text = out};

	open_event(events, &writer, "result", elapsed_us);
	result_write(source, &writer, "result");
	close_event(&writer);
}
