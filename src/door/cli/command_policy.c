/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_policy.c - `plan`, `policy`, `completion` and `help`: print something, run nothing
 */
#include <errno.h>
#include <string.h>

#include "door/cli/command_policy_diff.h"
#include "door/cli/commands.h"
#include "door/cli/completion.h"
#include "door/cli/help.h"
#include "engine/engine_why.h"
#include "policy/policy_document.h"

int cli_command_plan(const struct invocation *invocation, struct run_options *options,
		     const struct messenger *messenger)
{
	struct engine_request request = cli_plan_request_of(invocation, &options->policy);
	struct error error = {0};
	AUTO_TEXT out = {0};

	request.command = options->command;
	request.command_count = options->command_count;
	request.is_shell_string = options->is_shell_string;
	if (engine_plan(&request, options->has_json, &out, &error) < 0) {
		cli_message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	return cli_print_out(&out, messenger);
}

static int show(const struct invocation *invocation, const char *name, const struct messenger *messenger, bool is_shown)
{
	struct policy_context context = cli_context_of(invocation);
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
		cli_message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	return cli_print_out(&out, messenger);
}

static int say_usage(const struct messenger *messenger, const char *words)
{
	struct error error = {0};

	error_set(&error, STAGE_USAGE, 0, "%s", words);
	cli_message_error(messenger, &error);
	return EXIT_BELLJAR;
}

static int diff(const struct invocation *invocation, const struct run_options *options,
		const struct messenger *messenger)
{
	struct policy_context context = cli_context_of(invocation);
	struct error error = {0};
	AUTO_TEXT out = {0};

	if (options->word_count != 3)
		return say_usage(messenger, "say which two policies: `belljar policy diff A B`");
	if (cli_policy_diff(options->words[1], options->words[2], &context, &out, &error) < 0) {
		cli_message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	if (cli_print_out(&out, messenger) != 0)
		return EXIT_BELLJAR;
	return out.len ? 1 : 0;
}

/* The file once more, for what it says of itself. */
static int read_musts(const char *name, const struct policy_context *context, struct policy_must_list *musts,
		      struct error *error)
{
	AUTO_POLICY_FILE file = {0};
	AUTO_FREE char *path = NULL;
	AUTO_JSON document = {0};
	int rc = policy_file_path(name, context, &path, error);

	if (rc == 0)
		rc = policy_file_read(path, name, NULL, &file, error);
	if (rc == 0)
		rc = json_parse(&(struct json_input){.name = name,
						     .bytes = text_string(&file.bytes),
						     .len = file.bytes.len,
						     .stage = STAGE_POLICY},
				&document, error);
	if (rc == 0 && document.type == JSON_OBJECT)
		rc = policy_musts_take(&document, name, musts, error);
	if (rc == 0 && !musts->count) {
		rc = error_set(error, STAGE_POLICY, 0,
			       "%s has neither must_allow nor must_deny: there is nothing to test", name);
		error_hint(error, "\"must_deny\": [\"/etc/shadow read\"]");
	}
	return rc;
}

static int test(const struct invocation *invocation, const char *name, const struct messenger *messenger)
{
	struct policy_context context = cli_context_of(invocation);
	AUTO(policy_musts_done) struct policy_must_list musts = {0};
	AUTO(policy_done) struct policy policy = {0};
	struct engine_request request = cli_question_of(invocation, &policy);
	struct error error = {0};
	AUTO_TEXT out = {0};
	int rc = policy_init(&policy, &context, &error);

	if (rc == 0)
		rc = policy_load(&policy, name, &context, &error);
	if (rc == 0)
		rc = read_musts(name, &context, &musts, &error);
	if (rc == 0)
		rc = engine_test_policy(&request, &musts, name, invocation->home, &out, &error);
	if (rc < 0) {
		cli_message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	return cli_print_out(&out, messenger) == 0 ? rc : EXIT_BELLJAR;
}

int cli_command_policy(const struct invocation *invocation, struct run_options *options,
		       const struct messenger *messenger)
{
	const char *verb = options->words[0], *name = options->word_count > 1 ? options->words[1] : NULL;
	AUTO_TEXT out = {0};

	if (!strcmp(verb, "schema")) {
		policy_print_schema(&out);
		if (out.len && out.data[out.len - 1] != '\n')
			text_append_char(&out, '\n');
		return cli_print_out(&out, messenger);
	}
	if (!strcmp(verb, "diff"))
		return diff(invocation, options, messenger);
	if (options->word_count > 2)
		return say_usage(messenger, "one policy at a time; two are compared by `belljar policy diff A B`");
	if (!strcmp(verb, "test"))
		return name ? test(invocation, name, messenger)
			    : say_usage(messenger, "say which policy file: `belljar policy test FILE`");
	return show(invocation, name, messenger, !strcmp(verb, "show"));
}

int cli_command_completion(const struct invocation *invocation, struct run_options *options,
			   const struct messenger *messenger)
{
	struct error error = {0};
	AUTO_TEXT out = {0};

	(void)invocation;
	if (cli_completion_print(options->words[0], &out, &error) < 0) {
		cli_message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	return cli_print_out(&out, messenger);
}

int cli_command_help(const struct invocation *invocation, struct run_options *options,
		     const struct messenger *messenger)
{
	const struct command_row *row = options->word_count ? cli_command_row_by_name(options->words[0]) : NULL;
	struct error error = {0};
	AUTO_TEXT out = {0};

	(void)invocation;
	if (options->word_count && !row) {
		error_set(&error, STAGE_USAGE, 0, "there is no command '%s'", options->words[0]);
		cli_message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	if (row)
		cli_help_print_command(row->command, &out);
	else
		cli_help_print_overview(&out);
	return cli_print_out(&out, messenger);
}
