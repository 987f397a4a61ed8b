/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_connection.c - both sides of one inspected connection, from the handshakes to the end
 *
 *   the jar says what it speaks ──► the host's handshake ──► the jar's handshake ──► requests and answers, in one protocol
 *
 * The gate offers the host the protocols of the jar's side, and passes the host's choice on to the jar's side. So both
 * use the same protocol, without translation. If the host cannot be trusted, the gate answers every request with that
 * error.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "gate/inspect/inspect_request.h"
#include "base/sys/calls.h"

#define HANDSHAKE_NS 30000000000ULL
/* To read the end of what is answered already, so that the answer is not lost in a reset. */
#define CLOSING_NS 5000000000ULL
#define TURNS_MAX 16
/* Each may have a megabyte or two waiting, in memory that is not the jar's. */
#define INSPECTIONS_MAX 256

static const struct http_slice http1_name = {"\x08http/1.1", 9}, http2_name = {"\x02h2", 3};

void inspect_close(struct inspection *inspection)
{
	inspection->is_closing = true;
	inspection->deadline_ns = sys_monotonic_ns() + CLOSING_NS;
	inspect_stream_shut(&inspection->client);
}

/* --- handshakes --------------------------------------------------------------------------------------------- */

/* Keep the known ones of the protocols that the jar's side offers, in its order. */
static void take_offer(struct inspection *inspection, const unsigned char *list, size_t len)
{
	bool has_http1 = false, has_http2 = false;

	for (size_t at = 2; at < len && at + 1 + list[at] <= len; at += 1 + (size_t)list[at]) {
		struct http_slice entry = {(const char *)list + at, 1 + (size_t)list[at]};
		bool is_http1 = entry.len == http1_name.len && !memcmp(entry.bytes, http1_name.bytes, entry.len);
		bool is_http2 = entry.len == http2_name.len && !memcmp(entry.bytes, http2_name.bytes, entry.len);

		if ((!is_http1 || has_http1) && (!is_http2 || has_http2))
			continue;
		memcpy(inspection->offered + inspection->offered_len, entry.bytes, entry.len);
		inspection->offered_len += entry.len;
		has_http1 |= is_http1;
		has_http2 |= is_http2;
	}
}

/* The jar's handshake stops here until the host's is over. */
static int on_client_hello(SSL *ssl, int *alert, void *owner)
{
	struct inspection *inspection = SSL_get_app_data(ssl);
	const unsigned char *list;
	size_t len;

	(void)alert;
	(void)owner;
	if (!inspection->is_heard &&
	    SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &list, &len))
		take_offer(inspection, list, len);
	inspection->is_heard = true;
	return inspection->is_host_known ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_RETRY;
}

/* Called where the jar's side has said what it speaks. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
			   unsigned in_len, void *owner)
{
	const struct inspection *inspection = SSL_get_app_data(ssl);
	struct http_slice chosen = inspection->is_http2 ? http2_name : http1_name;

	(void)owner;
	return SSL_select_next_proto((unsigned char **)out, out_len, (const unsigned char *)chosen.bytes,
				     (unsigned)chosen.len, in, in_len) == OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

void inspect_prepare_context(SSL_CTX *server_context)
{
	SSL_CTX_set_client_hello_cb(server_context, on_client_hello, NULL);
	SSL_CTX_set_alpn_select_cb(server_context, choose_protocol, NULL);
}

/* Offer the host the jar's protocols; a jar's side that offers none speaks HTTP/1.1. */
static bool offer_to_host(struct inspection *inspection)
{
	struct http_slice none = http1_name;
	const unsigned char *list = inspection->offered_len ? inspection->offered : (const unsigned char *)none.bytes;

	return !SSL_set_alpn_protos(inspection->server.ssl, list,
				    (unsigned)(inspection->offered_len ? inspection->offered_len : none.len));
}

static bool has_offered(const struct inspection *inspection, struct http_slice name)
{
	return memmem(inspection->offered, inspection->offered_len, name.bytes, name.len);
}

static int shake_hands_with_host(struct inspection *inspection)
{
	struct stream *server = &inspection->server;
	int rc = inspect_stream_shake_hands(server);
	const unsigned char *chosen;
	unsigned len;

	if (rc < 0) {
		long verdict = SSL_get_verify_result(server->ssl);

		snprintf(inspection->failure, sizeof(inspection->failure), "no secure connection to %s: %s",
			 inspection->host,
			 verdict != X509_V_OK ? X509_verify_cert_error_string(verdict) : "the handshake failed");
		inspect_request_record(inspection, DENIAL_UNTRUSTED, strstr(inspection->failure, ": ") + 2);
		inspection->is_host_known = true;
		/* It is said in a protocol that the jar's side speaks. */
		inspection->is_http2 = inspection->offered_len && !has_offered(inspection, http1_name);
		return 1;
	}
	if (!server->is_ready)
		return rc;
	SSL_get0_alpn_selected(server->ssl, &chosen, &len);
	inspection->is_http2 = len == http2_name.len - 1 && !memcmp(chosen, http2_name.bytes + 1, len);
	inspection->is_host_known = inspection->is_safe = true;
	return 1;
}

static bool is_alert_about_trust(void)
{
	int reason = ERR_GET_REASON(ERR_peek_error());

	return reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA || reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE ||
	       reason == SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN;
}

