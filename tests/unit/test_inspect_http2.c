/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_inspect_http2.c - a client and a server of nghttp2, and a gate between them
 */
#include "gate/inspect/inspect_http2.h"

#include "inspect_world.h"
#include "test.h"

#define RECORDS 64
#define PIECES 8

/* What one end has seen of one stream. */
struct record {
	int32_t id;
	struct text head, body, trailers, early;
	bool has_head, has_ended, is_closed;
	uint32_t code;
};

/* What the server says to a request. */
struct script {
	const char *head[12];       /* names and values, behind the status */
	const char *pieces[PIECES]; /* one frame each */
	size_t next;
	const char *trailers[4]; /* names and values */
	size_t bytes;            /* in place of pieces */
	bool is_open;            /* no end */
	const char *early;       /* a status before it */
};

static struct peer {
	nghttp2_session *session;
	struct record records[RECORDS];
	size_t record_count;
	bool is_server, is_gone; /* GOAWAY has come */
	uint32_t gone_code;
	size_t seen_bytes, sent_bytes;
	bool is_quiet; /* records nothing */
} client, server;

static struct script script;
static bool is_silent;     /* the server does not answer */
static size_t most_waited; /* bytes that the gate has kept at once */

static struct record *record_of(struct peer *peer, int32_t id)
{
	for (size_t i = 0; i < peer->record_count; i++)
		if (peer->records[i].id == id)
			return &peer->records[i];
	if (peer->record_count == RECORDS || peer->is_quiet)
		return NULL;
	peer->records[peer->record_count] = (struct record){.id = id};
	return &peer->records[peer->record_count++];
}

/* --- the two ends ------------------------------------------------------------------------------------------- */

static size_t make_list(const char *const *words, nghttp2_nv *out)
{
	size_t count = 0;

	for (; words[0]; words += 2, count++)
		out[count] = (nghttp2_nv){(uint8_t *)words[0], (uint8_t *)words[1], strlen(words[0]), strlen(words[1]),
					  NGHTTP2_NV_FLAG_NONE};
	return count;
}

static ssize_t next_piece(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
			  nghttp2_data_source *source, void *owner)
{
	const char *piece = script.next < PIECES ? script.pieces[script.next] : NULL;
	nghttp2_nv list[4];
	size_t len;

	(void)source;
	(void)owner;
	if (script.bytes) {
		len = MIN_OF(room, script.bytes);
		memset(to, 'x', len);
		script.bytes -= len;
		if (!script.bytes && !script.is_open)
			*flags |= NGHTTP2_DATA_FLAG_EOF;
		return (ssize_t)len;
	}
	if (piece) {
		script.next++;
		len = strlen(piece);
		memcpy(to, piece, len);
		return (ssize_t)len;
	}
	if (script.is_open)
		return NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (script.trailers[0]) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		nghttp2_submit_trailer(session, id, list, make_list(script.trailers, list));
	}
	return 0;
}

