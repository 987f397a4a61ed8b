/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp.c - lines in, lines out, and the calls that are under way
 *
 * One thread and one loop. Reading stops while too many answers wait, so a client that never reads costs a bounded
 * amount of memory. When the client hangs up, the server ends, and with it the engine and everything in its jars.
 */
#include "door/mcp/mcp_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

#define READ_BYTES ((size_t)64 << 10)
#define HTTP_ACCEPTED 202 /* and no answer will come */

/* --- calls -------------------------------------------------------------------------------------------------- */

bool mcp_begin(struct mcp_call *call, struct mcp_request *request, struct mcp_jar *jar, mcp_stop_function *stop)
{
	struct mcp_server *server = request->server;

	if (server->call_count >= MCP_CALLS_MAX) {
		mcp_refuse(request, "%u calls are under way, and no more are taken; wait for one to end",
			   server->call_count);
		return false;
	}
	call->server = server;
	call->asker = request->asker;
	request->asker = (struct mcp_asker){0};
	call->jar = jar;
	call->stop = stop;
	call->next = server->calls;
	server->calls = call;
	server->call_count++;
	if (jar)
		jar->call_count++;
	return true;
}

void mcp_end(struct mcp_call *call, struct mcp_result *result)
{
	struct mcp_server *server = call->server;

	for (struct mcp_call **at = &server->calls; *at; at = &(*at)->next)
		if (*at == call) {
			*at = call->next;
			break;
		}
	server->call_count--;
	if (call->jar) {
		call->jar->call_count--;
		call->jar->used_ns = clock_ns();
	}
	if (!call->is_cancelled && result)
		mcp_answer(server, &call->asker, result);
	else if (server->options->is_behind_http)
		mcp_send(server, call->asker.exchange, HTTP_ACCEPTED, &(struct text){0});
	mcp_asker_done(&call->asker);
}

void mcp_cancel(struct mcp_server *server, const char *id)
{
	for (struct mcp_call *call = server->calls; call; call = call->next)
		if (!call->is_cancelled && !strcmp(text_string(&call->asker.id), id)) {
			call->is_cancelled = true;
			call->stop(call, false);
			return;
		}
}

static void cancel_exchange(struct mcp_server *server, uint64_t exchange)
{
	for (struct mcp_call *call = server->calls; call; call = call->next)
		if (!call->is_cancelled && call->asker.exchange == exchange) {
			call->is_cancelled = true;
			call->stop(call, false);
			return;
		}
}

/* --- lines -------------------------------------------------------------------------------------------------- */

static void write_output(struct mcp_server *server)
{
	while (server->output.len) {
		ssize_t count = write(server->out_fd, server->output.data, server->output.len);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno != EAGAIN)
			server->is_over = true; /* the client has closed its end */
		if (count < 0)
			break;
		text_consume(&server->output, (size_t)count);
	}
	loop_change(&server->out, server->output.len && !server->is_over ? EPOLLOUT : 0);
	loop_change(&server->in, server->output.len > MCP_QUEUE_MAX ? 0 : EPOLLIN);
}

void mcp_send(struct mcp_server *server, uint64_t exchange, int status, const struct text *line)
{
	if (server->options->is_behind_http)
		text_append_format(&server->output, "%llu %d ", (unsigned long long)exchange, status);
	if (text_failed(line))
		server->is_over = true; /* an answer that is lost would be waited for for ever */
	text_append(&server->output, line->data, line->len);
	text_append_char(&server->output, '\n');
	if (text_failed(&server->output))
		server->is_over = true;
	if (server->loop)
		write_output(server);
}

/* Behind HTTP: the number of a request, a blank and the request; or only the number, to cancel the request. */
static void take_line(struct mcp_server *server, const char *line, size_t len)
{
	uint64_t exchange = 0;
	size_t at = 0;

	server->has_begun = true;
	if (!server->options->is_behind_http) {
		mcp_receive(server, 0, line, len);
		return;
	}
	for (; at < len && line[at] != ' '; at++)
		exchange = exchange * 10 + (uint64_t)(line[at] - '0');
	if (at == len)
		cancel_exchange(server, exchange);
	else
		mcp_receive(server, exchange, line + at + 1, len - at - 1);
}

