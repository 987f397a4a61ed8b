/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_gate_message.c - messages between a gate and its engine: whole, from the right side, or none
 */
#include "gate/gate_message.h"
#include "test.h"

static size_t write_rule(const char *text, uint8_t out[GATE_MESSAGE_MAX])
{
	struct gate_message message = {.kind = GATE_RULE, .number = 7};
	struct net_refusal refusal;

	CHECK_INT(net_rule_parse(text, &message.rule, &refusal), 0);
	return gate_message_write(&message, out);
}

static void test_a_rule_arrives_as_it_was_sent(void)
{
	static const char *const texts[] = {"good.test:443", "*.good.test", "10.0.0.0/8:1-2,9", "[2001:db8::/32]:443",
					    "{\"host\":\"good.test\",\"deny\":true,\"reason\":\"no \\\"more\\\"\"}"};
	uint8_t bytes[GATE_MESSAGE_MAX];

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		size_t len = write_rule(texts[i], bytes);
		struct gate_message message;
		AUTO_TEXT before = {0}, after = {0};
		struct net_refusal refusal;
		struct net_rule rule;

		CHECK(gate_message_read(bytes, len, GATE_FROM_ENGINE, &message));
		CHECK_INT(message.number, 7);
		CHECK_INT(net_rule_parse(texts[i], &rule, &refusal), 0);
		net_rule_format(&rule, &before);
		net_rule_format(&message.rule, &after);
		CHECK_STRING(text_string(&before), text_string(&after));
	}
}

static void test_each_side_sends_its_own_kinds_only(void)
{
	uint8_t bytes[GATE_MESSAGE_MAX];
	struct gate_message message;
	size_t len = write_rule("good.test", bytes);

	CHECK(!gate_message_read(bytes, len, GATE_FROM_PROCESS, &message));
	len = gate_message_write(&(struct gate_message){.kind = GATE_DONE, .number = 3}, bytes);
	CHECK(gate_message_read(bytes, len, GATE_FROM_PROCESS, &message));
	CHECK(!gate_message_read(bytes, len, GATE_FROM_ENGINE, &message));
}

static void test_what_is_no_message_is_none(void)
{
	static uint8_t bytes[GATE_MESSAGE_MAX + 1];
	struct gate_message message;
	size_t len = write_rule("good.test:443", bytes);
	uint32_t unknown = GATE_MESSAGE_KIND_COUNT, none = 0;

	for (size_t i = 0; i < 16; i++)
		CHECK(!gate_message_read(bytes, i, GATE_FROM_ENGINE, &message));
	CHECK(!gate_message_read(bytes, 16, GATE_FROM_ENGINE, &message));
	CHECK(!gate_message_read(bytes, sizeof(bytes), GATE_FROM_ENGINE, &message));
	bytes[len] = '\0';
	CHECK(!gate_message_read(bytes, len + 1, GATE_FROM_ENGINE, &message));
	memcpy(bytes, &unknown, 4);
	CHECK(!gate_message_read(bytes, len, GATE_FROM_ENGINE, &message));
	memcpy(bytes, &none, 4);
	CHECK(!gate_message_read(bytes, len, GATE_FROM_ENGINE, &message));
	/* One that has no text has none. */
	len = gate_message_write(&(struct gate_message){.kind = GATE_DONE}, bytes);
	CHECK(!gate_message_read(bytes, len + 1, GATE_FROM_PROCESS, &message));
}

static bool is_question(const char *text)
{
	struct gate_message message = {.kind = GATE_QUESTION, .number = 1};
	struct net_refusal refusal;
	uint8_t bytes[GATE_MESSAGE_MAX];

	CHECK_INT(net_rule_parse(text, &message.rule, &refusal), 0);
	return gate_message_read(bytes, gate_message_write(&message, bytes), GATE_FROM_PROCESS, &message);
}

static void test_a_question_is_about_one_host_and_port(void)
{
	CHECK(is_question("good.test:443"));
	CHECK(is_question("10.0.0.1:80"));
	CHECK(is_question("[2001:db8::1]:443"));
	CHECK(!is_question("good.test"));
	CHECK(!is_question("good.test:443-444"));
	CHECK(!is_question("good.test:*"));
	CHECK(!is_question("*.good.test:443"));
	CHECK(!is_question("10.0.0.0/31:80"));
	CHECK(!is_question("host:80"));
	CHECK(!is_question(NET_HOST_NAME ":80"));
	CHECK(!is_question("{\"host\":\"good.test\",\"ports\":443,\"deny\":true}"));
	CHECK(!is_question("{\"host\":\"good.test\",\"ports\":443,\"private\":true}"));
}

static void test_an_answer_is_one_that_there_is(void)
{
	struct gate_message message = {.kind = GATE_ANSWER, .number = 1, .answer = NET_RUN, .run = 5};
	uint8_t bytes[GATE_MESSAGE_MAX];

	CHECK(gate_message_read(bytes, gate_message_write(&message, bytes), GATE_FROM_ENGINE, &message));
	CHECK(message.answer == NET_RUN && message.run == 5);
	message.answer = NET_ANSWER_COUNT;
	CHECK(!gate_message_read(bytes, gate_message_write(&message, bytes), GATE_FROM_ENGINE, &message));
	/* Others have none. */
	message = (struct gate_message){.kind = GATE_WITHDRAWN, .run = 1};
	CHECK(!gate_message_read(bytes, gate_message_write(&message, bytes), GATE_FROM_PROCESS, &message));
}

static const struct test tests[] = {
	TEST(test_a_rule_arrives_as_it_was_sent),  TEST(test_each_side_sends_its_own_kinds_only),
	TEST(test_what_is_no_message_is_none),     TEST(test_a_question_is_about_one_host_and_port),
	TEST(test_an_answer_is_one_that_there_is),
};

TEST_MAIN(tests)
