/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact.c - replace secrets in a byte stream, wherever the writes cut it
 *
 * A stream is seen through a window. Two searches, for literals and for shapes, run over it independently, both on
 * the command's bytes, and each reports which spans are secret and from where on it is not sure yet. Once both are
 * sure, the bytes leave: plain ones unchanged, and one mark for every unbroken run of secret ones. How the text
 * arrived affects neither which bytes are secret nor the output.
 *
 * The window is moved only when it is full, and it is large enough that what is then moved is less than what was taken
 * in since, so the cost stays linear even for literals of many kilobytes. All memory is taken when the stream is made:
 * nothing can fail, and so leak, while output flows.
 */
#include "base/redact/redact.h"

#include <errno.h>
#include <string.h>

#include "base/redact/redact_literal.h"
#include "base/redact/redact_shapes.h"

/* Bytes taken in at once; small enough that the searches and the copy find them in the first-level cache. */
#define SLICE_BYTES 8192

/* A shape's secret and what makes it one: "://u:p@" is the shortest. */
#define SHAPE_LEAST_BYTES 7

struct redactor {
	struct redact_literals literals;
	struct redact_shape_index *shapes; /* NULL: literals only */
};

struct redact_stream {
	const struct redactor *redactor;
	unsigned char *window;
	size_t len, capacity;
	size_t emitted;  /* bytes before this have left */
	bool is_in_mark; /* the last thing that left was a mark */
	struct literal_state literal;
	struct shape_state shape;
	struct redact_spans literal_spans, shape_spans;
};

int redactor_new(const struct string_list *literals, bool has_shapes, struct redactor **out, struct error *error)
{
	struct redactor *redactor = NULL;
	int rc;

	if (!literals->count && !has_shapes) {
		*out = NULL;
		return 0;
	}
	redactor = calloc(1, sizeof(*redactor));
	if (!redactor)
		return error_set(error, STAGE_ENGINE, ENOMEM, "no memory to redact output");
	rc = redact_literals_init(&redactor->literals, literals, error);
	if (rc >= 0 && has_shapes) {
		redactor->shapes = calloc(1, sizeof(*redactor->shapes));
		if (!redactor->shapes || redact_shape_index_init(redactor->shapes) < 0)
			rc = error_set(error, STAGE_ENGINE, ENOMEM, "no memory to redact output");
	}
	if (rc < 0 || (!redactor->literals.nodes && !has_shapes)) {
		redactor_free(redactor);
		redactor = NULL;
	}
	if (rc >= 0)
		*out = redactor;
	return rc;
}

void redactor_free(struct redactor *redactor)
{
	if (!redactor)
		return;
	redact_literals_done(&redactor->literals);
	if (redactor->shapes)
		redact_shape_index_done(redactor->shapes);
	free(redactor->shapes);
	free(redactor);
}

/* Allocate room for all spans that the window can have: each @least_len or longer, none touching. */
static int spans_init(struct redact_spans *spans, size_t window_bytes, size_t least_len)
{
	spans->capacity = window_bytes / (least_len + 1) + 2;
	spans->items = calloc(spans->capacity, sizeof(*spans->items));
	return spans->items ? 0 : -ENOMEM;
}

struct redact_stream *redact_stream_new(const struct redactor *redactor)
{
	struct redact_stream *stream = calloc(1, sizeof(*stream));
	bool has_literals = redactor->literals.nodes != NULL;
	size_t held_max = has_literals ? redactor->literals.max_len : 0;
	int rc = 0;

	if (!stream)
		return NULL;
	if (redactor->shapes)
		held_max = MAX_OF(held_max, (size_t)REDACT_LOOK_MAX);
	stream->redactor = redactor;
	stream->capacity = SLICE_BYTES + 2 * held_max;
	stream->window = malloc(stream->capacity);
	if (has_literals)
		rc = spans_init(&stream->literal_spans, stream->capacity, redactor->literals.min_len);
	if (rc >= 0 && redactor->shapes)
		rc = spans_init(&stream->shape_spans, stream->capacity, SHAPE_LEAST_BYTES);
	if (!stream->window || rc < 0) {
		redact_stream_free(stream);
		return NULL;
	}
	return stream;
}

void redact_stream_free(struct redact_stream *stream)
{
	if (!stream)
		return;
	free(stream->window);
	free(stream->literal_spans.items);
	free(stream->shape_spans.items);
	free(stream);
}

