/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_gate_sniff.c - whom first bytes are for: cut anywhere, said twice, or not at all
 */
#include "gate/gate_sniff.h"
#include "test.h"

static void append_number(struct text *text, size_t number, int size)
{
	while (size--)
		text_append_char(text, (char)(number >> size * 8));
}

static void append_part(struct text *text, const struct text *part, int size)
{
	append_number(text, part->len, size);
	text_append(text, part->data, part->len);
}

static void append_name(struct text *extensions, const char *name)
{
	AUTO_TEXT list = {0}, body = {0};

	append_number(&list, 0, 1);
	append_number(&list, strlen(name), 2);
	text_append_string(&list, name);
	append_part(&body, &list, 2);
	append_number(extensions, 0, 2);
	append_part(extensions, &body, 2);
}

/* A ClientHello with these names, in records of @record_len bytes. */
static void make_hello(struct text *out, const char *first, const char *second, size_t record_len)
{
	AUTO_TEXT extensions = {0}, hello = {0}, message = {0};

	append_number(&extensions, 43, 2);
	append_number(&extensions, 3, 2);
	append_number(&extensions, 0x020304, 3);
	if (first)
		append_name(&extensions, first);
	if (second)
		append_name(&extensions, second);
	append_number(&hello, 0x0303, 2);
	for (int i = 0; i < 32; i++)
		text_append_char(&hello, 'r');
	append_number(&hello, 0, 1);
	append_number(&hello, 2, 2);
	append_number(&hello, 0x1301, 2);
	append_number(&hello, 0x0100, 2);
	append_part(&hello, &extensions, 2);
	append_number(&message, 1, 1);
	append_part(&message, &hello, 3);
	for (size_t at = 0; at < message.len; at += record_len) {
		size_t len = MIN_OF(record_len, message.len - at);

		append_number(out, 22, 1);
		append_number(out, 0x0301, 2);
		append_number(out, len, 2);
		text_append(out, message.data + at, len);
	}
}

static enum sniff sniff(const struct text *text, struct sniffed *said)
{
	return gate_sniff_first_bytes((const uint8_t *)text->data, text->len, said);
}

static void check_bytes(const char *bytes, size_t len, enum sniff expected, const char *name)
{
	struct sniffed said;

	CHECK_INT(gate_sniff_first_bytes((const uint8_t *)bytes, len, &said), expected);
	if (name)
		CHECK_STRING(said.name, name);
}

static void check(const char *text, enum sniff expected, const char *name)
{
	check_bytes(text, strlen(text), expected, name);
}

static void test_a_server_name_is_found_however_it_is_cut(void)
{
	for (size_t record_len = 1; record_len < 130; record_len += 3) {
		AUTO_TEXT hello = {0};
		struct sniffed said;

		make_hello(&hello, "Good.test", NULL, record_len);
		CHECK_INT(sniff(&hello, &said), SNIFF_FOUND);
		CHECK_STRING(said.name, "good.test");
		/* Byte by byte: never an answer before all is there. */
		for (size_t len = 0; len < hello.len; len++)
			CHECK_INT(gate_sniff_first_bytes((const uint8_t *)hello.data, len, &said), SNIFF_MORE);
	}
}

