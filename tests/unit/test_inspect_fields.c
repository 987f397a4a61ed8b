/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_inspect_fields.c - one block of headers of HTTP/2: what is a request, an answer, trailers, and what is none
 */
#include "gate/inspect/inspect_fields.h"

#include <errno.h>

#include "test.h"

static struct fields fields;
static struct http_head head;

/* Names and values. */
static void take(const char *const *words)
{
	inspect_fields_clear(&fields);
	for (; words[0]; words += 2)
		inspect_fields_add(&fields, (struct http_slice){words[0], strlen(words[0])},
				   (struct http_slice){words[1], strlen(words[1])});
}

#define TAKE(...) take((const char *const[]){__VA_ARGS__, NULL})
#define P ":method", "GET", ":scheme", "https", ":path", "/"
#define A ":authority", "a.test"

static void check_request(const char *why)
{
	int rc = inspect_fields_read_request(&fields, &head);

	if (why && (rc != -EINVAL || !strstr(head.why, why)))
		printf("not '%s' but '%s'\n", why, head.why ? head.why : "nothing");
	CHECK_INT(rc, why ? -EINVAL : 0);
	CHECK(!why || strstr(head.why, why));
}

static void test_a_request(void)
{
	TAKE(P, A, "x-one", "1", "te", "trailers", "host", "A.TEST", "content-length", "5");
	check_request(NULL);
	CHECK_STRING(head.method, "GET");
	CHECK(http_is(head.target, "/") && http_is(head.host, "a.test") && head.body_bytes == 5);
	/* Without the Host, which the authority stands for. */
	CHECK_INT(head.header_count, 3);
	CHECK(http_is(head.headers[2].name, "content-length"));
	TAKE(P, "host", "a.test");
	check_request(NULL);
	CHECK(http_is(head.host, "a.test") && head.header_count == 0);
	TAKE(A, ":method", "OPTIONS", ":scheme", "https", ":path", "*");
	check_request(NULL);
}

static void test_what_is_no_request(void)
{
	static const struct {
		const char *words[14];
		const char *why;
	} bad[] = {
		{{P, A, A}, "twice"},
		{{P, A, ":path", "/2"}, "twice"},
		{{P, A, ":status", "200"}, "may not stand there"},
		{{P, A, ":protocol", "websocket"}, "may not stand there"},
		{{P, A, ":Path", "/"}, "may not stand there"},
		{{P, "x", "1", A}, "behind other headers"},
		{{P}, "no authority"},
		{{P, ":authority", ""}, "no authority"},
		{{A, ":method", "GET", ":scheme", "https"}, "without a method"},
		{{A, ":method", "GET", ":path", "/"}, "without a method"},
		{{A, ":scheme", "https", ":path", "/"}, "without a method"},
		{{A, ":method", "GET", ":scheme", "http", ":path", "/"}, "https"},
		{{A, ":method", "CONNECT"}, "CONNECT"},
		{{A, ":method", "CONNECT", ":scheme", "https", ":path", "/"}, "CONNECT"},
		{{A, ":method", "", ":scheme", "https", ":path", "/"}, "an invalid method"},
		{{A, ":method", "G T", ":scheme", "https", ":path", "/"}, "method"},
		{{A, ":method", "GET", ":scheme", "https", ":path", ""}, "begin"},
		{{A, ":method", "GET", ":scheme", "https", ":path", "a"}, "begin"},
		{{A, ":method", "GET", ":scheme", "https", ":path", "/a b"}, "characters"},
		{{A, ":method", "GET", ":scheme", "https", ":path", "/a\r\n"}, "characters"},
		{{P, A, "host", "b.test"}, "not the authority"},
		{{P, A, "host", "a.test", "host", "a.test"}, "two Host"},
		{{P, A, "Host", "a.test"}, "capital"},
		{{P, A, "connection", "close"}, "HTTP/1.1"},
		{{P, A, "keep-alive", "1"}, "HTTP/1.1"},
		{{P, A, "proxy-connection", "x"}, "HTTP/1.1"},
		{{P, A, "transfer-encoding", "chunked"}, "HTTP/1.1"},
		{{P, A, "upgrade", "h2c"}, "HTTP/1.1"},
		{{P, A, "te", "gzip"}, "HTTP/1.1"},
		{{P, A, "x", "a\r\nb"}, "control"},
		{{P, A, "x\n", "a"}, "name"},
		{{P, A, "", "a"}, "name"},
		{{P, A, "x", " a"}, "blanks"},
		{{P, A, "x", "a\t"}, "blanks"},
		{{P, A, "content-length", "x"}, "Content-Length"},
		{{P, A, "content-length", "1", "content-length", "1"}, "Content-Length"},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		take(bad[i].words);
		check_request(bad[i].why);
	}
}

static void test_answers_and_trailers(void)
{
	static const char *const bad_answers[][6] = {
		{"x", "1"},
		{":status", "20"},
		{":status", "2x0"},
		{":status", "099"},
		{":status", "600"},
		{":status", "101"},
		{":status", "200", ":status", "200"},
		{":status", "200", ":path", "/"},
		{":status", "200", "connection", "close"},
		{":status", "200", "x", "a\nb"},
	};

	TAKE(":status", "404", "x", "");
	CHECK_INT(inspect_fields_read_answer(&fields, &head), 0);
	CHECK(head.status == 404 && head.header_count == 1 && !head.headers[0].value.len);
	for (size_t i = 0; i < ARRAY_LEN(bad_answers); i++) {
		take(bad_answers[i]);
		CHECK_INT(inspect_fields_read_answer(&fields, &head), -EINVAL);
	}
	TAKE("grpc-status", "0");
	CHECK_INT(inspect_fields_read_trailers(&fields, &head), 0);
	TAKE("grpc-status", "0", ":status", "200");
	CHECK_INT(inspect_fields_read_trailers(&fields, &head), -EINVAL);
	TAKE(":status", "200");
	CHECK_INT(inspect_fields_read_trailers(&fields, &head), -EINVAL);
}

static void test_a_block_has_an_end(void)
{
	static char long_value[20000];

	memset(long_value, 'a', sizeof(long_value) - 1);
	TAKE(P, A, "x", long_value, "x", long_value, "x", long_value);
	check_request(NULL);
	inspect_fields_add(&fields, (struct http_slice){"x", 1}, (struct http_slice){long_value, 19999});
	check_request("64 KiB");
	CHECK(fields.bytes.len < HTTP_HEAD_MAX);
	/* What came too late is counted, and not kept. */
	for (int i = 0; i < 100; i++)
		inspect_fields_add(&fields, (struct http_slice){"x", 1}, (struct http_slice){long_value, 19999});
	CHECK(fields.bytes.len < HTTP_HEAD_MAX && fields.seen_bytes > 2000000);
	TAKE(P, A);
	for (int i = 0; i <= HTTP_HEADERS_MAX; i++)
		inspect_fields_add(&fields, (struct http_slice){"x", 1}, (struct http_slice){"", 0});
	check_request("too many");
	inspect_fields_done(&fields);
}

static const struct test tests[] = {
	TEST(test_a_request),
	TEST(test_what_is_no_request),
	TEST(test_answers_and_trailers),
	TEST(test_a_block_has_an_end),
};

int main(void)
{
	return test_main(tests, sizeof(tests) / sizeof(tests[0]));
}
