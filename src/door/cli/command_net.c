/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_net.c - `net check`: what a gate would decide, and by which rule; runs nothing, asks no server
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "door/cli/commands.h"
#include "engine/engine_why.h"

static bool is_file_name(const char *word)
{
	size_t len = strlen(word);

	/* An address of the web is a host that is written in another way. */
	return !strstr(word, "://") && (strchr(word, '/') || (len > 5 && !strcmp(word + len - 5, ".json")));
}

/* Rules of a file that is named beside options are added to theirs. */
static int add_file(struct policy *policy, const char *name, const struct policy_context *context, struct error *error)
{
	AUTO(policy_done) struct policy file = {0};
	int rc = policy_init(&file, context, error);

	if (rc == 0)
		rc = policy_load(&file, name, context, error);
	if (rc < 0)
		return rc;
	policy->net = MAX_OF(policy->net, file.net);
	for (size_t i = 0; i < file.allow_net.count && rc == 0; i++)
		rc = string_list_add(&policy->allow_net, file.allow_net.items[i]);
	return rc < 0 ? error_set(error, STAGE_ENGINE, ENOMEM, "out of memory") : 0;
}

int cli_command_net(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	const struct policy_context context = cli_context_of(invocation);
	int at = 1, count, rc = 0;
	struct error error = {0};
	bool is_answered = false;
	AUTO_TEXT out = {0};

	if (at < options->word_count && is_file_name(options->words[at]))
		rc = add_file(&options->policy, options->words[at++], &context, &error);
	count = options->word_count - at;
	if (rc == 0 && (count == 1 || count == 3)) {
		const char **words = options->words + at;

		rc = engine_why_host(&options->policy, words[0], count == 3 ? words[1] : NULL,
				     count == 3 ? words[2] : NULL, &is_answered, &out, &error);
	} else if (rc == 0 && count > 1) {
		rc = error_set(&error, STAGE_USAGE, 0, "HOST:PORT is followed by METHOD and PATH, or by nothing");
	}
	if (rc == 0 && !is_answered) {
		rc = error_set(&error, STAGE_USAGE, 0, "say which host, as HOST:PORT");
		error_hint(&error, "`belljar net check --allow-net example.org example.org:443`");
	}
	if (rc < 0) {
		cli_message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	return cli_print_out(&out, messenger) == 0 ? rc : EXIT_BELLJAR;
}
