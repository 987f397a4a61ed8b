/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/http/mcp_http.h - what the files of the HTTP door share: the door, its connections, its sessions
 *
 * mcp_http.c moves bytes and ends slow connections. mcp_http_request.c checks a request; it is pure. A session is a
 * process of its own that serves as if its client had started it (mcp.c), so sessions can neither reach nor delay each
 * other. mcp_http_sessions.c starts and ends them, and passes lines. Clients of the newer protocol have no session:
 * each jar that they open has a process, and one more process serves calls that name no jar, and keeps nothing.
 *
 * Lines to a process: a number, a blank and a request; or only the number, to cancel that request. Lines from it: the
 * number, a blank, the status of HTTP (0: more is to come), a blank and a message, which may be empty.
 *
 *   HEAD ──► BODY ──► CALL ──────────► HEAD ...      an answer at once, or soon
 *                       └──► STREAM ──► HEAD ...     progress, or an answer that takes long
 *   HEAD ──► STREAM (GET)            any ──► DRAIN   refused, or "Connection: close"
 */
#ifndef BELLJAR_DOOR_MCP_HTTP_MCP_HTTP_H
#define BELLJAR_DOOR_MCP_HTTP_MCP_HTTP_H

#include "base/http.h"
#include "door/mcp/mcp_server.h"

#define MCP_CONNECTIONS_MAX 320
#define MCP_HELD_MAX                                                                                                   \
	((size_t)128 << 20) /* of what clients have sent and not taken, and of what sessions have not read */
#define MCP_TOKEN_MIN 32
#define MCP_TOKEN_SIZE 129
#define MCP_SESSION_ID_SIZE 33
#define MCP_HTTP_PATH "/mcp"

struct mcp_http_options {
	struct mcp_options server;
	uint16_t port; /* of the loopback address; 0: any that is free */
	const char *
		token_path; /* file with the token that clients must show, made if it is not there; NULL: a new one, which is printed */
};

/* Serve clients over HTTP until a signal ends the program. Only returns after an error: a negative errno. */
int mcp_serve_http(const struct mcp_http_options *options, struct error *error);

enum mcp_phase {
	PHASE_HEAD,   /* nothing, or a part of a head, has come */
	PHASE_BODY,   /* of a request that shows the token */
	PHASE_CALL,   /* a session is at work, and nothing was said yet */
	PHASE_STREAM, /* events are sent */
	PHASE_DRAIN,  /* everything is sent; input is thrown away */
};

enum mcp_session_kind {
	SESSION_CLIENT, /* of one client, which has its id */
	SESSION_SHARED, /* calls of clients without a session that name no jar; there is one */
	SESSION_JAR,    /* a jar of such clients; its id is the jar's name */
	SESSION_KIND_COUNT
};

struct mcp_session {
	struct mcp_session *next;
	struct mcp_http *http;
	enum mcp_session_kind kind;
	char id[MCP_SESSION_ID_SIZE]; /* cannot be guessed; empty: the shared one's */
	struct loop_watch watch;
	struct text input, output;
	uint64_t used_ns;
	bool has_answered; /* before that, no client knows the name of its jar */
	bool has_ended;    /* freed when the loop has turned */
};

struct mcp_connection {
	struct mcp_connection *next;
	struct mcp_http *http;
	struct loop_watch watch;
	struct loop_timer timer;
	enum mcp_phase phase;
	struct text input, output;
	struct text head_bytes, body;
	struct http_head head; /* points into @head_bytes */
	struct http_body body_reader;
	bool has_shown_token;
	bool may_stream;             /* the client takes events */
	bool is_first_answer;        /* carries the new session's id */
	bool is_gone;                /* freed when the loop has turned */
	struct mcp_session *session; /* that works for it; NULL: none */
	uint64_t exchange;           /* the number of the request under way; 0: none */
	struct text id;              /* of that request, as JSON text */
};

struct mcp_http {
	const struct mcp_http_options *options;
	struct loop *loop; /* NULL: a test, which looks at the output itself and has sessions without a process */
	struct loop_watch listener;
	struct loop_timer sweep, pause;
	uint16_t port;
	char token[MCP_TOKEN_SIZE];
	struct mcp_connection *connections; /* the youngest first */
	unsigned connection_count;
	struct mcp_session *sessions;
	unsigned session_counts[SESSION_KIND_COUNT];
	uint64_t last_exchange;
};

/* --- mcp_http_request.c --- */

/* The fault of a request. Status 0: none. */
struct mcp_verdict {
	int status;
	int code; /* of JSON-RPC */
	const char *why;
};

enum mcp_kind {
	KIND_REQUEST,
	KIND_NOTIFICATION, /* also an answer, which the server never asked for */
};

struct mcp_message {
	enum mcp_kind kind;
	bool is_modern;
	bool is_initialize;
	struct http_slice session_id; /* empty: none */
	bool opens_jar;               /* of a client without a session */
	struct http_slice jar;        /* that a tool of such a client is to work in, in the document; empty: none */
};

/* Check the origin, the path and the token of a request. */
struct mcp_verdict mcp_judge_head(const struct mcp_http *http, const struct http_head *head, bool *has_token);
/* Read the body of a POST, and check that the headers agree with it. */
struct mcp_verdict mcp_judge_message(const struct http_head *head, const struct json_value *document,
				     struct mcp_message *out);
bool mcp_accepts(const struct http_head *head, const char *type);
/* A header that may be there once. 1: it is; 0: it is not; -EINVAL: more than once. */
int mcp_find_header(const struct http_head *head, const char *name, struct http_slice *out);

/* --- mcp_http_sessions.c --- */

/* NULL: there is none with that id. */
struct mcp_session *mcp_find_session(struct mcp_http *http, enum mcp_session_kind kind, struct http_slice id);
/*
 * Start a session. At the maximum, end the client's session that was idle longest, but never a jar, since its client
 * could not open it again. NULL: the session could not be started.
 */
struct mcp_session *mcp_start_session(struct mcp_http *http, enum mcp_session_kind kind);
/* Find or start the session for a request. NULL: there is none, and none could be started. */
struct mcp_session *mcp_session_for(struct mcp_http *http, const struct mcp_message *message);
/* End a session: answer the connections that wait for it; its jars end. */
void mcp_end_session(struct mcp_session *session);
/* Pass a message to a session. False: too many bytes wait, because this session or others do not read. */
bool mcp_pass(struct mcp_session *session, uint64_t exchange, const struct text *message);
/* Cancel the call of an exchange; end a jar if its name was to be the answer. */
void mcp_forget_exchange(struct mcp_session *session, uint64_t exchange);
void mcp_sweep_sessions(struct mcp_http *http);
void mcp_free_ended(struct mcp_http *http);

/* --- mcp_http.c --- */

/* Handle more bytes of a client. */
void mcp_http_take(struct mcp_connection *connection, const char *bytes, size_t len);
/* Pass a line of a session to the connection that waits for it. */
void mcp_http_answer(struct mcp_connection *connection, int status, const char *message, size_t len);
void mcp_http_fail(struct mcp_connection *connection, struct mcp_verdict verdict);
void mcp_http_close(struct mcp_connection *connection);
struct mcp_connection *mcp_http_connect(struct mcp_http *http, int fd);
void mcp_http_free_gone(struct mcp_http *http);
int mcp_http_make_secret(char *out, size_t len);

#endif
