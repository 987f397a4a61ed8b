/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/http/mcp_http.c - connections of clients that come over HTTP
 *
 * An answer that comes soon is one JSON text. When there is progress to report, or after some seconds, it becomes a
 * stream of events, which also keeps the connection alive. A connection has one request at a time; later ones wait. A
 * client that hangs up cancels its call, in both eras: streams cannot be resumed, so the answer could reach no client.
 *
 * A client without the token can only make the server read a head of 64 KiB for some seconds, and its connection is
 * closed first. A client with the token can send long requests, and read no answers, on many connections: beyond the
 * total maximum, the server closes the connection that holds most. No callback frees a connection or a session.
 */
#include "door/mcp/http/mcp_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/descriptors.h"

#define SECOND_NS ((uint64_t)1000000000)
#define READ_BYTES ((size_t)64 << 10)
#define OUTPUT_MAX                                                                                                     \
	((size_t)1 << 20) /* that a client has not taken; then none of its requests are read, and no progress is told */
#define HEAD_NS (10 * SECOND_NS)
#define BODY_NS (60 * SECOND_NS)
#define IDLE_NS (90 * SECOND_NS)  /* between requests, and to take what was answered */
#define ALIVE_NS (15 * SECOND_NS) /* between signs of life in a stream */
#define DRAIN_NS (2 * SECOND_NS)
#define PAUSE_NS (SECOND_NS / 10) /* without descriptors for more connections */
#define STREAM_TYPE "text/event-stream"

static void on_time(struct loop_timer *timer);

static void arm(struct mcp_connection *connection, uint64_t after_ns)
{
	if (connection->http->loop)
		loop_arm(connection->http->loop, &connection->timer, clock_ns() + after_ns, on_time, connection);
}

/* --- writing ------------------------------------------------------------------------------------------------ */

static void watch_again(struct mcp_connection *connection)
{
	bool is_reading = connection->phase == PHASE_DRAIN ||
			  ((connection->phase == PHASE_HEAD || connection->phase == PHASE_BODY) &&
			   connection->output.len <= OUTPUT_MAX);

	loop_change(&connection->watch, EPOLLRDHUP | (is_reading ? (uint32_t)EPOLLIN : 0) |
						(connection->output.len ? (uint32_t)EPOLLOUT : 0));
}

static void write_output(struct mcp_connection *connection)
{
	while (connection->output.len && connection->http->loop && !connection->is_gone) {
		ssize_t count =
			send(connection->watch.fd, connection->output.data, connection->output.len, MSG_NOSIGNAL);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno != EAGAIN)
			mcp_http_close(connection);
		if (count < 0)
			break;
		text_consume(&connection->output, (size_t)count);
		if (!connection->output.len && !text_failed(&connection->output))
			text_done(&connection->output);
		if (connection->phase == PHASE_HEAD || connection->phase == PHASE_DRAIN)
			arm(connection, connection->output.len || connection->phase == PHASE_HEAD ? IDLE_NS : DRAIN_NS);
	}
	if (text_failed(&connection->output))
		mcp_http_close(connection);
	if (connection->phase == PHASE_DRAIN && !connection->output.len && connection->http->loop)
		shutdown(connection->watch.fd, SHUT_WR);
	watch_again(connection);
}

