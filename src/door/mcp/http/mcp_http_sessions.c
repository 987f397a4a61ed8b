/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/http/mcp_http_sessions.c - the processes behind the HTTP door: one for each session, and for each jar of clients that have none
 *
 * A session ends when its socket does, however that happens: its process then ends its engine and everything in its jars, as it does for
 * a client that has started it (mcp.c). Nothing else has to be cleaned up, also where this process is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "door/mcp/http/mcp_http.h"
#include "base/sys/calls.h"

#define READ_BYTES ((size_t)64 << 10)
#define LINE_MAX_BYTES ((size_t)96 << 20) /* of a process of our own: more than any answer of its has */

static const unsigned sessions_max[] = {[SESSION_CLIENT] = 32, [SESSION_SHARED] = 1, [SESSION_JAR] = MCP_JARS_MAX};
_Static_assert(ARRAY_LEN(sessions_max) == SESSION_KIND_COUNT, "every kind of session has a maximum");

/* --- passing lines ------------------------------------------------------------------------------------------ */

static void write_lines(struct mcp_session *session)
{
	while (session->output.len && session->http->loop) {
		ssize_t count = send(session->watch.fd, session->output.data, session->output.len, MSG_NOSIGNAL);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			break; /* that it has ended is read */
		text_consume(&session->output, (size_t)count);
	}
	if (!session->output.len && !text_failed(&session->output))
		text_done(&session->output);
	loop_change(&session->watch, EPOLLIN | (session->output.len ? (uint32_t)EPOLLOUT : 0));
}

bool mcp_pass(struct mcp_session *session, uint64_t exchange, const struct text *message)
{
	size_t begin, waiting = message->len;

	for (const struct mcp_session *other = session->http->sessions; other; other = other->next)
		waiting += other->output.len;
	if (waiting > MCP_HELD_MAX || session->has_ended)
		return false;
	text_append_format(&session->output, "%llu ", (unsigned long long)exchange);
	begin = session->output.len;
	text_append(&session->output, message->data, message->len);
	text_append_char(&session->output, '\n');
	if (text_failed(&session->output))
		return false;
	/* Between the parts of a JSON text a line may end; within a string it cannot. */
	for (size_t i = begin; i < session->output.len - 1; i++)
		if (session->output.data[i] == '\n' || session->output.data[i] == '\r')
			session->output.data[i] = ' ';
	session->used_ns = clock_ns();
	write_lines(session);
	return true;
}

void mcp_forget_exchange(struct mcp_session *session, uint64_t exchange)
{
	if (session->kind == SESSION_JAR && !session->has_answered) {
		mcp_end_session(session);
		return;
	}
	text_append_format(&session->output, "%llu\n", (unsigned long long)exchange);
	session->used_ns = clock_ns();
	write_lines(session);
}

/* The number at the beginning of a line, and where it goes on. */
static uint64_t read_number(const char **at, const char *end)
{
	uint64_t number = 0;

	for (; *at < end && **at != ' '; (*at)++)
		number = number * 10 + (uint64_t)(**at - '0');
	*at += *at < end;
	return number;
}

static void take_line(struct mcp_session *session, const char *line, size_t len)
{
	const char *at = line, *end = line + len;
	uint64_t exchange = read_number(&at, end);
	int status = (int)read_number(&at, end);

	session->used_ns = clock_ns();
	/* 0: of a notification. Not found: the connection is gone. */
	for (struct mcp_connection *connection = session->http->connections; connection && exchange;
	     connection = connection->next)
		if (connection->exchange == exchange && connection->session == session) {
			session->has_answered |= status != 0;
			mcp_http_answer(connection, status, at, (size_t)(end - at));
			return;
		}
}

static void take_lines(struct mcp_session *session)
{
	size_t begin = 0;
	const char *end;

	while (session->input.len > begin &&
	       (end = memchr(session->input.data + begin, '\n', session->input.len - begin))) {
		size_t len = (size_t)(end - session->input.data) - begin;

		take_line(session, session->input.data + begin, len);
		begin += len + 1;
	}
	text_consume(&session->input, begin);
}

static void on_session(struct loop_watch *watch, uint32_t events)
{
	struct mcp_session *session = watch->owner;
	char *room;
	ssize_t count;

	if (events & EPOLLOUT)
		write_lines(session);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	room = text_reserve(&session->input, READ_BYTES);
	count = room ? recv(watch->fd, room, READ_BYTES, 0) : 0;
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (count > 0) {
		session->input.len += (size_t)count;
		take_lines(session);
	}
	if (count <= 0 || session->input.len > LINE_MAX_BYTES)
		mcp_end_session(session);
}

/* --- beginning and end -------------------------------------------------------------------------------------- */

/* In the new process. */
static void serve(const struct mcp_session *session, int fd)
{
	struct mcp_options options = session->http->options->server;
	struct error error = {0};

	options.is_behind_http = true;
	options.is_shared = session->kind != SESSION_CLIENT;
	options.only_jar = session->kind == SESSION_JAR ? session->id : NULL;
	signal(SIGCHLD, SIG_DFL);
	if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
		_exit(1);
	sys_close_range(STDERR_FILENO + 1, ~0U);
	_exit(mcp_serve(&options, &error) < 0);
}

