/* SPDX-License-Identifier: Apache-2.0 */
/*
 * examples/workspace.c - run COMMAND [ARG...] over this directory, show what it would change, and take it over if it went well
 *
 *	cc workspace.c $(pkg-config --cflags --libs libbelljar) -o try && ./try sh -c 'echo hello > new'
 */
#include <belljar.h>
#include <stdio.h>
#include <stdlib.h>

/* What the command changed: shown, then applied or dropped. */
static int decide(struct belljar_jar *jar, int has_succeeded, struct belljar_error **error)
{
	struct belljar_workspace *workspace = NULL;
	char *patch = NULL;
	size_t len = 0;
	int rc = belljar_jar_workspace(jar, &workspace, error);

	if (rc == 0)
		rc = belljar_workspace_patch(workspace, NULL, &patch, &len, error);
	if (rc == 0)
		fwrite(patch, 1, len, stdout);
	if (rc == 0 && has_succeeded)
		rc = belljar_workspace_apply(workspace, NULL, NULL, error);
	else if (rc == 0)
		rc = belljar_workspace_discard(workspace, NULL, NULL, error);
	free(patch);
	belljar_workspace_free(workspace);
	return rc;
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"workspace=cow", NULL};
	struct belljar_jar_options policy = {.size = sizeof(policy), .options = options};
	struct belljar_command command = {.size = sizeof(command), .argv = (const char *const *)(argv + 1)};
	struct belljar_engine *engine = NULL;
	struct belljar_jar *jar = NULL;
	struct belljar_result *result = NULL;
	struct belljar_error *error = NULL;
	int rc;

	if (argc < 2) {
		fprintf(stderr, "usage: %s COMMAND [ARG...]\n", argv[0]);
		return 2;
	}
	rc = belljar_engine_open(NULL, &engine, &error);
	if (rc == 0)
		rc = belljar_jar_open(engine, &policy, &jar, &error);
	if (rc == 0)
		rc = belljar_jar_run(jar, &command, &result, &error);
	if (rc == 0)
		rc = decide(jar, belljar_result_exit_code(result) == 0, &error);
	if (rc < 0)
		fprintf(stderr, "%s: %s\n", belljar_error_stage(error), belljar_error_message(error));
	else if (rc > 0)
		fprintf(stderr, "something was not applied: see belljar diff\n");
	belljar_result_free(result);
	belljar_jar_close(jar);
	belljar_engine_close(engine);
	belljar_error_free(error);
	return rc != 0;
}
