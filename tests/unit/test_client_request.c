/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_client_request.c - requests as the engine's own parser reads them, and options against the table of keys
 */
#include "client/client_request.h"

#include <errno.h>

#include "policy/policy_keys.h"
#include "test.h"
#include "door/wire/request.h"

static const char *const argv[] = {"sh", "-c", "true", NULL};

static enum client_shape shape_for(enum policy_type type)
{
	switch (type) {
	case POLICY_BOOL:
	case POLICY_DURATION:
	case POLICY_SIZE:
	case POLICY_COUNT:
	case POLICY_OUTPUT:
	case POLICY_VERSION:
	case POLICY_EXTENDS:
		return SHAPE_VALUE;
	case POLICY_WORD:
	case POLICY_SWITCH:
	case POLICY_STRING:
	case POLICY_PATH:
		return SHAPE_WORD;
	case POLICY_WORKDIR:
		return SHAPE_WORKDIR;
	case POLICY_ENV:
		return SHAPE_VARIABLES;
	case POLICY_MOUNTS:
	case POLICY_PATHS:
	case POLICY_PATTERNS:
	case POLICY_TMPFS:
	case POLICY_RULES:
	case POLICY_PORTS:
	case POLICY_SECRETS:
	case POLICY_STRINGS:
	case POLICY_NAMES:
	case POLICY_GUARANTEES:
		return SHAPE_LIST;
	}
	return SHAPE_VALUE;
}

static void test_every_key_has_the_right_shape(void)
{
	for (size_t i = 0; i < policy_key_count; i++) {
		const struct policy_key *key = &policy_keys[i];

		if (client_option_shape(key->name, strlen(key->name)) != shape_for(key->type)) {
			printf("the key %s has another shape in client/client_request.c\n", key->name);
			CHECK(false);
		}
	}
}

static void test_the_engine_reads_what_is_written(void)
{
	struct belljar_command command = {.size = sizeof(command),
					  .argv = argv,
					  .policy = "agent",
					  .directory = "/some\xff/where",
					  .environment = (const char *const[]){"A=\x80", NULL},
					  .flags = BELLJAR_PTY | BELLJAR_MERGE | BELLJAR_NO_CAPTURE,
					  .rows = 7};
	struct belljar_error failure = {0};
	struct client_request request;
	struct request read;
	struct error error = {0};

	CHECK_INT(client_request_run(&request, &command, &(struct client_run_request){0}, &failure), 0);
	CHECK_INT(wire_request_parse(REQUEST_RUN, request.json.data, request.json.len, &read, &error), 0);
	CHECK_STRING(error.message, "");
	CHECK_STRING(read.policy->string.bytes, "agent");
	CHECK_STRING(read.cwd, "/some\xff/where");
	CHECK_STRING(read.environment[0], "A=\x80");
	CHECK_STRING(read.argv[2], "true");
	CHECK(read.has_pty && read.is_merged && !read.is_captured);
	CHECK(!read.is_start_told);
	CHECK_INT(read.rows, 7);
	CHECK_INT(read.columns, 80);
	CHECK_INT(wire_request_descriptors(&read), request.fd_count);
	wire_request_done(&read);
	client_request_done(&request);
}

static void check_keys(const char *const *options, const char *expected)
{
	struct belljar_command command = {.size = sizeof(command), .argv = argv, .options = options};
	struct belljar_error failure = {0};
	struct client_request request;
	const char *keys;

	CHECK_INT(client_request_run(&request, &command, &(struct client_run_request){0}, &failure), 0);
	keys = strstr(request.json.data, "\"keys\":");
	if (!keys || strncmp(keys + 7, expected, strlen(expected)) != 0) {
		printf("%.200s\nis not %s\n", keys ? keys : "no keys", expected);
		CHECK(false);
	}
	client_request_done(&request);
}

static void test_options_become_json(void)
{
	check_keys((const char *const[]){"timeout=5s", "pids=64", "memory=none", "system=false", "cpu_time=1.5", NULL},
		   "{\"timeout\":\"5s\",\"pids\":64,\"memory\":null,\"system\":false,\"cpu_time\":\"1.5\"},");
	check_keys((const char *const[]){"ro=/a", "timeout=1", "ro=/b:/c", "timeout=2", NULL},
		   "{\"ro\":[\"/a\",\"/b:/c\"],\"timeout\":2},");
	check_keys((const char *const[]){"env=A=1", "env=B=x=y", "env=A=2", "net=none", "hostname=12", NULL},
		   "{\"env\":{\"B\":\"x=y\",\"A\":\"2\"},\"net\":\"none\",\"hostname\":\"12\"},");
	check_keys((const char *const[]){"workdir=none", "pids=007", NULL}, "{\"workdir\":null,\"pids\":\"007\"},");
	check_keys(NULL, "{},");
}

static const struct test tests[] = {
	TEST(test_every_key_has_the_right_shape),
	TEST(test_the_engine_reads_what_is_written),
	TEST(test_options_become_json),
};

TEST_MAIN(tests)