static const char *reason_of(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{200, "OK"},
		{202, "Accepted"},
		{204, "No Content"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{413, "Content Too Large"},
		{415, "Unsupported Media Type"},
		{503, "Service Unavailable"},
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Error";
}

/* @len: of the body; negative: it comes in chunks. */
static void write_head(struct mcp_connection *connection, int status, const char *type, ssize_t len)
{
	struct text *out = &connection->output;

	text_append_format(out, "HTTP/1.1 %d %s\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n",
			   status, reason_of(status));
	if (type)
		text_append_format(out, "Content-Type: %s\r\n", type);
	if (len < 0)
		text_append_string(out, "Transfer-Encoding: chunked\r\nX-Accel-Buffering: no\r\n");
	else if (status != 204)
		text_append_format(out, "Content-Length: %zd\r\n", len);
	if (status == 401)
		text_append_string(out, "WWW-Authenticate: Bearer\r\n");
	if (status == 405)
		text_append_string(out, "Allow: POST, GET, DELETE\r\n");
	if (connection->is_first_answer && connection->session)
		text_append_format(out, "Mcp-Session-Id: %s\r\n", connection->session->id);
	if (connection->head.is_last)
		text_append_string(out, "Connection: close\r\n");
	text_append_string(out, "\r\n");
	connection->is_first_answer = false;
}

/* The answer is whole: wait for the next request, or for the client to leave. */
static void finish(struct mcp_connection *connection)
{
	connection->session = NULL;
	connection->exchange = 0;
	text_clear(&connection->id);
	text_done(&connection->body);
	connection->phase = connection->head.is_last ? PHASE_DRAIN : PHASE_HEAD;
	arm(connection, IDLE_NS);
	write_output(connection);
}

static void answer_whole(struct mcp_connection *connection, int status, const char *body, size_t len)
{
	write_head(connection, status, len ? "application/json" : NULL, (ssize_t)len);
	text_append(&connection->output, body, len);
	finish(connection);
}

static void open_stream(struct mcp_connection *connection)
{
	write_head(connection, 200, STREAM_TYPE, -1);
	connection->phase = PHASE_STREAM;
	arm(connection, ALIVE_NS);
}

static void write_event(struct mcp_connection *connection, const char *message, size_t len)
{
	AUTO_TEXT event = {0};

	text_append_string(&event, "event: message\ndata: ");
	text_append(&event, message, len);
	text_append_string(&event, "\n\n");
	http_body_write(HTTP_BODY_CHUNKED, (struct http_slice){event.data, event.len}, &connection->output);
	if (text_failed(&event))
		mcp_http_close(connection);
}

static void write_sign_of_life(struct mcp_connection *connection)
{
	http_body_write(HTTP_BODY_CHUNKED, (struct http_slice){":\n\n", 3}, &connection->output);
}

static void end_stream(struct mcp_connection *connection)
{
	http_body_write(HTTP_BODY_CHUNKED, (struct http_slice){"", 0}, &connection->output);
	finish(connection);
}

static void take_requests(struct mcp_connection *connection);

void mcp_http_answer(struct mcp_connection *connection, int status, const char *message, size_t len)
{
	if (!status && (!connection->may_stream || connection->output.len > OUTPUT_MAX))
		return;
	if (!status && connection->phase == PHASE_CALL)
		open_stream(connection);
	if (connection->phase == PHASE_STREAM) {
		if (len)
			write_event(connection, message, len);
		if (status)
			end_stream(connection);
		else
			write_output(connection);
	} else {
		answer_whole(connection, status, message, len);
	}
	if (status)
		take_requests(connection);
}

void mcp_http_fail(struct mcp_connection *connection, struct mcp_verdict verdict)
{
	AUTO_TEXT body = {0};
	struct json_writer writer = {.text = &body};

	json_open_object(&writer, NULL);
	json_write_string(&writer, "jsonrpc", "2.0");
	json_write_raw(&writer, "id", connection->id.len ? connection->id.data : "null",
		       connection->id.len ? connection->id.len : 4);
	json_open_object(&writer, "error");
	json_write_integer(&writer, "code", verdict.code);
	json_write_string(&writer, "message", verdict.why);
	json_close_object(&writer);
	json_close_object(&writer);
	connection->is_first_answer = false;
	if (connection->phase == PHASE_STREAM) {
		if (connection->exchange)
			write_event(connection, text_string(&body), body.len);
		end_stream(connection);
	} else {
		/* Close the connection of a request that was refused, or whose body was not read. */
		connection->head.is_last |= connection->phase != PHASE_CALL;
		answer_whole(connection, verdict.status, text_string(&body), body.len);
	}
}

void mcp_http_close(struct mcp_connection *connection)
{
	struct mcp_session *session = connection->session;
	uint64_t exchange = connection->exchange;

	if (connection->is_gone)
		return;
	connection->is_gone = true;
	loop_remove(&connection->watch);
	loop_disarm(&connection->timer);
	connection->session = NULL;
	connection->exchange = 0;
	if (exchange && session)
		mcp_forget_exchange(session, exchange);
}

/* --- requests ----------------------------------------------------------------------------------------------- */

static void keep_id(struct mcp_connection *connection, const struct json_value *document)
{
	const struct json_member *id = document->type == JSON_OBJECT ? json_find(document, "id") : NULL;
	struct json_writer writer = {.text = &connection->id};

	if (id && (id->value.type == JSON_STRING || id->value.type == JSON_INTEGER || id->value.type == JSON_REAL))
		json_write_value(&writer, NULL, &id->value);
}

static void pass_on(struct mcp_connection *connection, const struct mcp_message *message)
{
	static const struct mcp_verdict unknown = {404, -32001, "there is no such session, or it has ended"};
	static const struct mcp_verdict full = {503, -32000, "the server is full; try again later"};
	struct mcp_session *session = mcp_session_for(connection->http, message);

	if (!session) {
		mcp_http_fail(connection, message->session_id.len ? unknown : full);
		return;
	}
	if (message->kind == KIND_NOTIFICATION) {
		if (!mcp_pass(session, 0, &connection->body))
			mcp_http_fail(connection, full);
		else
			answer_whole(connection, 202, NULL, 0);
		return;
	}
	connection->is_first_answer = message->is_initialize && !message->session_id.len;
	connection->session = session;
	connection->exchange = ++connection->http->last_exchange;
	arm(connection, ALIVE_NS);
	if (mcp_pass(session, connection->exchange, &connection->body))
		text_done(&connection->body);
	else
		mcp_http_fail(connection, full);
}

static void take_body(struct mcp_connection *connection)
{
	struct json_input input = {.name = "request",
				   .bytes = text_string(&connection->body),
				   .len = connection->body.len,
				   .stage = STAGE_USAGE,
				   .max_bytes = MCP_LINE_MAX,
				   .max_entries = 100000};
	struct error error = {0};
	AUTO_JSON document = {0};
	struct mcp_verdict verdict = {400, -32700, error.message};
	struct mcp_message message;

	connection->phase = PHASE_CALL;
	if (json_parse(&input, &document, &error) < 0) {
		mcp_http_fail(connection, verdict);
		return;
	}
	keep_id(connection, &document);
	verdict = mcp_judge_message(&connection->head, &document, &message);
	if (verdict.status)
		mcp_http_fail(connection, verdict);
	else if (message.is_modern && message.kind == KIND_NOTIFICATION)
		answer_whole(connection, 202, NULL, 0); /* none is known: to cancel a call is to hang up */
	else
		pass_on(connection, &message);
}

/* GET and DELETE. */
static void take_session_request(struct mcp_connection *connection)
{
	static const struct mcp_verdict unnamed = {400, -32000, "the header Mcp-Session-Id is missing"};
	static const struct mcp_verdict unknown = {404, -32001, "there is no such session, or it has ended"};
	struct mcp_session *session;
	struct http_slice id;

	connection->phase = PHASE_CALL;
	if (mcp_find_header(&connection->head, "Mcp-Session-Id", &id) <= 0 || !id.len) {
		mcp_http_fail(connection, unnamed);
		return;
	}
	session = mcp_find_session(connection->http, SESSION_CLIENT, id);
	if (!session) {
		mcp_http_fail(connection, unknown);
	} else if (!strcmp(connection->head.method, "DELETE")) {
		mcp_end_session(session);
		answer_whole(connection, 204, NULL, 0);
	} else {
		/* The server sends nothing there by itself; but an open stream shows that the session is in use. */
		connection->session = session;
		open_stream(connection);
		write_sign_of_life(connection);
		write_output(connection);
	}
}

/* False: it is not whole, and was not refused. */
static bool take_head(struct mcp_connection *connection)
{
	ssize_t len = http_read_request(text_string(&connection->input), connection->input.len, &connection->head);
	struct mcp_verdict verdict = {400, -32600, connection->head.why};
	struct http_slice expected;

	if (len == 0)
		return false;
	if (len > 0) {
		text_clear(&connection->head_bytes);
		text_append(&connection->head_bytes, connection->input.data, (size_t)len);
		text_consume(&connection->input, (size_t)len);
		if (text_failed(&connection->head_bytes)) {
			mcp_http_close(connection);
			return true;
		}
		http_read_request(connection->head_bytes.data, connection->head_bytes.len, &connection->head);
		verdict = mcp_judge_head(connection->http, &connection->head, &connection->has_shown_token);
	}
	connection->may_stream = mcp_accepts(&connection->head, STREAM_TYPE);
	if (verdict.status) {
		mcp_http_fail(connection, verdict);
		return true;
	}
	if (strcmp(connection->head.method, "POST") != 0) {
		take_session_request(connection);
		return true;
	}
	http_body_init(&connection->body_reader, connection->head.body_kind, connection->head.body_bytes);
	connection->phase = PHASE_BODY;
	arm(connection, BODY_NS);
	if (mcp_find_header(&connection->head, "Expect", &expected) > 0 && http_is(expected, "100-continue"))
		text_append_string(&connection->output, "HTTP/1.1 100 Continue\r\n\r\n");
	return true;
}

/* False: more has to come. */
static bool take_part(struct mcp_connection *connection)
{
	static const struct mcp_verdict broken = {400, -32600, "the body is not valid HTTP"};
	static const struct mcp_verdict too_long = {413, -32600, "the request is too long"};
	struct http_slice part;
	ssize_t count =
		http_body_take(&connection->body_reader, text_string(&connection->input), connection->input.len, &part);

	if (count < 0) {
		mcp_http_fail(connection, broken);
		return true;
	}
	text_append(&connection->body, part.bytes, part.len);
	text_consume(&connection->input, (size_t)count);
	if (text_failed(&connection->body) || connection->body.len > MCP_LINE_MAX)
		mcp_http_fail(connection, too_long);
	else if (connection->body_reader.is_done)
		take_body(connection);
	else
		return count > 0;
	return true;
}

static void take_requests(struct mcp_connection *connection)
{
	bool is_going_on = true;

	while (is_going_on && !connection->is_gone && connection->output.len <= OUTPUT_MAX) {
		if (connection->phase == PHASE_HEAD)
			is_going_on = connection->input.len && take_head(connection);
		else if (connection->phase == PHASE_BODY)
			is_going_on = take_part(connection);
		else
			is_going_on = false;
	}
	if (connection->phase == PHASE_DRAIN)
		text_clear(&connection->input);
	if (!connection->is_gone)
		write_output(connection);
}

void mcp_http_take(struct mcp_connection *connection, const char *bytes, size_t len)
{
	/* A head that has begun is to be whole soon. */
	if (connection->phase == PHASE_HEAD && !connection->input.len && len)
		arm(connection, HEAD_NS);
	text_append(&connection->input, bytes, len);
	if (text_failed(&connection->input))
		mcp_http_close(connection);
	else
		take_requests(connection);
}

/* --- events ------------------------------------------------------------------------------------------------- */

static void on_time(struct loop_timer *timer)
{
	struct mcp_connection *connection = timer->owner;

	/* In a stream, what was written last has to be gone. */
	if (connection->phase == PHASE_CALL && connection->may_stream)
		open_stream(connection);
	else if (connection->phase == PHASE_CALL)
		arm(connection, ALIVE_NS);
	else if (connection->phase == PHASE_STREAM && !connection->output.len)
		arm(connection, ALIVE_NS);
	else
		mcp_http_close(connection);
	if (connection->phase == PHASE_STREAM && !connection->is_gone) {
		write_sign_of_life(connection);
		write_output(connection);
	}
}

static void on_connection(struct loop_watch *watch, uint32_t events)
{
	struct mcp_connection *connection = watch->owner;
	char bytes[16384];
	ssize_t count = 1;

	if (events & EPOLLOUT)
		write_output(connection);
	if (events & EPOLLIN) {
		count = connection->is_gone ? 0 : recv(watch->fd, bytes, sizeof(bytes), 0);
		if (count < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (count > 0 && connection->phase != PHASE_DRAIN)
			mcp_http_take(connection, bytes, (size_t)count);
	}
	/* Read the bytes that came before the end first. */
	if (count <= 0 || (events & (EPOLLERR | EPOLLHUP)) || ((events & EPOLLRDHUP) && !(events & EPOLLIN)))
		mcp_http_close(connection);
	else if ((events & EPOLLOUT) && !connection->is_gone)
		take_requests(connection);
}

struct mcp_connection *mcp_http_connect(struct mcp_http *http, int fd)
{
	struct mcp_connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	connection->http = http;
	connection->watch.fd = fd;
	if (http->loop &&
	    loop_add(http->loop, &connection->watch, fd, EPOLLIN | EPOLLRDHUP, on_connection, connection) < 0) {
		free(connection);
		return NULL;
	}
	connection->next = http->connections;
	http->connections = connection;
	http->connection_count++;
	arm(connection, HEAD_NS);
	return connection;
}

/* The oldest that has not shown the token leaves. False: there is none. */
static bool make_room(struct mcp_http *http)
{
	struct mcp_connection *oldest = NULL;

	for (struct mcp_connection *connection = http->connections; connection; connection = connection->next)
		if (!connection->has_shown_token && !connection->is_gone)
			oldest = connection;
	if (oldest)
		mcp_http_close(oldest);
	return oldest;
}

void mcp_http_free_gone(struct mcp_http *http)
{
	for (struct mcp_connection **at = &http->connections; *at;) {
		struct mcp_connection *connection = *at;

		if (!connection->is_gone) {
			at = &connection->next;
			continue;
		}
		*at = connection->next;
		http->connection_count--;
		close_fd(&connection->watch.fd);
		text_done(&connection->input);
		text_done(&connection->output);
		text_done(&connection->head_bytes);
		text_done(&connection->body);
		text_done(&connection->id);
		free(connection);
	}
}

static size_t held_by(const struct mcp_connection *connection)
{
	return connection->is_gone ? 0 : connection->input.len + connection->body.len + connection->output.len;
}

/* Close the connection that holds most bytes while all together hold too many. */
static void bound_memory(struct mcp_http *http)
{
	static const struct mcp_verdict full = {503, -32000, "the server is full of other requests; try again later"};

	for (;;) {
		struct mcp_connection *most = NULL;
		size_t sum = 0;

		for (struct mcp_connection *connection = http->connections; connection; connection = connection->next) {
			sum += held_by(connection);
			if (!most || held_by(connection) > held_by(most))
				most = connection;
		}
		if (sum <= MCP_HELD_MAX)
			return;
		text_done(&most->input);
		if (most->phase == PHASE_BODY && !most->output.len)
			mcp_http_fail(most, full);
		else
			mcp_http_close(most);
	}
}

static void on_pause_over(struct loop_timer *timer)
{
	loop_change(&((struct mcp_http *)timer->owner)->listener, EPOLLIN);
}

static void on_listener(struct loop_watch *watch, uint32_t events)
{
	struct mcp_http *http = watch->owner;
	AUTO_CLOSE int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const int on = 1;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
		make_room(http);
		loop_change(watch, 0);
		loop_arm(http->loop, &http->pause, clock_ns() + PAUSE_NS, on_pause_over, http);
		return;
	}
	if (fd < 0 || (http->connection_count >= MCP_CONNECTIONS_MAX && !make_room(http)))
		return;
	/* An answer is one write; its last part must not wait for more. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (mcp_http_connect(http, fd))
		take_fd(&fd);
}

static void on_sweep(struct loop_timer *timer)
{
	struct mcp_http *http = timer->owner;

	mcp_sweep_sessions(http);
	loop_arm(http->loop, timer, clock_ns() + mcp_sweep_ns(&http->options->server), on_sweep, http);
}

/* --- the token ---------------------------------------------------------------------------------------------- */

int mcp_http_make_secret(char *out, size_t len)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char random[64];

	if (len > sizeof(random) || getrandom(random, len, 0) != (ssize_t)len)
		return -EIO;
	for (size_t i = 0; i < len; i++)
		out[i] = letters[random[i] % 64];
	out[len] = '\0';
	return 0;
}

static int write_token(int fd, const char *path, const char *token, struct error *error)
{
	char line[MCP_TOKEN_SIZE + 1];
	int len = snprintf(line, sizeof(line), "%s\n", token);

	if (write(fd, line, (size_t)len) == len)
		return 0;
	return error_set(error, STAGE_USAGE, errno, "cannot write the token to '%s': %s", path, strerror(errno));
}

/* A token is worth what the file's mode is worth. */
static int read_token(const char *path, char *token, struct error *error)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	ssize_t len;

	if (fd < 0 || fstat(fd, &status) < 0)
		return error_set(error, STAGE_USAGE, errno, "cannot read the token in '%s': %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077)) {
		error_set(error, STAGE_USAGE, EPERM, "cannot use the token in '%s': other users may know it", path);
		return error_hint(error, "it must be your file, and only you may read it: chmod 600");
	}
	len = read(fd, token, MCP_TOKEN_SIZE - 1);
	token[len > 0 ? len : 0] = '\0';
	token[strcspn(token, "\n")] = '\0';
	for (const char *at = token; *at; at++)
		if (*at <= ' ' || *at > '~')
			len = -1;
	if (len < 0 || strlen(token) < MCP_TOKEN_MIN)
		return error_set(error, STAGE_USAGE, 0, "'%s' does not have one line of %d to %d letters and digits",
				 path, MCP_TOKEN_MIN, MCP_TOKEN_SIZE - 2);
	return 0;
}

