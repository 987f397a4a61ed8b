/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command_mcp.c - `mcp`: give an AI agent tools that work in jars, over the Model Context Protocol
 */
#include "cli/commands.h"
#include "mcp/mcp.h"

int command_mcp(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	struct policy_context context = {
		.current_directory = invocation->current_directory ? invocation->current_directory : "/",
		.home = invocation->home,
	};
	struct mcp_options server = {
		.policy = &options->policy, .context = &context, .environment = invocation->environment};
	struct error error = {0};

	if (mcp_serve(&server, &error) == 0)
		return 0;
	message_error(messenger, &error);
	return EXIT_BELLJAR;
}
