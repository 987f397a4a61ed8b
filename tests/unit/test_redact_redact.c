/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_redact_redact.c - literals against a brute-force search, shapes by example, and both under any chunking
 */
#include <errno.h>
#include <stdlib.h>

#include "base/redact/redact.h"
#include "base/redact/redact_literal.h"
#include "base/redact/redact_shapes.h"
#include "test.h"

/* Secrets are written in pieces, so that tools which look for leaked ones leave this file alone. */
#define MARK REDACT_MARK
#define D10 "0123456789"
#define D20 D10 D10
#define D40 D20 D20

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t bound)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((random_state >> 33) % bound);
}

static struct redactor *make_redactor(const char *const *literals, bool has_shapes)
{
	struct string_list list = {0};
	struct redactor *redactor = NULL;
	struct error error = {0};

	for (; literals && *literals; literals++)
		CHECK_INT(string_list_add(&list, *literals), 0);
	CHECK_INT(redactor_new(&list, has_shapes, &redactor, &error), 0);
	string_list_done(&list);
	return redactor;
}

enum chunking { CHUNK_WHOLE, CHUNK_BYTES, CHUNK_RANDOM, CHUNK_LARGE };

static size_t next_part(enum chunking chunking, size_t len)
{
	switch (chunking) {
	case CHUNK_WHOLE:
		return len;
	case CHUNK_BYTES:
		return 1;
	case CHUNK_RANDOM:
		return 1 + random_below(9);
	case CHUNK_LARGE:
		return 1 + random_below(20000);
	}
	return len;
}

static void redact(const struct redactor *redactor, const char *text, size_t len, enum chunking chunking,
		   struct text *out)
{
	struct redact_stream *stream = redact_stream_new(redactor);

	CHECK(stream != NULL);
	for (size_t at = 0, part; at < len; at += part) {
		part = next_part(chunking, len);
		part = MIN_OF(part, len - at);
		redact_feed(stream, text + at, part, out);
	}
	redact_finish(stream, out);
	redact_stream_free(stream);
	CHECK(!text_failed(out));
}

static void check_redacted(const struct redactor *redactor, const char *text, const char *expected)
{
	static const enum chunking chunkings[] = {CHUNK_WHOLE, CHUNK_BYTES, CHUNK_RANDOM};

	for (size_t i = 0; i < ARRAY_LEN(chunkings); i++) {
		AUTO_TEXT out = {0};

		redact(redactor, text, strlen(text), chunkings[i], &out);
		CHECK_STRING(text_string(&out), expected);
	}
}

static void check_literals(const char *const *literals, const char *text, const char *expected)
{
	struct redactor *redactor = make_redactor(literals, false);

	check_redacted(redactor, text, expected);
	redactor_free(redactor);
}

/* What leaves after @text has been fed and before anything else comes. */
static void check_leaves_at_once(const struct redactor *redactor, const char *text, const char *expected)
{
	struct redact_stream *stream = redact_stream_new(redactor);
	AUTO_TEXT out = {0};

	for (size_t i = 0; text[i]; i++)
		redact_feed(stream, text + i, 1, &out);
	CHECK_STRING(text_string(&out), expected);
	redact_stream_free(stream);
}

/* --- literals --- */

static void test_nothing_to_redact_needs_no_redactor(void)
{
	CHECK(make_redactor(NULL, false) == NULL);
	CHECK(make_redactor((const char *[]){"", NULL}, false) == NULL);
}

static void test_literal_is_replaced_wherever_it_stands(void)
{
	const char *const literals[] = {"hunter2", NULL};

	check_literals(literals, "hunter2", MARK);
	check_literals(literals, "a hunter2 b", "a " MARK " b");
	check_literals(literals, "hunthunter2hunter", "hunt" MARK "hunter");
	check_literals(literals, "hunter2 hunter2\nhunter", MARK " " MARK "\nhunter");
	check_literals(literals, "Hunter2", "Hunter2");
	check_literals(literals, "", "");
}

static void test_overlapping_and_touching_matches_become_one_mark(void)
{
	check_literals((const char *[]){"abcd", "cdef", NULL}, "xabcdefx", "x" MARK "x");
	check_literals((const char *[]){"abab", NULL}, "xabababx", "x" MARK "x");
	check_literals((const char *[]){"abcd", NULL}, "xabcdabcdx", "x" MARK "x");
}

