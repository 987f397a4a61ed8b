/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect/inspect_exchange.c - requests and answers over one inspected connection
 *
 * More than 200 lines: a request, its answer and their end are one machine.
 *
 *   the host's handshake ──► the jar's handshake ──► request ──► answer ──► request ...
 *
 * One request at a time: the next one is not read before the answer to the last is through. What a rule refuses is answered
 * here, and the host hears nothing of it. Where the host cannot be trusted, every request is answered with that.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/http.h"
#include "inspect/inspect.h"
#include "inspect/inspect_stream.h"
#include "sys/calls.h"

#define HANDSHAKE_NS 30000000000ULL
/* A head that is begun is to be ended. */
#define HEAD_NS 60000000000ULL
/* To read the end of what is answered already, so that the answer is not lost in a reset. */
#define CLOSING_NS 5000000000ULL
#define TURNS_MAX 16
/* Each may have a megabyte waiting, in memory that is not the jar's. */
#define INSPECTIONS_MAX 256

enum answer_state { ANSWER_NONE, ANSWER_HEAD, ANSWER_BODY };

struct inspection {
	struct inspector *inspector;
	struct gate_process *gate;
	const char *host;
	uint16_t port;
	struct stream client, server;
	char failure[256]; /* why nothing can be asked of the host; empty: it can */
	struct http_body request, answer;
	bool is_sending; /* a request's head has gone, not all of its body */
	enum answer_state state;
	char method[HTTP_METHOD_MAX + 1]; /* that the answer is for */
	bool is_last;                     /* nothing follows this answer */
	bool is_closing;                  /* nothing more is wanted of either side */
	bool has_secret;                  /* some secret is for this host: what comes back is searched */
	struct text held;                 /* of the answer's body: it may be the beginning of a secret */
	uint64_t deadline_ns;
};

/* There is one thread, and nobody needs a head for longer than a call. */
static struct http_head head;

/* --- answers of the gate's own ------------------------------------------------------------------------------ */

static void close_after(struct inspection *inspection)
{
	inspection->is_closing = true;
	inspection->deadline_ns = sys_monotonic_ns() + CLOSING_NS;
	stream_shut(&inspection->client);
}

/* @is_last: what else comes from the jar cannot be understood, or need not be. */
static int answer_here(struct inspection *inspection, int status, const char *phrase, bool is_last, const char *format,
		       ...) PRINTF_LIKE(5, 6);
static int answer_here(struct inspection *inspection, int status, const char *phrase, bool is_last, const char *format,
		       ...)
{
	bool has_body = strcmp(inspection->method, "HEAD") != 0;
	AUTO_TEXT sentence = {0}, answer = {0};
	va_list arguments;

	text_append_string(&sentence, "belljar: ");
	va_start(arguments, format);
	text_append_format_list(&sentence, format, arguments);
	va_end(arguments);
	text_append_char(&sentence, '\n');
	text_append_format(&answer,
			   "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
			   "%s\r\n%s",
			   status, phrase, sentence.len, is_last ? "Connection: close\r\n" : "",
			   has_body ? text_string(&sentence) : "");
	if (text_failed(&answer) || !stream_write(&inspection->client, answer.data, answer.len))
		return -EPIPE;
	if (is_last)
		close_after(inspection);
	return 1;
}

/* --- requests ----------------------------------------------------------------------------------------------- */

static bool is_for_this_host(const struct inspection *inspection)
{
	const char *colon = memchr(head.host.bytes, ':', head.host.len);
	size_t len = colon ? (size_t)(colon - head.host.bytes) : head.host.len;
	char name[NET_NAME_SIZE], port[8];

	if (!net_name_clean(head.host.bytes, len, name) || strcmp(name, inspection->host) != 0)
		return false;
	snprintf(port, sizeof(port), "%u", inspection->port);
	return !colon || http_is((struct http_slice){colon + 1, head.host.len - len - 1}, port);
}

static void record(const struct inspection *inspection, enum denial_reason reason, const char *detail)
{
	account_refusal(inspection->gate, &(struct refusal){.kind = DENIAL_HTTP,
							    .reason = reason,
							    .host = inspection->host,
							    .port = inspection->port,
							    .detail = detail});
}