static void take_lines(struct mcp_server *server)
{
	size_t begin = 0;

	for (;;) {
		const char *from = server->input.data + begin;
		const char *end = server->input.len > begin ? memchr(from, '\n', server->input.len - begin) : NULL;
		size_t len = end ? (size_t)(end - from) : 0;

		if (!end)
			break;
		begin += len + 1;
		if (server->is_skipping)
			server->is_skipping = false;
		else
			take_line(server, from, len);
	}
	text_consume(&server->input, begin);
	if (server->input.len > MCP_LINE_MAX) {
		if (!server->is_skipping)
			take_line(server, server->input.data, server->input.len);
		server->is_skipping = true;
		text_clear(&server->input);
	}
}

static void on_input(struct loop_watch *watch, uint32_t events)
{
	struct mcp_server *server = watch->owner;
	char *room = text_reserve(&server->input, READ_BYTES);
	ssize_t count = room ? read(watch->fd, room, READ_BYTES) : 0;

	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (count <= 0) {
		server->is_over = true;
		return;
	}
	server->input.len += (size_t)count;
	take_lines(server);
}

static void on_output(struct loop_watch *watch, uint32_t events)
{
	struct mcp_server *server = watch->owner;

	if (events & (EPOLLERR | EPOLLHUP))
		server->is_over = true;
	else
		write_output(server);
}

/* --- beginning and end -------------------------------------------------------------------------------------- */

static int begin(struct mcp_server *server, struct error *error)
{
	int rc;

	server->loop = loop_new();
	if (!server->loop)
		return error_set(error, STAGE_ENGINE, errno, "cannot make an event loop: %s", strerror(errno));
	/* This changes the descriptors for other processes too; a client gives a server that it starts pipes of its own. */
	fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
	fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
	rc = loop_add(server->loop, &server->in, STDIN_FILENO, EPOLLIN, on_input, server);
	if (rc == 0)
		rc = loop_add(server->loop, &server->out, STDOUT_FILENO, 0, on_output, server);
	if (rc < 0)
		return error_set(error, STAGE_ENGINE, -rc, "cannot watch standard input and output: %s", strerror(-rc));
	loop_arm(server->loop, &server->sweep, clock_ns() + mcp_sweep_ns(server->options), mcp_sweep, server);
	return 0;
}

static void end(struct mcp_server *server)
{
	while (server->calls) {
		server->calls->is_cancelled = true;
		server->calls->stop(server->calls, true);
	}
	while (server->jars)
		mcp_close_jar(server, server->jars);
	belljar_engine_close(server->engine);
	loop_remove(&server->in);
	loop_remove(&server->out);
	loop_disarm(&server->sweep);
	loop_free(server->loop);
	text_done(&server->input);
	text_done(&server->output);
}

/* The one jar that the process was for was closed, or could not be opened, and that was said. */
static bool is_jar_over(const struct mcp_server *server)
{
	return server->options->only_jar && server->has_begun && !server->jars && !server->calls && !server->output.len;
}

int mcp_serve(const struct mcp_options *options, struct error *error)
{
	struct mcp_server server = {.options = options, .out_fd = STDOUT_FILENO};
	int rc = begin(&server, error);

	signal(SIGPIPE, SIG_IGN);
	while (rc == 0 && !server.is_over) {
		rc = loop_turn(server.loop);
		if (rc < 0)
			error_set(error, STAGE_ENGINE, -rc, "cannot wait for events: %s", strerror(-rc));
		mcp_close_brief_jars(&server);
		server.is_over |= is_jar_over(&server);
	}
	end(&server);
	return rc;
}