static void answer(int32_t id)
{
	nghttp2_data_provider body = {.read_callback = next_piece};
	nghttp2_nv list[8] = {{(uint8_t *)":status", (uint8_t *)"200", 7, 3, NGHTTP2_NV_FLAG_NONE}};
	bool has_body = script.pieces[0] || script.trailers[0] || script.bytes || script.is_open;

	if (script.early) {
		nghttp2_nv early = {(uint8_t *)":status", (uint8_t *)script.early, 7, 3, NGHTTP2_NV_FLAG_NONE};

		nghttp2_submit_headers(server.session, NGHTTP2_FLAG_NONE, id, NULL, &early, 1, NULL);
	}
	nghttp2_submit_response(server.session, id, list, 1 + make_list(script.head, list + 1),
				has_body ? &body : NULL);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
		     const uint8_t *value, size_t value_len, uint8_t flags, void *owner)
{
	struct peer *peer = owner;
	struct record *record = record_of(peer, frame->hd.stream_id);

	(void)session;
	(void)name_len;
	(void)value_len;
	if (record)
		text_append_format(record->has_head ? &record->trailers : &record->head, "%s%s: %s\n",
				   flags & NGHTTP2_NV_FLAG_NO_INDEX ? "!" : "", name, value);
	return 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t len, void *owner)
{
	struct peer *peer = owner;
	struct record *record = record_of(peer, id);

	(void)session;
	(void)flags;
	peer->seen_bytes += len;
	if (record && len < 4096)
		text_append(&record->body, bytes, len);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *owner)
{
	struct peer *peer = owner;
	struct record *record = frame->hd.stream_id ? record_of(peer, frame->hd.stream_id) : NULL;

	(void)session;
	if (frame->hd.type == NGHTTP2_GOAWAY) {
		peer->is_gone = true;
		peer->gone_code = frame->goaway.error_code;
	}
	if (frame->hd.type == NGHTTP2_HEADERS && record) {
		if (!peer->is_server && strstr(text_string(&record->head), ":status: 1")) {
			text_append(&record->early, record->head.data, record->head.len);
			text_clear(&record->head);
			return 0;
		}
		record->has_head = true;
	}
	if (record && frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
	    (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
		record->has_ended = true;
	if (peer->is_server && frame->hd.type == NGHTTP2_HEADERS && !is_silent &&
	    frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		answer(frame->hd.stream_id);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *owner)
{
	struct record *record = record_of(owner, id);

	(void)session;
	if (record) {
		record->is_closed = true;
		record->code = code;
	}
	return 0;
}

static void begin_peer(struct peer *peer, bool is_server, uint32_t streams, uint32_t window)
{
	const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams},
						   {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}};
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;

	*peer = (struct peer){.is_server = is_server};
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_option_new(&option);
	/* A client that is no better than it should be. */
	nghttp2_option_set_no_http_messaging(option, 1);
	nghttp2_option_set_max_send_header_block_length(option, 1 << 20);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_chunk);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	if (is_server)
		nghttp2_session_server_new2(&peer->session, callbacks, peer, option);
	else
		nghttp2_session_client_new2(&peer->session, callbacks, peer, option);
	nghttp2_submit_settings(peer->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings));
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
}

/* --- moving bytes ------------------------------------------------------------------------------------------- */

static void measure(void)
{
	const struct http2 *http2 = world.inspection.exchange;
	size_t waiting = http2->sides[END_JAR].waiting_heads + http2->sides[END_HOST].waiting_heads;

	for (const struct http2_stream *stream = http2->streams; stream; stream = stream->next)
		waiting += stream->flows[END_JAR].waiting.len + stream->flows[END_HOST].waiting.len;
	most_waited = MAX_OF(most_waited, waiting);
}

/* From a peer into the gate, and back. */
static bool carry(struct peer *peer, struct stream *stream)
{
	const uint8_t *bytes;
	ssize_t len;
	bool has_moved = false;

	while (stream->in.len < STREAM_IN_MAX && (len = nghttp2_session_mem_send(peer->session, &bytes)) > 0) {
		text_append(&stream->in, bytes, (size_t)len);
		peer->sent_bytes += (size_t)len;
		has_moved = true;
	}
	if (stream->wire.len) {
		CHECK_INT(nghttp2_session_mem_recv(peer->session, (const uint8_t *)stream->wire.data, stream->wire.len),
			  stream->wire.len);
		text_clear(&stream->wire);
		has_moved = true;
	}
	return has_moved;
}

static void go(void)
{
	bool has_moved = true;

	for (int i = 0; i < 100000 && has_moved; i++) {
		int rc = world.inspection.is_closing ? 0 : inspect_http2_protocol.work(&world.inspection);

		CHECK(rc >= 0);
		measure();
		has_moved = rc > 0;
		has_moved |= carry(&client, &world.inspection.client);
		has_moved |= carry(&server, &world.inspection.server);
	}
	CHECK(!has_moved);
}

static void begin_with(bool has_secret, uint32_t streams, uint32_t window)
{
	script = (struct script){{NULL}};
	is_silent = false;
	most_waited = 0;
	world_begin(&inspect_http2_protocol, has_secret);
	begin_peer(&server, true, streams, 65535);
	begin_peer(&client, false, 0, window);
	go();
}

static void begin(bool has_secret)
{
	begin_with(has_secret, 100, 65535);
}

static void end_peer(struct peer *peer)
{
	nghttp2_session_del(peer->session);
	for (size_t i = 0; i < peer->record_count; i++) {
		text_done(&peer->records[i].head);
		text_done(&peer->records[i].body);
		text_done(&peer->records[i].trailers);
		text_done(&peer->records[i].early);
	}
}

static void end(void)
{
	end_peer(&client);
	end_peer(&server);
	world_end();
}

