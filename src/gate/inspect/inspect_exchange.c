/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_exchange.c - HTTP/1.1 over one inspected connection
 *
 *   request ──► answer ──► request ──► answer that is a WebSocket ──► bytes
 *
 * One request at a time: the next one is not read before the answer to the last is through. What a rule refuses is
 * answered here, and the host hears nothing of it.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "gate/inspect/inspect_frames.h"
#include "gate/inspect/inspect_request.h"
#include "gate/inspect/inspect_websocket.h"
#include "base/sys/calls.h"

/* A head that is begun is to be ended. */
#define HEAD_NS 60000000000ULL
/* The host has time to end what the jar has ended. */
#define TUNNEL_END_NS 5000000000ULL

enum answer_state { ANSWER_NONE, ANSWER_HEAD, ANSWER_BODY, ANSWER_TUNNEL };

struct exchange {
	struct http_body request, answer;
	bool is_sending; /* a request's head has gone, not all of its body */
	enum answer_state state;
	char method[HTTP_METHOD_MAX + 1];   /* that the answer is for */
	char accept[WEBSOCKET_ACCEPT_SIZE]; /* what the answer has to say to be a WebSocket; empty: none is asked for */
	bool is_last;                       /* nothing follows this answer */
	struct secret_search search;        /* of the answer's body */
	struct frames frames;               /* of what a WebSocket brings */
};

/* There is one thread, and no head is needed for longer than a call. */
static struct http_head head;

/* --- answers of the gate's own ------------------------------------------------------------------------------ */

/* @is_last: what else comes from the jar cannot be understood, or need not be. */
static int answer_here(struct inspection *inspection, const struct own_answer *own, bool is_last)
{
	const struct exchange *exchange = inspection->exchange;
	bool has_body = strcmp(exchange->method, "HEAD") != 0;
	AUTO_TEXT answer = {0};

	text_append_format(&answer,
			   "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
			   "%s\r\n%s%s",
			   own->status, inspect_own_answer_phrase(own), strlen(own->sentence) + 1,
			   is_last ? "Connection: close\r\n" : "", has_body ? own->sentence : "", has_body ? "\n" : "");
	if (text_failed(&answer) || !inspect_stream_write(&inspection->client, answer.data, answer.len))
		return -EPIPE;
	if (is_last)
		inspect_close(inspection);
	return 1;
}

/* --- requests ----------------------------------------------------------------------------------------------- */

static void pass_header(const struct inspection *inspection, const struct http_header *header, struct text *out)
{
	const struct secret *secret;

	if (http_is_for_one_hop(&head, header) || inspect_request_is_for_search(inspection, header))
		return;
	if (inspect_request_look(inspection, header, &secret) == SECRET_PUT)
		inspect_secret_write_header(secret, out);
	else
		text_append_format(out, "%.*s: %.*s\r\n", (int)header->name.len, header->name.bytes,
				   (int)header->value.len, header->value.bytes);
}

static const char *upgrade_headers(void)
{
	return head.upgrade == HTTP_UPGRADE_WEBSOCKET ? "Connection: Upgrade\r\nUpgrade: websocket\r\n" : "";
}

static bool pass_request(struct inspection *inspection)
{
	AUTO_TEXT out = {0};
	bool is_passed;

	/* A head is no longer than this, also with values in it: no copy of a value is left where it grew. */
	if (inspection->has_secret)
		text_reserve(&out, HTTP_HEAD_MAX + 2 * (NET_SECRET_MAX + NET_SECRET_FORMAT_SIZE));
	text_append_format(&out, "%s %.*s HTTP/1.1\r\n", head.method, (int)head.target.len, head.target.bytes);
	for (size_t i = 0; i < head.header_count; i++)
		pass_header(inspection, &head.headers[i], &out);
	if (inspection->has_secret)
		text_append_string(&out, "Accept-Encoding: identity\r\n");
	if (head.body_kind == HTTP_BODY_CHUNKED)
		text_append_string(&out, "Transfer-Encoding: chunked\r\n");
	if (head.is_last)
		text_append_string(&out, "Connection: close\r\n");
	text_append_format(&out, "%s\r\n", upgrade_headers());
	is_passed = !text_failed(&out) && inspect_stream_write(&inspection->server, out.data, out.len);
	if (inspection->has_secret && out.data)
		OPENSSL_cleanse(out.data, out.capacity);
	return is_passed;
}