static void test_a_literal_of_several_lines_is_found_as_terminals_show_it(void)
{
	const char *const literals[] = {"one\ntwo\r\n\nthree", "a\rb\nc", NULL};

	check_literals(literals, "x one\ntwo\r\n\nthree y", "x " MARK " y");
	check_literals(literals, "x one\ntwo\n\nthree y", "x " MARK " y");
	check_literals(literals, "x one\r\ntwo\r\n\r\nthree y", "x " MARK " y");
	check_literals(literals, "x one\r\ntwo\r\r\n\r\nthree y", "x " MARK " y");
	check_literals(literals, "x one\r\r\ntwo\r\r\r\n\r\r\nthree y", "x " MARK " y");
	check_literals(literals, "a\rb\r\nc", MARK);
	check_literals(literals, "one\r\ntwo", "one\r\ntwo");
	/* What is left of it would be found everywhere. */
	check_literals((const char *[]){"\r\n\r\n", NULL}, "a\n\nb\r\n\r\nc", "a\n\nb" MARK "c");
}

static void test_a_text_at_once(void)
{
	struct redactor *redactor = make_redactor((const char *[]){"hunter2", NULL}, true);
	AUTO_TEXT out = {0};

	redact_string(redactor, "a hunter2 b", &out);
	redact_string(NULL, " hunter2", &out);
	CHECK_STRING(text_string(&out), "a " MARK " b hunter2");
	redactor_free(redactor);
}

static void test_literal_inside_another_is_replaced_alone_too(void)
{
	const char *const literals[] = {"aaSECRETbb", "SECRET", "CRET", NULL};

	check_literals(literals, "aaSECRETbb", MARK);
	check_literals(literals, "aaSECRETb", "aa" MARK "b");
	check_literals(literals, "aaSECRExx CRET", "aaSECRExx " MARK);
}

static void test_long_literal_may_contain_a_match_that_ends_before_it_fails(void)
{
	check_literals((const char *[]){"abcdefgh", "bcde", NULL}, "abcdefgX", "a" MARK "fgX");
	check_literals((const char *[]){"abcdefgh", "bcde", NULL}, "abcdefgh", MARK);
}

static void test_short_literals_work_although_callers_refuse_them(void)
{
	check_literals((const char *[]){"a", "xyz", NULL}, "banana xy xyz", "b" MARK "n" MARK "n" MARK " xy " MARK);
}

static void test_bytes_that_no_literal_may_claim_leave_at_once(void)
{
	struct redactor *redactor = make_redactor((const char *[]){"hunter2", NULL}, false);

	check_leaves_at_once(redactor, "$ whoami\nhun", "$ whoami\n");
	check_leaves_at_once(redactor, "$ whoami\nhunt ", "$ whoami\nhunt ");
	check_leaves_at_once(redactor, "hunter2", MARK);
	redactor_free(redactor);
}

static void test_too_much_literal_text_is_refused(void)
{
	struct string_list list = {0};
	struct redactor *redactor = NULL;
	struct error error = {0};
	char *large = malloc(REDACT_LITERAL_TOTAL_MAX + 1);

	memset(large, 'x', REDACT_LITERAL_TOTAL_MAX);
	large[REDACT_LITERAL_TOTAL_MAX] = '\0';
	CHECK_INT(string_list_add(&list, large), 0);
	CHECK_INT(redactor_new(&list, false, &redactor, &error), 0);
	redactor_free(redactor);
	redactor = NULL;
	CHECK_INT(string_list_add(&list, "y"), 0);
	CHECK_INT(redactor_new(&list, false, &redactor, &error), -E2BIG);
	CHECK_INT(error.stage, STAGE_POLICY);
	CHECK(redactor == NULL);
	string_list_done(&list);
	free(large);
}

