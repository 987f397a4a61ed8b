/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_mcp.c - `mcp`: give an AI agent tools that work in jars, over the Model Context Protocol; `mcp-wrap`: run
 * another such server in a jar
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "door/cli/commands.h"
#include "engine/engine.h"
#include "door/mcp/mcp.h"

int cli_command_mcp(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	struct policy_context context = cli_context_of(invocation);
	struct mcp_options server = {
		.policy = &options->policy,
		.context = &context,
		.environment = invocation->environment,
		.apply_patterns = &options->apply_patterns,
		.idle_ns = options->idle_ns,
		.make_redactor = engine_make_redactor,
	};
	struct error error = {0};

	if (options->apply_patterns.count && options->policy.workspace != WORKSPACE_COW) {
		error_set(&error, STAGE_USAGE, 0, "--allow-apply is for jars that write to a layer");
		error_hint(&error, "add --cow");
	} else if (mcp_serve(&server, &error) == 0) {
		return 0;
	}
	cli_message_error(messenger, &error);
	return EXIT_BELLJAR;
}

int cli_command_mcp_wrap(const struct invocation *invocation, struct run_options *options,
			 const struct messenger *messenger)
{
	struct policy_context context = cli_context_of(invocation);
	AUTO_CLOSE int log_fd = -1;
	struct mcp_wrap_options wrap = {
		.server = {.policy = &options->policy, .context = &context, .environment = invocation->environment},
		.argv = options->command,
		.allowed = &options->allowed_tools,
		.denied = &options->denied_tools,
		.answer_bytes_max = options->answer_bytes_max,
		.rate_max = options->rate_max,
		.log_fd = -1,
	};
	struct error error = {0};
	int rc = 0;

	if (options->log_path) {
		log_fd = open(options->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
		wrap.log_fd = log_fd;
		if (log_fd < 0)
			rc = error_set(&error, STAGE_USAGE, errno, "cannot open the log '%s': %s", options->log_path,
				       strerror(errno));
	}
	if (rc == 0)
		rc = mcp_wrap(&wrap, &error);
	if (rc >= 0)
		return rc;
	cli_message_error(messenger, &error);
	return EXIT_BELLJAR;
}
