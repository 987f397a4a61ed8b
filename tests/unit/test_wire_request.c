/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_wire_request.c - what the JSON of a request asks for, and what is none
 */
#include "door/wire/request.h"

#include <errno.h>
#include <string.h>

#include "test.h"

static struct error error;

static int parse(enum request_kind kind, const char *json, struct request *out)
{
	error = (struct error){0};
	return wire_request_parse(kind, json, strlen(json), out, &error);
}

static void check_refused(enum request_kind kind, const char *json, enum stage stage)
{
	AUTO_REQUEST request = {0};

	if (parse(kind, json, &request) >= 0)
		printf("%s\n", json);
	CHECK_INT(error.stage, stage);
	CHECK(error.message[0]);
}

static void test_files(void)
{
	AUTO_REQUEST request = {0};

	CHECK_INT(parse(REQUEST_FILE, "{\"version\":2,\"op\":\"rename\",\"path\":\"a\",\"to\":\"b\\udcff\"}", &request),
		  0);
	CHECK_INT(request.operation, REQUEST_RENAME);
	CHECK_STRING(request.path, "a");
	CHECK_STRING(request.to, "b\xff");
	CHECK_INT(request.mode, -1);
	wire_request_done(&request);
	CHECK_INT(parse(REQUEST_FILE, "{\"version\":2,\"op\":\"write\",\"path\":\"a\",\"mode\":384,\"parents\":true}",
			&request),
		  0);
	CHECK(request.operation == REQUEST_WRITE && request.mode == 0600 && request.makes_parents);
	check_refused(REQUEST_FILE, "{\"version\":2,\"path\":\"a\"}", STAGE_ENGINE);
	check_refused(REQUEST_FILE, "{\"version\":2,\"op\":\"read\"}", STAGE_ENGINE);
	check_refused(REQUEST_FILE, "{\"version\":2,\"op\":\"read\",\"path\":null}", STAGE_ENGINE);
	check_refused(REQUEST_FILE, "{\"version\":2,\"op\":\"link\",\"path\":\"a\"}", STAGE_ENGINE);
	check_refused(REQUEST_FILE, "{\"version\":2,\"op\":\"rename\",\"path\":\"a\"}", STAGE_ENGINE);
	check_refused(REQUEST_FILE, "{\"version\":2,\"op\":\"remove\",\"path\":\"a\",\"to\":\"b\"}", STAGE_ENGINE);
	check_refused(REQUEST_FILE, "{\"version\":2,\"op\":\"stat\",\"path\":\"a\",\"recursive\":true}", STAGE_ENGINE);
	check_refused(REQUEST_FILE, "{\"version\":2,\"op\":\"mkdir\",\"path\":\"a\",\"mode\":4096}", STAGE_ENGINE);
	check_refused(REQUEST_FILE, "{\"version\":1,\"op\":\"read\",\"path\":\"a\"}", STAGE_ENGINE);
}

static void test_ports_processes_and_usage(void)
{
	AUTO_REQUEST request = {0};

	CHECK_INT(parse(REQUEST_CONNECT, "{\"version\":2,\"port\":65535}", &request), 0);
	CHECK_INT(request.port, 65535);
	check_refused(REQUEST_CONNECT, "{\"version\":2}", STAGE_ENGINE);
	check_refused(REQUEST_CONNECT, "{\"version\":2,\"port\":65536}", STAGE_ENGINE);
	check_refused(REQUEST_CONNECT, "{\"version\":2,\"port\":80.5}", STAGE_ENGINE);
	wire_request_done(&request);
	CHECK_INT(parse(REQUEST_KILL, "{\"version\":2,\"pid\":7,\"signal\":0}", &request), 0);
	CHECK(request.pid == 7 && request.signal == 0);
	check_refused(REQUEST_KILL, "{\"version\":2,\"pid\":7}", STAGE_ENGINE);
	check_refused(REQUEST_KILL, "{\"version\":2,\"signal\":9}", STAGE_ENGINE);
	check_refused(REQUEST_KILL, "{\"version\":2,\"pid\":-1,\"signal\":9}", STAGE_ENGINE);
	check_refused(REQUEST_KILL, "{\"version\":2,\"pid\":2147483648,\"signal\":9}", STAGE_ENGINE);
	check_refused(REQUEST_KILL, "{\"version\":2,\"pid\":7,\"signal\":65}", STAGE_ENGINE);
	check_refused(REQUEST_PROCESSES, "{}", STAGE_ENGINE);
	check_refused(REQUEST_USAGE, "{\"version\":2,\"pid\":7}", STAGE_ENGINE);
	wire_request_done(&request);
	CHECK_INT(parse(REQUEST_NET, "{\"version\":2,\"op\":\"deny\",\"rule\":\"good.test\"}", &request), 0);
	CHECK(request.change == REQUEST_DENY && request.rule->type == JSON_STRING);
	wire_request_done(&request);
	check_refused(REQUEST_NET, "{\"version\":2,\"op\":\"deny\"}", STAGE_ENGINE);
	check_refused(REQUEST_NET, "{\"version\":2,\"rule\":\"good.test\"}", STAGE_ENGINE);
	check_refused(REQUEST_NET, "{\"version\":2,\"op\":\"read\",\"rule\":\"good.test\"}", STAGE_ENGINE);
}