static void test_large_literal_is_found_in_small_writes(void)
{
	size_t len = 100000;
	char *secret = malloc(len + 1);
	struct redactor *redactor;
	AUTO_TEXT text = {0};
	AUTO_TEXT out = {0};

	/* Of one letter but for its end: the worst for searches that begin again. */
	memset(secret, 'a', len);
	secret[len - 1] = 'b';
	secret[len] = '\0';
	redactor = make_redactor((const char *[]){secret, "aaaa", NULL}, false);
	text_append_string(&text, "<");
	text_append(&text, secret, len);
	text_append_string(&text, ">");
	text_append(&text, secret + 1, len - 1);
	redact(redactor, text.data, text.len, CHUNK_RANDOM, &out);
	CHECK_STRING(text_string(&out), "<" MARK ">" MARK "b");
	redactor_free(redactor);
	free(secret);
}

/* The definition itself: a byte is secret if any occurrence of any literal covers it. */
static void redact_slowly(const char *const *literals, const char *text, size_t len, struct text *out)
{
	bool covered[256] = {0};

	for (; *literals; literals++) {
		size_t literal_len = strlen(*literals);

		for (size_t at = 0; at + literal_len <= len; at++) {
			if (memcmp(text + at, *literals, literal_len) == 0)
				memset(covered + at, true, literal_len);
		}
	}
	for (size_t at = 0; at < len; at++) {
		if (!covered[at])
			text_append_char(out, text[at]);
		else if (at == 0 || !covered[at - 1])
			text_append_string(out, MARK);
	}
}

static void random_string(char *string, size_t len, const char *letters)
{
	for (size_t i = 0; i < len; i++)
		string[i] = letters[random_below((uint32_t)strlen(letters))];
	string[len] = '\0';
}

static void check_random_literals(const char *letters, uint32_t least_len)
{
	char storage[8][24], text[256];
	const char *literals[9] = {0};
	uint32_t literal_count = 1 + random_below(8), text_len = random_below(sizeof(text) - 1);
	struct redactor *redactor;
	AUTO_TEXT expected = {0};

	for (uint32_t i = 0; i < literal_count; i++) {
		random_string(storage[i], least_len + random_below(20 - least_len), letters);
		literals[i] = storage[i];
	}
	random_string(text, text_len, letters);
	/* Long literals hardly ever occur by chance: plant some. */
	for (uint32_t i = random_below(4); i > 0; i--) {
		const char *planted = literals[random_below(literal_count)];
		uint32_t planted_len = (uint32_t)strlen(planted);

		if (planted_len < text_len)
			memcpy(text + random_below(text_len - planted_len), planted, planted_len);
	}
	redact_slowly(literals, text, text_len, &expected);
	redactor = make_redactor(literals, false);
	check_redacted(redactor, text, text_string(&expected));
	redactor_free(redactor);
}

static void test_literals_agree_with_a_brute_force_search(void)
{
	static const char *const alphabets[] = {"ab", "abc", "abcdefgh", "a\n", "aA"};

	for (int round = 0; round < 4000; round++)
		check_random_literals(alphabets[round % ARRAY_LEN(alphabets)], 1 + random_below(8));
}

static void test_literals_are_found_across_the_slices_of_a_large_write(void)
{
	const char *const literals[] = {"correct horse battery", "staple", NULL};
	struct redactor *redactor = make_redactor(literals, true);
	AUTO_TEXT text = {0};
	AUTO_TEXT expected = {0};
	AUTO_TEXT out = {0};

	for (int i = 0; i < 20000; i++) {
		const char *filler = &"some ordinary words of a log "[random_below(20)];

		text_append_string(&text, filler);
		text_append_string(&text, literals[i & 1]);
		text_append_string(&expected, filler);
		text_append_string(&expected, MARK);
	}
	redact(redactor, text.data, text.len, CHUNK_WHOLE, &out);
	CHECK_INT(out.len, expected.len);
	CHECK(out.len == expected.len && memcmp(out.data, expected.data, out.len) == 0);
	redactor_free(redactor);
}

/* --- shapes --- */

struct shape_case {
	const char *text;
	const char *expected; /* NULL: unchanged */
};

static void check_shapes(const struct shape_case *cases, size_t count)
{
	struct redactor *redactor = make_redactor(NULL, true);

	for (size_t i = 0; i < count; i++)
		check_redacted(redactor, cases[i].text, cases[i].expected ? cases[i].expected : cases[i].text);
	redactor_free(redactor);
}

