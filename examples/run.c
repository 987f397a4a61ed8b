/* SPDX-License-Identifier: Apache-2.0 */
/*
 * examples/run.c - run COMMAND [ARG...] in a jar for at most ten seconds, show its output as it comes, say how it ended
 *
 *	cc run.c $(pkg-config --cflags --libs libbelljar) -o run && ./run sh -c 'echo hello; id'
 */
#include <belljar.h>
#include <stdio.h>

static int show(void *data, int stream, const void *bytes, size_t len)
{
	FILE *file = stream == BELLJAR_STDERR ? stderr : stdout;

	(void)data;
	return fwrite(bytes, 1, len, file) < len || fflush(file) != 0;
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"timeout=10s", "workdir=none", NULL};
	struct belljar_command command = {.size = sizeof(command)};
	struct belljar_engine *engine = NULL;
	struct belljar_result *result = NULL;
	struct belljar_error *error = NULL;
	int status = 1;

	if (argc < 2) {
		fprintf(stderr, "usage: %s COMMAND [ARG...]\n", argv[0]);
		return 2;
	}
	command.argv = (const char *const *)(argv + 1);
	command.options = options;
	command.on_output = show;
	if (belljar_engine_open(NULL, &engine, &error) < 0 || belljar_run(engine, &command, &result, &error) < 0) {
		fprintf(stderr, "%s: %s\n", belljar_error_stage(error), belljar_error_message(error));
		if (belljar_error_hint(error))
			fprintf(stderr, "hint: %s\n", belljar_error_hint(error));
	} else {
		fprintf(stderr, "%s, exit code %d, rung %s, %.1f ms\n", belljar_result_outcome_name(result),
			belljar_result_exit_code(result), belljar_result_rung(result),
			(double)belljar_result_usage(result, BELLJAR_WALL_US) / 1000);
		status = belljar_result_outcome(result) != BELLJAR_EXITED || belljar_result_exit_code(result) != 0;
	}
	belljar_result_free(result);
	belljar_engine_close(engine);
	belljar_error_free(error);
	return status;
}
