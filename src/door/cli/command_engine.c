/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_engine.c - `engine`: serve one client program
 */
#include "door/cli/commands.h"
#include "door/serve/serve_door.h"

/* The descriptor of the client's socket. */
#define ROOT_FD 3

int cli_command_engine(const struct invocation *invocation, struct run_options *options,
		       const struct messenger *messenger)
{
	struct engine_serve_request request = {
		.door_fd = options->has_stdio ? -1 : ROOT_FD,
		.environment = invocation->environment,
		.argv_memory = invocation->argv_memory,
		.argv_memory_len = invocation->argv_memory_len,
	};
	struct error error = {0};

	if (serve_engine(&request, &error) == 0)
		return 0;
	cli_message_error(messenger, &error);
	return EXIT_BELLJAR;
}
