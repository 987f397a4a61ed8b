/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_policy_print.c - a printed policy is complete and means the same; so does the schema
 */
#include "base/json_read.h"
#include "policy/policy_build.h"
#include "test.h"

static const struct policy_context context = {.current_directory = "/project/dir", .home = "/home/user"};

#define AUTO_POLICY AUTO(policy_done) struct policy

/* Print, load, print again: the same text, compact and indented. */
static void check_round_trip(const struct policy *policy)
{
	for (int indent = 0; indent <= 2; indent += 2) {
		AUTO_TEXT first = {0}, second = {0};
		AUTO_POLICY again = {0};
		struct error error = {0};

		policy_print(policy, &first, indent);
		CHECK_INT(policy_init(&again, &context, &error), 0);
		CHECK_INT(
			policy_load_document(&again, text_string(&first), first.len, "printed", "/", &context, &error),
			0);
		CHECK_STRING(error.message, "");
		policy_print(&again, &second, indent);
		CHECK_STRING(text_string(&second), text_string(&first));
		CHECK_INT(again.workdir_choice, policy->workdir_choice);
	}
}

static void test_agent_is_printed_in_full(void)
{
	AUTO_POLICY policy = {0};
	AUTO_TEXT text = {0};

	CHECK_INT(policy_init(&policy, &context, NULL), 0);
	policy_print(&policy, &text, 0);
	CHECK_STRING(
		text_string(&text),
		"{\"version\":1,\"extends\":\"agent\",\"workdir_mode\":\"rw\",\"workspace\":\"direct\",\"workspace_name\":null,\"cow_dirs\":[],\"cd\":null,\"ro\":[],\"rw\":[],\"hide\":[],\"hide_secrets\":false,"
		"\"tmpfs\":[\"/tmp\",\"/var/tmp\",\"/dev/shm\",\"/run\",\"/home/user\"],\"system\":true,\"toolchains\":true,"
		"\"protect\":true,\"exec\":\"any\",\"speculation\":\"on\",\"machine_facts\":\"few\",\"net\":\"none\",\"allow_net\":[],\"secrets\":[],\"ask\":\"none\",\"ask_timeout\":\"1m\",\"publish\":[],\"hostname\":null,\"pass_env\":[\"PATH\",\"HOME\",\"USER\",\"LOGNAME\","
		"\"LANG\",\"LANGUAGE\",\"LC_*\",\"TERM\",\"COLORTERM\",\"NO_COLOR\",\"SHELL\",\"TMPDIR\",\"TZ\","
		"\"GIT_AUTHOR_*\",\"GIT_COMMITTER_*\"],\"env\":{},\"timeout\":null,\"grace\":\"3s\",\"cpu_time\":null,"
		"\"memory\":null,\"pids\":1024,\"disk\":null,\"file_size\":null,\"fds\":1024,\"core\":\"0\",\"net_connections\":null,\"net_bytes\":null,\"output\":null,"
		"\"overflow\":\"truncate\",\"keep\":\"head\",\"ledger\":\"basic\",\"redact\":[],\"redact_secrets\":false,\"redact_env\":false,"
		"\"rung\":\"landlock\",\"optional\":[]}");
}

static void test_every_preset_survives_printing(void)
{
	for (size_t i = 0; policy_preset_names[i]; i++) {
		AUTO_POLICY policy = {0};

		CHECK_INT(policy_init(&policy, &context, NULL), 0);
		CHECK_INT(policy_load(&policy, policy_preset_names[i], &context, NULL), 0);
		check_round_trip(&policy);
	}
}

