/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_run.c - the tool `run`: a command line in a jar, several at once if the client likes
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "door/mcp/mcp_server.h"

struct run_call {
	struct mcp_call call;
	struct belljar_handle *handle;
	struct loop_watch watch;
	bool is_own_timeout; /* the call asked for less time than it may have */
};

/* Report the last line as progress. */
static int on_output(void *data, int stream, const void *bytes, size_t len)
{
	struct run_call *run = data;
	const char *text = bytes, *begin;

	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	begin = len ? memrchr(text, '\n', len) : NULL;
	begin = begin ? begin + 1 : text;
	len -= (size_t)(begin - text);
	if (len)
		mcp_progress(&run->call, begin, len > 400 ? 400 : len);
	return 0;
}

const char *mcp_keep_output(struct mcp_jar *jar, const char *stream, const char *bytes, size_t len, char *path,
			    size_t size)
{
	if (len <= MCP_SHOWN_BYTES || !jar || jar->is_for_one_call)
		return NULL;
	snprintf(path, size, "/tmp/belljar-%s-%u.txt", stream, ++jar->output_count);
	return belljar_jar_write_file(jar->jar, path, bytes, len, 0600, NULL) < 0 ? NULL : path;
}

static void end_run(struct run_call *run, int rc, const struct belljar_error *error)
{
	struct belljar_result *ended = rc < 0 ? NULL : belljar_take_result(run->handle);
	AUTO_RESULT told = {0};
	char paths[2][64];

	loop_remove(&run->watch);
	if (ended && !run->call.is_cancelled) {
		struct mcp_piece streams[2] = {{.name = "stdout"}, {.name = "stderr"}};

		streams[0].bytes = belljar_result_stdout(ended, &streams[0].len);
		streams[1].bytes = belljar_result_stderr(ended, &streams[1].len);
		for (size_t i = 0; i < ARRAY_LEN(streams); i++)
			streams[i].path = mcp_keep_output(run->call.jar, streams[i].name, streams[i].bytes,
							  streams[i].len, paths[i], sizeof(paths[i]));
		mcp_tell_run(ended, run->call.jar, streams, run->is_own_timeout, &told);
	} else {
		mcp_say_error(&told, error, "the run was lost");
	}
	mcp_end(&run->call, &told);
	belljar_result_free(ended);
	belljar_free(run->handle);
	free(run);
}

static void on_event(struct loop_watch *watch, uint32_t events)
{
	struct run_call *run = watch->owner;
	struct belljar_error *error = NULL;
	int rc = belljar_process(run->handle, &error);

	if (rc != 0)
		end_run(run, rc, error);
	belljar_error_free(error);
}

static void stop(struct mcp_call *call, bool is_final)
{
	struct run_call *run = (struct run_call *)call;

	if (is_final)
		end_run(run, -1, NULL);
	else
		belljar_cancel(run->handle, SIGTERM);
}

static bool has_bash(void)
{
	return access("/bin/bash", X_OK) == 0;
}

void mcp_tool_run(struct mcp_request *request)
{
	const char *line = NULL, *input = NULL;
	double seconds = 0;
	char timeout[48];
	const char *options[] = {timeout, NULL};
	struct belljar_command command = {.size = sizeof(command), .on_output = on_output};
	const char *const bash[] = {"bash", "-c", NULL, NULL};
	const char *argv[4];
	struct belljar_error *error = NULL;
	struct run_call *run;
	struct mcp_jar *jar;
	uint64_t allowed;
	bool is_alone;
	int rc;

	if (!mcp_string(request, "command", true, &line) || !mcp_string(request, "stdin", false, &input) ||
	    !mcp_number(request, "timeout_seconds", 0.001, 1e6, &seconds))
		return;
	is_alone = mcp_is_alone(request);
	jar = is_alone ? NULL : mcp_find_jar(request);
	if (!jar && !is_alone)
		return;
	run = calloc(1, sizeof(*run));
	if (!run || !mcp_begin(&run->call, request, jar, stop)) {
		free(run);
		return;
	}
	allowed = jar ? jar->timeout_ns : request->server->options->policy->limits.timeout_ns;
	run->is_own_timeout = seconds > 0 && seconds * 1e9 < (double)allowed;
	if (seconds > 0)
		snprintf(timeout, sizeof(timeout), "timeout=%.3fs", seconds);
	memcpy(argv, bash, sizeof(argv));
	argv[0] = has_bash() ? "bash" : "sh";
	argv[2] = line;
	command.argv = argv;
	/* The model's limits; the engine does not let them exceed the server's policy. */
	command.options = seconds > 0 ? options : NULL;
	command.environment = (const char *const *)request->server->options->environment;
	command.input = input;
	command.input_len = input ? strlen(input) : 0;
	command.data = run;
	rc = jar ? belljar_jar_start(jar->jar, &command, &run->handle, &error)
		 : mcp_start_alone(request, &command, &run->handle, &error);
	if (rc < 0 || loop_add(request->server->loop, &run->watch, belljar_fd(run->handle), EPOLLIN, on_event, run) < 0)
		end_run(run, -1, error);
	else
		mcp_progress(&run->call, "started", 7);
	belljar_error_free(error);
}
