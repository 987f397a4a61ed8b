/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/invocation.h - the arguments and surroundings of the program, and requests made from them
 */
#ifndef BELLJAR_DOOR_CLI_INVOCATION_H
#define BELLJAR_DOOR_CLI_INVOCATION_H

#include "engine/engine.h"
#include "policy/policy_build.h"

/* The state that main() started in. */
struct invocation {
	char *const *environment;
	char *current_directory; /* NULL: it no longer exists */
	char *home;              /* NULL: none */
	char *argv_memory;       /* memory of arguments and environment, which /proc shows */
	size_t argv_memory_len;
	bool has_stdin;       /* descriptor 0 was open */
	int out_directory_fd; /* where --out or --suggest writes; -1: nowhere */
	int parent_fd;        /* readable when the parent process is gone; -1: not asked for */
};

/* Make the context for relative paths and '~', as the caller sees them. */
struct policy_context cli_context_of(const struct invocation *invocation);

/* Make a request for a plan of @policy; nothing is run. */
struct engine_request cli_plan_request_of(const struct invocation *invocation, const struct policy *policy);

/*
 * The same for a question about the jar that a run would have. Planning is optimistic, so the doctor's probes first
 * find the rung that this host can have.
 */
struct engine_request cli_question_of(const struct invocation *invocation, const struct policy *policy);

#endif