static int refuse_request(struct inspection *inspection, const struct net_rule *rule)
{
	char detail[DENIAL_WHAT_SIZE];

	snprintf(detail, sizeof(detail), "%s %.*s", head.method, (int)MIN_OF(head.target.len, sizeof(detail)),
		 head.target.bytes);
	detail[strcspn(detail, "?")] = '\0';
	record(inspection, DENIAL_REQUEST, detail);
	/* What follows is another request, unless this one has a body. */
	return answer_here(inspection, 403, "Forbidden", head.body_kind != HTTP_BODY_NONE,
			   "%s %.*s is not allowed for %s by this jar's policy%s%s", head.method,
			   (int)MIN_OF(head.target.len, (size_t)256), head.target.bytes, inspection->host,
			   rule && rule->reason[0] ? ": " : "", rule ? rule->reason : "");
}

static int refuse_placeholder(struct inspection *inspection, const struct secret *secret)
{
	record(inspection, DENIAL_MALFORMED, "a placeholder of a secret where it may not stand");
	return answer_here(
		inspection, 403, "Forbidden", true,
		"the placeholder of the secret %s may stand in the header %s of requests to %s over TLS, and nowhere "
		"else in the head of a request",
		secret->name, secret->header, secret->host);
}

static bool is_alone(const struct http_header *header)
{
	size_t count = 0;

	for (size_t i = 0; i < head.header_count; i++)
		count += head.headers[i].name.len == header->name.len &&
			 !strncasecmp(head.headers[i].name.bytes, header->name.bytes, header->name.len);
	return count == 1;
}

static bool is_safe(const struct inspection *inspection)
{
	return inspection->server.ssl && inspection->server.is_ready;
}

/* What a header is for the secrets; the target of the request is one without a name. */
static enum secret_use look(const struct inspection *inspection, const struct http_header *header,
			    const struct secret **out)
{
	return secrets_look(&inspection->inspector->secrets, inspection->host, is_safe(inspection), header->name,
			    header->value, out);
}

static int check_placeholders(struct inspection *inspection)
{
	const struct http_header target = {{"", 0}, head.target};
	const struct secret *secret;

	if (look(inspection, &target, &secret) != SECRET_NONE)
		return refuse_placeholder(inspection, secret);
	for (size_t i = 0; i < head.header_count; i++) {
		enum secret_use use = look(inspection, &head.headers[i], &secret);
		const struct http_header name = {{"", 0}, head.headers[i].name};

		if (use == SECRET_MISPLACED || (use == SECRET_PUT && !is_alone(&head.headers[i])) ||
		    look(inspection, &name, &secret) != SECRET_NONE)
			return refuse_placeholder(inspection, secret);
	}
	return 0;
}

static int check_request(struct inspection *inspection)
{
	AUTO_TEXT target = {0};
	struct net_verdict verdict;

	if (!is_for_this_host(inspection))
		record(inspection, DENIAL_MALFORMED, "a Host header that is not the host");
	if (!is_for_this_host(inspection))
		return answer_here(inspection, 421, "Misdirected Request", true,
				   "the Host header is not the host that this connection is for, %s", inspection->host);
	if (inspection->failure[0])
		return answer_here(inspection, 502, "Bad Gateway", true, "%s", inspection->failure);
	if (head.has_upgrade && inspection->client.ssl)
		return answer_here(inspection, 403, "Forbidden", true,
				   "an inspected connection cannot be upgraded to another protocol");
	text_append(&target, head.target.bytes, head.target.len);
	if (text_failed(&target))
		return -ENOMEM;
	verdict = rules_decide_request(inspection->gate, inspection->host, inspection->port, head.method,
				       text_string(&target));
	return verdict.is_allowed ? check_placeholders(inspection) : refuse_request(inspection, verdict.rule);
}

/* Parts of an answer, and compressed ones, could not be searched. */
static bool is_for_search(const struct inspection *inspection, const struct http_header *header)
{
	return inspection->has_secret && (http_is(header->name, "Accept-Encoding") || http_is(header->name, "Range") ||
					  http_is(header->name, "If-Range"));
}

static void pass_header(const struct inspection *inspection, const struct http_header *header, struct text *out)
{
	const struct secret *secret;

	if (http_is_for_one_hop(&head, header) || is_for_search(inspection, header))
		return;
	if (look(inspection, header, &secret) == SECRET_PUT)
		secret_write_header(secret, out);
	else
		text_append_format(out, "%.*s: %.*s\r\n", (int)header->name.len, header->name.bytes,
				   (int)header->value.len, header->value.bytes);
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
	text_append_string(&out, "\r\n");
	is_passed = !text_failed(&out) && stream_write(&inspection->server, out.data, out.len);
	if (inspection->has_secret && out.data)
		OPENSSL_cleanse(out.data, out.capacity);
	return is_passed;
}

