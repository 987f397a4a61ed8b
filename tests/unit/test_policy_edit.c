/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_policy_edit.c - a rule is added to a policy file, and everything else in it stays
 */
#include "policy/policy_edit.h"
#include "test.h"

static void test_the_rule_stands_at_the_end_and_the_rest_stays(void)
{
	static const struct {
		const char *before, *after;
	} rows[] = {
		{"{}", "{\"allow_net\": [\"x.test:443\"]}"},
		{"{\n}\n", "{\n  \"allow_net\": [\"x.test:443\"]\n}\n"},
		{"{\"ask\": \"net\"}", "{\"allow_net\": [\"x.test:443\"], \"ask\": \"net\"}"},
		{"{\n\t// first\n\t\"ask\": \"net\"\n}",
		 "{\n\t\"allow_net\": [\"x.test:443\"],\n\t// first\n\t\"ask\": \"net\"\n}"},
		{"{\"allow_net\": []}", "{\"allow_net\": [\"x.test:443\"]}"},
		{"{\"allow_net\": [ ]}", "{\"allow_net\": [\"x.test:443\" ]}"},
		{"{\"allow_net\": [\"a\"]}", "{\"allow_net\": [\"a\", \"x.test:443\"]}"},
		{"{\"allow_net\": [\"a\",]}", "{\"allow_net\": [\"a\", \"x.test:443\"]}"},
		{"{\"allow_net\": [\"a\" /* ] */]}", "{\"allow_net\": [\"a\", /* ] */ \"x.test:443\"]}"},
		{"{\"allow_net\": [\n    \"a\"\n  ]}", "{\"allow_net\": [\n    \"a\",\n    \"x.test:443\"\n  ]}"},
		{"{\"allow_net\": [\n    \"a\", // the ]\n  ]}",
		 "{\"allow_net\": [\n    \"a\", // the ]\n    \"x.test:443\"\n  ]}"},
		{"{\"allow_net\": [\n\t\"a\" // \"b\"\n\t// end\n]}",
		 "{\"allow_net\": [\n\t\"a\", // \"b\"\n\t// end\n\t\"x.test:443\"\n]}"},
		{"{\"allow_net\": [\n]}", "{\"allow_net\": [\n  \"x.test:443\"\n]}"},
		/* What only looks like the list is not it. */
		{"{\"env\": {\"allow_net\": \"]\"}, \"hostname\": \"allow_net\", \"hide\": [\"allow_net\", \"[\"]}",
		 "{\"allow_net\": [\"x.test:443\"], \"env\": {\"allow_net\": \"]\"}, \"hostname\": \"allow_net\", \"hide\": "
		 "[\"allow_net\", \"[\"]}"},
		{"/* \"allow_net\": [] */ {\"redact\": [\"\\\"]\"], \"allow_net\": [{\"host\": \"a\", \"ports\": [1]}]}",
		 "/* \"allow_net\": [] */ {\"redact\": [\"\\\"]\"], \"allow_net\": [{\"host\": \"a\", \"ports\": [1]}, "
		 "\"x.test:443\"]}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_TEXT out = {0};

		CHECK_INT(policy_edit_text(rows[i].before, strlen(rows[i].before), "x.test:443", &out), 0);
		CHECK_STRING(text_string(&out), rows[i].after);
	}
}

static void test_what_is_no_object_has_no_place(void)
{
	static const char *const texts[] = {"", "[]", "// {", "\"{\"", "{\"allow_net\": [", "{\"allow_net\": [\"a"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		AUTO_TEXT out = {0};

		CHECK(policy_edit_text(texts[i], strlen(texts[i]), "x.test", &out) < 0);
	}
}

static const struct test tests[] = {
	TEST(test_the_rule_stands_at_the_end_and_the_rest_stays),
	TEST(test_what_is_no_object_has_no_place),
};

TEST_MAIN(tests)
