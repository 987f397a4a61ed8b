/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/commands.h - one function per command; main.c has the table
 */
#ifndef BELLJAR_DOOR_CLI_COMMANDS_H
#define BELLJAR_DOOR_CLI_COMMANDS_H

#include "door/cli/invocation.h"
#include "door/cli/message.h"
#include "door/cli/options.h"

/* Each returns what the process exits with. @options is parsed; the messenger is ready. */
typedef int command_function(const struct invocation *invocation, struct run_options *options,
			     const struct messenger *messenger);

int cli_command_run(const struct invocation *invocation, struct run_options *options,
		    const struct messenger *messenger);
int cli_command_shell(const struct invocation *invocation, struct run_options *options,
		      const struct messenger *messenger);
int cli_command_plan(const struct invocation *invocation, struct run_options *options,
		     const struct messenger *messenger);
int cli_command_policy(const struct invocation *invocation, struct run_options *options,
		       const struct messenger *messenger);
int cli_command_net(const struct invocation *invocation, struct run_options *options,
		    const struct messenger *messenger);
int cli_command_why(const struct invocation *invocation, struct run_options *options,
		    const struct messenger *messenger);
int cli_command_mcp(const struct invocation *invocation, struct run_options *options,
		    const struct messenger *messenger);
int cli_command_mcp_wrap(const struct invocation *invocation, struct run_options *options,
			 const struct messenger *messenger);
int cli_command_hook(const struct invocation *invocation, struct run_options *options,
		     const struct messenger *messenger);
int cli_command_doctor(const struct invocation *invocation, struct run_options *options,
		       const struct messenger *messenger);
int cli_command_completion(const struct invocation *invocation, struct run_options *options,
			   const struct messenger *messenger);
int cli_command_try(const struct invocation *invocation, struct run_options *options,
		    const struct messenger *messenger);
int cli_command_learn(const struct invocation *invocation, struct run_options *options,
		      const struct messenger *messenger);
int cli_command_diff(const struct invocation *invocation, struct run_options *options,
		     const struct messenger *messenger);
int cli_command_apply(const struct invocation *invocation, struct run_options *options,
		      const struct messenger *messenger);
int cli_command_discard(const struct invocation *invocation, struct run_options *options,
			const struct messenger *messenger);
int cli_command_workspace(const struct invocation *invocation, struct run_options *options,
			  const struct messenger *messenger);
int cli_command_engine(const struct invocation *invocation, struct run_options *options,
		       const struct messenger *messenger);
int cli_command_help(const struct invocation *invocation, struct run_options *options,
		     const struct messenger *messenger);

/* With any other failure an agent would go on, and run the command as it is. */
#define EXIT_HOOK_BLOCKS 2

#endif
