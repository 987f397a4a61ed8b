/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp/mcp.h - a server of the Model Context Protocol: an AI agent's tools, each carried out in a jar
 *
 * The person who starts the server decides what jars may do at most; the agent can only ask for less. The server is a client of
 * an engine of its own, through libbelljar, and never a second way around it.
 */
#ifndef BELLJAR_MCP_MCP_H
#define BELLJAR_MCP_MCP_H

#include "policy/policy_build.h"

struct mcp_options {
	const struct policy *policy; /* what every jar has at most */
	const struct policy_context *context;
	char *const *environment;
};

/* Serve the client at standard input and output until it hangs up. 0, or a negative errno with the reason. */
int mcp_serve(const struct mcp_options *options, struct error *error);

#endif
