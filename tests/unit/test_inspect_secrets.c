/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_inspect_secrets.c - entries of `secrets`, where a placeholder may stand, and what must not come back
 */
#include "gate/inspect/inspect_secrets.h"

#include "test.h"

static void check_form(const char *text, const char *expected)
{
	struct net_refusal refusal = {{0}};
	struct net_secret secret;
	AUTO_TEXT form = {0};

	CHECK_INT(net_secret_parse(text, &secret, &refusal), 0);
	CHECK_STRING(refusal.why, "");
	net_secret_format(&secret, &form);
	CHECK_STRING(text_string(&form), expected);
	CHECK_INT(net_secret_parse(text_string(&form), &secret, &refusal), 0);
}

static void test_every_entry_has_one_form(void)
{
	check_form(
		"KEY@Api.Test.",
		"{\"name\":\"KEY\",\"host\":\"api.test\",\"header\":\"Authorization\",\"format\":\"Bearer {}\",\"from_env\":\"KEY\"}");
	check_form(
		"KEY@api.test:X-Key",
		"{\"name\":\"KEY\",\"host\":\"api.test\",\"header\":\"X-Key\",\"format\":\"{}\",\"from_env\":\"KEY\"}");
	check_form(
		"{\"name\": \"K\", \"host\": \"a.b\", \"format\": \"token {}\", \"from_file\": \"/k\"}",
		"{\"name\":\"K\",\"host\":\"a.b\",\"header\":\"Authorization\",\"format\":\"token {}\",\"from_file\":\"/k\"}");
}

static void test_what_is_no_entry_is_refused(void)
{
	static const char *const bad[] = {
		"KEY",
		"@a.b",
		"KEY@",
		"KEY@a.b:",
		"K EY@a.b",
		"1KEY@a.b",
		"KEY@*.b",
		"KEY@10.0.0.1",
		"KEY@a.b:Host",
		"KEY@a.b:content-length",
		"KEY@a.b:X Y",
		"KEY@a.b:X\r\nY",
		"{\"name\": \"K\"}",
		"{\"name\": \"K\", \"host\": \"a.b\", \"format\": \"x\"}",
		"{\"name\": \"K\", \"host\": \"a.b\", \"format\": \"{}{}\"}",
		"{\"name\": \"K\", \"host\": \"a.b\", \"from_env\": \"A\", \"from_file\": \"/a\"}",
		"{\"name\": \"K\", \"host\": \"a.b\", \"from_file\": \"a\"}",
		"{\"name\": \"K\", \"host\": \"a.b\", \"value\": \"v\"}",
		"{\"name\": \"K\", \"host\": 1}",
		"{",
	};
	struct net_refusal refusal;
	struct net_secret secret;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (net_secret_parse(bad[i], &secret, &refusal) == 0)
			CHECK_STRING("accepted", bad[i]);
}

static void read_two(struct secrets *secrets)
{
	static const char text[] =
		"[{\"name\": \"KEY\", \"host\": \"a.test\", \"header\": \"Authorization\", \"format\": \"Bearer {}!\", \"value\": \"abcabcabd\"},"
		" {\"name\": \"KEY2\", \"host\": \"b.test\", \"header\": \"X-Key\", \"format\": \"{}\", \"value\": \"0123456789\"}]";
	struct json_input input = {.name = "t", .bytes = text, .len = strlen(text), .stage = STAGE_ENGINE};
	AUTO_JSON list = {0};
	struct error error = {0};

	CHECK_INT(json_parse(&input, &list, &error), 0);
	CHECK(inspect_secrets_read(secrets, &list));
	CHECK_INT(secrets->count, 2);
	/* Nothing is left of the value. */
	CHECK_INT(json_find(&list.list.items[0], "value")->value.string.bytes[0], 0);
}

static enum secret_use look(const struct secrets *secrets, const char *host, bool is_safe, const char *header,
			    const char *value)
{
	const struct secret *found;

	return inspect_secrets_look(secrets, host, is_safe, (struct http_slice){header, strlen(header)},
				    (struct http_slice){value, strlen(value)}, &found);
}

static void test_a_placeholder_stands_in_one_header_of_one_host(void)
{
	static const char key[] = "x belljar-placeholder-for-KEY y", key2[] = "belljar-placeholder-for-KEY2";
	struct secrets secrets;
	AUTO_TEXT out = {0};

	read_two(&secrets);
	CHECK_INT(look(&secrets, "a.test", true, "authorization", key), SECRET_PUT);
	CHECK_INT(look(&secrets, "a.test", false, "Authorization", key), SECRET_MISPLACED);
	CHECK_INT(look(&secrets, "b.test", true, "Authorization", key), SECRET_MISPLACED);
	CHECK_INT(look(&secrets, "a.test", true, "X-Key", key), SECRET_MISPLACED);
	CHECK_INT(look(&secrets, "a.test", true, "", key), SECRET_MISPLACED);
	CHECK_INT(look(&secrets, "b.test", true, "X-Key", key2), SECRET_PUT);
	CHECK_INT(look(&secrets, "a.test", true, "Authorization", key2), SECRET_MISPLACED);
	CHECK_INT(look(&secrets, "a.test", true, "Authorization", "belljar-placeholder-for-KEY3"), SECRET_NONE);
	CHECK_INT(look(&secrets, "a.test", true, "Authorization", "abcabcabd"), SECRET_NONE);
	inspect_secret_write_header(&secrets.items[0], &out);
	CHECK_STRING(text_string(&out), "Authorization: Bearer abcabcabd!\r\n");
	inspect_secrets_done(&secrets);
}