static bool begin(struct inspection *inspection)
{
	inspection->deadline_ns = 0;
	inspection->protocol = inspection->is_http2 ? &inspect_http2_protocol : &inspect_http1_protocol;
	if (inspection->protocol->begin(inspection))
		return true;
	inspection->protocol = NULL;
	return false;
}

static int shake_hands(struct inspection *inspection)
{
	struct stream *client = &inspection->client;
	bool was_heard = inspection->is_heard;
	int rc = inspect_stream_shake_hands(client), more = 0;

	if (rc < 0 && is_alert_about_trust())
		inspect_request_record(inspection, DENIAL_UNTRUSTING, NULL);
	if (rc < 0 || (!was_heard && inspection->is_heard && !offer_to_host(inspection)))
		return -EPIPE;
	if (inspection->is_heard && !inspection->is_host_known)
		more = shake_hands_with_host(inspection);
	if (client->is_ready && !begin(inspection))
		return -EPIPE;
	return rc | more;
}

/* --- the whole ---------------------------------------------------------------------------------------------- */

static int work(struct inspection *inspection)
{
	return inspection->protocol ? inspection->protocol->work(inspection) : shake_hands(inspection);
}

/* Everything that can be done now: 1 if something was, 0, or a negative errno. */
static int turn(struct inspection *inspection)
{
	struct stream *client = &inspection->client, *server = &inspection->server;
	int rc = inspection->is_closing ? inspect_stream_ignore(client) : inspect_stream_fill(client), more;

	if (rc < 0)
		return rc;
	if (!inspection->is_closing && !server->is_ended) {
		more = inspect_stream_fill(server);
		/* What it sent before is still useful. */
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
			inspect_stream_flush(client);
			return more;
		}
		rc |= more;
	}
	more = inspect_stream_flush(client);
	if (more < 0)
		return more;
	rc |= more;
	more = server->is_ended ? 0 : inspect_stream_flush(server);
	if (more < 0) {
		server->is_ended = server->is_cut = true;
		more = 1;
	}
	return rc | more;
}

/* Report whether all requests have gone out, and the client has left without waiting for a response. */
static bool is_nobody_waiting(const struct inspection *inspection)
{
	const struct stream *client = &inspection->client;

	return (inspection->gate->drain_until_ns || (client->is_ended && client->is_cut)) && !client->in.len &&
	       inspection->protocol && inspection->protocol->has_sent(inspection) &&
	       !inspect_stream_waiting(&inspection->server);
}

static int connection_pump(struct inspection *inspection, struct gate_inspection_wants *wants)
{
	int rc = 1;

	if (inspection->deadline_ns && sys_monotonic_ns() >= inspection->deadline_ns)
		return -ETIMEDOUT;
	for (int i = 0; i < TURNS_MAX && rc > 0; i++)
		rc = turn(inspection);
	if (rc < 0)
		return rc;
	if (inspection->is_closing && !inspect_stream_waiting(&inspection->client)) {
		shutdown(inspection->client.fd, SHUT_WR);
		if (inspection->client.is_socket_over || inspection->gate->drain_until_ns)
			return 1;
	}
	if (is_nobody_waiting(inspection))
		return 1;
	wants->client_events = inspect_stream_events(&inspection->client);
	wants->server_events =
		inspection->is_closing || inspection->server.is_ended ? 0 : inspect_stream_events(&inspection->server);
	wants->deadline_ns = inspection->deadline_ns;
	/* There is more to do: wait for a side that can be written to, which calls this again at once. */
	if (rc > 0) {
		wants->client_events |= EPOLLOUT;
		wants->server_events |= wants->server_events ? EPOLLOUT : 0;
	}
	return 0;
}

/* Accepts what connection_start() has made. */
static void connection_free(struct inspection *inspection)
{
	if (inspection->protocol)
		inspection->protocol->end(inspection);
	inspect_stream_done(&inspection->client);
	inspect_stream_done(&inspection->server);
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

static struct inspection *connection_start(struct gate_process *gate, const struct gate_inspected *what)
{
	struct inspector *inspector = gate->inspector->state;
	struct inspection *made = inspector->count < INSPECTIONS_MAX ? calloc(1, sizeof(*made)) : NULL;
	SSL *client = NULL, *server = NULL;

	if (!made)
		return NULL;
	*made = (struct inspection){.inspector = inspector, .gate = gate, .host = what->host, .port = what->port};
	inspector->count++;
	made->has_secret = inspect_secrets_are_for(&inspector->secrets, what->host);
	if (what->is_tls) {
		client = new_ssl(inspector->server_context, true);
		server = new_ssl(inspector->client_context, false);
	}
	inspect_stream_init(&made->client, what->client_fd, client, gate->page, what->counted, true);
	inspect_stream_init(&made->server, what->server_fd, server, gate->page, what->counted, false);
	if (!what->is_tls && begin(made))
		return made;
	made->deadline_ns = sys_monotonic_ns() + HANDSHAKE_NS;
	if (client && server && inspect_authority_use(inspector->authority, client, what->host) &&
	    SSL_set_app_data(client, made) && SSL_set_tlsext_host_name(server, what->host) &&
	    SSL_set1_host(server, what->host))
		return made;
	connection_free(made);
	return NULL;
}

const struct gate_inspection_methods inspect_connection_methods = {connection_start, connection_pump, connection_free};
