/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/library/support.h - what the tests of libbelljar share: an engine, short ways to run something
 *
 * The engine is the program in $BELLJAR_BIN, as for any host.
 */
#ifndef BELLJAR_TESTS_LIBRARY_SUPPORT_H
#define BELLJAR_TESTS_LIBRARY_SUPPORT_H

#include <belljar.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit/test.h"

#define COMMAND(...)                                                                                                   \
	(struct belljar_command)                                                                                       \
	{                                                                                                              \
		.size = sizeof(struct belljar_command), .argv = (const char *const[]){__VA_ARGS__, NULL},              \
		.options = plain_options                                                                               \
	}

/* Not every test's current directory is fit to be a workdir. */
static const char *const plain_options[] = {"workdir=none", NULL};

static inline struct belljar_engine *open_engine(void)
{
	struct belljar_error *error = NULL;
	struct belljar_engine *engine = NULL;

	if (belljar_engine_open(NULL, &engine, &error) < 0) {
		printf("cannot open the engine: %s\n", belljar_error_message(error));
		exit(1);
	}
	return engine;
}

/* Run it; a failure is reported as a failed check. */
static inline struct belljar_result *run(struct belljar_engine *engine, const struct belljar_command *command)
{
	struct belljar_error *error = NULL;
	struct belljar_result *result = NULL;
	int rc = belljar_run(engine, command, &result, &error);

	if (rc < 0)
		printf("%s: %s\n", belljar_error_stage(error), belljar_error_message(error));
	CHECK_INT(rc, 0);
	belljar_error_free(error);
	return result;
}

static inline struct belljar_handle *start(struct belljar_engine *engine, const struct belljar_command *command)
{
	struct belljar_error *error = NULL;
	struct belljar_handle *handle = NULL;
	int rc = belljar_start(engine, command, &handle, &error);

	if (rc < 0)
		printf("%s: %s\n", belljar_error_stage(error), belljar_error_message(error));
	CHECK_INT(rc, 0);
	belljar_error_free(error);
	return handle;
}

/* Wait for the end of a run; frees the handle. */
static inline struct belljar_result *finish(struct belljar_handle *handle)
{
	struct belljar_error *error = NULL;
	struct belljar_result *result;
	int rc = belljar_wait(handle, -1, &error);

	if (rc < 0)
		printf("%s: %s\n", belljar_error_stage(error), belljar_error_message(error));
	CHECK_INT(rc, 1);
	result = belljar_take_result(handle);
	belljar_free(handle);
	belljar_error_free(error);
	return result;
}

static inline void check_stdout(const struct belljar_result *result, const char *expected)
{
	CHECK_STRING(belljar_result_stdout(result, NULL), expected);
}

static inline size_t open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static inline bool has_children(void)
{
	return waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* Run the tests with one engine; afterwards no descriptor and no process may be left. */
static inline int library_main(struct belljar_engine **engine, const struct test *tests, size_t count)
{
	size_t before = open_descriptors();
	bool is_clean;
	int rc;

	setlinebuf(stdout);
	*engine = open_engine();
	rc = test_main(tests, count);
	belljar_engine_close(*engine);
	is_clean = open_descriptors() == before && !has_children();
	printf("%s nothing_is_left\n", is_clean ? "ok" : "FAIL");
	return rc || !is_clean;
}

/* A test that changes its own process does so in a child; its checks count here. */
static inline void in_child(void (*function)(void))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		test_failed_checks = 0;
		function();
		fflush(stdout);
		_exit(test_failed_checks ? 1 : 0);
	}
	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

#endif