static int read_request(struct inspection *inspection)
{
	struct stream *client = &inspection->client;
	ssize_t len = http_read_request(text_string(&client->in), client->in.len, &head);
	int rc;

	if (!client->in.len)
		return 0;
	snprintf(inspection->method, sizeof(inspection->method), "%s", len > 0 ? head.method : "");
	if (len < 0)
		record(inspection, DENIAL_MALFORMED, head.why);
	if (len < 0)
		return answer_here(inspection, 400, "Bad Request", true, "the gate does not pass on %s", head.why);
	if (len == 0 && !inspection->deadline_ns)
		inspection->deadline_ns = sys_monotonic_ns() + HEAD_NS;
	if (len == 0)
		return 0;
	inspection->deadline_ns = 0;
	rc = check_request(inspection);
	if (rc == 0) {
		if (!pass_request(inspection))
			return -EPIPE;
		inspection->is_last = head.is_last;
		inspection->state = ANSWER_HEAD;
		inspection->is_sending = true;
		http_body_init(&inspection->request, head.body_kind, head.body_bytes);
		rc = 1;
	}
	if (rc > 0)
		text_consume(&client->in, (size_t)len);
	return rc;
}

/* What of a part may go on, once it is searched. */
static struct http_slice search(struct inspection *inspection, struct http_slice part, bool is_end)
{
	struct text *held = &inspection->held;

	text_append(held, part.bytes, part.len);
	if (text_failed(held) || !held->len)
		return (struct http_slice){"", 0};
	return (struct http_slice){held->data,
				   secrets_hide(&inspection->inspector->secrets, held->data, held->len, is_end)};
}

/* Pass on what has come of a body; with @searching, what goes back to the jar. How many bytes are used up, or a negative errno. */
static ssize_t pass_body(struct http_body *body, const struct text *from, struct stream *to,
			 struct inspection *searching)
{
	size_t used = 0;

	while (!body->is_done && used < from->len && stream_waiting(to) < STREAM_OUT_MAX) {
		AUTO_TEXT out = {0};
		struct http_slice part;
		ssize_t len = http_body_take(body, from->data + used, from->len - used, &part);

		if (len < 0)
			return len;
		used += (size_t)len;
		if (searching)
			part = search(searching, part, body->is_done);
		if (part.len)
			http_body_write(body->kind, part, &out);
		if (searching)
			text_consume(&searching->held, part.len);
		if (body->is_done && body->kind == HTTP_BODY_CHUNKED)
			http_body_write(body->kind, (struct http_slice){"", 0}, &out);
		if (text_failed(&out) || !stream_write(to, out.data, out.len))
			return -EPIPE;
	}
	return (ssize_t)used;
}

static int send_body(struct inspection *inspection)
{
	ssize_t used = pass_body(&inspection->request, &inspection->client.in, &inspection->server, NULL);

	if (used < 0)
		return -EPIPE;
	text_consume(&inspection->client.in, (size_t)used);
	if (!inspection->request.is_done)
		return used > 0;
	inspection->is_sending = false;
	return 1;
}

/* --- answers ------------------------------------------------------------------------------------------------ */

static int end_exchange(struct inspection *inspection)
{
	inspection->state = ANSWER_NONE;
	/* An answer that did not wait for the whole request: what is left of it cannot be told from another one. */
	if (inspection->is_last || inspection->is_sending)
		close_after(inspection);
	return 1;
}

static int pass_answer(struct inspection *inspection)
{
	bool is_final = head.status >= 200;
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
	inspection->is_last |= is_final && (head.is_last || head.body_kind == HTTP_BODY_REST);
	if (is_final && inspection->is_last)
		text_append_string(&out, "Connection: close\r\n");
	text_append_string(&out, "\r\n");
	if (!text_failed(&out) && inspection->has_secret)
		secrets_hide(&inspection->inspector->secrets, out.data, out.len, true);
	if (text_failed(&out) || !stream_write(&inspection->client, out.data, out.len))
		return -EPIPE;
	if (!is_final)
		return 1;
	text_clear(&inspection->held);
	http_body_init(&inspection->answer, head.body_kind, head.body_bytes);
	inspection->state = ANSWER_BODY;
	return inspection->answer.is_done ? end_exchange(inspection) : 1;
}

static int bad_answer(struct inspection *inspection, const char *why)
{
	return answer_here(inspection, 502, "Bad Gateway", true, "%s %s", inspection->host, why);
}

