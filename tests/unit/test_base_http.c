/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_http.c - HTTP/1.1: what is a head, what a body, and what is neither
 */
#include "base/http.h"

#include <errno.h>

#include "test.h"

#define HOST "Host: a.test\r\n"

static struct http_head head;

static ssize_t read_request(const char *text)
{
	return http_read_request(text, strlen(text), &head);
}

static ssize_t read_answer(const char *text, const char *method)
{
	return http_read_answer(text, strlen(text), method, &head);
}

static void check_refused(const char *text, const char *why)
{
	CHECK_INT(read_request(text), -EINVAL);
	CHECK(head.why && strstr(head.why, why));
}

static void test_a_request_is_read_wherever_it_is_cut(void)
{
	static const char text[] = "POST /v1?x HTTP/1.1\r\n" HOST "content-length: 12\r\nX:\t a b \r\n\r\nhello";
	ssize_t whole = (ssize_t)(strlen(text) - strlen("hello"));

	for (ssize_t len = 0; len < whole; len++)
		CHECK_INT(http_read_request(text, (size_t)len, &head), 0);
	CHECK_INT(read_request(text), whole);
	CHECK_STRING(head.method, "POST");
	CHECK(http_is(head.target, "/v1?x") && http_is(head.host, "a.test"));
	CHECK(head.body_kind == HTTP_BODY_LENGTH && head.body_bytes == 12 && !head.is_last);
	CHECK(http_is(head.headers[2].value, "a b"));
}

