/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_http2.c - HTTP/2 over one inspected connection: the two sessions
 *
 * The host speaks first: the gate passes its maximum of streams on to the jar's side, so that no request has to wait
 * here. All that a peer can do often and cheaply is bounded: streams, resets, frames of headers. nghttp2 bounds pings
 * and settings.
 */
#include "gate/inspect/inspect_http2.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sys/calls.h"

#define SETTINGS_NS 30000000000ULL
/* The time to bring the jar's requests to the host before the connection ends. */
#define LEAVING_NS 5000000000ULL
/* Frames of one block of headers: a head of 64 KiB has five. */
#define CONTINUATIONS_MAX 16
/* A head that is too long is read to its end, but not for ever. */
#define HEAD_BYTES_MAX (4 * HTTP_HEAD_MAX)
/* Streams that the jar may reset, or spoil, at once, and in each second after that. Newer versions of nghttp2 have such limits too. */
#define RESETS_AT_ONCE 500
#define RESETS_A_SECOND 30
#define SECOND_NS 1000000000ULL
#define BATCH (16 << 10)

static struct http2_stream *find(const struct http2_side *side, int32_t id)
{
	return nghttp2_session_get_stream_user_data(side->session, id);
}

static struct http2_side *beside(struct http2_side *side)
{
	return &side->http2->sides[side->end == END_JAR ? END_HOST : END_JAR];
}

/* False: there were too many. */
static bool count_reset(struct http2 *http2)
{
	uint64_t now_ns = sys_monotonic_ns(), more = (now_ns - http2->resets_ns) * RESETS_A_SECOND / SECOND_NS;

	if (more) {
		http2->resets_left = MIN_OF(http2->resets_left + more, (uint64_t)RESETS_AT_ONCE);
		http2->resets_ns = now_ns;
	}
	return http2->resets_left && http2->resets_left--;
}

/* --- what comes --------------------------------------------------------------------------------------------- */

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *frame, void *owner)
{
	struct http2_side *side = owner;

	(void)session;
	side->continuations = frame->type == NGHTTP2_CONTINUATION ? side->continuations + 1 : 0;
	return side->continuations > CONTINUATIONS_MAX ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *owner)
{
	struct http2_side *side = owner;

	(void)session;
	(void)frame;
	inspect_fields_clear(&side->fields);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
		     const uint8_t *value, size_t value_len, uint8_t flags, void *owner)
{
	struct http2_side *side = owner;

	(void)session;
	(void)frame;
	(void)flags;
	inspect_fields_add(&side->fields, (struct http_slice){(const char *)name, name_len},
			   (struct http_slice){(const char *)value, value_len});
	return side->fields.seen_bytes > HEAD_BYTES_MAX ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* nghttp2 would leave it out and go on. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
			     const uint8_t *value, size_t value_len, uint8_t flags, void *owner)
{
	struct http2_side *side = owner;

	(void)session;
	(void)frame;
	(void)name;
	(void)value;
	(void)flags;
	side->fields.seen_bytes += name_len + value_len;
	if (!side->fields.why)
		side->fields.why = "a header with characters that a header cannot have";
	return side->fields.seen_bytes > HEAD_BYTES_MAX ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t len, void *owner)
{
	struct http2_side *side = owner;
	struct http2_stream *stream = find(side, id);

	(void)flags;
	if (stream)
		inspect_http2_on_data(side, stream, bytes, len);
	else
		nghttp2_session_consume(session, id, len);
	return 0;
}

