/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_options.c - command lines that nobody would type
 *
 * The first byte chooses the command, the rest is split at NULs into words. Words that could name a policy file are
 * dropped, so that the target depends on nothing but its input.
 */
#include <stdlib.h>
#include <string.h>

#include "door/cli/options.h"

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_policy_option(const char *word)
{
	return strncmp(word, "--policy", strlen("--policy")) == 0 ||
	       strncmp(word, "--tighten", strlen("--tighten")) == 0;
}

/* A value for --policy that is no preset is a file, and every value for --tighten is one. */
static bool names_file(const char *word)
{
	size_t len = strlen(word);

	return strchr(word, '/') || (len >= 5 && strcmp(word + len - 5, ".json") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct policy_context context = {.current_directory = "/here", .home = "/home/user"};
	char *words[WORDS_MAX + 1];
	int count = 0;
	bool was_policy_option = false;
	struct run_options options;
	struct error error = {0};
	AUTO_FREE char *bytes = malloc(size + 1);

	if (size < 1 || !bytes)
		return 0;
	memcpy(bytes, data, size);
	bytes[size] = '\0';
	for (char *word = bytes + 1; word < bytes + size && count < WORDS_MAX; word += strlen(word) + 1) {
		bool is_dropped = strncmp(word, "--tighten", strlen("--tighten")) == 0 ||
				  ((was_policy_option || is_policy_option(word)) && names_file(word));

		if (is_dropped)
			continue;
		was_policy_option = is_policy_option(word);
		words[count++] = word;
	}
	words[count] = NULL;
	if (cli_options_parse(cli_commands[data[0] % cli_command_count].command, count, words, &context, &options,
			      &error) < 0) {
		if (error.stage == STAGE_NONE || !error.message[0])
			abort();
		if (options.policy.mounts.items || options.policy.workdir)
			abort();
	} else if (options.command && options.command[options.command_count]) {
		abort();
	}
	cli_options_done(&options);
	return 0;
}
