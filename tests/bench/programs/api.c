/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/programs/api.c - time /bin/true through libbelljar: in new, prepared and kept jars, beside a bare posix_spawn
 *
 *	api ROUNDS HEAP_MIB BURST BELLJAR
 *
 * The ways take turns in random order; before each there is a moment for what the engine makes ahead, the same for all. Then
 * there are BURST runs without a pause. A new jar is one whose policy was never seen: every run has another hostname.
 * Prints LABEL, NANOSECONDS of one run, STATUS.
 */
#include "turns.h"

#include <belljar.h>
#include <stdio.h>
#include <unistd.h>

#define IDLE_US 10000

struct host {
	struct belljar_engine *engine;
	struct belljar_jar *jar;
	int run_count;
};

static const char *const words[] = {"/bin/true", NULL};

static int finish(int rc, struct belljar_result *result, struct belljar_error *error)
{
	int status = rc < 0 ? -1 : belljar_result_exit_code(result);

	if (rc < 0)
		fprintf(stderr, "%s\n", belljar_error_message(error));
	else if (status)
		fprintf(stderr, "%s\n", belljar_result_json(result));
	belljar_result_free(result);
	belljar_error_free(error);
	return status;
}

static int run_with(struct host *host, const char *const *options)
{
	struct belljar_command command = {.size = sizeof(command), .argv = words, .options = options};
	struct belljar_result *result = NULL;
	struct belljar_error *error = NULL;
	int rc = belljar_run(host->engine, &command, &result, &error);

	return finish(rc, result, error);
}

static int run_bare(struct host *host)
{
	(void)host;
	return spawn_and_wait((char *const *)words);
}

static int run_new(struct host *host)
{
	char hostname[64];
	const char *const options[] = {hostname, NULL};

	snprintf(hostname, sizeof(hostname), "hostname=h%d-%d", (int)getpid(), host->run_count++);
	return run_with(host, options);
}

static int run_prepared(struct host *host)
{
	return run_with(host, NULL);
}

static int run_kept(struct host *host)
{
	struct belljar_command command = {.size = sizeof(command), .argv = words};
	struct belljar_result *result = NULL;
	struct belljar_error *error = NULL;
	int rc = belljar_jar_run(host->jar, &command, &result, &error);

	return finish(rc, result, error);
}

static const struct way {
	const char *label;
	int (*run)(struct host *host);
} ways[] = {{"bare", run_bare}, {"new", run_new}, {"prepared", run_prepared}, {"kept", run_kept}};

#define WAY_COUNT (int)(sizeof(ways) / sizeof(ways[0]))

static void measure(struct host *host, int rounds, int burst)
{
	int order[WAY_COUNT];

	for (int i = 0; i < WAY_COUNT; i++) {
		order[i] = i;
		ways[i].run(host);
	}
	srand(1);
	for (int round = 0; round < rounds; round++) {
		shuffle(order, WAY_COUNT);
		for (int i = 0; i < WAY_COUNT; i++) {
			const struct way *way = &ways[order[i]];
			long long begun;
			int status = 0;

			usleep(IDLE_US);
			begun = now_ns();
			for (int run = 0; run < burst && !status; run++)
				status = way->run(host);
			printf("%s %lld %d\n", way->label, (now_ns() - begun) / burst, status);
		}
	}
}

/* Memory that is really there: a host that has read much. */
static char *touch_heap(size_t mib)
{
	size_t len = mib << 20;
	char *heap = malloc(len + 1);

	for (size_t i = 0; heap && i < len; i += 4096)
		((volatile char *)heap)[i] = 1;
	return heap;
}

int main(int argc, char **argv)
{
	struct belljar_engine_options engine_options = {.size = sizeof(engine_options)};
	struct belljar_jar_options jar_options = {.size = sizeof(jar_options)};
	struct belljar_error *error = NULL;
	struct host host = {0};
	char *heap;

	if (argc != 5 || atoi(argv[3]) < 1)
		return 2;
	heap = touch_heap((size_t)atoi(argv[2]));
	engine_options.program = argv[4];
	if (!heap || belljar_engine_open(&engine_options, &host.engine, &error) < 0 ||
	    belljar_jar_open(host.engine, &jar_options, &host.jar, &error) < 0) {
		fprintf(stderr, "%s\n", error ? belljar_error_message(error) : "no memory");
		return 1;
	}
	measure(&host, atoi(argv[1]), atoi(argv[3]));
	belljar_jar_close(host.jar);
	belljar_engine_close(host.engine);
	free(heap);
	return 0;
}
