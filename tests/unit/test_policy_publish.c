/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_policy_publish.c - entries of publish: what is one, its canonical form, and what a list of them may have
 */
#include "policy/publish.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

static void check_form(const char *text, const char *expected)
{
	struct publish entry = {0};
	AUTO_TEXT form = {0};

	CHECK(policy_publish_parse(text, &entry) == NULL);
	policy_publish_format(&entry, &form);
	CHECK_STRING(text_string(&form), expected);
}

static void test_every_form_has_one_canonical_form(void)
{
	check_form("8000", "8000");
	check_form("0:8000", "8000");
	check_form("08080:01024", "8080:1024");
	check_form("1:65535", "1:65535");
}

static void test_what_is_no_entry(void)
{
	static const char *const texts[] = {"",           ":",
					    "8000:",      ":8000",
					    "x",          "8000x",
					    "80:80:8000", "127.0.0.1:8000",
					    "-1",         "65536",
					    "1:65536",    "65536:8000",
					    " 8000",      "99999999999999999999",
					    "8000 ",      "+8000"};
	struct publish entry;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *why = policy_publish_parse(texts[i], &entry);

		CHECK(why != NULL);
		CHECK(why && strstr(why, "HOSTPORT:PORT") != NULL);
	}
}

static void test_low_ports_cannot_be_listened_on(void)
{
	struct publish entry;

	CHECK_STRING(policy_publish_parse("1023", &entry), "nothing in a jar may listen on a port below 1024");
	CHECK_STRING(policy_publish_parse("8080:80", &entry), "nothing in a jar may listen on a port below 1024");
	CHECK_STRING(policy_publish_parse("0", &entry), "nothing in a jar may listen on a port below 1024");
}

static void test_a_later_entry_for_a_port_wins(void)
{
	struct string_list list = {0};

	CHECK(!policy_publish_add(&list, "8000") && !policy_publish_add(&list, "9000:8001") &&
	      !policy_publish_add(&list, "8080:8000"));
	CHECK_INT(list.count, 2);
	CHECK_STRING(list.items[0], "8080:8000");
	CHECK_STRING(list.items[1], "9000:8001");
	string_list_done(&list);
}

static void test_a_port_of_the_host_is_for_one(void)
{
	struct string_list list = {0};

	CHECK(!policy_publish_add(&list, "9000:8000"));
	CHECK_STRING(policy_publish_add(&list, "9000:8001"), "another port of the jar has this port of the host");
	CHECK_INT(list.count, 1);
	/* Any that is free is no port yet. */
	CHECK(!policy_publish_add(&list, "8002") && !policy_publish_add(&list, "8003"));
	string_list_done(&list);
}

static void test_there_is_a_most(void)
{
	struct string_list list = {0};
	char text[8];

	for (int i = 0; i < PUBLISH_MAX; i++) {
		snprintf(text, sizeof(text), "%d", 8000 + i);
		CHECK(!policy_publish_add(&list, text));
	}
	CHECK_STRING(policy_publish_add(&list, "9000"), "a jar can publish at most 32 ports");
	CHECK(!policy_publish_add(&list, "7000:8000"));
	string_list_done(&list);
}

static const struct test tests[] = {
	TEST(test_every_form_has_one_canonical_form), TEST(test_what_is_no_entry),
	TEST(test_low_ports_cannot_be_listened_on),   TEST(test_a_later_entry_for_a_port_wins),
	TEST(test_a_port_of_the_host_is_for_one),     TEST(test_there_is_a_most),
};

TEST_MAIN(tests)