/*
 * Some servers do not read the body of a GET: they would take it for the next request, which the gate has not checked.
 * Send them "Connection: close".
 */
static bool has_unusual_body(void)
{
	static const char *const usual[] = {"POST", "PUT", "PATCH"};

	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		if (!strcmp(head.method, usual[i]))
			return false;
	return head.body_kind != HTTP_BODY_NONE;
}

static int begin_exchange(struct inspection *inspection)
{
	struct exchange *exchange = inspection->exchange;

	exchange->accept[0] = '\0';
	head.is_last |= has_unusual_body();
	if ((head.upgrade == HTTP_UPGRADE_WEBSOCKET && !inspect_websocket_accept(&head, exchange->accept)) ||
	    !pass_request(inspection))
		return -EPIPE;
	exchange->is_last = head.is_last;
	exchange->state = ANSWER_HEAD;
	exchange->is_sending = true;
	http_body_init(&exchange->request, head.body_kind, head.body_bytes);
	return 1;
}

static int read_request(struct inspection *inspection)
{
	struct exchange *exchange = inspection->exchange;
	struct stream *client = &inspection->client;
	ssize_t len = http_read_request(text_string(&client->in), client->in.len, &head);
	struct own_answer own;
	int rc;

	snprintf(exchange->method, sizeof(exchange->method), "%s", len > 0 ? head.method : "");
	if (len < 0) {
		inspect_request_refuse(inspection, head.why, &own);
		return answer_here(inspection, &own, true);
	}
	if (len == 0 && !inspection->deadline_ns)
		inspection->deadline_ns = sys_monotonic_ns() + HEAD_NS;
	if (len == 0)
		return 0;
	inspection->deadline_ns = 0;
	if (inspect_request_check(inspection, &head, &own))
		rc = begin_exchange(inspection);
	else
		/* The next bytes are another request, unless this one has a body. */
		rc = answer_here(inspection, &own, !own.is_by_rule || head.body_kind != HTTP_BODY_NONE);
	if (rc > 0)
		text_consume(&client->in, (size_t)len);
	return rc;
}

/* Find the bytes of a part of an answer that may go on. False: no memory. */
static bool search(struct inspection *inspection, struct http_slice *part, enum secret_search_end end)
{
	struct exchange *exchange = inspection->exchange;

	if (!inspection->has_secret)
		return true;
	*part = inspect_secrets_search(&inspection->inspector->secrets, &exchange->search, *part, end);
	return !inspect_secret_search_failed(&exchange->search);
}

/* Pass on what has come of a body. How many bytes are used up, or a negative errno. */
static ssize_t pass_body(struct inspection *inspection, bool is_answer)
{
	struct exchange *exchange = inspection->exchange;
	struct http_body *body = is_answer ? &exchange->answer : &exchange->request;
	const struct text *from = is_answer ? &inspection->server.in : &inspection->client.in;
	struct stream *to = is_answer ? &inspection->client : &inspection->server;
	size_t used = 0;

	while (!body->is_done && used < from->len && inspect_stream_waiting(to) < STREAM_OUT_MAX) {
		AUTO_TEXT out = {0};
		struct http_slice part;
		ssize_t len = http_body_take(body, from->data + used, from->len - used, &part);

		if (len < 0)
			return len;
		used += (size_t)len;
		if (is_answer && !search(inspection, &part, body->is_done ? SEARCH_END : SEARCH_BODY))
			return -EPIPE;
		if (part.len)
			http_body_write(body->kind, part, &out);
		if (body->is_done && body->kind == HTTP_BODY_CHUNKED)
			http_body_write(body->kind, (struct http_slice){"", 0}, &out);
		if (text_failed(&out) || !inspect_stream_write(to, out.data, out.len))
			return -EPIPE;
	}
	return (ssize_t)used;
}

static int send_body(struct inspection *inspection)
{
	struct exchange *exchange = inspection->exchange;
	ssize_t used = pass_body(inspection, false);

	if (used < 0)
		return -EPIPE;
	text_consume(&inspection->client.in, (size_t)used);
	if (!exchange->request.is_done)
		return used > 0;
	exchange->is_sending = false;
	return 1;
}

/* --- answers ------------------------------------------------------------------------------------------------ */

