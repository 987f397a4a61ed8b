/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/main.c - belljar-prove: what `belljar doctor --prove` starts
 *
 * A program of its own, so that the engine has no attack in it. It is linked with the same objects of the engine, and makes its
 * jars with them. Roles:
 *
 *     belljar-prove [--of VERSION] [OPTION...]   make every attempt; the options of `belljar doctor`
 *     belljar-prove --attempt NAME               inside a jar: make one
 *     belljar-prove gate-process                 the gate of a jar
 */
#include <errno.h>
#include <string.h>

#include "base/start.h"
#include "door/cli/message.h"
#include "engine/gate/engine_gate.h"
#include "gate/gate_main.h"
#include "gate/gate_page.h"
#include "prove/prove.h"

#define EXIT_BELLJAR 125

static int fail(const struct messenger *messenger, const struct error *error)
{
	cli_message_error(messenger, error);
	return EXIT_BELLJAR;
}

static int attempt(const char *name, const struct messenger *messenger)
{
	struct error error = {0};
	AUTO_TEXT out = {0};

	return prove_attempt(name, &out, &error) < 0 ? fail(messenger, &error) : cli_print_out(&out, messenger);
}

static int prove(struct engine_doctor_request *request, const struct run_options *options,
		 const struct messenger *messenger)
{
	struct error error = {0};
	AUTO_TEXT out = {0};
	int status, rc;

	request->is_json = options->has_json;
	request->has_color = cli_wants_color(options->color, STDOUT_FILENO);
	request->rung_max = options->prove_rung ? policy_rung_named(options->prove_rung) : RUNG_NAMESPACE;
	status = doctor_engine(request, &out, &error);
	if (status < 0)
		return fail(messenger, &error);
	rc = cli_print_out(&out, messenger);
	return rc ? rc : status;
}

/* The program that starts this one says which version it is of: two of different packages would prove something else. */
static int check_version(const char *wanted, struct error *error)
{
	if (!strcmp(wanted, BELLJAR_VERSION))
		return 0;
	error_set(error, STAGE_ENGINE, 0, "belljar-prove is of version " BELLJAR_VERSION ", and belljar of version %s",
		  wanted);
	return error_hint(error, "install both from one package");
}

int main(int argc, char **argv)
{
	struct engine_doctor_request request = {.environment = environ, .prove = prove_all};
	struct policy_context context = {0};
	struct run_options options = {0};
	struct messenger messenger;
	struct error error = {0};
	int first = 1, rc = 0;

	if (argc == 2 && !strcmp(argv[1], GATE_ARGUMENT))
		return gate_main(NULL);
	start_fill_descriptors();
	start_find_argv_memory(argc, argv, &request.argv_memory, &request.argv_memory_len);
	cli_messenger_init(&messenger, COLOR_AUTO, 0);
	if (argc == 3 && !strcmp(argv[1], "--attempt"))
		return attempt(argv[2], &messenger);
	if (argc > 2 && !strcmp(argv[1], "--of")) {
		rc = check_version(argv[2], &error);
		first = 3;
	}
	if (rc == 0)
		rc = cli_options_parse(COMMAND_DOCTOR, argc - first, argv + first, &context, &options, &error);
	if (rc == 0)
		cli_messenger_init(&messenger, options.color, options.verbosity);
	if (rc == 0 && (options.has_help || options.profile)) {
		rc = error_set(&error, STAGE_USAGE, 0, "belljar-prove makes attempts and nothing else");
		error_hint(&error, "`belljar doctor --prove` starts it");
	}
	rc = rc < 0 ? fail(&messenger, &error) : prove(&request, &options, &messenger);
	cli_options_done(&options);
	return rc;
}
