/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/commands.h - one function per command; main.c has the table
 */
#ifndef BELLJAR_CLI_COMMANDS_H
#define BELLJAR_CLI_COMMANDS_H

#include "cli/invocation.h"
#include "cli/message.h"
#include "cli/options.h"

/* Each returns what the process exits with. @options is parsed; the messenger is ready. */
typedef int command_function(const struct invocation *invocation, struct run_options *options,
			     const struct messenger *messenger);

int command_run(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_shell(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_plan(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_policy(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_net(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_why(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_mcp(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_mcp_wrap(const struct invocation *invocation, struct run_options *options,
		     const struct messenger *messenger);
int command_hook(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_doctor(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_completion(const struct invocation *invocation, struct run_options *options,
		       const struct messenger *messenger);
int command_try(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_learn(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_diff(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_apply(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_discard(const struct invocation *invocation, struct run_options *options,
		    const struct messenger *messenger);
int command_workspace(const struct invocation *invocation, struct run_options *options,
		      const struct messenger *messenger);
int command_engine(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);
int command_help(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger);

/* With any other failure an agent would go on, and run the command as it is. */
#define EXIT_HOOK_BLOCKS 2

#endif
