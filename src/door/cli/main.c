/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/main.c - belljar: find the command, parse its options, call it
 */
#include <string.h>

#include "base/start.h"
#include "base/suggest.h"
#include "door/cli/commands.h"
#include "door/cli/help.h"
#include "door/cli/learning.h"
#include "door/cli/parent.h"
#include "gate/gate_main.h"
#include "gate/gate_page.h"

struct command_entry {
	enum cli_command command;
	command_function *function;
};

static const struct command_entry entries[] = {
	{COMMAND_RUN, cli_command_run},
	{COMMAND_SHELL, cli_command_shell},
	{COMMAND_PLAN, cli_command_plan},
	{COMMAND_DOCTOR, cli_command_doctor},
	{COMMAND_POLICY, cli_command_policy},
	{COMMAND_COMPLETION, cli_command_completion},
	{COMMAND_HELP, cli_command_help},
	{COMMAND_ENGINE, cli_command_engine},
	{COMMAND_NET, cli_command_net},
	{COMMAND_TRY, cli_command_try},
	{COMMAND_LEARN, cli_command_learn},
	{COMMAND_DIFF, cli_command_diff},
	{COMMAND_APPLY, cli_command_apply},
	{COMMAND_DISCARD, cli_command_discard},
	{COMMAND_WORKSPACE, cli_command_workspace},
	{COMMAND_WHY, cli_command_why},
	{COMMAND_MCP, cli_command_mcp},
	{COMMAND_HOOK, cli_command_hook},
	{COMMAND_MCP_WRAP, cli_command_mcp_wrap},
};

static const char *home_of(char *const *environment)
{
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, "HOME=/", 6))
			return *environment + 5;
	return NULL;
}

/*
 * Everybody may read a command line in /proc, and it can hold secrets: values for --env, the command's own arguments. So it
 * is copied, and of the original only which program and command this is stays.
 */
static int take_arguments(int argc, char **argv, struct string_list *arguments)
{
	int rc = 0;

	for (int i = 0; i < argc && rc == 0; i++)
		rc = string_list_add(arguments, argv[i]);
	for (int i = 2; i < argc; i++)
		memset(argv[i], 0, strlen(argv[i]));
	return rc;
}

/* The result object is due after a usage error too, wherever it was asked for. */
static void write_failure(const struct run_options *options, const struct error *error,
			  const struct messenger *messenger)
{
	AUTO_TEXT line = {0};
	AUTO_TEXT status = {0};

	if (options->has_events && !options->has_json)
		engine_failure_event(error, &line);
	else if (options->has_json)
		engine_failure_result(error, true, &line);
	cli_print_out(&line, messenger);
	if (options->status_fd >= 3) {
		engine_failure_result(error, options->has_json, &status);
		if (write(options->status_fd, status.data, status.len) < 0)
			cli_message_note(messenger, "cannot write the result to descriptor %d", options->status_fd);
	}
}

static int run_command(struct invocation *invocation, const struct command_entry *entry, int argc, char **argv)
{
	struct policy_context context = cli_context_of(invocation);
	struct run_options options;
	struct messenger messenger;
	struct error error = {0};
	AUTO_TEXT help = {0};
	int rc = cli_options_parse(entry->command, argc, argv, &context, &options, &error);

	cli_messenger_init(&messenger, options.color, options.verbosity);
	if (rc == 0 && options.is_dying_with_parent && !options.has_help)
		rc = cli_parent_open(&invocation->parent_fd, &error);
	if (rc == 0 && options.out_path && !options.has_help)
		rc = cli_learning_open(options.out_path, &invocation->out_directory_fd, &error);
	if (rc < 0) {
		write_failure(&options, &error, &messenger);
		cli_message_error(&messenger, &error);
		rc = entry->command == COMMAND_HOOK ? EXIT_HOOK_BLOCKS : EXIT_BELLJAR;
	} else if (options.has_help) {
		cli_help_print_command(entry->command, &help);
		rc = cli_print_out(&help, &messenger);
	} else {
		rc = entry->function(invocation, &options, &messenger);
	}
	cli_options_done(&options);
	return rc;
}

static int usage_error(const struct messenger *messenger, const char *name)
{
	struct suggestion near = {.word = name};
	struct error error = {0};

	for (size_t i = 0; name && i < cli_command_count; i++)
		suggest_consider(&near, cli_commands[i].name);
	if (!name)
		error_set(&error, STAGE_USAGE, 0, "no command given");
	else if (near.best)
		error_set(&error, STAGE_USAGE, 0, "there is no command '%s' (did you mean '%s'?)", name, near.best);
	else
		error_set(&error, STAGE_USAGE, 0, "there is no command '%s'", name);
	error_hint(&error, "`belljar run -- COMMAND` runs a command; `belljar --help` lists the rest");
	cli_message_error(messenger, &error);
	return EXIT_BELLJAR;
}

int main(int argc, char **argv)
{
	struct invocation invocation = {.environment = environ, .out_directory_fd = -1, .parent_fd = -1};
	AUTO_FREE char *current_directory = NULL;
	AUTO_FREE char *home = NULL;
	const struct command_row *row;
	struct messenger messenger;
	AUTO(string_list_done) struct string_list arguments = {0};
	const char *name = argc > 1 ? argv[1] : NULL;
	AUTO_TEXT out = {0};

	/* A role of this program's own, and no command of a user's. */
	if (name && !strcmp(name, GATE_ARGUMENT))
		return gate_main(NULL);
	invocation.has_stdin = start_fill_descriptors();
	invocation.current_directory = current_directory = getcwd(NULL, 0);
	if (home_of(environ))
		invocation.home = home = strdup(home_of(environ));
	start_find_argv_memory(argc, argv, &invocation.argv_memory, &invocation.argv_memory_len);
	cli_messenger_init(&messenger, COLOR_AUTO, 0);
	if (name && (!strcmp(name, "--version") || !strcmp(name, "--help") || !strcmp(name, "-h"))) {
		if (!strcmp(name, "--version"))
			cli_help_print_version(&out);
		else
			cli_help_print_overview(&out);
		return cli_print_out(&out, &messenger);
	}
	row = name ? cli_command_row_by_name(name) : NULL;
	if (!row)
		return usage_error(&messenger, name);
	if (take_arguments(argc, argv, &arguments) < 0)
		return EXIT_BELLJAR;
	for (size_t i = 0; i < ARRAY_LEN(entries); i++)
		if (entries[i].command == row->command)
			return run_command(&invocation, &entries[i], argc - 2, arguments.items + 2);
	return usage_error(&messenger, name);
}
