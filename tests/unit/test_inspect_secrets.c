/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_inspect_secrets.c - entries of `secrets`, where a placeholder may stand, and what must not come back
 */
#include "inspect/inspect_secrets.h"

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
	CHECK(secrets_read(secrets, &list));
	CHECK_INT(secrets->count, 2);
	/* Nothing is left of the value. */
	CHECK_INT(json_find(&list.list.items[0], "value")->value.string.bytes[0], 0);
}

static enum secret_use look(const struct secrets *secrets, const char *host, bool is_safe, const char *header,
			    const char *value)
{
	const struct secret *found;

	return secrets_look(secrets, host, is_safe, (struct http_slice){header, strlen(header)},
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
	secret_write_header(&secrets.items[0], &out);
	CHECK_STRING(text_string(&out), "Authorization: Bearer abcabcabd!\r\n");
	secrets_done(&secrets);
}

static struct http_slice piece_of(const char *bytes, size_t len)
{
	return (struct http_slice){bytes, len};
}

/* In pieces of every size, as a body comes. */
static void test_values_do_not_come_back(void)
{
	static const char text[] = "abcabcabcabd.abcabcab-0123456789012345678abcabcabdabcabcabd0123456789a",
			  expected[] = "abc*********.abcabcab-**********012345678****************************a";
	struct secrets secrets;

	read_two(&secrets);
	for (size_t step = 1; step <= strlen(text); step++) {
		struct secret_search search = {0};
		AUTO_TEXT out = {0};

		for (size_t at = 0; at < strlen(text); at += step) {
			size_t len = MIN_OF(step, strlen(text) - at);
			struct http_slice ready = secrets_search(&secrets, &search, piece_of(text + at, len),
								 at + len == strlen(text) ? SEARCH_END : SEARCH_MORE);

			CHECK(search.held.len - search.gone < 10);
			text_append(&out, ready.bytes, ready.len);
		}
		CHECK(!secret_search_is_holding(&search));
		CHECK_STRING(text_string(&out), expected);
		secret_search_done(&search);
	}
	secrets_done(&secrets);
}

/* Whoever waits for the last byte of a message gets it, though a value could begin with it; not so with half a value. */
static void test_a_pause_shows_no_more_than_the_beginning_of_a_value(void)
{
	static const char text[] = "xabcabcabdx";
	struct secrets secrets;

	read_two(&secrets);
	for (size_t pause = 1; pause < strlen(text); pause++) {
		struct secret_search search = {0};
		AUTO_TEXT out = {0};
		struct http_slice ready;
		size_t shown;

		ready = secrets_search(&secrets, &search, piece_of(text, pause), SEARCH_MORE);
		text_append(&out, ready.bytes, ready.len);
		ready = secrets_search(&secrets, &search, piece_of("", 0), SEARCH_PAUSE);
		text_append(&out, ready.bytes, ready.len);
		/* A quarter of nine bytes. */
		shown = pause <= 3 ? pause - 1 : 0;
		CHECK_INT(out.len, pause <= 3 ? pause : pause < 10 ? 1 : pause);
		ready = secrets_search(&secrets, &search, piece_of("", 0), SEARCH_PAUSE);
		CHECK_INT(ready.len, 0);
		ready = secrets_search(&secrets, &search, piece_of(text + pause, strlen(text) - pause), SEARCH_END);
		text_append(&out, ready.bytes, ready.len);
		CHECK_INT(out.len, strlen(text));
		CHECK(!memcmp(out.data + 1, text + 1, shown));
		CHECK_INT(strspn(out.data + 1 + shown, "*"), 9 - shown);
		secret_search_done(&search);
	}
	secrets_done(&secrets);
}

static const struct test tests[] = {
	TEST(test_every_entry_has_one_form),
	TEST(test_what_is_no_entry_is_refused),
	TEST(test_a_placeholder_stands_in_one_header_of_one_host),
	TEST(test_values_do_not_come_back),
	TEST(test_a_pause_shows_no_more_than_the_beginning_of_a_value),
};

int main(void)
{
	return test_main(tests, sizeof(tests) / sizeof(tests[0]));
}