static void test_every_row_finds_its_example(void)
{
	struct redactor *redactor = make_redactor(NULL, true);

	for (size_t i = 0; i < redact_shape_count; i++) {
		const struct redact_shape *shape = &redact_shapes[i];
		AUTO_TEXT out = {0};

		redact(redactor, shape->example, strlen(shape->example), CHUNK_BYTES, &out);
		if (!strstr(text_string(&out), MARK)) {
			printf("%s: %s is not found\n", shape->name, shape->example);
			test_failed_checks++;
		}
		/* Tokens are secret from the first byte to the last. */
		if (shape->kind == SHAPE_TOKEN || shape->kind == SHAPE_JWT || shape->kind == SHAPE_PEM)
			CHECK_STRING(text_string(&out), MARK);
	}
	redactor_free(redactor);
}

static void test_every_prefix_is_found_between_words_and_not_inside_them(void)
{
	struct redactor *redactor = make_redactor(NULL, true);

	for (size_t i = 0; i < redact_shape_count; i++) {
		const struct redact_shape *shape = &redact_shapes[i];

		for (size_t k = 0; shape->kind == SHAPE_TOKEN && k < SHAPE_PREFIX_MAX && shape->prefixes[k]; k++) {
			AUTO_TEXT text = {0};
			AUTO_TEXT inside = {0};
			AUTO_TEXT is_short = {0};

			text_append_format(&text, "<%s%.*s>", shape->prefixes[k], shape->min_len, D40 D40);
			check_redacted(redactor, text_string(&text), "<" MARK ">");
			text_append_format(&inside, "<x%s%.*s>", shape->prefixes[k], shape->min_len, D40 D40);
			check_redacted(redactor, text_string(&inside), text_string(&inside));
			text_append_format(&is_short, "<%s%.*s>", shape->prefixes[k], shape->min_len - 1, D40 D40);
			check_redacted(redactor, text_string(&is_short), text_string(&is_short));
		}
	}
	redactor_free(redactor);
}

static void test_tokens(void)
{
	static const struct shape_case cases[] = {
		{"id AKIA"
		 "IOSFODNN7EXAMPLE.",
		 "id " MARK "."},
		{"ASIA"
		 "IOSFODNN7EXAMPLE",
		 MARK},
		{"AKIA"
		 "IOSFODNN7EXAMPLEX",
		 NULL},
		{"AKIA"
		 "IOSFODNN7EXAMPLe",
		 NULL},
		{"AKIA"
		 "IOSFODNN7EXAMPL ",
		 NULL},
		{"XAKIA"
		 "IOSFODNN7EXAMPLE",
		 NULL},
		{"remote: ghp_" D40 D40 " ok", "remote: " MARK " ok"},
		{"ghp_short", NULL},
		{"GHP_" D40, NULL},
		{"xoxb-" D10 "-" D10 "-abc.", MARK "."},
		{"xoxz-" D10 "-" D10 "-abc.", NULL},
		{"sk_live_" D20 ",", MARK ","},
		{"task_live_" D20, NULL},
		{"use sk-ant-api03-" D20 "-_x now", "use " MARK " now"},
		{"sk-" D40 "T3BlbkFJ", MARK},
		{"sk-learn-is-a-package-with-a-long-name", NULL},
		{"npm_config_registry_is_a_variable_of_some_length", NULL},
		{"npm_lifecycle_event=build", NULL},
		{"hf_hub_download hf_" D10, NULL},
		{"a SG.x b", NULL},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_DEF!", MARK "!"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0", MARK},
		{"data:application/json;base64,eyJ2ZXJzaW9uIjozLCJmaWxlIjoiYSJ9\n", NULL},
		{"eyJhbGciOiJIUzI1NiJ9 eyJzdWIiOiIxMjM0In0", NULL},
		{"xeyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0", NULL},
		{"glpat-" D20 " glpat-x", MARK " glpat-x"},
		{"export K=github_pat_" D20 "_" D40, "export K=" MARK},
	};

	check_shapes(cases, ARRAY_LEN(cases));
}

