/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_http2_stream.c - one request and its answer over HTTP/2
 *
 * Both halves may go on at the same time for as long as they like. A stream of the jar's has one of the host's beside it, unless the
 * request is refused: then the gate answers, and the host hears nothing of it. When either is reset, so is the other.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gate/inspect/inspect_http2.h"

/* The most bytes to drop of a request that is answered already. */
#define DROPPED_MAX (1 << 20)

/* There is one thread, and these are not needed for longer than a call. */
static struct http_head head;
static nghttp2_nv list[FIELDS_MAX];
static size_t list_count;

static enum http2_end other(enum http2_end end)
{
	return end == END_JAR ? END_HOST : END_JAR;
}

static struct http2_side *side_of(const struct http2_stream *stream, enum http2_end end)
{
	return &stream->http2->sides[end];
}

static const struct secrets *secrets_of(const struct http2 *http2)
{
	return &http2->inspection->inspector->secrets;
}

/* --- lists of headers --------------------------------------------------------------------------------------- */

size_t inspect_http2_count_bytes(const nghttp2_nv *nvs, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += nvs[i].namelen + nvs[i].valuelen + sizeof(*nvs);
	return bytes;
}

static void put(struct http_slice name, struct http_slice value, uint8_t flags)
{
	list[list_count++] = (nghttp2_nv){(uint8_t *)name.bytes, (uint8_t *)value.bytes, name.len, value.len, flags};
}

static struct http_slice slice(const char *string)
{
	return (struct http_slice){string, strlen(string)};
}

static void put_string(const char *name, const char *value)
{
	put(slice(name), slice(value), NGHTTP2_NV_FLAG_NONE);
}

/* --- flows -------------------------------------------------------------------------------------------------- */

static void acknowledge(struct http2_stream *stream, enum http2_end end, size_t len)
{
	struct http2_flow *flow = &stream->flows[end];

	/* The part of the window that is the connection's comes back also when the stream is closed. */
	if (len && stream->ids[end])
		nghttp2_session_consume(side_of(stream, end)->session, stream->ids[end], len);
	else if (len && side_of(stream, end)->session)
		nghttp2_session_consume_connection(side_of(stream, end)->session, len);
	flow->unacknowledged -= len;
}

/* Throw away what comes from that end. */
static void drop(struct http2_stream *stream, enum http2_end end)
{
	struct http2_flow *flow = &stream->flows[end];

	flow->is_dropped = true;
	text_clear(&flow->waiting);
	acknowledge(stream, end, flow->unacknowledged);
}

static void resume(struct http2_stream *stream, enum http2_end from)
{
	enum http2_end to = other(from);

	if (stream->ids[to])
		nghttp2_session_resume_data(side_of(stream, to)->session, stream->ids[to]);
}

static size_t put_trailers(const struct fields *trailers)
{
	list_count = 0;
	for (size_t i = 0; i < trailers->count; i++) {
		struct http_header header = inspect_fields_get(trailers, i);

		put(header.name, header.value, NGHTTP2_NV_FLAG_NONE);
	}
	return inspect_http2_count_bytes(list, list_count);
}

static void free_trailers(struct http2_flow *flow)
{
	if (flow->trailers)
		inspect_fields_done(flow->trailers);
	free(flow->trailers);
	flow->trailers = NULL;
}

/* nghttp2 asks for the next bytes of a body. */
static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
			 nghttp2_data_source *source, void *owner)
{
	struct http2_side *side = owner;
	struct http2_stream *stream = source->ptr;
	struct http2_flow *flow = &stream->flows[other(side->end)];
	size_t len = MIN_OF(room, flow->waiting.len);

	if (len)
		memcpy(to, flow->waiting.data, len);
	text_consume(&flow->waiting, len);
	acknowledge(stream, other(side->end), MIN_OF(len, flow->unacknowledged));
	if (!flow->waiting.len && flow->is_over) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (flow->trailers) {
			put_trailers(flow->trailers);
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			if (nghttp2_submit_trailer(session, id, list, list_count))
				return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
			free_trailers(flow);
		}
	} else if (!len) {
		return NGHTTP2_ERR_DEFERRED;
	}
	return (ssize_t)len;
}

static nghttp2_data_provider body_of(struct http2_stream *stream)
{
	return (nghttp2_data_provider){.source.ptr = stream, .read_callback = read_body};
}