static int find_token(struct mcp_http *http, struct error *error)
{
	const char *path = http->options->token_path;
	AUTO_CLOSE int fd = -1;

	if (mcp_http_make_secret(http->token, MCP_TOKEN_MIN + 11) < 0)
		return error_set(error, STAGE_ENGINE, EIO, "the kernel gives no random bytes for a token");
	if (!path)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		return write_token(fd, path, http->token, error);
	if (errno == EEXIST)
		return read_token(path, http->token, error);
	return error_set(error, STAGE_USAGE, errno, "cannot make '%s' for the token: %s", path, strerror(errno));
}

/* --- beginning ---------------------------------------------------------------------------------------------- */

static int listen_on_loopback(struct mcp_http *http, struct error *error)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(http->options->port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(address);
	const int on = 1;
	int rc;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, SOMAXCONN) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0) {
		error_set(error, STAGE_USAGE, errno, "cannot listen on port %u: %s", http->options->port,
			  strerror(errno));
		return error_hint(error, "another program may have that port; without one any that is free is taken");
	}
	http->port = ntohs(address.sin_port);
	rc = loop_add(http->loop, &http->listener, fd, EPOLLIN, on_listener, http);
	if (rc < 0)
		return error_set(error, STAGE_ENGINE, -rc, "cannot watch a socket: %s", strerror(-rc));
	take_fd(&fd);
	return 0;
}

