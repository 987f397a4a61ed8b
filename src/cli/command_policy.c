/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command_policy.c - `plan`, `policy`, `completion` and `help`: print something, run nothing
 */
#include <errno.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/help.h"

static struct policy_context context_of(const struct invocation *invocation)
{
	return (struct policy_context){
		.current_directory = invocation->current_directory ? invocation->current_directory : "/",
		.home = invocation->home,
	};
}

int command_plan(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	struct engine_request request = {
		.policy = &options->policy,
		.command = options->command,
		.command_count = options->command_count,
		.is_shell_string = options->is_shell_string,
		.mode = ENGINE_PASS,
		.status_fd = -1,
		.stdin_choice = ENGINE_STDIN_NULL,
		.stdin_fd = -1,
		.environment = invocation->environment,
		.current_directory = invocation->current_directory,
	};
	struct error error = {0};
	AUTO_TEXT out = {0};

	if (engine_plan(&request, options->has_json, &out, &error) < 0) {
		message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	return print_out(&out, messenger);
}

static int show(const struct invocation *invocation, const char *name, const struct messenger *messenger, bool is_shown)
{
	struct policy_context context = context_of(invocation);
	struct policy policy;
	struct error error = {0};
	AUTO_TEXT out = {0};
	int rc = policy_init(&policy, &context, &error);

	if (rc == 0 && name)
		rc = policy_load(&policy, name, &context, &error);
	if (rc == 0 && is_shown) {
		policy_print(&policy, &out, 2);
		if (out.len && out.data[out.len - 1] != '\n')
			text_append_char(&out, '\n');
	}
	policy_done(&policy);
	if (rc < 0) {
		message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	return print_out(&out, messenger);
}

int command_policy(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	const char *verb = options->words[0], *name = options->word_count > 1 ? options->words[1] : NULL;
	AUTO_TEXT out = {0};

	if (!strcmp(verb, "schema")) {
		policy_print_schema(&out);
		if (out.len && out.data[out.len - 1] != '\n')
			text_append_char(&out, '\n');
		return print_out(&out, messenger);
	}
	return show(invocation, name, messenger, !strcmp(verb, "show"));
}

int command_completion(const struct invocation *invocation, struct run_options *options,
		       const struct messenger *messenger)
{
	struct error error = {0};
	AUTO_TEXT out = {0};

	(void)invocation;
	if (completion_print(options->words[0], &out, &error) < 0) {
		message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	return print_out(&out, messenger);
}

int command_help(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	const struct command_row *row = options->word_count ? command_row_by_name(options->words[0]) : NULL;
	struct error error = {0};
	AUTO_TEXT out = {0};

	(void)invocation;
	if (options->word_count && !row) {
		error_set(&error, STAGE_USAGE, 0, "there is no command '%s'", options->words[0]);
		message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	if (row)
		help_print_command(row->command, &out);
	else
		help_print_overview(&out);
	return print_out(&out, messenger);
}