void inspect_http2_stream_reset(struct http2_stream *stream, enum http2_end end, uint32_t code)
{
	if (stream->ids[end])
		nghttp2_submit_rst_stream(side_of(stream, end)->session, NGHTTP2_FLAG_NONE, stream->ids[end], code);
}

static void reset_both(struct http2_stream *stream, uint32_t code)
{
	inspect_http2_stream_reset(stream, END_JAR, code);
	inspect_http2_stream_reset(stream, END_HOST, NGHTTP2_CANCEL);
}

/* What of @part of an answer may go on, put where it waits for the jar. */
static void hide(struct http2_stream *stream, struct http_slice part, bool is_over)
{
	struct http2_flow *flow = &stream->flows[END_HOST];
	bool is_last;

	do {
		struct http_slice piece = part, ready;
		bool is_message = inspect_grpc_cut(&flow->grpc, &piece);

		part.bytes += piece.len;
		part.len -= piece.len;
		is_last = !part.len;
		ready = inspect_secrets_search(secrets_of(stream->http2), &flow->search, piece,
					       is_message || (is_last && is_over) ? SEARCH_END
					       : flow->grpc.is_on                 ? SEARCH_MESSAGE
										  : SEARCH_BODY);
		text_append(&flow->waiting, ready.bytes, ready.len);
	} while (!is_last);
}

/* Put what has come where it waits for the other side. */
static void pass(struct http2_stream *stream, enum http2_end from, struct http_slice part, bool is_over)
{
	struct http2_flow *flow = &stream->flows[from];

	if (from == END_HOST && stream->http2->inspection->has_secret)
		hide(stream, part, is_over);
	else
		text_append(&flow->waiting, part.bytes, part.len);
	if (text_failed(&flow->waiting) || inspect_secret_search_failed(&flow->search))
		reset_both(stream, NGHTTP2_INTERNAL_ERROR);
	/* What a search keeps waits for what follows: were it still in the connection's window, enough streams would fill that for ever. */
	acknowledge(stream, from, flow->unacknowledged - MIN_OF(flow->unacknowledged, flow->waiting.len));
	resume(stream, from);
}

/*
 * The response is complete, and the host does not read the rest of the request. Let the client finish a short request,
 * since some clients read only after they have sent all; reset the stream of a long one.
 */
static void end_request(struct http2_stream *stream)
{
	const struct http2_flow *flow = &stream->flows[END_JAR];

	if (stream->is_sent && flow->is_dropped && !flow->is_over && flow->dropped_bytes > DROPPED_MAX)
		inspect_http2_stream_reset(stream, END_JAR, NGHTTP2_NO_ERROR);
}

void inspect_http2_on_data(struct http2_side *side, struct http2_stream *stream, const uint8_t *bytes, size_t len)
{
	struct http2_flow *flow = &stream->flows[side->end];

	flow->unacknowledged += len;
	if (!flow->is_dropped) {
		pass(stream, side->end, (struct http_slice){(const char *)bytes, len}, false);
		return;
	}
	acknowledge(stream, side->end, len);
	flow->dropped_bytes += len;
	end_request(stream);
}

void inspect_http2_on_end(struct http2_side *side, struct http2_stream *stream)
{
	struct http2_flow *flow = &stream->flows[side->end];

	if (flow->is_over)
		return;
	flow->is_over = true;
	if (!flow->is_dropped)
		pass(stream, side->end, (struct http_slice){"", 0}, true);
}

/* --- answers of the gate's own ------------------------------------------------------------------------------ */

/* gRPC looks for its own status, and shows the message that goes with it. */
static void put_grpc(const struct own_answer *own, struct text *message)
{
	for (const char *c = own->sentence; *c; c++) {
		if (*c < ' ' || *c > '~' || *c == '%')
			text_append_format(message, "%%%02X", (unsigned char)*c);
		else
			text_append_char(message, *c);
	}
	put_string(":status", "200");
	put_string("content-type", "application/grpc");
	put_string("grpc-status", own->status == 502 ? "14" : own->status == 403 ? "7" : "3");
	put_string("grpc-message", text_string(message));
}