/* Why an answer that can be read is not passed on; NULL: it is. */
static const char *unfit_answer(const struct inspection *inspection)
{
	if (head.status == 101)
		return "a change of protocol that nobody asked for";
	if (!inspection->has_secret)
		return NULL;
	if (head.status == 206)
		return "a part of an answer, in which a secret could not be found";
	for (size_t i = 0; i < head.header_count; i++)
		if (http_is(head.headers[i].name, "Content-Encoding") && !http_is(head.headers[i].value, "identity"))
			return "a compressed answer, in which a secret could not be found";
	return NULL;
}

static int read_answer(struct inspection *inspection)
{
	struct stream *server = &inspection->server;
	char why[160];
	ssize_t len;
	int rc;

	if (!server->in.len)
		return server->is_ended ? bad_answer(inspection, "has ended the connection without an answer") : 0;
	len = http_read_answer(server->in.data, server->in.len, inspection->method, &head);
	if (len > 0 && unfit_answer(inspection)) {
		head.why = unfit_answer(inspection);
		len = -EINVAL;
	}
	if (len == 0 && server->is_ended)
		return bad_answer(inspection, "has ended the connection within the head of an answer");
	snprintf(why, sizeof(why), "has sent %s", head.why ? head.why : "");
	if (len < 0)
		return bad_answer(inspection, why);
	if (len == 0)
		return 0;
	rc = pass_answer(inspection);
	text_consume(&server->in, (size_t)len);
	return rc;
}

static int read_answer_body(struct inspection *inspection)
{
	struct stream *server = &inspection->server;
	ssize_t used = pass_body(&inspection->answer, &server->in, &inspection->client,
				 inspection->has_secret ? inspection : NULL);

	if (used < 0)
		return -EPIPE;
	text_consume(&server->in, (size_t)used);
	if (server->is_ended && !server->in.len && !inspection->answer.is_done) {
		/* The jar's side ends as the host's did. */
		if (inspection->answer.kind != HTTP_BODY_REST || server->is_cut)
			return -EPIPE;
		inspection->answer.is_done = true;
		if (!stream_write(&inspection->client, inspection->held.data, inspection->held.len))
			return -EPIPE;
	}
	return inspection->answer.is_done ? end_exchange(inspection) : used > 0;
}

/* --- the whole ---------------------------------------------------------------------------------------------- */

static bool is_alert_about_trust(void)
{
	int reason = ERR_GET_REASON(ERR_peek_error());

	return reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA || reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE ||
	       reason == SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN;
}

static int shake_hands(struct inspection *inspection)
{
	struct stream *client = &inspection->client, *server = &inspection->server;
	int rc = 0, more;

	if (!server->is_ready && !inspection->failure[0]) {
		rc = stream_shake_hands(server);
		if (rc < 0) {
			long verdict = SSL_get_verify_result(server->ssl);

			snprintf(inspection->failure, sizeof(inspection->failure), "no secure connection to %s: %s",
				 inspection->host,
				 verdict != X509_V_OK ? X509_verify_cert_error_string(verdict)
						      : "the handshake failed");
			record(inspection, DENIAL_UNTRUSTED, strstr(inspection->failure, ": ") + 2);
			rc = 1;
		}
	}
	if (!server->is_ready && !inspection->failure[0])
		return rc;
	more = stream_shake_hands(client);
	if (more < 0 && is_alert_about_trust())
		record(inspection, DENIAL_UNTRUSTING, NULL);
	if (client->is_ready)
		inspection->deadline_ns = 0;
	return more < 0 ? -EPIPE : rc | more;
}

static int work(struct inspection *inspection)
{
	struct stream *client = &inspection->client, *server = &inspection->server;
	int rc = 0, more = 0;

	if (!client->is_ready)
		return shake_hands(inspection);
	if (inspection->state == ANSWER_NONE && client->in.len)
		return read_request(inspection);
	if (inspection->state == ANSWER_NONE) {
		/* Either side may leave between two requests; and nobody has asked for what the host says now. */
		if (client->is_ended || ((server->is_ended || server->in.len) && !inspection->failure[0])) {
			close_after(inspection);
			return 1;
		}
		return 0;
	}
	if (inspection->is_sending)
		rc = send_body(inspection);
	if (rc >= 0)
		more = inspection->state == ANSWER_HEAD ? read_answer(inspection) : read_answer_body(inspection);
	/* The jar has gone in the middle of a request. */
	if (client->is_ended && inspection->is_sending && !client->in.len)
		return -EPIPE;
	return rc < 0 ? rc : more < 0 ? more : rc | more;
}

