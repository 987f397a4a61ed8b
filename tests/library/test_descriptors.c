/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/library/test_descriptors.c - further descriptors for the command, and both streams in one
 */
#include <fcntl.h>

#include "support.h"

static struct belljar_engine *engine;

static void test_further_descriptors_are_3_and_up(void)
{
	struct belljar_command command = COMMAND("sh", "-c", "cat <&3; echo back >&4");
	struct belljar_result *result;
	char buffer[32] = "";
	int in[2], out[2];

	CHECK_INT(pipe2(in, O_CLOEXEC), 0);
	CHECK_INT(pipe2(out, O_CLOEXEC), 0);
	CHECK_INT(write(in[1], "three", 5), 5);
	close(in[1]);
	command.fds = (const int32_t[]){in[0], out[1]};
	command.fd_count = 2;
	result = run(engine, &command);
	check_stdout(result, "three");
	close(out[1]);
	CHECK_INT(read(out[0], buffer, sizeof(buffer) - 1), 5);
	CHECK_STRING(buffer, "back\n");
	belljar_result_free(result);
	close(in[0]);
	close(out[0]);
}

static void test_merged_streams_keep_their_order(void)
{
	struct belljar_command command = COMMAND("echo 1; echo 2 >&2; echo 3");
	struct belljar_result *result;

	command.flags = BELLJAR_SHELL | BELLJAR_MERGE;
	result = run(engine, &command);
	check_stdout(result, "1\n2\n3\n");
	CHECK_STRING(belljar_result_stderr(result, NULL), "");
	belljar_result_free(result);
}

static const struct test tests[] = {
	TEST(test_further_descriptors_are_3_and_up),
	TEST(test_merged_streams_keep_their_order),
};

int main(void)
{
	return library_main(&engine, tests, sizeof(tests) / sizeof(tests[0]));
}