/* Send GOAWAY to the jar when the host leaves or has no room for more; the jar then opens another connection. */
static void say_goodbye(struct http2 *http2)
{
	nghttp2_session *jar = http2->sides[END_JAR].session;

	if (jar)
		nghttp2_submit_goaway(jar, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(jar),
				      NGHTTP2_NO_ERROR, NULL, 0);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *owner)
{
	struct http2_side *side = owner;
	struct http2_stream *stream;

	(void)session;
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		if (inspect_http2_on_head(side, frame) < 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		break;
	case NGHTTP2_RST_STREAM:
		stream = find(side, frame->hd.stream_id);
		if (stream && side->end == END_HOST)
			stream->is_withdrawn = true;
		return side->end == END_JAR && !count_reset(side->http2) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
	case NGHTTP2_SETTINGS:
		if (side->end == END_HOST)
			side->http2->is_host_ready = true;
		return 0;
	case NGHTTP2_GOAWAY:
		if (side->end == END_HOST)
			say_goodbye(side->http2);
		return 0;
	case NGHTTP2_DATA:
		break;
	default:
		return 0;
	}
	stream = find(side, frame->hd.stream_id);
	if (stream && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		inspect_http2_on_end(side, stream);
	return 0;
}

/* nghttp2 resets the stream, or ends the connection. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int why, void *owner)
{
	struct http2_side *side = owner;

	(void)session;
	(void)frame;
	if (side->end == END_HOST)
		return 0;
	inspect_request_record(side->http2->inspection, DENIAL_MALFORMED,
			       why == NGHTTP2_ERR_HTTP_HEADER      ? "headers that HTTP/2 does not allow"
			       : why == NGHTTP2_ERR_HTTP_MESSAGING ? "a request that is not what its headers say"
								   : "a frame that HTTP/2 does not allow");
	return count_reset(side->http2) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *owner)
{
	struct http2_side *side = owner;
	struct http2_stream *stream = find(side, id);

	(void)session;
	if (stream)
		inspect_http2_on_close(side, stream, code);
	return 0;
}

/* --- what goes ---------------------------------------------------------------------------------------------- */

static void forget_head(struct http2_side *side, const nghttp2_frame *frame)
{
	size_t bytes = inspect_http2_count_bytes(frame->headers.nva, frame->headers.nvlen);

	side->waiting_heads -= MIN_OF(bytes, side->waiting_heads);
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *owner)
{
	struct http2_side *side = owner;
	bool has_head = frame->hd.type == NGHTTP2_HEADERS;
	struct http2_stream *stream;

	(void)session;
	if (has_head)
		forget_head(side, frame);
	if (side->end == END_HOST || (!has_head && frame->hd.type != NGHTTP2_DATA) ||
	    !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	stream = find(side, frame->hd.stream_id);
	if (stream)
		inspect_http2_on_sent(stream);
	return 0;
}

static int on_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int why, void *owner)
{
	(void)session;
	(void)why;
	if (frame->hd.type == NGHTTP2_HEADERS)
		forget_head(owner, frame);
	return 0;
}

/* --- sessions ----------------------------------------------------------------------------------------------- */

static nghttp2_session_callbacks *new_callbacks(void)
{
	nghttp2_session_callbacks *made;

	if (nghttp2_session_callbacks_new(&made))
		return NULL;
	nghttp2_session_callbacks_set_on_begin_frame_callback(made, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(made, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(made, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(made, on_invalid_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, on_chunk);
	nghttp2_session_callbacks_set_on_frame_recv_callback(made, on_frame);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made, on_invalid_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(made, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(made, on_sent);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(made, on_not_sent);
	return made;
}

/* @streams: how many the peer may open. */
static bool open_session(struct http2_side *side, uint32_t streams)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX},
		/* Only a client can send this setting: it refuses responses without a request. */
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	};
	size_t count = ARRAY_LEN(settings) - (side->end == END_JAR ? 1 : 0);
	nghttp2_session_callbacks *callbacks = new_callbacks();
	nghttp2_option *option = NULL;
	bool is_open = false;

	if (callbacks && !nghttp2_option_new(&option)) {
		nghttp2_option_set_no_auto_window_update(option, 1);
		nghttp2_option_set_no_closed_streams(option, 1);
		/* A head that may pass is not too long to be passed on, also with a value in it. */
		nghttp2_option_set_max_send_header_block_length(option, 2 * HTTP_HEAD_MAX);
		is_open = !(side->end == END_JAR
				    ? nghttp2_session_server_new2(&side->session, callbacks, side, option)
				    : nghttp2_session_client_new2(&side->session, callbacks, side, option)) &&
			  !nghttp2_submit_settings(side->session, NGHTTP2_FLAG_NONE, settings, count) &&
			  !nghttp2_session_set_local_window_size(side->session, NGHTTP2_FLAG_NONE, 0, HTTP2_WINDOW);
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	return is_open;
}

static bool open_to_jar(struct http2 *http2)
{
	nghttp2_session *host = http2->sides[END_HOST].session;
	uint32_t taken = host ? nghttp2_session_get_remote_settings(host, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
			      : HTTP2_STREAMS_MAX;

	http2->inspection->deadline_ns = 0;
	return open_session(&http2->sides[END_JAR], MIN_OF(MAX_OF(taken, 1U), (uint32_t)HTTP2_STREAMS_MAX));
}

/* Read what has come. 1, 0, or -EPROTO: the session is over. */
static int feed(struct http2_side *side)
{
	struct text *in = &side->stream->in;
	ssize_t used;

	/* Do not read from a side that does not read, nor while too much waits for the other side. */
	if (!in->len || inspect_stream_waiting(side->stream) >= STREAM_OUT_MAX ||
	    beside(side)->waiting_heads >= HTTP2_HEADS_MAX)
		return 0;
	used = nghttp2_session_mem_recv(side->session, (const uint8_t *)in->data, in->len);
	if (used < 0)
		return -EPROTO;
	text_consume(in, (size_t)used);
	return used > 0;
}

/* Send what there is room for. 1, 0, or -EPIPE. Frames share records of TLS. */
static int drain(struct http2_side *side)
{
	AUTO_TEXT batch = {0};
	int rc = 0;

	while (inspect_stream_waiting(side->stream) < STREAM_OUT_MAX) {
		const uint8_t *bytes;
		ssize_t len = nghttp2_session_mem_send(side->session, &bytes);

		if (len < 0)
			return -EPIPE;
		text_append(&batch, bytes, (size_t)len);
		if (batch.len >= BATCH || (len == 0 && batch.len)) {
			rc = 1;
			if (text_failed(&batch) || !inspect_stream_write(side->stream, batch.data, batch.len))
				return -EPIPE;
			text_clear(&batch);
		}
		if (len == 0)
			break;
	}
	return rc;
}

static bool is_over(const struct http2_side *side)
{
	return !nghttp2_session_want_read(side->session) && !nghttp2_session_want_write(side->session);
}

/* --- the whole ---------------------------------------------------------------------------------------------- */

static int lose_host(struct http2 *http2)
{
	struct inspection *inspection = http2->inspection;

	if (http2->is_host_over)
		return 0;
	http2->is_host_over = true;
	if (!http2->is_host_ready)
		snprintf(inspection->failure, sizeof(inspection->failure), "%s has ended the connection at once",
			 inspection->host);
	http2->is_host_ready = true;
	inspect_http2_lose_host(http2);
	say_goodbye(http2);
	return 1;
}

static int work_with_host(struct http2 *http2)
{
	struct http2_side *host = &http2->sides[END_HOST];
	int rc, more;

	if (!host->session || http2->is_host_over)
		return 0;
	rc = feed(host);
	more = drain(host);
	if (rc < 0 || more < 0 || is_over(host) || (host->stream->is_ended && !host->stream->in.len))
		return lose_host(http2);
	return rc | more;
}

/* It has broken the rules for whole connections. */
static int lose_jar(struct http2 *http2)
{
	nghttp2_session *session = http2->sides[END_JAR].session;

	inspect_request_record(http2->inspection, DENIAL_MALFORMED,
			       "more frames, resets or headers than a connection may have");
	nghttp2_session_terminate_session(session, NGHTTP2_ENHANCE_YOUR_CALM);
	drain(&http2->sides[END_JAR]);
	inspect_close(http2->inspection);
	return 1;
}

/* It reads no more answers. What it has asked for as a whole still goes to the host. */
static int leave(struct http2 *http2)
{
	struct http2_stream *next;

	if (!http2->is_jar_over) {
		http2->is_jar_over = true;
		http2->inspection->deadline_ns = sys_monotonic_ns() + LEAVING_NS;
		for (struct http2_stream *stream = http2->streams; stream; stream = next) {
			next = stream->next;
			if (!stream->flows[END_JAR].is_over)
				inspect_http2_stream_reset(stream, END_HOST, NGHTTP2_CANCEL);
		}
		return 1;
	}
	if (!inspect_http2_protocol.has_sent(http2->inspection))
		return 0;
	inspect_close(http2->inspection);
	return 1;
}

static int work_with_jar(struct http2 *http2)
{
	struct http2_side *jar = &http2->sides[END_JAR];
	int rc = feed(jar), more;

	if (rc < 0)
		return lose_jar(http2);
	more = drain(jar);
	if (more < 0)
		return more;
	if (is_over(jar)) {
		inspect_close(http2->inspection);
		return 1;
	}
	rc |= more;
	return jar->stream->is_ended && !jar->stream->in.len ? rc | leave(http2) : rc;
}

static int http2_work(struct inspection *inspection)
{
	struct http2 *http2 = inspection->exchange;
	int rc = work_with_host(http2), more;

	if (!http2->is_host_ready)
		return rc;
	if (!http2->sides[END_JAR].session && !open_to_jar(http2))
		return -ENOMEM;
	more = work_with_jar(http2);
	return more < 0 ? more : rc | more;
}

static bool http2_begin(struct inspection *inspection)
{
	struct http2 *http2 = calloc(1, sizeof(*http2));

	inspection->exchange = http2;
	if (!http2)
		return false;
	*http2 = (struct http2){.inspection = inspection,
				.resets_left = RESETS_AT_ONCE,
				.resets_ns = sys_monotonic_ns(),
				.is_host_ready = inspection->failure[0]};
	http2->sides[END_JAR] = (struct http2_side){http2, END_JAR, &inspection->client};
	http2->sides[END_HOST] = (struct http2_side){http2, END_HOST, &inspection->server};
	inspection->deadline_ns = sys_monotonic_ns() + SETTINGS_NS;
	if (inspection->failure[0] || open_session(&http2->sides[END_HOST], 0))
		return true;
	inspect_http2_protocol.end(inspection);
	return false;
}

static bool http2_has_sent(const struct inspection *inspection)
{
	const struct http2 *http2 = inspection->exchange;
	nghttp2_session *host = http2->sides[END_HOST].session;

	for (const struct http2_stream *stream = http2->streams; stream; stream = stream->next)
		if (stream->ids[END_HOST] && stream->flows[END_JAR].waiting.len)
			return false;
	return !host || http2->is_host_over || !nghttp2_session_want_write(host);
}

static void http2_end(struct inspection *inspection)
{
	struct http2 *http2 = inspection->exchange;

	while (http2->streams)
		inspect_http2_stream_free(http2->streams);
	for (int end = 0; end < END_COUNT; end++) {
		nghttp2_session_del(http2->sides[end].session);
		inspect_fields_done(&http2->sides[end].fields);
	}
	free(http2);
}

const struct protocol inspect_http2_protocol = {http2_begin, http2_work, http2_has_sent, http2_end};