static int start_process(struct mcp_session *session)
{
	AUTO_CLOSE int ours = -1, theirs = -1;
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	ours = fds[0];
	theirs = fds[1];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		serve(session, theirs);
	if (loop_add(session->http->loop, &session->watch, ours, EPOLLIN, on_session, session) < 0)
		return -ENOMEM;
	take_fd(&ours);
	return 0;
}

static bool is_busy(const struct mcp_session *session)
{
	for (const struct mcp_connection *connection = session->http->connections; connection;
	     connection = connection->next)
		if (connection->session == session)
			return true;
	return false;
}

/* False: all of them are at work. */
static bool make_room(struct mcp_http *http)
{
	struct mcp_session *oldest = NULL;

	for (struct mcp_session *session = http->sessions; session; session = session->next)
		if (session->kind == SESSION_CLIENT && !session->has_ended && !is_busy(session) &&
		    (!oldest || session->used_ns < oldest->used_ns))
			oldest = session;
	if (oldest)
		mcp_end_session(oldest);
	return oldest;
}

static int make_id(struct mcp_session *session)
{
	if (session->kind == SESSION_CLIENT)
		return mcp_http_make_secret(session->id, sizeof(session->id) - 1);
	return session->kind == SESSION_JAR ? mcp_make_jar_name(session->id) : 0;
}

struct mcp_session *mcp_start_session(struct mcp_http *http, enum mcp_session_kind kind)
{
	struct mcp_session *session;

	if (http->session_counts[kind] >= sessions_max[kind] && (kind != SESSION_CLIENT || !make_room(http)))
		return NULL;
	session = calloc(1, sizeof(*session));
	if (!session)
		return NULL;
	session->http = http;
	session->watch.fd = -1;
	session->kind = kind;
	session->used_ns = clock_ns();
	if (make_id(session) < 0 || (http->loop && start_process(session) < 0)) {
		free(session);
		return NULL;
	}
	session->next = http->sessions;
	http->sessions = session;
	http->session_counts[kind]++;
	return session;
}

struct mcp_session *mcp_find_session(struct mcp_http *http, enum mcp_session_kind kind, struct http_slice id)
{
	for (struct mcp_session *session = http->sessions; session; session = session->next)
		if (!session->has_ended && session->kind == kind && strlen(session->id) == id.len &&
		    (!id.len || !memcmp(session->id, id.bytes, id.len)))
			return session;
	return NULL;
}

struct mcp_session *mcp_session_for(struct mcp_http *http, const struct mcp_message *message)
{
	struct mcp_session *session = NULL;

	if (!message->is_modern)
		return message->is_initialize && !message->session_id.len
			       ? mcp_start_session(http, SESSION_CLIENT)
			       : mcp_find_session(http, SESSION_CLIENT, message->session_id);
	if (message->opens_jar)
		session = mcp_start_session(http, SESSION_JAR);
	else if (message->jar.len)
		session = mcp_find_session(http, SESSION_JAR, message->jar);
	/* The shared one also says that there is no such jar, or that there are too many. */
	if (!session)
		session = mcp_find_session(http, SESSION_SHARED, (struct http_slice){0});
	return session ? session : mcp_start_session(http, SESSION_SHARED);
}

void mcp_end_session(struct mcp_session *session)
{
	static const struct mcp_verdict ended[] = {
		[SESSION_CLIENT] = {404, -32001, "the session has ended"},
		[SESSION_SHARED] = {503, -32000, "the server restarted; try again"},
		[SESSION_JAR] = {404, -32001, "the jar has ended, and its state is gone; jar_open makes another"},
	};

	if (session->has_ended)
		return;
	session->has_ended = true;
	session->http->session_counts[session->kind]--;
	loop_remove(&session->watch);
	close_fd(&session->watch.fd);
	for (struct mcp_connection *connection = session->http->connections; connection; connection = connection->next)
		if (connection->session == session) {
			connection->session = NULL;
			mcp_http_fail(connection, ended[session->kind]);
			mcp_http_take(connection, NULL, 0); /* what waited for that */
		}
}

void mcp_sweep_sessions(struct mcp_http *http)
{
	uint64_t now = clock_ns();

	for (struct mcp_session *session = http->sessions; session; session = session->next)
		if (!session->has_ended && !is_busy(session) && now - session->used_ns > http->options->server.idle_ns)
			mcp_end_session(session);
}

void mcp_free_ended(struct mcp_http *http)
{
	for (struct mcp_session **at = &http->sessions; *at;) {
		struct mcp_session *session = *at;

		if (!session->has_ended) {
			at = &session->next;
			continue;
		}
		*at = session->next;
		text_done(&session->input);
		text_done(&session->output);
		free(session);
	}
}
