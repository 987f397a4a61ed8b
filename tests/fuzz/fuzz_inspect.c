/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_inspect.c - an inspected connection between a jar and a host that both say what they like
 *
 * Input: one byte, whose bits say whether HTTP/2 is spoken and whether there is a secret; then pieces. A piece is who speaks (and, of
 * HTTP/2, the type of a frame, its flags and its stream), a length, and bytes. Whatever comes: it ends, what waits is bounded, and the
 * value of the secret is not in what the jar gets, unless the jar has said it itself.
 */
#include <assert.h>

#include "../unit/inspect_world.h"
#include "gate/inspect/inspect_http2.h"

#define TURNS_MAX 10000
#define STREAMS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_known; /* the jar has said the value */

static void work(void)
{
	struct inspection *inspection = &world.inspection;
	int rc = 1;

	for (int i = 0; i < TURNS_MAX && rc > 0 && !inspection->is_closing; i++) {
		rc = inspection->protocol->work(inspection);
		assert(i + 1 < TURNS_MAX);
	}
	if (rc < 0)
		inspection->is_closing = true;
}

static void check(void)
{
	struct text *wire = &world.inspection.client.wire;
	const struct http2 *http2 = world.inspection.exchange;
	size_t waiting = 0;

	if (world.inspection.has_secret && !is_known && wire->len)
		assert(!memmem(wire->data, wire->len, WORLD_VALUE, sizeof(WORLD_VALUE) - 1));
	if (world.inspection.protocol != &inspect_http2_protocol)
		return;
	for (const struct http2_stream *stream = http2->streams; stream; stream = stream->next)
		waiting += stream->flows[END_JAR].waiting.len + stream->flows[END_HOST].waiting.len;
	/* Answers of the gate's own are in no window. */
	assert(waiting <= 2 * HTTP2_WINDOW + HTTP2_STREAMS_MAX * 2048);
}

static void hear(bool is_jar, const void *bytes, size_t len)
{
	struct stream *stream = is_jar ? &world.inspection.client : &world.inspection.server;

	if (stream->in.len > STREAM_IN_MAX || stream->is_ended)
		return;
	text_append(&stream->in, bytes, len);
	is_known |= is_jar && len && memmem(bytes, len, WORLD_VALUE, sizeof(WORLD_VALUE) - 1);
}

static void hear_frame(bool is_jar, uint8_t type, uint8_t flags, uint8_t id, const uint8_t *bytes, size_t len)
{
	const uint8_t head[9] = {0, 0, (uint8_t)len, type, flags, 0, 0, 0, id};

	hear(is_jar, head, sizeof(head));
	hear(is_jar, bytes, len);
}

static void begin_http2(void)
{
	hear(true, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
	hear_frame(true, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
	hear_frame(false, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
	hear_frame(true, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
	hear_frame(false, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
	work();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 1;
	bool is_http2;

	if (size < 1)
		return 0;
	is_http2 = data[0] & 1;
	is_known = false;
	world_begin(is_http2 ? &inspect_http2_protocol : &inspect_http1_protocol, data[0] & 2);
	if (is_http2)
		begin_http2();
	while (at + 4 <= size && !world.inspection.is_closing) {
		bool is_jar = data[at] & 0x80, is_end = data[at] & 0x40;
		size_t len = MIN_OF((size_t)data[at + 3], size - at - 4);

		if (is_http2)
			hear_frame(is_jar, data[at] & 0x1f, data[at + 1], data[at + 2] % STREAMS, data + at + 4, len);
		else
			hear(is_jar, data + at + 4, len);
		(is_jar ? &world.inspection.client : &world.inspection.server)->is_ended |= is_end;
		work();
		check();
		/* Whoever reads at all reads all; it may be late. */
		if (data[at + 2] & 0x80) {
			text_clear(&world.inspection.client.wire);
			text_clear(&world.inspection.server.wire);
		}
		at += 4 + len;
	}
	world_end();
	return 0;
}
