/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/http/main.c - belljar-mcp-http: the tools of `belljar mcp`, over HTTP
 *
 * It is built and tested, and not installed: HTTP belongs to the service that serves many clients. The engine that its jars are
 * had from is the program beside it, by its own path without "-mcp-http".
 *
 *     belljar-mcp-http [--port PORT] [--token-file FILE] [OPTION...]   the rest: options of `belljar mcp`
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/start.h"
#include "base/units.h"
#include "door/cli/message.h"
#include "engine/engine.h"
#include "door/mcp/http/mcp_http.h"

#define SUFFIX "-mcp-http"

static int find_engine(char *path, size_t size, struct error *error)
{
	ssize_t len = readlink("/proc/self/exe", path, size - 1);
	size_t rest = len > (ssize_t)strlen(SUFFIX) ? (size_t)len - strlen(SUFFIX) : 0;

	path[len > 0 ? len : 0] = '\0';
	if (!rest || strcmp(path + rest, SUFFIX) != 0)
		return error_set(error, STAGE_USAGE, 0,
				 "this program must be called belljar" SUFFIX ", beside the engine belljar");
	path[rest] = '\0';
	return 0;
}

/* Take our own options, each with a value of its own; what is left stays in @argv. Returns how much that is. */
static int take_options(int argc, char **argv, struct mcp_http_options *options, struct error *error)
{
	uint64_t port = 0;
	int count = 0;

	for (int i = 0; i < argc; i++) {
		bool is_port = !strcmp(argv[i], "--port");

		if (!is_port && strcmp(argv[i], "--token-file") != 0)
			argv[count++] = argv[i];
		else if (++i == argc)
			return error_set(error, STAGE_USAGE, 0, "%s needs a value", argv[i - 1]);
		else if (is_port && (units_parse_count(argv[i], &port) < 0 || port > UINT16_MAX))
			return error_set(error, STAGE_USAGE, 0, "--port must be a port, up to 65535");
		else if (!is_port)
			options->token_path = argv[i];
	}
	options->port = (uint16_t)port;
	argv[count] = NULL;
	return count;
}

static int serve(struct mcp_http_options *http, struct run_options *options, const struct policy_context *context,
		 struct error *error)
{
	http->server.policy = &options->policy;
	http->server.context = context;
	http->server.environment = environ;
	http->server.apply_patterns = &options->apply_patterns;
	http->server.idle_ns = options->idle_ns;
	http->server.make_redactor = engine_make_redactor;
	if (!options->apply_patterns.count || options->policy.workspace == WORKSPACE_COW)
		return mcp_serve_http(http, error);
	error_set(error, STAGE_USAGE, 0, "--allow-apply is for jars that write to a layer");
	return error_hint(error, "add --cow");
}

int main(int argc, char **argv)
{
	AUTO_FREE char *current_directory = getcwd(NULL, 0);
	const char *home = getenv("HOME");
	struct policy_context context = {.current_directory = current_directory,
					 .home = home && home[0] == '/' ? home : NULL};
	struct mcp_http_options http = {.port = 0};
	struct run_options options = {0};
	struct messenger messenger;
	struct error error = {0};
	char engine[PATH_MAX];
	int rc;

	start_fill_descriptors();
	cli_messenger_init(&messenger, COLOR_AUTO, 0);
	rc = find_engine(engine, sizeof(engine), &error);
	http.server.engine = engine;
	if (rc == 0)
		rc = take_options(argc - 1, argv + 1, &http, &error);
	if (rc >= 0)
		rc = cli_options_parse(COMMAND_MCP, rc, argv + 1, &context, &options, &error);
	if (rc == 0 && options.has_help)
		rc = error_set(&error, STAGE_USAGE, 0,
			       "its options are --port PORT, --token-file FILE, and those of `belljar mcp`");
	if (rc == 0)
		rc = serve(&http, &options, &context, &error);
	cli_options_done(&options);
	cli_message_error(&messenger, &error);
	return rc < 0 ? EXIT_BELLJAR : 0;
}