static void test_assignments_lose_their_value_only(void)
{
	static const struct shape_case cases[] = {
		{"password=hunter2", "password=" MARK},
		{"PASSWORD = hunter2 # comment", "PASSWORD = " MARK " # comment"},
		{"DB_PASSWORD=hunter2\nUSER=bob", "DB_PASSWORD=" MARK "\nUSER=bob"},
		{"password: hunter2, user: bob", "password: " MARK ", user: bob"},
		{"{\"password\": \"hunter2\", \"user\": \"bob\"}", "{\"password\": \"" MARK "\", \"user\": \"bob\"}"},
		{"{\"password\":\"with space, comma\"}", "{\"password\":\"" MARK "\"}"},
		{"{\"password\":\"quo\\\"te\\\\\",\"a\":1}", "{\"password\":\"" MARK "\",\"a\":1}"},
		{"{'passwd': 'hunter2'}", "{'passwd': '" MARK "'}"},
		{"\\\"password\\\": \\\"hunter2\\\", x", "\\\"password\\\": \\\"" MARK "\\\", x"},
		{"os.environ[\"API_KEY\"] = \"abc123def\"", "os.environ[\"API_KEY\"] = \"" MARK "\""},
		{"passphrase => 'open sesame'", "passphrase => '" MARK "'"},
		{"password := \"hunter2\"", "password := \"" MARK "\""},
		{"password=b'hunter2'", "password=b'" MARK "'"},
		{"?token=abc123def&x=1", "?token=" MARK "&x=1"},
		{"api_key=abcdef api-key: abcdef apikey=abcdef", "api_key=" MARK " api-key: " MARK " apikey=" MARK},
		{"X-Api-Key: abcdef123", "X-Api-Key: " MARK},
		{"accessToken: \"abcdefgh\"", "accessToken: \"" MARK "\""},
		{"client_secret=s3cr3t;next", "client_secret=" MARK ";next"},
		{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "aws_secret_access_key = " MARK},
		{"\"SecretAccessKey\": \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\"",
		 "\"SecretAccessKey\": \"" MARK "\""},
		{"password=p\xc3\xa4ssw\xc3\xb6rd!", "password=" MARK},
		{"password=\"-----BEGIN RSA PRIVATE "
		 "KEY-----\nMIIE\n-----END RSA PRIVATE "
		 "KEY-----\"",
		 "password=\"" MARK "\""},
		{"SECRET=-----BEGIN RSA PRIVATE "
		 "KEY-----\nMIIE\n-----END RSA PRIVATE "
		 "KEY-----\n",
		 "SECRET=" MARK "\n"},
	};

	check_shapes(cases, ARRAY_LEN(cases));
}

static void test_ordinary_text_about_passwords_stays(void)
{
	static const struct shape_case cases[] = {
		{"Password: ", NULL},
		{"Password:\nhunter2\n", NULL},
		{"Enter password for bob: x", NULL},
		{"[sudo] password for bob: ", NULL},
		{"password=", NULL},
		{"{\"password\": \"\", \"token\": null}", NULL},
		{"password_hash=abcdefgh", NULL},
		{"TOKEN_FILE=/run/token", NULL},
		{"the token of appreciation", NULL},
		{"SyntaxError: Unexpected token: identifier", NULL},
		{"Token::from_string(x)", NULL},
		{"token = next_token(x)", NULL},
		{"max_tokens: 4096 token: 12", NULL},
		{"kubectl create secret generic x", NULL},
		{"secrets: 3", NULL},
		{"bearer authentication is required", NULL},
		{"Bearer of bad news", NULL},
		{"a basic functionality", NULL},
	};

	check_shapes(cases, ARRAY_LEN(cases));
}

static void test_authorization_headers_keep_their_scheme(void)
{
	static const struct shape_case cases[] = {
		{"Authorization: Bearer abcdef.ghi", "Authorization: Bearer " MARK},
		{"authorization: basic dXNlcjpwYXNz\r\nHost: x", "authorization: basic " MARK "\r\nHost: x"},
		{"curl -H 'Authorization: token abcdef' https://x",
		 "curl -H 'Authorization: token " MARK "' https://x"},
		{"{\"Authorization\": \"Bearer abc def\"}", "{\"Authorization\": \"Bearer " MARK "\"}"},
		{"Proxy-Authorization: Basic dXNlcjpwYXNz", "Proxy-Authorization: Basic " MARK},
		{"authorization: abcdefg status=200", "authorization: " MARK " status=200"},
		{"sent Bearer  mF_9.B5f-4.1JqM!", "sent Bearer  " MARK "!"},
		{"BEARER abcdefghijklmnopqrstuvwxyz", "BEARER " MARK},
		{"bearers abcdefgh12345", NULL},
		{"password: Basic abcdef", "password: Basic " MARK},
		{"password: basic", "password: " MARK},
	};

	check_shapes(cases, ARRAY_LEN(cases));
}

