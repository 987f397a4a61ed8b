/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_doctor.c - `doctor`: what this host can enforce, and how to get more
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/start.h"
#include "door/cli/commands.h"
#include "doctor/doctor.h"

/* Become belljar-prove, which lies beside this program. It is looked for nowhere else: it must be the one that was installed with us. */
static int become_prove(const struct run_options *options, struct error *error)
{
	static const char *const colors[] = {
		[COLOR_AUTO] = "--color=auto", [COLOR_ALWAYS] = "--color=always", [COLOR_NEVER] = "--color=never"};
	char program[PATH_MAX + sizeof(PROVE_SUFFIX)];
	ssize_t len = readlink("/proc/self/exe", program, PATH_MAX);
	const char *arguments[8] = {"belljar-prove", "--of", BELLJAR_VERSION, colors[options->color]};
	size_t count = 4;

	if (len < 0)
		return error_set(error, STAGE_ENGINE, errno, "cannot find this program: %s", strerror(errno));
	if (options->has_json)
		arguments[count++] = "--json";
	if (options->prove_rung) {
		arguments[count++] = "--rung";
		arguments[count++] = options->prove_rung;
	}
	memcpy(program + len, PROVE_SUFFIX, sizeof(PROVE_SUFFIX));
	execv(program, (char *const *)arguments);
	error_set(error, STAGE_ENGINE, errno, "cannot run the program that makes the attempts, '%s': %s", program,
		  strerror(errno));
	return error_hint(error, "belljar-prove is installed beside belljar; in Belljar's source: ./dev build release");
}

int cli_command_doctor(const struct invocation *invocation, struct run_options *options,
		       const struct messenger *messenger)
{
	struct engine_doctor_request request = {
		.is_json = options->has_json,
		.has_color = cli_wants_color(options->color, STDOUT_FILENO),
		.environment = invocation->environment,
		.argv_memory = invocation->argv_memory,
		.argv_memory_len = invocation->argv_memory_len,
	};
	struct error error = {0};
	AUTO_TEXT out = {0};
	int status, rc;

	if (options->profile)
		status = doctor_profile(options->profile, &out, &error);
	else if (options->has_prove)
		status = become_prove(options, &error);
	else
		status = doctor_engine(&request, &out, &error);
	if (status < 0) {
		cli_message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	rc = cli_print_out(&out, messenger);
	return rc ? rc : status;
}