/* Everything that can be done now: 1 if something was, 0, or a negative errno. */
static int turn(struct inspection *inspection)
{
	struct stream *client = &inspection->client, *server = &inspection->server;
	int rc = inspection->is_closing ? stream_ignore(client) : stream_fill(client), more;

	if (rc < 0)
		return rc;
	if (!inspection->is_closing && !server->is_ended) {
		more = stream_fill(server);
		/* What it had said before is still worth something. */
		if (more == -EPIPE) {
			server->is_socket_over = server->is_ended = server->is_cut = true;
			more = 1;
		}
		if (more < 0)
			return more;
		rc |= more;
	}
	if (!inspection->is_closing) {
		more = work(inspection);
		if (more < 0) {
			/* An alert may be on its way. */
			stream_flush(client);
			return more;
		}
		rc |= more;
	}
	more = stream_flush(client);
	if (more < 0)
		return more;
	rc |= more;
	more = server->is_ended ? 0 : stream_flush(server);
	if (more < 0) {
		server->is_ended = server->is_cut = true;
		more = 1;
	}
	return rc | more;
}

/* All that was asked has gone out, and whoever asked has left without waiting for an answer. */
static bool is_nobody_waiting(const struct inspection *inspection)
{
	const struct stream *client = &inspection->client;

	return (inspection->gate->drain_until_ns || (client->is_ended && client->is_cut)) && !client->in.len &&
	       !inspection->is_sending && !stream_waiting(&inspection->server) && client->is_ready;
}

static int exchange_pump(struct inspection *inspection, struct gate_inspection_wants *wants)
{
	int rc = 1;

	for (int i = 0; i < TURNS_MAX && rc > 0; i++)
		rc = turn(inspection);
	if (rc < 0)
		return rc;
	if (inspection->is_closing && !stream_waiting(&inspection->client)) {
		shutdown(inspection->client.fd, SHUT_WR);
		if (inspection->client.is_socket_over || inspection->gate->drain_until_ns)
			return 1;
	}
	if (is_nobody_waiting(inspection))
		return 1;
	wants->client_events = stream_events(&inspection->client);
	wants->server_events =
		inspection->is_closing || inspection->server.is_ended ? 0 : stream_events(&inspection->server);
	wants->deadline_ns = inspection->deadline_ns;
	/* There is more to do: whoever can be written to calls again at once. */
	if (rc > 0) {
		wants->client_events |= EPOLLOUT;
		wants->server_events |= wants->server_events ? EPOLLOUT : 0;
	}
	return 0;
}

/* Accepts what exchange_start() has made. */
static void exchange_free(struct inspection *inspection)
{
	stream_done(&inspection->client);
	stream_done(&inspection->server);
	text_done(&inspection->held);
	inspection->inspector->count--;
	free(inspection);
}

static SSL *new_ssl(SSL_CTX *context, bool is_server)
{
	SSL *ssl = SSL_new(context);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

	if (!ssl || !in || !out) {
		SSL_free(ssl);
		BIO_free(in);
		BIO_free(out);
		return NULL;
	}
	SSL_set_bio(ssl, in, out);
	if (is_server)
		SSL_set_accept_state(ssl);
	else
		SSL_set_connect_state(ssl);
	return ssl;
}

static struct inspection *exchange_start(struct gate_process *gate, const struct gate_inspected *what)
{
	struct inspector *inspector = gate->inspector->state;
	struct inspection *made = inspector->count < INSPECTIONS_MAX ? calloc(1, sizeof(*made)) : NULL;
	SSL *client = NULL, *server = NULL;

	if (!made)
		return NULL;
	*made = (struct inspection){.inspector = inspector, .gate = gate, .host = what->host, .port = what->port};
	inspector->count++;
	made->has_secret = secrets_are_for(&inspector->secrets, what->host);
	made->deadline_ns = what->is_tls ? sys_monotonic_ns() + HANDSHAKE_NS : 0;
	if (what->is_tls) {
		client = new_ssl(inspector->server_context, true);
		server = new_ssl(inspector->client_context, false);
	}
	stream_init(&made->client, what->client_fd, client, gate->page, what->counted, true);
	stream_init(&made->server, what->server_fd, server, gate->page, what->counted, false);
	if (!what->is_tls || (client && server && authority_use(inspector->authority, client, what->host) &&
			      SSL_set_tlsext_host_name(server, what->host) && SSL_set1_host(server, what->host)))
		return made;
	exchange_free(made);
	return NULL;
}

const struct gate_inspection_methods exchange_methods = {exchange_start, exchange_pump, exchange_free};