static void test_passwords_in_urls(void)
{
	static const struct shape_case cases[] = {
		{"postgres://app:hunter2@db:5432/x", "postgres://app:" MARK "@db:5432/x"},
		{"redis://:p@host", "redis://:" MARK "@host"},
		{"https://user:a:b@host", "https://user:" MARK "@host"},
		{"https://x-access:ghp_" D40 "@github.com", "https://x-access:" MARK "@github.com"},
		{"https://ghp_" D40 "@github.com", "https://" MARK "@github.com"},
		{"http://localhost:8080/path", NULL},
		{"http://localhost:8080 mail a@b", NULL},
		{"http://user@host:22/", NULL},
		{"git@host:path", NULL},
		{"://a:b@c", NULL},
	};

	check_shapes(cases, ARRAY_LEN(cases));
}

#define KEY_LINE "MIIEowIBAAKCAQEA0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL"
#define BEGIN_KEY                                                                                                      \
	"-----BEGIN RSA PRIVATE "                                                                                      \
	"KEY-----"
#define END_KEY                                                                                                        \
	"-----END RSA PRIVATE "                                                                                        \
	"KEY-----"

static void test_private_keys_go_from_begin_to_end(void)
{
	static const struct shape_case cases[] = {
		{"a\n" BEGIN_KEY "\n" KEY_LINE "\n" KEY_LINE "\nabc=\n" END_KEY "\nb", "a\n" MARK "\nb"},
		{BEGIN_KEY "\r\n" KEY_LINE "\r\nabc=\r\n" END_KEY "\r\nb", MARK "\r\nb"},
		{BEGIN_KEY "\\n" KEY_LINE "\\n" KEY_LINE "\\n" END_KEY "\\n\",", MARK "\\n\","},
		{BEGIN_KEY " " KEY_LINE " " KEY_LINE " " END_KEY " x", MARK " x"},
		{BEGIN_KEY KEY_LINE KEY_LINE END_KEY "x", MARK "x"},
		{"  " BEGIN_KEY "\n    " KEY_LINE "\n    abc\n    " END_KEY, "  " MARK},
		{"-" BEGIN_KEY "\n-" KEY_LINE "\n-" KEY_LINE "\n-" END_KEY "\n", "-" MARK "\n"},
		{BEGIN_KEY "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" KEY_LINE "\nabc\n" END_KEY, MARK},
		{"-----BEGIN PGP PRIVATE "
		 "KEY BLOCK-----\nVersion: x\n\n" KEY_LINE "\nabc\n=AbCd\n"
		 "-----END PGP PRIVATE "
		 "KEY BLOCK-----",
		 MARK},
		{"-----BEGIN CERTIFICATE-----\n" KEY_LINE "\n-----END CERTIFICATE-----", NULL},
		{"-----BEGIN PUBLIC KEY-----\n" KEY_LINE, NULL},
		{"-------------------- live log --------------------\n", NULL},
		{BEGIN_KEY "\n" BEGIN_KEY "\n" KEY_LINE "\n" END_KEY, MARK "\n" MARK},
	};

	check_shapes(cases, ARRAY_LEN(cases));
}

static void test_begin_without_end_does_not_swallow_ordinary_text(void)
{
	static const struct shape_case cases[] = {
		{BEGIN_KEY "\n" KEY_LINE "\n$ echo hello world", MARK "\n$ echo hello world"},
		{BEGIN_KEY "\n" KEY_LINE "\nabc\nMakefile\nsrc\n", MARK "\nMakefile\nsrc\n"},
		{BEGIN_KEY "\n" KEY_LINE "\n" KEY_LINE "x\n", MARK "x\n"},
		{BEGIN_KEY "\nok 1\nok 2\n", MARK " 1\nok 2\n"},
		{BEGIN_KEY "\n1: a\n2: b\n3: c\n4: d\n5: e\n6: f\n", MARK ": e\n6: f\n"},
		{BEGIN_KEY "\n\n\n\n", MARK "\n\n\n\n"},
		{"-----BEGIN something else", NULL},
	};

	check_shapes(cases, ARRAY_LEN(cases));
}

