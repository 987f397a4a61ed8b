/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command_doctor.c - `doctor`: what this host can enforce, and how to get more
 */
#include <string.h>

#include "cli/commands.h"
#include "doctor/doctor.h"

/* --rung names the rung to prove; the table of options has checked the word. */
static enum rung rung_of(const char *word)
{
	if (!word || !strcmp(word, "namespace"))
		return RUNG_NAMESPACE;
	return strcmp(word, "landlock") ? RUNG_PROCESS : RUNG_LANDLOCK;
}

int command_doctor(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	struct engine_doctor_request request = {
		.is_json = options->has_json,
		.has_color = wants_color(options->color, STDOUT_FILENO),
		.has_prove = options->has_prove,
		.rung_max = rung_of(options->prove_rung),
		.environment = invocation->environment,
		.argv_memory = invocation->argv_memory,
		.argv_memory_len = invocation->argv_memory_len,
	};
	struct error error = {0};
	AUTO_TEXT out = {0};
	int status, rc;

	if (options->attempt)
		status = engine_attempt(options->attempt, &out, &error);
	else if (options->profile)
		status = engine_doctor_profile(options->profile, &out, &error);
	else
		status = engine_doctor(&request, &out, &error);
	if (status < 0) {
		message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	rc = print_out(&out, messenger);
	return rc ? rc : status;
}