static int tell(const struct mcp_http *http, struct error *error)
{
	AUTO_TEXT words = {0};

	text_append_format(&words, "url: http://127.0.0.1:%u" MCP_HTTP_PATH "\n", http->port);
	if (http->options->token_path)
		text_append_format(&words, "token: in %s\n", http->options->token_path);
	else
		text_append_format(&words, "token: %s\n", http->token);
	if (write(STDOUT_FILENO, text_string(&words), words.len) == (ssize_t)words.len)
		return 0;
	return error_set(error, STAGE_ENGINE, errno, "cannot say where the server is: %s", strerror(errno));
}

int mcp_serve_http(const struct mcp_http_options *options, struct error *error)
{
	struct mcp_http http = {.options = options, .loop = loop_new()};
	int rc =
		http.loop ? 0 : error_set(error, STAGE_ENGINE, errno, "cannot make an event loop: %s", strerror(errno));

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* a socket shows the end of a session; its exit status is not needed */
	descriptors_raise_limit();
	if (rc == 0)
		rc = find_token(&http, error);
	if (rc == 0)
		rc = listen_on_loopback(&http, error);
	if (rc == 0)
		rc = tell(&http, error);
	if (rc == 0)
		loop_arm(http.loop, &http.sweep, clock_ns() + mcp_sweep_ns(&options->server), on_sweep, &http);
	while (rc == 0) {
		rc = loop_turn(http.loop);
		if (rc < 0)
			error_set(error, STAGE_ENGINE, -rc, "cannot wait for events: %s", strerror(-rc));
		bound_memory(&http);
		mcp_http_free_gone(&http);
		mcp_free_ended(&http);
	}
	loop_free(http.loop);
	return rc;
}