static void answer_here(struct http2_stream *stream, const struct own_answer *own)
{
	struct http2_side *jar = side_of(stream, END_JAR);
	struct http2_flow *flow = &stream->flows[END_HOST];
	nghttp2_data_provider body = body_of(stream);
	AUTO_TEXT message = {0};
	char status[16], length[24];
	bool has_body = !stream->is_head && !stream->is_grpc;

	drop(stream, END_JAR);
	drop(stream, END_HOST);
	inspect_http2_stream_reset(stream, END_HOST, NGHTTP2_CANCEL);
	list_count = 0;
	snprintf(status, sizeof(status), "%d", own->status);
	snprintf(length, sizeof(length), "%zu", strlen(own->sentence) + 1);
	if (stream->is_grpc) {
		put_grpc(own, &message);
	} else {
		put_string(":status", status);
		put_string("content-type", "text/plain; charset=utf-8");
		put_string("content-length", length);
	}
	if (has_body)
		text_append_format(&flow->waiting, "%s\n", own->sentence);
	flow->is_over = stream->is_answered = true;
	if (text_failed(&flow->waiting) ||
	    nghttp2_submit_response(jar->session, stream->ids[END_JAR], list, list_count, has_body ? &body : NULL))
		inspect_http2_stream_reset(stream, END_JAR, NGHTTP2_INTERNAL_ERROR);
	else
		jar->waiting_heads += inspect_http2_count_bytes(list, list_count);
}