static void test_orders_about_workspaces(void)
{
	static const char *const bad[] = {
		"{\"version\":2}",
		"{\"version\":2,\"op\":\"merge\"}",
		"{\"version\":2,\"op\":\"fork\"}",
		"{\"version\":2,\"op\":\"fork\",\"count\":0}",
		"{\"version\":2,\"op\":\"fork\",\"count\":257}",
		"{\"version\":2,\"op\":\"show\",\"count\":1}",
		"{\"version\":2,\"op\":\"show\",\"paths\":[\"a\"]}",
		"{\"version\":2,\"op\":\"apply\",\"paths\":[]}",
		"{\"version\":2,\"op\":\"diff\",\"theirs\":[\"a\"]}",
		"{\"version\":2,\"op\":\"apply\",\"merge\":[\"a\"]}",
		"{\"version\":2,\"op\":\"apply\",\"checkpoint\":\"a\"}",
		"{\"version\":2,\"op\":\"apply\",\"paths\":\"a\"}",
		"{\"version\":2,\"op\":\"rollback\",\"note\":\"a\"}",
		"{\"version\":2,\"op\":\"diff\",\"cwd\":\"/\"}",
	};
	AUTO_REQUEST request = {0};

	CHECK_INT(parse(REQUEST_LAYER, "{\"version\":2,\"op\":\"apply\",\"paths\":[\"a\"],\"allow_risky\":[\"b\"]}",
			&request),
		  0);
	CHECK(request.verb == REQUEST_APPLY && !request.id);
	CHECK_STRING(request.paths[0], "a");
	CHECK_STRING(request.risky[0], "b");
	wire_request_done(&request);
	CHECK_INT(parse(REQUEST_WORKSPACE, "{\"version\":2,\"op\":\"fork\",\"id\":\"x\",\"count\":2,\"environ\":[]}",
			&request),
		  0);
	CHECK(request.verb == REQUEST_FORK && request.count == 2);
	check_refused(REQUEST_WORKSPACE, "{\"version\":2,\"op\":\"show\"}", STAGE_ENGINE);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		check_refused(REQUEST_LAYER, bad[i], STAGE_ENGINE);
}

static void test_a_time_to_live_is_a_duration(void)
{
	static const struct {
		const char *json;
		uint64_t ns;
	} good[] = {
		{"{\"version\":2}", LIMIT_NONE},
		{"{\"version\":2,\"ttl\":null}", LIMIT_NONE},
		{"{\"version\":2,\"ttl\":\"1500ms\"}", 1500000000},
		{"{\"version\":2,\"ttl\":2}", 2000000000},
		{"{\"version\":2,\"ttl\":0.25}", 250000000},
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		AUTO_REQUEST request = {0};

		CHECK_INT(parse(REQUEST_OPEN, good[i].json, &request), 0);
		CHECK(request.ttl_ns == good[i].ns);
	}
	check_refused(REQUEST_OPEN, "{\"version\":2,\"ttl\":0}", STAGE_POLICY);
	check_refused(REQUEST_OPEN, "{\"version\":2,\"ttl\":-1}", STAGE_POLICY);
	check_refused(REQUEST_OPEN, "{\"version\":2,\"ttl\":\"\"}", STAGE_POLICY);
	check_refused(REQUEST_OPEN, "{\"version\":2,\"ttl\":[]}", STAGE_POLICY);
	check_refused(REQUEST_OPEN, "{\"version\":2,\"ttl\":\"99999999999999999999h\"}", STAGE_POLICY);
}

static void test_hello_may_be_of_any_version(void)
{
	AUTO_REQUEST request = {0};

	CHECK_INT(parse(REQUEST_HELLO, "{\"version\":77}", &request), 0);
	check_refused(REQUEST_HELLO, "{}", STAGE_ENGINE);
	check_refused(REQUEST_HELLO, "{\"version\":2,\"more\":1}", STAGE_ENGINE);
}

static void test_what_is_left_running_has_no_terminal(void)
{
	AUTO_REQUEST request = {0};

	CHECK_INT(parse(REQUEST_JOIN, "{\"version\":2,\"argv\":[\"x\"],\"detach\":true}", &request), 0);
	CHECK(request.is_detached);
	check_refused(REQUEST_JOIN, "{\"version\":2,\"argv\":[\"x\"],\"detach\":true,\"pty\":true}", STAGE_ENGINE);
	check_refused(REQUEST_JOIN, "{\"version\":2,\"argv\":[\"x\"],\"detach\":true,\"sink\":\"pipes\"}",
		      STAGE_ENGINE);
	check_refused(REQUEST_RUN, "{\"version\":2,\"run\":{\"argv\":[\"x\"],\"detach\":true}}", STAGE_ENGINE);
}

static const struct test tests[] = {
	TEST(test_files),
	TEST(test_ports_processes_and_usage),
	TEST(test_orders_about_workspaces),
	TEST(test_a_time_to_live_is_a_duration),
	TEST(test_hello_may_be_of_any_version),
	TEST(test_what_is_left_running_has_no_terminal),
};

TEST_MAIN(tests)
