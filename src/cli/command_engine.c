/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command_engine.c - `engine`: serve one client program
 */
#include "cli/commands.h"
#include "serve/serve_door.h"

/* Where the client puts its socket. */
#define ROOT_FD 3

int command_engine(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	struct engine_serve_request request = {
		.door_fd = options->has_stdio ? -1 : ROOT_FD,
		.environment = invocation->environment,
		.argv_memory = invocation->argv_memory,
		.argv_memory_len = invocation->argv_memory_len,
	};
	struct error error = {0};

	if (engine_serve(&request, &error) == 0)
		return 0;
	message_error(messenger, &error);
	return EXIT_BELLJAR;
}