static void test_endless_secrets_are_swallowed_without_being_held(void)
{
	static const char *const beginnings[] = {"ghp_", "password=", "password=\"", "Bearer 1", BEGIN_KEY};
	struct redactor *redactor = make_redactor(NULL, true);
	char part[1000];

	memset(part, 'a', sizeof(part));
	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++) {
		struct redact_stream *stream = redact_stream_new(redactor);
		AUTO_TEXT out = {0};

		redact_feed(stream, beginnings[i], strlen(beginnings[i]), &out);
		for (int round = 0; round < 1000; round++)
			redact_feed(stream, part, sizeof(part), &out);
		CHECK(out.len < 40 && strstr(text_string(&out), MARK));
		redact_feed(stream, " end", 4, &out);
		redact_finish(stream, &out);
		CHECK(strstr(text_string(&out), MARK) != NULL);
		CHECK(out.len < 40);
		redact_stream_free(stream);
	}
	redactor_free(redactor);
}

/* Bounded runs that are exactly as long as allowed, and one byte longer. */
static void test_bounds_are_the_same_wherever_a_write_ends(void)
{
	struct redactor *redactor = make_redactor(NULL, true);

	for (int more = 0; more < 2; more++) {
		AUTO_TEXT user = {0};
		AUTO_TEXT shown = {0};
		AUTO_TEXT password = {0};
		AUTO_TEXT token = {0};

		text_append_format(&user, "a://%0*d:secret@host", 128 + more, 0);
		text_append_format(&shown, "a://%0*d:%s@host", 128 + more, 0, more ? "secret" : MARK);
		check_redacted(redactor, text_string(&user), text_string(&shown));
		text_append_format(&password, "a://u:%0*d@host", 256 + more, 0);
		check_redacted(redactor, text_string(&password), more ? text_string(&password) : "a://u:" MARK "@host");
		text_append_format(&token, "eyJ%0*d." D10 "." D10, 1024 + more, 0);
		check_redacted(redactor, text_string(&token), more ? text_string(&token) : MARK);
	}
	redactor_free(redactor);
}

static void test_only_bytes_that_may_be_replaced_are_held(void)
{
	struct redactor *redactor = make_redactor(NULL, true);

	check_leaves_at_once(redactor, "Password: ", "Password: ");
	check_leaves_at_once(redactor, "Password: hun", "Password: ");
	check_leaves_at_once(redactor, "Password: hunt", "Password: " MARK);
	check_leaves_at_once(redactor, "passw", "passw");
	check_leaves_at_once(redactor, "Authorization: Bearer ", "Authorization: ");
	check_leaves_at_once(redactor, "Authorization: Bearer abcd", "Authorization: Bearer " MARK);
	check_leaves_at_once(redactor, "continue? [y/N] ", "continue? [y/N] ");
	check_leaves_at_once(redactor, "see http://us", "see http://us");
	check_leaves_at_once(redactor, "see http://localhost:80", "see http://localhost:");
	check_leaves_at_once(redactor, "http://ghp_0123", "http://");
	check_leaves_at_once(redactor, "x ghp", "x ");
	check_leaves_at_once(redactor, "x ghost", "x ghost");
	check_leaves_at_once(redactor, BEGIN_KEY, MARK);
	check_leaves_at_once(redactor, ">>> ", ">>> ");
	redactor_free(redactor);
}

static void test_literals_and_shapes_merge(void)
{
	struct redactor *redactor = make_redactor((const char *[]){"hunter2 and", "word=hun", NULL}, true);

	check_redacted(redactor, "password=hunter2 and more", "pass" MARK " more");
	check_redacted(redactor, "user hunter2 and password=abcdef", "user " MARK " password=" MARK);
	redactor_free(redactor);
}