static void test_tls_without_one_name_is_bad(void)
{
	struct sniffed said;
	AUTO_TEXT none = {0}, two = {0}, address = {0}, empty = {0};

	make_hello(&none, NULL, NULL, 1000);
	CHECK_INT(sniff(&none, &said), SNIFF_BAD);
	make_hello(&two, "good.test", "evil.test", 1000);
	CHECK_INT(sniff(&two, &said), SNIFF_BAD);
	make_hello(&address, "10.0.0.1", NULL, 1000);
	CHECK_INT(sniff(&address, &said), SNIFF_BAD);
	make_hello(&empty, "", NULL, 1000);
	CHECK_INT(sniff(&empty, &said), SNIFF_BAD);
	/* Not a ClientHello; a record of nothing; a length that leads nowhere. */
	check_bytes("\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9, SNIFF_BAD, NULL);
	check_bytes("\x16\x03\x01\x00\x00", 5, SNIFF_BAD, NULL);
	check_bytes("\x16\x03\x01\xff\xff", 5, SNIFF_BAD, NULL);
	check_bytes("\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9, SNIFF_BAD, NULL);
	check_bytes("\x16\x03\x01\x00\x05\x01\x00\x00\x01x", 10, SNIFF_BAD, NULL);
	/* Another record in between. */
	check_bytes("\x16\x03\x01\x00\x01\x01\x17\x03\x01\x00\x01x", 12, SNIFF_BAD, NULL);
}

static void test_a_hello_stands_alone(void)
{
	AUTO_TEXT hello = {0}, other = {0}, both = {0};
	struct sniffed said;

	make_hello(&hello, "good.test", NULL, 1000);
	CHECK_INT(sniff(&hello, &said), SNIFF_FOUND);
	CHECK_INT(said.hello_len, hello.len);
	/* Behind it there may be anything, which is not counted; in its last record nothing. */
	text_append(&both, hello.data, hello.len);
	text_append_string(&both, "early data");
	CHECK_INT(sniff(&both, &said), SNIFF_FOUND);
	CHECK_INT(said.hello_len, hello.len);
	hello.data[4] = (char)(hello.data[4] + 1);
	CHECK_INT(sniff(&hello, &said), SNIFF_BAD);
	text_append_char(&hello, 1);
	CHECK_INT(sniff(&hello, &said), SNIFF_BAD);
	/* Records of other kinds before it. */
	for (char kind = 20; kind <= 24; kind++) {
		text_clear(&other);
		text_append_char(&other, kind);
		CHECK_INT(sniff(&other, &said), SNIFF_MORE);
		text_append(&other, "\x03\x03\0\x02\x01", 6);
		CHECK_INT(sniff(&other, &said), kind == 22 ? SNIFF_MORE : SNIFF_BAD);
	}
}

static void test_a_second_hello_is_told_from_a_first(void)
{
	static const uint8_t retry[] = {22,   3,    3,    0,    88,   2,    0,    0,    84,   3,    3,
					0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
					0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
					0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};
	static const char before[] = "\x14\x03\x03\0\x01\x01\x17\x03\x03\0\x04"
				     "data";
	uint8_t answer[sizeof(retry)];
	AUTO_TEXT hello = {0}, text = {0};
	struct sniffed said;

	for (size_t len = 0; len < sizeof(retry); len++)
		CHECK_INT(gate_sniff_retry(retry, len), SNIFF_MORE);
	CHECK_INT(gate_sniff_retry(retry, sizeof(retry)), SNIFF_FOUND);
	for (size_t at = 11; at < sizeof(retry); at++) {
		memcpy(answer, retry, sizeof(retry));
		answer[at] ^= 1;
		CHECK_INT(gate_sniff_retry(answer, sizeof(answer)), SNIFF_NONE);
	}
	CHECK_INT(gate_sniff_retry((const uint8_t *)"\x15\x03\x03\0\x02\x02\x28", 7), SNIFF_NONE);
	CHECK_INT(gate_sniff_retry((const uint8_t *)"HTTP", 4), SNIFF_NONE);
	make_hello(&hello, "good.test", NULL, 7);
	text_append(&text, before, sizeof(before) - 1);
	text_append(&text, hello.data, hello.len);
	for (size_t len = 0; len < text.len; len++)
		CHECK_INT(gate_sniff_second_hello((const uint8_t *)text.data, len, &said), SNIFF_MORE);
	CHECK_INT(gate_sniff_second_hello((const uint8_t *)text.data, text.len, &said), SNIFF_FOUND);
	CHECK_STRING(said.name, "good.test");
	CHECK_INT(gate_sniff_second_hello((const uint8_t *)"\x15\x03\x03\0\x02\x01\x5a", 7, &said), SNIFF_BAD);
	CHECK_INT(gate_sniff_second_hello((const uint8_t *)"\x17\x03\x03\xff\xff", 5, &said), SNIFF_BAD);
}

static void test_host_is_found(void)
{
	check("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n", SNIFF_FOUND, "good.test");
	check("GET / HTTP/1.1\r\nA: b\r\nhOsT:\t Good.Test. \r\nC: Host: x\r\n\r\nbody", SNIFF_FOUND, "good.test");
	check("OPTIONS * HTTP/1.1\r\nHost: good.test\r\n\r\n", SNIFF_FOUND, "good.test");
	check("GET http://good.test/x HTTP/1.1\r\nHost: good.test\r\n\r\n", SNIFF_FOUND, "good.test");
	for (size_t len = 0; len < 34; len++)
		check_bytes("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n", len, SNIFF_MORE, NULL);
}

static void test_port_of_the_host_is_read(void)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: good.test:8080\r\n\r\n";
	struct sniffed said;

	CHECK_INT(gate_sniff_first_bytes((const uint8_t *)request, strlen(request), &said), SNIFF_FOUND);
	CHECK_INT(said.port, 8080);
}

static void test_http_that_can_be_read_in_two_ways_is_bad(void)
{
	static const char *const requests[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: good.test\r\nHost: evil.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: good.test\r\nHost: good.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : good.test\r\n\r\n",
		"GET / HTTP/1.1\r\n Host: good.test\r\n\r\n",
		"GET / HTTP/1.1\r\nA: b\r\n Host: evil.test\r\nHost: good.test\r\n\r\n",
		"GET / HTTP/1.1\nHost: good.test\n\n",
		"GET / HTTP/1.1\r\nHost: good.test\n\r\n",
		"GET / HTTP/1.1\r\nA: \rHost: evil.test\r\nHost: good.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: good.test, evil.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: evil.test@good.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: good.test:\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: good.test:99999\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: good.test:80:90\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost:\r\n\r\n",
		"GET http://evil.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"GET ftp://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"GET  / HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"CONNECT evil.test:443 HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"\n\r\n\nGET / HTTP/1.1\r\nHost: good.test\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(requests); i++)
		check(requests[i], SNIFF_BAD, NULL);
}

static void test_other_protocols_are_told_apart(void)
{
	check("SSH-2.0-OpenSSH\r\n", SNIFF_NONE, NULL);
	check("\x03\x00\x00\x13", SNIFF_NONE, NULL);
	check("*1\r\n$4\r\nPING\r\n", SNIFF_NONE, NULL);
	check("PING\r\n", SNIFF_NONE, NULL);
	check("GET key\r\n", SNIFF_NONE, NULL);
	check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SNIFF_NONE, NULL);
	check("GET / HTTP/1.0\r\n\r\n", SNIFF_NONE, NULL);
	check("\r\nhello\r\n", SNIFF_NONE, NULL);
	check("\r\n", SNIFF_MORE, NULL);
	check("\x16\x02", SNIFF_NONE, NULL);
	check("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", SNIFF_NONE, NULL);
}

static void test_there_is_an_end_to_waiting(void)
{
	AUTO_TEXT text = {0};
	struct sniffed said;

	text_append_string(&text, "GET /");
	while (text.len < SNIFF_BYTES_MAX)
		text_append_char(&text, 'x');
	CHECK_INT(sniff(&text, &said), SNIFF_BAD);
}

static const struct test tests[] = {
	TEST(test_a_server_name_is_found_however_it_is_cut),
	TEST(test_tls_without_one_name_is_bad),
	TEST(test_a_hello_stands_alone),
	TEST(test_a_second_hello_is_told_from_a_first),
	TEST(test_host_is_found),
	TEST(test_port_of_the_host_is_read),
	TEST(test_http_that_can_be_read_in_two_ways_is_bad),
	TEST(test_other_protocols_are_told_apart),
	TEST(test_there_is_an_end_to_waiting),
};

TEST_MAIN(tests)