static void test_what_could_be_read_in_two_ways_is_refused(void)
{
	check_refused("GET / HTTP/1.1\n" HOST "\r\n", "CR LF");
	check_refused("GET / HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n", "CR LF");
	check_refused("\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "not a request");
	check_refused("GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n", "next line");
	check_refused("GET / HTTP/1.1\r\n A: b\r\n" HOST "\r\n", "next line");
	check_refused("GET / HTTP/1.1\r\n" HOST HOST "\r\n", "two Host");
	check_refused("GET / HTTP/1.1\r\n\r\n", "no Host");
	check_refused("GET / HTTP/1.1\r\n" HOST "A\r\n\r\n", "colon");
	check_refused("GET / HTTP/1.1\r\n" HOST "A b: c\r\n\r\n", "name");
	check_refused("GET / HTTP/1.1\r\n" HOST ": c\r\n\r\n", "name");
	check_refused("GET / HTTP/1.1\r\n" HOST "A: \x01\r\n\r\n", "control");
	check_refused("GET / HTTP/1.0\r\n" HOST "\r\n", "HTTP/1.1");
	check_refused("GET / HTTP/1.1 \r\n" HOST "\r\n", "HTTP/1.1");
	check_refused("GET\t/ HTTP/1.1\r\n" HOST "\r\n", "not a request");
	check_refused("GET a.test HTTP/1.1\r\n" HOST "\r\n", "begin with");
	check_refused("GET * HTTP/1.1\r\n" HOST "\r\n", "begin with");
	check_refused("CONNECT a.test:443 HTTP/1.1\r\n" HOST "\r\n", "CONNECT");
	check_refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both");
	check_refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", "single number");
	check_refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n", "single number");
	check_refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n", "single number");
	check_refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 9999999999999999999\r\n\r\n", "single number");
	check_refused("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", "other than chunked");
	CHECK(read_request("OPTIONS * HTTP/1.1\r\n" HOST "\r\n") > 0);
	/* What is named there is not passed on: the body would be another request. */
	check_refused("POST / HTTP/1.1\r\n" HOST "Connection: close, content-Length\r\nContent-Length: 1\r\n\r\n",
		      "Connection");
	check_refused("GET / HTTP/1.1\r\n" HOST "Connection: host\r\n\r\n", "Connection");
}

static void test_heads_have_an_end(void)
{
	AUTO_TEXT text = {0};

	text_append_string(&text, "GET / HTTP/1.1\r\n" HOST "A: ");
	while (text.len < HTTP_HEAD_MAX)
		text_append_char(&text, 'a');
	check_refused(text_string(&text), "64 KiB");
	text_clear(&text);
	text_append_string(&text, "GET / HTTP/1.1\r\n" HOST);
	for (int i = 0; i < HTTP_HEADERS_MAX; i++)
		text_append_string(&text, "A: b\r\n");
	text_append_string(&text, "\r\n");
	check_refused(text_string(&text), "too many");
}

static void test_an_answer_says_how_its_body_ends(void)
{
	CHECK(read_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET") > 0);
	CHECK(head.status == 200 && head.body_kind == HTTP_BODY_LENGTH && head.body_bytes == 5);
	CHECK(read_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD") > 0);
	CHECK_INT(head.body_kind, HTTP_BODY_NONE);
	CHECK(read_answer("HTTP/1.1 200\r\n\r\n", "GET") > 0);
	CHECK_INT(head.body_kind, HTTP_BODY_REST);
	CHECK(read_answer("HTTP/1.0 200 \r\nTransfer-Encoding: chunked\r\n\r\n", "GET") > 0);
	CHECK(head.body_kind == HTTP_BODY_CHUNKED && head.is_last);
	CHECK(read_answer("HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n", "GET") > 0);
	CHECK_INT(head.body_kind, HTTP_BODY_NONE);
	CHECK_INT(read_answer("HTTP/2 200 OK\r\n\r\n", "GET"), -EINVAL);
	CHECK_INT(read_answer("HTTP/1.1 2000 OK\r\n\r\n", "GET"), -EINVAL);
	CHECK_INT(read_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "GET"),
		  -EINVAL);
}

static void test_headers_for_one_hop(void)
{
	CHECK(read_request("GET / HTTP/1.1\r\n" HOST
			   "Connection: keep-alive, x-own, close\r\nX-Own: 1\r\nX-Other: 2\r\n"
			   "Upgrade: h2c\r\n\r\n") > 0);
	CHECK(head.is_last && head.upgrade == HTTP_UPGRADE_OTHER);
	CHECK(http_is_for_one_hop(&head, &head.headers[1]) && http_is_for_one_hop(&head, &head.headers[2]));
	CHECK(!http_is_for_one_hop(&head, &head.headers[3]) && http_is_for_one_hop(&head, &head.headers[4]));
}

/* In pieces of every size. */
static void check_body(const char *text, const char *content, ssize_t used)
{
	for (size_t step = 1; step <= strlen(text); step++) {
		struct http_body body;
		AUTO_TEXT got = {0};
		size_t at = 0, have = 0;
		ssize_t len = 0;

		http_body_init(&body, HTTP_BODY_CHUNKED, 0);
		while (len >= 0 && have < strlen(text) && !body.is_done) {
			struct http_slice part;

			have = MIN_OF(have + step, strlen(text));
			while ((len = http_body_take(&body, text + at, have - at, &part)) > 0) {
				text_append(&got, part.bytes, part.len);
				at += (size_t)len;
			}
		}
		CHECK_INT(len < 0 ? len : (ssize_t)at, used);
		CHECK_INT(body.is_done, used > 0);
		CHECK_STRING(text_string(&got), content);
	}
}

static void test_chunks(void)
{
	check_body("5\r\nhello\r\nA;x=y\r\n, worldly \r\n0\r\n\r\nrest", "hello, worldly ", 34);
	check_body("0\r\nA: b\r\nC: d\r\n\r\n", "", 17);
	check_body("5\nhello", "", -EINVAL);
	check_body("5\r\nhello!\r\n", "hello", -EINVAL);
	check_body(" 5\r\n", "", -EINVAL);
	check_body("+5\r\n", "", -EINVAL);
	check_body("1000000000000000\r\n", "", -EINVAL);
	check_body("0\r\n folded\r\n", "", -EINVAL);
}

static const struct test tests[] = {
	TEST(test_a_request_is_read_wherever_it_is_cut),
	TEST(test_what_could_be_read_in_two_ways_is_refused),
	TEST(test_heads_have_an_end),
	TEST(test_an_answer_says_how_its_body_ends),
	TEST(test_headers_for_one_hop),
	TEST(test_chunks),
};

int main(void)
{
	return test_main(tests, sizeof(tests) / sizeof(tests[0]));
}