/* Return the first span that ends behind @at, or one beyond the end. */
static struct redact_span next_span(struct redact_spans *spans, size_t at)
{
	while (spans->first < spans->count && spans->items[spans->first].to <= at)
		spans->first++;
	return spans->first < spans->count ? spans->items[spans->first] : (struct redact_span){SIZE_MAX, SIZE_MAX};
}

/* Emit everything before @limit, and the bytes after it that are known to be secret. */
static void emit(struct redact_stream *stream, size_t limit, struct text *out)
{
	for (;;) {
		struct redact_span literal = next_span(&stream->literal_spans, stream->emitted);
		struct redact_span shape = next_span(&stream->shape_spans, stream->emitted);
		struct redact_span span = literal.from <= shape.from ? literal : shape;

		if (span.from <= stream->emitted) {
			if (!stream->is_in_mark)
				text_append_string(out, REDACT_MARK);
			stream->is_in_mark = true;
			stream->emitted = span.to;
		} else if (stream->emitted < limit) {
			size_t end = MIN_OF(span.from, limit);

			text_append(out, stream->window + stream->emitted, end - stream->emitted);
			stream->is_in_mark = false;
			stream->emitted = end;
		} else {
			break;
		}
	}
}

static void shift_spans(struct redact_spans *spans, size_t drop)
{
	spans->count -= spans->first;
	memmove(spans->items, spans->items + spans->first, spans->count * sizeof(*spans->items));
	spans->first = 0;
	for (size_t i = 0; i < spans->count; i++) {
		spans->items[i].from -= MIN_OF(drop, spans->items[i].from);
		spans->items[i].to -= drop;
	}
}

/* Drop the bytes that have left and that no search needs. */
static void shift_window(struct redact_stream *stream)
{
	const struct redactor *redactor = stream->redactor;
	size_t drop = stream->emitted;

	if (redactor->literals.nodes)
		drop = MIN_OF(drop, redact_literals_hold(&redactor->literals, &stream->literal));
	if (redactor->shapes)
		drop = MIN_OF(drop, stream->shape.at);
	if (drop == 0)
		return;
	if (stream->literal_spans.items)
		shift_spans(&stream->literal_spans, drop);
	if (stream->shape_spans.items)
		shift_spans(&stream->shape_spans, drop);
	stream->shape.before = stream->window[drop - 1];
	memmove(stream->window, stream->window + drop, stream->len - drop);
	stream->len -= drop;
	stream->emitted -= drop;
	stream->literal.at -= MIN_OF(drop, stream->literal.at);
	stream->shape.at -= MIN_OF(drop, stream->shape.at);
}

/* Search the new bytes of the window, and emit the decided ones. */
static void advance(struct redact_stream *stream, bool is_final, struct text *out)
{
	const struct redactor *redactor = stream->redactor;
	size_t limit = stream->len;

	if (redactor->literals.nodes) {
		redact_literals_run(&redactor->literals, &stream->literal, stream->window, stream->len,
				    &stream->literal_spans);
		if (!is_final)
			limit = redact_literals_hold(&redactor->literals, &stream->literal);
	}
	if (redactor->shapes) {
		redact_shapes_run(redactor->shapes, &stream->shape, stream->window, stream->len, is_final,
				  &stream->shape_spans);
		limit = MIN_OF(limit, stream->shape.hold);
	}
	emit(stream, limit, out);
}

void redact_feed(struct redact_stream *stream, const void *bytes, size_t len, struct text *out)
{
	const unsigned char *from = bytes;

	while (len > 0) {
		size_t part;

		if (stream->capacity - stream->len < MIN_OF(len, (size_t)SLICE_BYTES))
			shift_window(stream);
		part = MIN_OF(MIN_OF(len, (size_t)SLICE_BYTES), stream->capacity - stream->len);
		assert(part > 0);
		memcpy(stream->window + stream->len, from, part);
		stream->len += part;
		from += part;
		len -= part;
		advance(stream, false, out);
	}
}

void redact_finish(struct redact_stream *stream, struct text *out)
{
	advance(stream, true, out);
}

void redact_string(const struct redactor *redactor, const char *string, struct text *out)
{
	struct redact_stream *stream = redactor ? redact_stream_new(redactor) : NULL;

	if (stream) {
		redact_feed(stream, string, strlen(string), out);
		redact_finish(stream, out);
		redact_stream_free(stream);
	} else {
		text_append_string(out, redactor ? REDACT_MARK : string);
	}
}
