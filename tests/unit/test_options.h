/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_options.h - parse a command line in a test, and check what came of it
 */
#ifndef BELLJAR_TESTS_UNIT_TEST_OPTIONS_H
#define BELLJAR_TESTS_UNIT_TEST_OPTIONS_H

#include "door/cli/options.h"
#include "test.h"

#define WORDS_MAX 32

static const struct policy_context test_context = {.current_directory = "/here", .home = "/home/user"};

/* What one parse gave; the words stay here, because the options point at them. */
struct parsed {
	char *words[WORDS_MAX + 1];
	int rc;
	struct run_options options;
	struct error error;
};

static inline void parsed_done(struct parsed *parsed)
{
	cli_options_done(&parsed->options);
}

static inline void parse_words(struct parsed *parsed, enum cli_command command, const char *const *words)
{
	int count = 0;

	while (words[count]) {
		parsed->words[count] = (char *)words[count];
		count++;
	}
	parsed->rc = cli_options_parse(command, count, parsed->words, &test_context, &parsed->options, &parsed->error);
}

#define PARSE(command, ...)                                                                                            \
	AUTO(parsed_done) struct parsed parsed = {0};                                                                  \
	parse_words(&parsed, command, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

#define CHECK_CONTAINS(text, part)                                                                                     \
	do {                                                                                                           \
		if (!strstr((text), (part))) {                                                                         \
			printf("%s:%d: \"%s\" is not in \"%s\"\n", __FILE__, __LINE__, (part), (text));                \
			test_failed_checks++;                                                                          \
		}                                                                                                      \
	} while (0)

#define CHECK_PARSED()                                                                                                 \
	do {                                                                                                           \
		CHECK_INT(parsed.rc, 0);                                                                               \
		CHECK_STRING(parsed.error.message, "");                                                                \
	} while (0)

#define CHECK_REFUSED(wanted_stage, message_part, hint_part)                                                           \
	do {                                                                                                           \
		CHECK(parsed.rc < 0);                                                                                  \
		CHECK_INT(parsed.error.stage, wanted_stage);                                                           \
		CHECK_CONTAINS(parsed.error.message, message_part);                                                    \
		CHECK_CONTAINS(parsed.error.hint, hint_part);                                                          \
	} while (0)

#endif