static int end_exchange(struct inspection *inspection)
{
	struct exchange *exchange = inspection->exchange;

	exchange->state = ANSWER_NONE;
	/* An answer that did not wait for the whole request: what is left of it cannot be told from another one. */
	if (exchange->is_last || exchange->is_sending)
		inspect_close(inspection);
	return 1;
}

static int pass_answer(struct inspection *inspection)
{
	struct exchange *exchange = inspection->exchange;
	bool is_tunnel = head.status == 101, is_final = head.status >= 200 || is_tunnel;
	AUTO_TEXT out = {0};

	text_append_format(&out, "HTTP/1.1 %d %.*s\r\n", head.status, (int)head.reason.len, head.reason.bytes);
	for (size_t i = 0; i < head.header_count; i++) {
		const struct http_header *header = &head.headers[i];

		if (!http_is_for_one_hop(&head, header))
			text_append_format(&out, "%.*s: %.*s\r\n", (int)header->name.len, header->name.bytes,
					   (int)header->value.len, header->value.bytes);
	}
	if (head.body_kind == HTTP_BODY_CHUNKED)
		text_append_string(&out, "Transfer-Encoding: chunked\r\n");
	exchange->is_last |= is_final && (head.is_last || head.body_kind == HTTP_BODY_REST);
	if (is_tunnel)
		text_append_string(&out, upgrade_headers());
	else if (is_final && exchange->is_last)
		text_append_string(&out, "Connection: close\r\n");
	text_append_string(&out, "\r\n");
	if (text_failed(&out) ||
	    (inspection->has_secret && !inspect_secrets_hide(&inspection->inspector->secrets, out.data, out.len)) ||
	    !inspect_stream_write(&inspection->client, out.data, out.len))
		return -EPIPE;
	if (!is_final)
		return 1;
	inspect_secret_search_done(&exchange->search);
	http_body_init(&exchange->answer, head.body_kind, head.body_bytes);
	exchange->state = is_tunnel ? ANSWER_TUNNEL : ANSWER_BODY;
	return exchange->answer.is_done && !is_tunnel ? end_exchange(inspection) : 1;
}

static int bad_answer(struct inspection *inspection, const char *what, const char *why)
{
	struct own_answer own;

	inspect_own_answer_set(&own, 502, "%s has %s%s", inspection->host, what, why);
	return answer_here(inspection, &own, true);
}

/* Why an answer that can be read is not passed on; NULL: it is. */
static const char *unfit_answer(const struct inspection *inspection)
{
	const struct exchange *exchange = inspection->exchange;

	if (head.status == 101 && !exchange->accept[0])
		return "a change of protocol that the client did not ask for";
	if (head.status == 101 && inspect_websocket_answer_fault(&head, exchange->accept))
		return inspect_websocket_answer_fault(&head, exchange->accept);
	return inspect_answer_fault(inspection, &head);
}

static int read_answer(struct inspection *inspection)
{
	struct exchange *exchange = inspection->exchange;
	struct stream *server = &inspection->server;
	ssize_t len;
	int rc;

	if (!server->in.len)
		return server->is_ended ? bad_answer(inspection, "ended the connection without an answer", "") : 0;
	len = http_read_answer(server->in.data, server->in.len, exchange->method, &head);
	if (len > 0 && unfit_answer(inspection)) {
		head.why = unfit_answer(inspection);
		len = -EINVAL;
	}
	if (len == 0 && server->is_ended)
		return bad_answer(inspection, "ended the connection within the head of an answer", "");
	if (len < 0)
		return bad_answer(inspection, "sent ", head.why);
	if (len == 0 && !inspection->deadline_ns)
		inspection->deadline_ns = sys_monotonic_ns() + HEAD_NS;
	if (len == 0)
		return 0;
	inspection->deadline_ns = 0;
	rc = pass_answer(inspection);
	text_consume(&server->in, (size_t)len);
	return rc;
}

/* Pass on bytes that waited when the body ended with the connection. */
static int pass_tail(struct inspection *inspection)
{
	struct http_slice part = {"", 0};

	return search(inspection, &part, SEARCH_END) && inspect_stream_write(&inspection->client, part.bytes, part.len)
		       ? 0
		       : -EPIPE;
}