static struct http_slice piece_of(const char *bytes, size_t len)
{
	return (struct http_slice){bytes, len};
}

/* In pieces of every size, as a body comes. */
static void test_values_do_not_come_back(void)
{
	static const char text[] = "abcabcabcabd.abcabcab-0123456789012345678abcabcabdabcabcabd0123456789a"
				   "abcabcabd\nabcabc\nabd and a text that is longer than all that waits, abcabcab",
			  expected[] = "abc*********.abcabcab-**********012345678****************************a"
				       "*********\nabcabc\nabd and a text that is longer than all that waits, abcabcab";
	struct secrets secrets;

	read_two(&secrets);
	for (size_t step = 1; step <= strlen(text); step++) {
		struct secret_search search = {0};
		AUTO_TEXT out = {0};

		for (size_t at = 0; at < strlen(text); at += step) {
			size_t len = MIN_OF(step, strlen(text) - at);
			struct http_slice ready =
				inspect_secrets_search(&secrets, &search, piece_of(text + at, len),
						       at + len == strlen(text) ? SEARCH_END : SEARCH_BODY);

			CHECK(inspect_secret_search_tail(&search) <= inspect_secrets_tail(&secrets));
			text_append(&out, ready.bytes, ready.len);
		}
		CHECK_INT(inspect_secret_search_tail(&search), 0);
		CHECK_STRING(text_string(&out), expected);
		inspect_secret_search_done(&search);
	}
	inspect_secrets_done(&secrets);
}

/* Where a value can begin within itself, no byte of either is left. */
static void test_values_that_overlap_are_covered_whole(void)
{
	struct secret overlapping[2] = {{.value = "ababababab", .value_len = 10},
					{.value = "babababaX", .value_len = 9}};
	const struct secrets secrets = {overlapping, 2};
	static const char text[] = "-ababababababaX-", expected[] = "-**************-";

	for (size_t step = 1; step <= strlen(text); step++) {
		struct secret_search search = {0};
		char whole[] = "-ababababababaX-";
		AUTO_TEXT out = {0};

		for (size_t at = 0; at < strlen(text); at += step) {
			size_t len = MIN_OF(step, strlen(text) - at);
			struct http_slice ready =
				inspect_secrets_search(&secrets, &search, piece_of(text + at, len),
						       at + len == strlen(text) ? SEARCH_END : SEARCH_BODY);

			text_append(&out, ready.bytes, ready.len);
		}
		CHECK_STRING(text_string(&out), expected);
		inspect_secret_search_done(&search);
		CHECK(inspect_secrets_hide(&secrets, whole, strlen(whole)));
		CHECK_STRING(whole, expected);
	}
}

/* How many bytes go on after each byte of @text, as letters. */
static void trace(const struct secrets *secrets, const char *text, enum secret_search_end end, struct text *out)
{
	struct secret_search search = {0};

	for (; *text; text++)
		text_append_char(out,
				 (char)('0' + inspect_secrets_search(secrets, &search, piece_of(text, 1), end).len));
	inspect_secret_search_done(&search);
}

/* A jar that has a host echo its guesses learns nothing from when they come back. */
static void test_what_waits_does_not_depend_on_the_value(void)
{
	static const char padding[] = "................................................................";
	static const char *const guesses[] = {"zzzzzzzz", "azzzzzzz", "abczzzzz", "abcabcab", "01234567"};
	struct secrets secrets;

	read_two(&secrets);
	CHECK_INT(inspect_secrets_tail(&secrets), 63);
	for (enum secret_search_end end = SEARCH_BODY; end <= SEARCH_MESSAGE; end++) {
		AUTO_TEXT expected = {0};

		for (size_t i = 0; i < ARRAY_LEN(guesses); i++) {
			AUTO_TEXT text = {0}, traced = {0};

			text_append_format(&text, "%s%s\nmore %s%s", guesses[i], padding, padding, guesses[i]);
			trace(&secrets, text_string(&text), end, i ? &traced : &expected);
			if (i)
				CHECK_STRING(text_string(&traced), text_string(&expected));
		}
	}
	inspect_secrets_done(&secrets);
}

static void test_a_line_does_not_wait(void)
{
	struct secret_search search = {0};
	struct secrets secrets;
	struct http_slice ready;

	read_two(&secrets);
	ready = inspect_secrets_search(&secrets, &search, piece_of("data: abc\n\nabc", 14), SEARCH_BODY);
	CHECK_INT(ready.len, 11);
	ready = inspect_secrets_search(&secrets, &search, piece_of("abcabd\n", 7), SEARCH_BODY);
	CHECK_INT(ready.len, 10);
	CHECK(!memcmp(ready.bytes, "*********\n", 10));
	/* In a message with a length of its own a line is nothing. */
	ready = inspect_secrets_search(&secrets, &search, piece_of("data: abc\n\nabc", 14), SEARCH_MESSAGE);
	CHECK_INT(ready.len, 0);
	inspect_secret_search_done(&search);
	inspect_secrets_done(&secrets);
}

static const struct test tests[] = {
	TEST(test_every_entry_has_one_form),
	TEST(test_what_is_no_entry_is_refused),
	TEST(test_a_placeholder_stands_in_one_header_of_one_host),
	TEST(test_values_do_not_come_back),
	TEST(test_values_that_overlap_are_covered_whole),
	TEST(test_what_waits_does_not_depend_on_the_value),
	TEST(test_a_line_does_not_wait),
};

int main(void)
{
	return test_main(tests, sizeof(tests) / sizeof(tests[0]));
}
