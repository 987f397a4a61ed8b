/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/programs/launch.c - how long many short runs take when so many at once are under way
 *
 *	launch RUNS LAUNCHERS cli WORD...
 *	launch RUNS LAUNCHERS api BELLJAR [OPTION...]
 *
 * Each launcher is a thread that starts the next run when its last one has ended. Through the API all use one engine, which
 * is started, and has made its first run, before the clock starts. Prints: NANOSECONDS FAILURES.
 */
#include "turns.h"

#include <belljar.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LAUNCHERS_MAX 256

struct launch {
	struct belljar_engine *engine; /* NULL: command lines */
	char *const *words; /* the command line; with an engine: the program's name, then options of each run */
	atomic_int left_count;
	atomic_int failure_count;
};

static int run_api(const struct launch *launch)
{
	static const char *const words[] = {"/bin/true", NULL};
	struct belljar_command command = {.size = sizeof(command), .argv = words};
	struct belljar_result *result = NULL;
	struct belljar_error *error = NULL;
	int status;

	command.options = (const char *const *)(launch->words + 1);
	status = belljar_run(launch->engine, &command, &result, &error);
	if (status < 0)
		fprintf(stderr, "%s\n", belljar_error_message(error));
	else
		status = belljar_result_exit_code(result);
	belljar_result_free(result);
	belljar_error_free(error);
	return status;
}

static void *launcher(void *data)
{
	struct launch *launch = data;

	while (atomic_fetch_sub(&launch->left_count, 1) > 0) {
		int status = launch->engine ? run_api(launch) : spawn_and_wait(launch->words);

		if (status)
			atomic_fetch_add(&launch->failure_count, 1);
	}
	return NULL;
}

static int measure(struct launch *launch, int launcher_count)
{
	pthread_t threads[LAUNCHERS_MAX];
	long long begun = now_ns();

	for (int i = 0; i < launcher_count; i++)
		if (pthread_create(&threads[i], NULL, launcher, launch))
			return 1;
	for (int i = 0; i < launcher_count; i++)
		pthread_join(threads[i], NULL);
	printf("%lld %d\n", now_ns() - begun, atomic_load(&launch->failure_count));
	return 0;
}

static int open_engine(struct launch *launch, const char *program)
{
	struct belljar_engine_options options = {.size = sizeof(options), .program = program};
	struct belljar_error *error = NULL;

	if (belljar_engine_open(&options, &launch->engine, &error) < 0) {
		fprintf(stderr, "%s\n", belljar_error_message(error));
		return 1;
	}
	return run_api(launch);
}

int main(int argc, char **argv)
{
	struct launch launch = {0};
	int launcher_count = argc > 4 ? atoi(argv[2]) : 0, status;

	if (launcher_count < 1 || launcher_count > LAUNCHERS_MAX)
		return 2;
	atomic_store(&launch.left_count, atoi(argv[1]));
	launch.words = argv + 4;
	if (!strcmp(argv[3], "api") && open_engine(&launch, argv[4]))
		return 1;
	status = measure(&launch, launcher_count);
	belljar_engine_close(launch.engine);
	return status;
}