static int read_answer_body(struct inspection *inspection)
{
	struct exchange *exchange = inspection->exchange;
	struct stream *server = &inspection->server;
	ssize_t used = pass_body(inspection, true);

	if (used < 0)
		return -EPIPE;
	text_consume(&server->in, (size_t)used);
	if (server->is_ended && !server->in.len && !exchange->answer.is_done) {
		/* The jar's side ends as the host's did. */
		if (exchange->answer.kind != HTTP_BODY_REST || server->is_cut)
			return -EPIPE;
		exchange->answer.is_done = true;
		if (pass_tail(inspection) < 0)
			return -EPIPE;
	}
	return exchange->answer.is_done ? end_exchange(inspection) : used > 0;
}

/* --- a WebSocket -------------------------------------------------------------------------------------------- */

static int pass_bytes(struct stream *from, struct stream *to)
{
	if (!from->in.len || inspect_stream_waiting(to) >= STREAM_OUT_MAX)
		return 0;
	if (!inspect_stream_write(to, from->in.data, from->in.len))
		return -EPIPE;
	text_consume(&from->in, from->in.len);
	return 1;
}

/* What the host brings where values must not come back. */
static int pass_frames(struct inspection *inspection)
{
	struct exchange *exchange = inspection->exchange;
	struct stream *client = &inspection->client, *server = &inspection->server;
	AUTO_TEXT out = {0};

	if (!server->in.len || inspect_stream_waiting(client) >= STREAM_OUT_MAX)
		return 0;
	if (!inspect_frames_hide(&exchange->frames, &inspection->inspector->secrets,
				 (struct http_slice){server->in.data, server->in.len}, &out)) {
		inspect_request_record(inspection, DENIAL_MALFORMED,
				       "a frame of a WebSocket in which a secret could not be found");
		return -EPIPE;
	}
	if (text_failed(&out) || !inspect_stream_write(client, out.data, out.len))
		return -EPIPE;
	text_consume(&server->in, server->in.len);
	return 1;
}

static int work_on_tunnel(struct inspection *inspection)
{
	struct stream *client = &inspection->client, *server = &inspection->server;
	int rc = pass_bytes(client, server), more;

	if (rc < 0)
		return rc;
	more = inspection->has_secret ? pass_frames(inspection) : pass_bytes(server, client);
	if (more < 0)
		return more;
	rc |= more;
	if (server->is_ended && !server->in.len) {
		inspect_close(inspection);
		return 1;
	}
	if (client->is_ended && !client->in.len && !server->is_shut) {
		inspect_stream_shut(server);
		inspection->deadline_ns = sys_monotonic_ns() + TUNNEL_END_NS;
		rc = 1;
	}
	return rc;
}

/* --- the whole ---------------------------------------------------------------------------------------------- */

static int http1_work(struct inspection *inspection)
{
	struct stream *client = &inspection->client, *server = &inspection->server;
	struct exchange *exchange = inspection->exchange;
	int rc = 0, more = 0;

	if (exchange->state == ANSWER_NONE && client->in.len)
		return read_request(inspection);
	if (exchange->state == ANSWER_NONE) {
		/* Either side may leave between two requests. Bytes that the host sends now answer no request. */
		if (client->is_ended || ((server->is_ended || server->in.len) && !inspection->failure[0])) {
			inspect_close(inspection);
			return 1;
		}
		return 0;
	}
	if (exchange->state == ANSWER_TUNNEL)
		return work_on_tunnel(inspection);
	if (exchange->is_sending) {
		more = send_body(inspection);
		if (more < 0)
			return more;
		rc |= more;
	}
	more = exchange->state == ANSWER_HEAD ? read_answer(inspection) : read_answer_body(inspection);
	/* The jar has gone in the middle of a request. */
	if (client->is_ended && exchange->is_sending && !client->in.len)
		return -EPIPE;
	return more < 0 ? more : rc | more;
}

static bool http1_begin(struct inspection *inspection)
{
	inspection->exchange = calloc(1, sizeof(struct exchange));
	return inspection->exchange;
}

static bool http1_has_sent(const struct inspection *inspection)
{
	const struct exchange *exchange = inspection->exchange;

	return !exchange->is_sending;
}

static void http1_end(struct inspection *inspection)
{
	struct exchange *exchange = inspection->exchange;

	inspect_secret_search_done(&exchange->search);
	inspect_frames_done(&exchange->frames);
	free(exchange);
}

const struct protocol inspect_http1_protocol = {http1_begin, http1_work, http1_has_sent, http1_end};