/* Pieces that begin, carry on and end every shape. */
static const char *const pieces[] = {
	"password",
	"token",
	"secret_access_key",
	"Authorization",
	"Bearer",
	"basic",
	"=",
	": ",
	"\"",
	"'",
	"\\\"",
	"\\n",
	"\n",
	" ",
	"  ",
	"https",
	"://",
	"user:",
	"@",
	"/",
	"ghp_",
	"sk-",
	"sk-ant-",
	"AKIA",
	"eyJ",
	".",
	"-----",
	"BEGIN ",
	BEGIN_KEY,
	END_KEY,
	"END ",
	"PRIVATE KEY",
	"-",
	"_",
	"a",
	"0",
	"abcdefghij",
	D10,
	"ABCDEFGHIJKLMNOP",
	KEY_LINE,
	",",
	";",
	"hooks.slack.com/services/",
	"\r\n",
	"Proc-Type: 4",
	"\xc3\xa9",
	"::",
	"=>",
	"glpat-",
	"\\",
	"\x1b[0m",
};

static void append_pieces(struct text *text, uint32_t count)
{
	for (; count > 0; count--)
		text_append_string(text, pieces[random_below(ARRAY_LEN(pieces))]);
}

static bool is_same_under(const struct redactor *redactor, const struct text *text, enum chunking one,
			  enum chunking other)
{
	AUTO_TEXT out = {0};
	AUTO_TEXT other_out = {0};
	bool is_same;

	redact(redactor, text->data, text->len, one, &out);
	redact(redactor, text->data, text->len, other, &other_out);
	is_same = out.len == other_out.len && memcmp(text_string(&out), text_string(&other_out), out.len) == 0;
	if (!is_same && text->len < 1000)
		printf("text: %s\none: %s\nother: %s\n", text->data, text_string(&out), text_string(&other_out));
	return is_same;
}

static void test_shapes_do_not_depend_on_the_chunking(void)
{
	const char *const literals[] = {"abcd", "y1: 0", "fghij0123", "\n\n\n\n", NULL};
	struct redactor *redactors[] = {make_redactor(NULL, true), make_redactor(literals, true)};

	for (int round = 0; round < 20000; round++) {
		AUTO_TEXT text = {0};

		append_pieces(&text, 1 + random_below(14));
		CHECK(is_same_under(redactors[round & 1], &text, CHUNK_WHOLE, CHUNK_BYTES));
		CHECK(is_same_under(redactors[round & 1], &text, CHUNK_WHOLE, CHUNK_RANDOM));
	}
	/* Long enough for the window to move many times. */
	for (int round = 0; round < 40; round++) {
		AUTO_TEXT text = {0};

		append_pieces(&text, 15000);
		CHECK(is_same_under(redactors[round & 1], &text, CHUNK_LARGE, CHUNK_RANDOM));
	}
	redactor_free(redactors[0]);
	redactor_free(redactors[1]);
}

static const struct test tests[] = {
	TEST(test_nothing_to_redact_needs_no_redactor),
	TEST(test_literal_is_replaced_wherever_it_stands),
	TEST(test_overlapping_and_touching_matches_become_one_mark),
	TEST(test_a_literal_of_several_lines_is_found_as_terminals_show_it),
	TEST(test_a_text_at_once),
	TEST(test_literal_inside_another_is_replaced_alone_too),
	TEST(test_long_literal_may_contain_a_match_that_ends_before_it_fails),
	TEST(test_short_literals_work_although_callers_refuse_them),
	TEST(test_bytes_that_no_literal_may_claim_leave_at_once),
	TEST(test_too_much_literal_text_is_refused),
	TEST(test_large_literal_is_found_in_small_writes),
	TEST(test_literals_agree_with_a_brute_force_search),
	TEST(test_literals_are_found_across_the_slices_of_a_large_write),
	TEST(test_every_row_finds_its_example),
	TEST(test_every_prefix_is_found_between_words_and_not_inside_them),
	TEST(test_tokens),
	TEST(test_assignments_lose_their_value_only),
	TEST(test_ordinary_text_about_passwords_stays),
	TEST(test_authorization_headers_keep_their_scheme),
	TEST(test_passwords_in_urls),
	TEST(test_private_keys_go_from_begin_to_end),
	TEST(test_begin_without_end_does_not_swallow_ordinary_text),
	TEST(test_endless_secrets_are_swallowed_without_being_held),
	TEST(test_bounds_are_the_same_wherever_a_write_ends),
	TEST(test_only_bytes_that_may_be_replaced_are_held),
	TEST(test_literals_and_shapes_merge),
	TEST(test_shapes_do_not_depend_on_the_chunking),
};

TEST_MAIN(tests)