static void answer_bad(struct http2_stream *stream, const char *what, const char *why)
{
	struct own_answer own;

	/* What was begun cannot be answered in another way any more. */
	if (stream->is_answered) {
		reset_both(stream, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	inspect_own_answer_set(&own, 502, "%s has %s%s", stream->http2->inspection->host, what, why);
	answer_here(stream, &own);
}

/* --- requests ----------------------------------------------------------------------------------------------- */

/* Trailers are passed on, and so is what is said of them. */
static bool is_for_one_hop(const struct http_header *header)
{
	return http_is_for_one_hop(&head, header) && !http_is(header->name, "te") && !http_is(header->name, "trailer");
}

static void put_request(const struct inspection *inspection)
{
	list_count = 0;
	put_string(":method", head.method);
	put_string(":scheme", "https");
	put(slice(":authority"), head.host, NGHTTP2_NV_FLAG_NONE);
	put(slice(":path"), head.target, NGHTTP2_NV_FLAG_NONE);
	for (size_t i = 0; i < head.header_count; i++) {
		const struct http_header *header = &head.headers[i];
		const struct secret *secret;

		if (is_for_one_hop(header) || inspect_request_is_for_search(inspection, header))
			continue;
		/* It stays out of the compression's table, in which the jar's other headers could be compared with it. */
		if (inspect_request_look(inspection, header, &secret) == SECRET_PUT)
			put(slice(secret->header), slice(secret->written),
			    NGHTTP2_NV_FLAG_NO_INDEX | NGHTTP2_NV_FLAG_NO_COPY_VALUE);
		else
			put(header->name, header->value, NGHTTP2_NV_FLAG_NONE);
	}
	if (inspection->has_secret)
		put_string("accept-encoding", "identity");
}

static size_t count_at_host(const struct http2 *http2)
{
	size_t count = 0;

	for (const struct http2_stream *stream = http2->streams; stream; stream = stream->next)
		count += stream->ids[END_HOST] != 0;
	return count;
}

/* The jar knows the host's maximum of streams, but the host may have lowered it since. */
static bool has_room_at_host(const struct http2 *http2)
{
	nghttp2_session *session = http2->sides[END_HOST].session;

	return !http2->is_host_over && nghttp2_session_check_request_allowed(session) &&
	       count_at_host(http2) <
		       nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

static void pass_request(struct http2_stream *stream, bool is_over)
{
	struct http2_side *host = side_of(stream, END_HOST);
	nghttp2_data_provider body = body_of(stream);
	int32_t id;

	/* A client may ask again for what was refused so. */
	if (!has_room_at_host(stream->http2)) {
		drop(stream, END_JAR);
		inspect_http2_stream_reset(stream, END_JAR, NGHTTP2_REFUSED_STREAM);
		return;
	}
	put_request(stream->http2->inspection);
	id = nghttp2_submit_request(host->session, NULL, list, list_count, is_over ? NULL : &body, stream);
	if (id <= 0) {
		inspect_http2_stream_reset(stream, END_JAR, NGHTTP2_REFUSED_STREAM);
		return;
	}
	stream->ids[END_HOST] = id;
	host->waiting_heads += inspect_http2_count_bytes(list, list_count);
}

/* Is that said of the body behind the head? */
static bool is_grpc(void)
{
	static const char kind[] = "application/grpc";
	bool is_so = false;

	for (size_t i = 0; i < head.header_count; i++)
		is_so |= http_is(head.headers[i].name, "content-type") && head.headers[i].value.len >= strlen(kind) &&
			 !memcmp(head.headers[i].value.bytes, kind, strlen(kind));
	return is_so;
}

static int on_request(struct http2_side *jar, const nghttp2_frame *frame)
{
	struct http2 *http2 = jar->http2;
	struct http2_stream *stream = calloc(1, sizeof(*stream));
	struct own_answer own;

	if (!stream)
		return -ENOMEM;
	*stream = (struct http2_stream){.http2 = http2, .next = http2->streams};
	stream->ids[END_JAR] = frame->hd.stream_id;
	stream->flows[END_JAR].is_over = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	if (http2->streams)
		http2->streams->previous = stream;
	http2->streams = stream;
	nghttp2_session_set_stream_user_data(jar->session, frame->hd.stream_id, stream);
	if (inspect_fields_read_request(&jar->fields, &head) < 0) {
		inspect_request_refuse(http2->inspection, head.why, &own);
		answer_here(stream, &own);
		return 0;
	}
	stream->is_head = !strcmp(head.method, "HEAD");
	stream->is_grpc = is_grpc();
	if (inspect_request_check(http2->inspection, &head, &own))
		pass_request(stream, stream->flows[END_JAR].is_over);
	else
		answer_here(stream, &own);
	return 0;
}

/* --- answers and trailers ----------------------------------------------------------------------------------- */

/* False: no memory. */
static bool hide_fields(struct http2_side *host)
{
	return !host->http2->inspection->has_secret || !host->fields.bytes.len ||
	       inspect_secrets_hide(secrets_of(host->http2), host->fields.bytes.data, host->fields.bytes.len);
}

static void on_answer(struct http2_side *host, struct http2_stream *stream, bool is_over)
{
	struct inspection *inspection = host->http2->inspection;
	struct http2_side *jar = side_of(stream, END_JAR);
	nghttp2_data_provider body = body_of(stream);
	bool is_final, is_failed;
	char status[16];

	if (inspect_fields_read_answer(&host->fields, &head) == 0)
		head.why = inspect_answer_fault(inspection, &head);
	if (head.why) {
		answer_bad(stream, "sent ", head.why);
		return;
	}
	if (!hide_fields(host)) {
		reset_both(stream, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	is_final = head.status >= 200;
	/* By the host's own word: a jar that chose where messages end could have a value cut in two. */
	stream->flows[END_HOST].grpc.is_on = is_final && is_grpc();
	list_count = 0;
	snprintf(status, sizeof(status), "%d", head.status);
	put_string(":status", status);
	for (size_t i = 0; i < head.header_count; i++)
		if (!is_for_one_hop(&head.headers[i]))
			put(head.headers[i].name, head.headers[i].value, NGHTTP2_NV_FLAG_NONE);
	if (is_final)
		is_failed = nghttp2_submit_response(jar->session, stream->ids[END_JAR], list, list_count,
						    is_over ? NULL : &body);
	else
		is_failed = nghttp2_submit_headers(jar->session, NGHTTP2_FLAG_NONE, stream->ids[END_JAR], NULL, list,
						   list_count, NULL) < 0;
	stream->is_answered |= is_final;
	if (is_failed)
		reset_both(stream, NGHTTP2_INTERNAL_ERROR);
	else
		jar->waiting_heads += inspect_http2_count_bytes(list, list_count);
}

static const char *trailers_fault(struct http2_side *side)
{
	const struct secret *secret;

	if (inspect_fields_read_trailers(&side->fields, &head) < 0)
		return head.why;
	if (side->fields.seen_bytes > HTTP_TRAILERS_MAX)
		return "trailers of more than 16 KiB";
	for (size_t i = 0; i < head.header_count && side->end == END_JAR; i++) {
		struct http_header text = {{"", 0}, head.headers[i].value}, name = {{"", 0}, head.headers[i].name};

		if (inspect_request_look(side->http2->inspection, &text, &secret) != SECRET_NONE ||
		    inspect_request_look(side->http2->inspection, &name, &secret) != SECRET_NONE)
			return "a placeholder of a secret where it may not stand";
	}
	return NULL;
}

/* They wait until the body before them has gone. */
static void on_trailers(struct http2_side *side, struct http2_stream *stream)
{
	struct inspection *inspection = side->http2->inspection;
	struct http2_flow *flow = &stream->flows[side->end];
	const char *why = trailers_fault(side);

	flow->trailers = why ? NULL : calloc(1, sizeof(*flow->trailers));
	if (!flow->trailers) {
		if (why && side->end == END_JAR)
			inspect_request_record(inspection, DENIAL_MALFORMED, why);
		drop(stream, side->end);
		reset_both(stream, NGHTTP2_PROTOCOL_ERROR);
		return;
	}
	if (side->end == END_HOST && !hide_fields(side)) {
		reset_both(stream, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	*flow->trailers = side->fields;
	side->fields = (struct fields){0};
	side_of(stream, other(side->end))->waiting_heads += put_trailers(flow->trailers);
}

int inspect_http2_on_head(struct http2_side *side, const nghttp2_frame *frame)
{
	struct http2_stream *stream = nghttp2_session_get_stream_user_data(side->session, frame->hd.stream_id);
	bool is_over = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (side->end == END_JAR && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		return on_request(side, frame);
	if (!stream || !stream->ids[other(side->end)] || stream->flows[side->end].is_dropped)
		return 0;
	if (side->end == END_HOST && !stream->is_answered)
		on_answer(side, stream, is_over);
	else
		on_trailers(side, stream);
	return 0;
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static void free_flow(struct http2_stream *stream, enum http2_end end)
{
	struct http2_flow *flow = &stream->flows[end];

	text_done(&flow->waiting);
	inspect_secret_search_done(&flow->search);
	if (flow->trailers)
		side_of(stream, other(end))->waiting_heads -= put_trailers(flow->trailers);
	free_trailers(flow);
}

void inspect_http2_stream_free(struct http2_stream *stream)
{
	if (stream->next)
		stream->next->previous = stream->previous;
	if (stream->previous)
		stream->previous->next = stream->next;
	else
		stream->http2->streams = stream->next;
	free_flow(stream, END_JAR);
	free_flow(stream, END_HOST);
	free(stream);
}

void inspect_http2_on_sent(struct http2_stream *stream)
{
	stream->is_sent = true;
	end_request(stream);
}

void inspect_http2_on_close(struct http2_side *side, struct http2_stream *stream, uint32_t code)
{
	enum http2_end beside = other(side->end);
	const struct http2_flow *flow = &stream->flows[side->end];
	/* An answer that is whole, of the host's or of the gate's own, still goes to the jar; a request, if the jar means it. */
	bool is_whole = flow->is_over && (side->end == END_HOST || (!flow->is_dropped && !code));

	stream->ids[side->end] = 0;
	if (!is_whole || !stream->ids[beside])
		drop(stream, side->end);
	drop(stream, beside);
	if (!stream->ids[beside]) {
		inspect_http2_stream_free(stream);
		return;
	}
	if (side->end == END_JAR) {
		if (!is_whole)
			inspect_http2_stream_reset(stream, END_HOST, code ? code : NGHTTP2_CANCEL);
		return;
	}
	if (is_whole)
		end_request(stream);
	else if (stream->is_withdrawn)
		inspect_http2_stream_reset(stream, END_JAR, code ? code : NGHTTP2_INTERNAL_ERROR);
	else
		answer_bad(stream, "sent an answer that HTTP/2 does not allow", "");
}

void inspect_http2_lose_host(struct http2 *http2)
{
	struct http2_stream *next;

	for (struct http2_stream *stream = http2->streams; stream; stream = next) {
		next = stream->next;
		if (!stream->ids[END_HOST])
			continue;
		stream->ids[END_HOST] = 0;
		drop(stream, END_JAR);
		if (!stream->ids[END_JAR])
			inspect_http2_stream_free(stream);
		else if (!stream->flows[END_HOST].is_over)
			answer_bad(stream, "ended the connection before its answer", "");
	}
}