static void test_every_key_survives_printing(void)
{
	static const char document[] =
		"{\"workdir\": \"/w\\u00e9\", \"workdir_mode\": \"ro\", \"cd\": \"./~/x\", \"ro\": [\"/a\\\\:b\", {\"path\": \"/c\\\\\", "
		"\"dest\": \"/d:e\", \"optional\": true}, {\"path\": \"/o\", \"optional\": true}, \"/x\\\\\\\\:y\"], \"rw\": [\"/f:/g\", "
		"\"..\"], \"hide\": [\"/h\", \"~\"], \"tmpfs\": [\"/t\\\\/:5M\", \"/u\\\\:v:1K\", \"/z\"], \"system\": false, "
		"\"toolchains\": false, \"protect\": false, \"exec\": \"trusted\", \"speculation\": \"off\", \"machine_facts\": \"none\", \"net\": \"host\", \"hostname\": \"h-1\", \"pass_env\": [\"*\", \"A_*\"], "
		"\"env\": {\"A\": \"x\\ny\\u001b\", \"\\u00e9\": \"\"}, \"timeout\": 0.0000015, \"grace\": 0, \"cpu_time\": \"90s\", "
		"\"memory\": 2000001, \"pids\": 1, \"disk\": \"1.5G\", \"file_size\": \"1T\", \"fds\": null, \"core\": null, "
		"\"output\": 0, \"overflow\": \"kill\", \"keep\": \"both\", \"redact\": [\"abcd\\\"\"], \"redact_secrets\": true, "
		"\"redact_env\": true, \"rung\": \"process\", \"optional\": [\"disk\", \"rung\"]}";
	AUTO_POLICY policy = {0};
	AUTO_TEXT text = {0};
	struct error error = {0};

	CHECK_INT(policy_init(&policy, &context, NULL), 0);
	CHECK_INT(policy_load_document(&policy, document, strlen(document), "p", "/dir", &context, &error), 0);
	CHECK_STRING(error.message, "");
	check_round_trip(&policy);
	policy_print(&policy, &text, 0);
	CHECK(strstr(text_string(&text), "\"timeout\":\"0.0015ms\""));
	CHECK(strstr(text_string(&text), "\"cpu_time\":\"90s\""));
	CHECK(strstr(text_string(&text), "\"disk\":\"1536M\""));
	CHECK(strstr(text_string(&text), "\"tmpfs\":[\"/t\\\\/:5M\",\"/u\\\\:v:1K\",\"/z\"]"));
	CHECK(strstr(text_string(&text), "\"rw\":[{\"path\":\"/f\",\"dest\":\"/g\",\"optional\":false},\"/dir/..\"]"));
}

static void test_output_of_each_stream_survives_printing(void)
{
	AUTO_POLICY policy = {0};
	AUTO_TEXT text = {0};
	struct error error = {0};

	CHECK_INT(policy_init(&policy, &context, NULL), 0);
	CHECK_INT(policy_set_flag(&policy, policy_key_by_name("output"), "stderr=none,stdout=2K", false, &context,
				  &error),
		  0);
	check_round_trip(&policy);
	policy_print(&policy, &text, 0);
	CHECK(strstr(text_string(&text), "\"output\":{\"stdout\":\"2K\",\"stderr\":null},"));
}

static void test_a_private_workdir_is_null(void)
{
	AUTO_POLICY policy = {0};
	AUTO_TEXT text = {0};

	CHECK_INT(policy_init(&policy, &context, NULL), 0);
	CHECK_INT(policy_load(&policy, "strict", &context, NULL), 0);
	policy_print(&policy, &text, 0);
	CHECK(strstr(text_string(&text), "\"workdir\":null,"));
}

static void test_the_schema_has_every_key_and_no_other(void)
{
	AUTO_TEXT text = {0};
	AUTO_JSON schema = {0};
	struct json_input input = {.name = "schema", .stage = STAGE_POLICY};
	const struct json_member *properties;

	policy_print_schema(&text);
	input.bytes = text_string(&text);
	input.len = text.len;
	CHECK_INT(json_parse(&input, &schema, NULL), 0);
	properties = json_find(&schema, "properties");
	CHECK(properties != NULL);
	/* And what a file says of itself: must_allow, must_deny. */
	CHECK_INT(properties->value.object.count, policy_key_count + 2);
	for (size_t i = 0; i < policy_key_count; i++) {
		const struct json_member *property = json_find(&properties->value, policy_keys[i].name);

		CHECK(property && json_find(&property->value, "description"));
	}
	CHECK_STRING(json_find(&schema, "$schema")->value.string.bytes, "https://json-schema.org/draft/2020-12/schema");
	CHECK(!json_find(&schema, "additionalProperties")->value.boolean);
}

static const struct test tests[] = {
	TEST(test_agent_is_printed_in_full),    TEST(test_every_preset_survives_printing),
	TEST(test_every_key_survives_printing), TEST(test_output_of_each_stream_survives_printing),
	TEST(test_a_private_workdir_is_null),   TEST(test_the_schema_has_every_key_and_no_other),
};

TEST_MAIN(tests)