static ssize_t upload(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
		      nghttp2_data_source *source, void *owner)
{
	size_t *left = source->ptr, len = MIN_OF(room, *left);

	(void)session;
	(void)id;
	(void)owner;
	memset(to, 'u', len);
	*left -= len;
	if (!*left)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

/* Ask with these headers as they are; @left, where there is a body. */
static int32_t send_raw(const char *const *words, size_t *left)
{
	nghttp2_data_provider body = {.source.ptr = left, .read_callback = upload};
	nghttp2_nv list[24];

	return nghttp2_submit_request(client.session, NULL, list, make_list(words, list), left ? &body : NULL, NULL);
}

/* The rest are names and values. */
#define ASK(method, path, ...)                                                                                         \
	send_raw((const char *const[]){":method", method, ":scheme", "https", ":authority", WORLD_HOST, ":path", path, \
				       __VA_ARGS__ __VA_OPT__(, ) NULL},                                               \
		 NULL)

static struct record *asked(int32_t id)
{
	go();
	return record_of(&client, id);
}

static void check_status(const struct record *record, const char *status, const char *sentence)
{
	char line[32];

	snprintf(line, sizeof(line), ":status: %s\n", status);
	if (!record || strncmp(text_string(&record->head), line, strlen(line)) != 0 ||
	    !strstr(text_string(&record->body), sentence))
		printf("%s and not %s: %s%s\n", status, sentence, record ? text_string(&record->head) : "(none)",
		       record ? text_string(&record->body) : "");
	CHECK(record && !strncmp(text_string(&record->head), line, strlen(line)) &&
	      strstr(text_string(&record->body), sentence) && record->has_ended);
}

/* --- what passes -------------------------------------------------------------------------------------------- */

static void test_a_request_and_its_answer_pass(void)
{
	struct record *record;

	begin(false);
	script.head[0] = "content-type";
	script.head[1] = "text/plain";
	script.pieces[0] = "hello ";
	script.pieces[1] = "there";
	script.trailers[0] = "grpc-status";
	script.trailers[1] = "0";
	script.early = "103";
	record = asked(ASK("GET", "/v1?x=1", "te", "trailers", "accept-encoding", "gzip", "host", WORLD_HOST));
	CHECK_STRING(text_string(&record->early), ":status: 103\n");
	CHECK_STRING(text_string(&record->head), ":status: 200\ncontent-type: text/plain\n");
	CHECK_STRING(text_string(&record->body), "hello there");
	CHECK_STRING(text_string(&record->trailers), "grpc-status: 0\n");
	CHECK(record->has_ended && record->is_closed && !record->code);
	CHECK_STRING(text_string(&server.records[0].head), ":method: GET\n:scheme: https\n:authority: " WORLD_HOST
							   "\n:path: /v1?x=1\nte: trailers\naccept-encoding: gzip\n");
	CHECK(server.records[0].is_closed && !server.records[0].code);
	script = (struct script){{NULL}};
	CHECK(asked(ASK("HEAD", "/"))->has_ended);
	end();
}

static void test_large_bodies_wait_within_bounds(void)
{
	size_t left[4];
	int32_t ids[4];

	begin_with(false, 100, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(left); i++) {
		left[i] = 3 << 20;
		ids[i] = send_raw((const char *const[]){":method", "POST", ":scheme", "https", ":authority", WORLD_HOST,
							":path", "/", NULL},
				  &left[i]);
	}
	script.bytes = 5 << 20;
	go();
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		CHECK(record_of(&client, ids[i])->has_ended && !left[i]);
	CHECK_INT(server.seen_bytes, 4 * (3 << 20));
	CHECK(client.seen_bytes >= 5 << 20);
	CHECK(most_waited <= 2 * HTTP2_WINDOW + HTTP2_HEADS_MAX);
	end();
}

/* The jar takes nothing of some answers: they stop, and others go on. */
static void test_an_answer_that_nobody_reads_stops_alone(void)
{
	begin_with(false, 100, 0);
	script.bytes = 4 << 20;
	ASK("GET", "/");
	go();
	CHECK_INT(client.seen_bytes, 0);
	CHECK(script.bytes >= (4 << 20) - HTTP2_STREAM_WINDOW && most_waited <= HTTP2_STREAM_WINDOW + 4096);
	script = (struct script){{NULL}};
	CHECK(asked(ASK("GET", "/"))->has_ended);
	/* A stream that is reset gives its part of the windows back. */
	nghttp2_submit_rst_stream(client.session, NGHTTP2_FLAG_NONE, 1, NGHTTP2_CANCEL);
	go();
	CHECK(server.records[0].is_closed && server.records[0].code == NGHTTP2_CANCEL);
	for (int i = 0; i < 8; i++) {
		int32_t id;

		script = (struct script){.bytes = 4 << 20};
		id = ASK("GET", "/");
		go();
		CHECK(script.bytes < 4 << 20);
		nghttp2_submit_rst_stream(client.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
		go();
	}
	end();
}

static void test_both_halves_go_on_as_they_like(void)
{
	struct http2 *http2;
	int32_t id;

	begin(false);
	script.pieces[0] = "one";
	script.is_open = true;
	id = ASK("POST", "/");
	go();
	CHECK_STRING(text_string(&record_of(&client, id)->body), "one");
	script.pieces[1] = "two";
	nghttp2_session_resume_data(server.session, server.records[0].id);
	go();
	CHECK_STRING(text_string(&record_of(&client, id)->body), "onetwo");
	CHECK(!record_of(&client, id)->has_ended);
	script.is_open = false;
	nghttp2_session_resume_data(server.session, server.records[0].id);
	go();
	CHECK(record_of(&client, id)->has_ended);
	http2 = world.inspection.exchange;
	CHECK(!http2->streams);
	end();
}

/* --- what does not ------------------------------------------------------------------------------------------ */

static void test_rules_decide_each_stream(void)
{
	struct record *record;

	begin(false);
	net_method_add(&world.rules[0], "GET", 3);
	net_path_add(&world.rules[0], "/v1/*", 5);
	snprintf(world.rules[0].reason, sizeof(world.rules[0].reason), "read only");
	check_status(asked(ASK("GET", "/v1/x")), "200", "");
	check_status(asked(ASK("POST", "/v1/x")), "403",
		     "POST /v1/x is not allowed for api.test by this jar's policy: read only");
	check_status(asked(ASK("GET", "/v2")), "403", "GET /v2 is not allowed");
	check_status(asked(ASK("GET", "/v1/../v2")), "403", "");
	/* Who speaks gRPC is told in its words. */
	record = asked(ASK("POST", "/v1/x", "content-type", "application/grpc+proto"));
	CHECK(strstr(text_string(&record->head), "grpc-status: 7\n") && record->has_ended);
	CHECK(strstr(text_string(&record->head), "grpc-message: belljar: POST /v1/x is not allowed"));
	CHECK_INT(server.record_count, 1);
	CHECK_INT(world_denials("POST /v1/x"), 2);
	CHECK_INT(world_denials("GET /v"), 2);
	end();
}

/* The rest of a request that is refused is not read, and the client is told so. */
static void test_a_body_that_is_refused_ends(void)
{
	size_t left = 1 << 30;
	int32_t id;

	begin(false);
	net_method_add(&world.rules[0], "GET", 3);
	id = send_raw((const char *const[]){":method", "POST", ":scheme", "https", ":authority", WORLD_HOST, ":path",
					    "/", NULL},
		      &left);
	go();
	check_status(record_of(&client, id), "403", "not allowed");
	CHECK(record_of(&client, id)->is_closed && !record_of(&client, id)->code && left > 1 << 29);
	CHECK(most_waited < 4096);
	check_status(asked(ASK("GET", "/")), "200", "");
	end();
}

static void test_tricks_with_pseudo_headers(void)
{
#define P ":method", "GET", ":scheme", "https", ":path", "/"
#define A ":authority", WORLD_HOST
	static const char *const tricks[][16] = {
		{P, A, ":authority", "evil.test"},
		{P, ":authority", "evil.test", A},
		{P, A, ":path", "/other"},
		{P, A, ":method", "POST"},
		{P, A, "x", "y", ":path", "/other"},
		{P, ":authority", "evil.test"},
		{P, ":authority", WORLD_HOST ":80"},
		{P, ":authority", "user@" WORLD_HOST},
		{P, ":authority", ""},
		{P},
		{P, A, "host", "evil.test"},
		{P, A, "host", WORLD_HOST, "host", "evil.test"},
		{P, "host", "evil.test"},
		{A, ":method", "GET", ":scheme", "https"},
		{A, ":method", "GET", ":path", "/"},
		{A, ":scheme", "https", ":path", "/"},
		{A, ":method", "GET", ":scheme", "http", ":path", "/"},
		{A, ":method", "GET", ":scheme", "https", ":path", "https://evil.test/"},
		{A, ":method", "GET", ":scheme", "https", ":path", "/a b"},
		{A, ":method", "GET", ":scheme", "https", ":path", ""},
		{A, ":method", "GE T", ":scheme", "https", ":path", "/"},
		{A, ":method", "WEBSOCKET", ":scheme", "https", ":path", "/"},
		{A, ":method", "CONNECT"},
		{A, ":method", "CONNECT", ":scheme", "https", ":path", "/"},
		{A, ":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":path", "/"},
		{P, A, ":status", "200"},
		{P, A, ":unknown", "x"},
		{P, A, "connection", "close"},
		{P, A, "transfer-encoding", "chunked"},
		{P, A, "upgrade", "websocket"},
		{P, A, "te", "gzip"},
		{P, A, "x", "a\r\nhost: evil.test"},
		{P, A, "x", "a\nb"},
		{P, A, "x\r\n", "a"},
		{P, A, "x y", "a"},
		{P, A, "x", "a\x01"},
		{P, A, "content-length", "5"},
		{P, A, "content-length", "0", "content-length", "1"},
		{P, A, "content-length", "+0"},
	};

	begin(false);
	for (size_t i = 0; i < ARRAY_LEN(tricks); i++) {
		const struct record *record = asked(send_raw(tricks[i], NULL));
		bool is_refused = record && (!strncmp(text_string(&record->head), ":status: 4", 10) ||
					     (!record->has_head && record->is_closed && record->code));

		if (!is_refused)
			printf("not refused: %s %s\n", tricks[i][4], tricks[i][6] ? tricks[i][6] : "");
		CHECK(is_refused);
		CHECK_INT(world.page.denial_count > 0, true);
		CHECK_INT(server.record_count, 0);
	}
	check_status(asked(ASK("GET", "/")), "200", "");
	end();
}

static void test_heads_have_an_end(void)
{
	static char long_value[60001];
	nghttp2_nv list[24];
	int32_t id;

	begin(false);
	memset(long_value, 'a', sizeof(long_value) - 1);
	check_status(asked(ASK("GET", "/", "x", long_value)), "200", "");
	check_status(asked(ASK("GET", "/", "x", long_value, "y", long_value)), "400", "64 KiB");
	CHECK_INT(server.record_count, 1);
	/* More than four times that is more than a connection may have. */
	id = nghttp2_submit_request(client.session, NULL, list,
				    make_list((const char *const[]){"a", long_value, "b", long_value, "c", long_value,
								    "d", long_value, "e", long_value, NULL},
					      list),
				    NULL, NULL);
	go();
	CHECK(id > 0 && world.inspection.is_closing && client.is_gone);
	CHECK_INT(client.gone_code, NGHTTP2_ENHANCE_YOUR_CALM);
	end();
}

static void send_frame(uint8_t type, uint8_t flags, uint8_t id, const char *bytes, size_t len)
{
	const uint8_t hd[9] = {0, (uint8_t)(len >> 8), (uint8_t)len, type, flags, 0, 0, 0, id};

	text_append(&world.inspection.client.in, hd, sizeof(hd));
	text_append(&world.inspection.client.in, bytes, len);
}

/* Each costs the sender little, and would keep the gate busy for ever, or fill its memory. */
static void test_floods_end_the_connection(void)
{
	begin(false);
	send_frame(NGHTTP2_HEADERS, 0, 1, "", 0);
	for (int i = 0; i < 1000; i++)
		send_frame(NGHTTP2_CONTINUATION, 0, 1, "", 0);
	go();
	CHECK(world.inspection.is_closing);
	CHECK_INT(world_denials("more frames"), 1);
	end();

	begin(false);
	for (int i = 0; i < 6000 && !world.inspection.is_closing; i++) {
		send_frame(NGHTTP2_PING, 0, 0, "12345678", 8);
		/* Nobody reads what comes back. */
		if (i % 100 == 0)
			inspect_http2_protocol.work(&world.inspection);
	}
	CHECK(inspect_stream_waiting(&world.inspection.client) < STREAM_OUT_MAX + 65536);
	end();
}

static void test_ten_thousand_resets(void)
{
	unsigned sent = 0;

	begin(false);
	is_silent = true;
	client.is_quiet = server.is_quiet = true;
	while (sent < 10000 && !client.is_gone) {
		int32_t id = ASK("GET", "/");

		go();
		nghttp2_submit_rst_stream(client.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
		go();
		sent++;
	}
	CHECK(sent >= 500 && sent < 1000);
	CHECK(client.gone_code == NGHTTP2_ENHANCE_YOUR_CALM && world.inspection.is_closing);
	end();
}

/* --- the host ----------------------------------------------------------------------------------------------- */

static void test_the_jar_is_told_how_many_streams_the_host_takes(void)
{
	begin_with(false, 3, 65535);
	CHECK_INT(nghttp2_session_get_remote_settings(client.session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS), 3);
	is_silent = true;
	for (int i = 0; i < 10; i++)
		ASK("GET", "/");
	go();
	CHECK_INT(server.record_count, 3);
	end();
	begin_with(false, 100000, 65535);
	CHECK_INT(nghttp2_session_get_remote_settings(client.session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
		  HTTP2_STREAMS_MAX);
	end();
}

static void test_resets_and_goodbyes_of_the_host(void)
{
	static const nghttp2_settings_entry fewer = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1};
	int32_t first, second;

	begin(false);
	is_silent = true;
	first = ASK("GET", "/");
	go();
	nghttp2_submit_rst_stream(server.session, NGHTTP2_FLAG_NONE, 1, NGHTTP2_REFUSED_STREAM);
	go();
	CHECK(record_of(&client, first)->is_closed && record_of(&client, first)->code == NGHTTP2_REFUSED_STREAM);
	/* It takes fewer than it said: the client may ask again. */
	nghttp2_submit_settings(server.session, NGHTTP2_FLAG_NONE, &fewer, 1);
	go();
	first = ASK("GET", "/1");
	second = ASK("GET", "/2");
	go();
	CHECK(record_of(&client, second)->code == NGHTTP2_REFUSED_STREAM && !record_of(&client, first)->is_closed);
	nghttp2_submit_goaway(server.session, NGHTTP2_FLAG_NONE, 3, NGHTTP2_NO_ERROR, NULL, 0);
	go();
	CHECK(client.is_gone && client.gone_code == NGHTTP2_NO_ERROR && !world.inspection.is_closing);
	/* What was begun is brought to its end. */
	answer(3);
	check_status(asked(first), "200", "");
	CHECK(world.inspection.is_closing);
	end();
}

static void test_a_host_that_ends_is_answered_for(void)
{
	int32_t first, second;

	begin(false);
	is_silent = true;
	first = ASK("GET", "/1");
	second = ASK("POST", "/2", "content-type", "application/grpc");
	go();
	world.inspection.server.is_ended = true;
	go();
	check_status(record_of(&client, first), "502", "api.test has ended the connection before its answer");
	CHECK(strstr(text_string(&record_of(&client, second)->head), "grpc-status: 14\n"));
	CHECK(client.is_gone && world.inspection.is_closing);
	end();

	begin(false);
	script.pieces[0] = "half of it";
	script.is_open = true;
	first = ASK("GET", "/1");
	go();
	world.inspection.server.is_ended = true;
	go();
	CHECK(record_of(&client, first)->is_closed && record_of(&client, first)->code == NGHTTP2_INTERNAL_ERROR);
	end();
}

static void test_bad_answers(void)
{
	static const char *const bad[][4] = {{"connection", "close"}, {"x", "a\r\nb"}, {":path", "/"}, {"x", " a"}};
	nghttp2_nv pushed[8];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		begin(false);
		script.head[0] = bad[i][0];
		script.head[1] = bad[i][1];
		check_status(asked(ASK("GET", "/")), "502", "api.test has sent ");
		end();
	}
	/* Nobody has asked for what it pushes. */
	begin(false);
	is_silent = true;
	ASK("GET", "/");
	go();
	nghttp2_submit_push_promise(server.session, NGHTTP2_FLAG_NONE, 1, pushed,
				    make_list((const char *const[]){":method", "GET", ":scheme", "https", ":authority",
								    WORLD_HOST, ":path", "/pushed", NULL},
					      pushed),
				    NULL);
	/* nghttp2 does not push where it was told not to. */
	go();
	text_append(&world.inspection.server.in, "\0\0\5\5\4\0\0\0\1\0\0\0\2\x88", 14);
	go();
	check_status(record_of(&client, 1), "502", "");
	CHECK(client.is_gone);
	end();
}

/* --- secrets ------------------------------------------------------------------------------------------------ */

static void test_a_secret_goes_out_and_never_back(void)
{
	struct record *record;

	begin(true);
	script = (struct script){
		.head = {"x-said", "<" WORLD_VALUE ">", "x-" WORLD_VALUE, "1"},
		.pieces = {"<s3cr3t-va", "l", "ue-0123456789><" WORLD_VALUE, "><s3cr3t-value-012345678", "_>"},
		.trailers = {"grpc-message", "no " WORLD_VALUE},
		.early = "103",
	};
	record = asked(ASK("POST", "/", "authorization", "Bearer " WORLD_HOLDER, "accept-encoding", "gzip", "range",
			   "bytes=0-1", "grpc-accept-encoding", "gzip"));
	/* The mark says that no table may have it. */
	CHECK(strstr(text_string(&server.records[0].head), "!authorization: Bearer " WORLD_VALUE "\n"));
	CHECK(strstr(text_string(&server.records[0].head), "accept-encoding: identity\n"));
	CHECK(!strstr(text_string(&server.records[0].head), "gzip") &&
	      !strstr(text_string(&server.records[0].head), "range"));
	CHECK_STRING(text_string(&record->head), ":status: 200\nx-said: <" WORLD_STARS ">\nx-" WORLD_STARS ": 1\n");
	CHECK_STRING(text_string(&record->body), "<" WORLD_STARS "><" WORLD_STARS "><s3cr3t-value-012345678_>");
	CHECK_STRING(text_string(&record->trailers), "grpc-message: no " WORLD_STARS "\n");
	end();
}

/* A line goes on when it is whole; what is none yet waits, whatever it is, and also where it could be no value. */
static void test_lines_in_an_answer(void)
{
	int32_t id;

	begin(true);
	script.pieces[0] = "data: likes\n\nxyz";
	script.is_open = true;
	id = ASK("GET", "/");
	go();
	CHECK_STRING(text_string(&record_of(&client, id)->body), "data: likes\n\n");
	script.pieces[1] = " " WORLD_VALUE "\n";
	nghttp2_session_resume_data(server.session, 1);
	go();
	CHECK_STRING(text_string(&record_of(&client, id)->body), "data: likes\n\nxyz " WORLD_STARS "\n");
	end();
}

/* The windows are for what the jar has not read. What waits in each of many answers must not fill them, or none would come to its end. */
static void test_what_waits_in_many_answers_stops_none(void)
{
	enum { STREAMS = 90, EACH = 8000 };

	begin(true);
	memset(world.secret.value, 'k', NET_SECRET_MAX);
	world.secret.value_len = NET_SECRET_MAX;
	client.is_quiet = server.is_quiet = true;
	is_silent = true;
	for (int i = 0; i < STREAMS; i++)
		ASK("GET", "/");
	go();
	/* Less than waits: the jar gets nothing. */
	for (int i = 0; i < STREAMS; i++) {
		script = (struct script){.bytes = EACH, .is_open = true};
		answer(2 * i + 1);
		go();
		CHECK_INT(script.bytes, 0);
	}
	CHECK_INT(client.seen_bytes, 0);
	script = (struct script){.is_open = false};
	for (int i = 0; i < STREAMS; i++)
		nghttp2_session_resume_data(server.session, 2 * i + 1);
	go();
	CHECK_INT(client.seen_bytes, (size_t)STREAMS * EACH);
	end();
}

/* A message of gRPC goes on when it is whole, and no other answer is taken for one. */
static void test_messages_of_grpc_are_found(void)
{
	static const char text[] = "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\1\2";
	static const size_t ends[] = {8, 13, 0};

	for (size_t step = 1; step <= sizeof(text); step++) {
		struct grpc grpc = {.is_on = true};
		size_t at = 0, found = 0;

		while (at < sizeof(text) - 1) {
			struct http_slice part = {text + at, MIN_OF(step, sizeof(text) - 1 - at)};
			bool is_end = inspect_grpc_cut(&grpc, &part);

			CHECK(part.len > 0);
			at += part.len;
			if (is_end)
				CHECK_INT(at, ends[found++]);
		}
		CHECK_INT(found, 2);
	}
	for (int i = 0; i < 2; i++) {
		struct grpc grpc = {.is_on = i};
		struct http_slice part = {i ? "\1\0\0\0\1x" : text, 6};

		CHECK(!inspect_grpc_cut(&grpc, &part) && !grpc.is_on);
		CHECK_INT(part.len, 6);
	}
}

static void test_a_placeholder_stands_nowhere_else(void)
{
	static const char *const misplaced[][2] = {{"x-other", WORLD_HOLDER},
						   {"cookie", "a=" WORLD_HOLDER},
						   {WORLD_HOLDER "-x", "1"},
						   {"x", WORLD_HOLDER " y"}};
	int32_t id;

	begin(true);
	for (size_t i = 0; i < ARRAY_LEN(misplaced); i++)
		if (i != 2)
			check_status(asked(ASK("GET", "/", misplaced[i][0], misplaced[i][1])), "403",
				     "the placeholder of the secret TOKEN");
	check_status(asked(ASK("GET", "/?" WORLD_HOLDER)), "403", "placeholder");
	check_status(asked(ASK("GET", "/", "authorization", "a", "authorization", WORLD_HOLDER)), "403", "placeholder");
	CHECK_INT(server.record_count, 0);
	/* A host that is not known to be the host gets nothing. */
	world.inspection.is_safe = false;
	check_status(asked(ASK("GET", "/", "authorization", WORLD_HOLDER)), "403", "placeholder");
	world.inspection.is_safe = true;
	CHECK_INT(server.record_count, 0);
	/* Trailers come when the request is under way. */
	is_silent = true;
	script.trailers[0] = "authorization";
	script.trailers[1] = WORLD_HOLDER;
	{
		nghttp2_data_provider body = {.read_callback = next_piece};
		nghttp2_nv list[8];

		id = nghttp2_submit_request(
			client.session, NULL, list,
			make_list((const char *const[]){":method", "POST", ":scheme", "https", ":authority", WORLD_HOST,
							":path", "/", NULL},
				  list),
			&body, NULL);
	}
	go();
	CHECK(record_of(&client, id)->is_closed && record_of(&client, id)->code == NGHTTP2_PROTOCOL_ERROR);
	CHECK(!server.record_count || (server.records[0].is_closed && !server.records[0].trailers.len));
	CHECK_INT(world_denials("a placeholder"), 7);
	end();
}

static void test_answers_that_could_not_be_searched(void)
{
	static const char *const headers[][2] = {{"content-encoding", "gzip"}, {"grpc-encoding", "gzip"}};

	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		begin(true);
		script.head[0] = headers[i][0];
		script.head[1] = headers[i][1];
		script.pieces[0] = "packed";
		check_status(asked(ASK("GET", "/")), "502", "compressed");
		end();
	}
}

/* A host that fails the check of its certificate is not there at all. */
static void test_a_host_that_cannot_be_trusted(void)
{
	begin(false);
	end();
	world_begin(&inspect_http2_protocol, false);
	world_end();
	world_begin(&inspect_http2_protocol, false);
	inspect_http2_protocol.end(&world.inspection);
	snprintf(world.inspection.failure, sizeof(world.inspection.failure), "no secure connection");
	CHECK(inspect_http2_protocol.begin(&world.inspection));
	begin_peer(&server, true, 100, 65535);
	begin_peer(&client, false, 0, 65535);
	check_status(asked(ASK("GET", "/")), "502", "no secure connection");
	CHECK_INT(world.inspection.server.wire.len, 0);
	end();
}

static const struct test tests[] = {
	TEST(test_a_request_and_its_answer_pass),
	TEST(test_large_bodies_wait_within_bounds),
	TEST(test_an_answer_that_nobody_reads_stops_alone),
	TEST(test_both_halves_go_on_as_they_like),
	TEST(test_rules_decide_each_stream),
	TEST(test_a_body_that_is_refused_ends),
	TEST(test_tricks_with_pseudo_headers),
	TEST(test_heads_have_an_end),
	TEST(test_floods_end_the_connection),
	TEST(test_ten_thousand_resets),
	TEST(test_the_jar_is_told_how_many_streams_the_host_takes),
	TEST(test_resets_and_goodbyes_of_the_host),
	TEST(test_a_host_that_ends_is_answered_for),
	TEST(test_bad_answers),
	TEST(test_a_secret_goes_out_and_never_back),
	TEST(test_lines_in_an_answer),
	TEST(test_what_waits_in_many_answers_stops_none),
	TEST(test_messages_of_grpc_are_found),
	TEST(test_a_placeholder_stands_nowhere_else),
	TEST(test_answers_that_could_not_be_searched),
	TEST(test_a_host_that_cannot_be_trusted),
};

int main(void)
{
	return test_main(tests, sizeof(tests) / sizeof(tests[0]));
}
