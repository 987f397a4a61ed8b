/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp.h - a server of the Model Context Protocol: an AI agent's tools, each carried out in a jar
 *
 * The person who starts the server decides what jars may do at most; the agent can only ask for less. The server is a
 * client of an engine of its own, through libbelljar, and never a second way around it.
 */
#ifndef BELLJAR_DOOR_MCP_MCP_H
#define BELLJAR_DOOR_MCP_MCP_H

#include "policy/policy_build.h"

struct redactor;

struct mcp_options {
	const struct policy *policy; /* the most that any jar may do */
	const struct policy_context *context;
	char *const *environment;
	const struct string_list *apply_patterns; /* paths whose changes a model may apply; NULL or empty: none */
	uint64_t idle_ns; /* a jar, or a session of HTTP, is closed after this time without use */
	/* Make the redactor for a jar's output; NULL in *@out: nothing is secret. */
	int (*make_redactor)(const struct policy *policy, char *const *environment, struct redactor **out,
			     struct error *error);
	const char *engine;  /* the program to start as engine; NULL: this one */
	bool is_behind_http; /* lines begin with the number of a request: see door/mcp/http/ */
	bool is_shared; /* by clients that have no session: a call that names no jar has one of its own, and nothing of it stays */
	const char
		*only_jar; /* behind HTTP: the name of the one jar that this process is for, and ends with; NULL: any */
};

/* Serve the client at standard input and output until it hangs up. 0, or a negative errno with the reason. */
int mcp_serve(const struct mcp_options *options, struct error *error);

/* Options of `mcp-wrap`: a third-party server in a jar. */
struct mcp_wrap_options {
	struct mcp_options server;
	char *const *argv;                          /* NULL-terminated */
	const struct string_list *allowed, *denied; /* patterns of tools; no @allowed: all that are not @denied */
	uint64_t answer_bytes_max;                  /* of one message of the server */
	uint64_t rate_max;                          /* messages of the server in a second; LIMIT_NONE: no limit */
	int log_fd;                                 /* a line for each call; -1: no log */
};

/* Relay messages between the client at standard input and output and the server. The server's exit status, or -errno. */
int mcp_wrap(const struct mcp_wrap_options *options, struct error *error);

#endif
