/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_base64.c - the vectors of RFC 4648, every byte value, and a way back
 */
#include "base/base64.h"
#include "test.h"

struct vector {
	const char *bytes;
	const char *encoded;
};

static void test_vectors_of_rfc_4648(void)
{
	static const struct vector vectors[] = {
		{"", ""},
		{"f", "Zg=="},
		{"fo", "Zm8="},
		{"foo", "Zm9v"},
		{"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"},
		{"\xfb\xff\xbf", "+/+/"},
	};

	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		AUTO_TEXT out = {0};

		base64_append(&out, vectors[i].bytes, strlen(vectors[i].bytes));
		CHECK_STRING(text_string(&out), vectors[i].encoded);
		CHECK_INT(out.len, strlen(vectors[i].encoded));
	}
}

static void test_encoding_is_appended(void)
{
	AUTO_TEXT out = {0};

	text_append_string(&out, "<");
	base64_append(&out, "\0\0", 2);
	base64_append(&out, "", 0);
	base64_append(&out, "foo", 3);
	CHECK_STRING(text_string(&out), "<AAA=Zm9v");
}

static int decode_digit(char digit)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	return digit == '=' ? 0 : (int)(strchr(alphabet, digit) - alphabet);
}

static void test_every_length_and_byte_can_be_decoded(void)
{
	unsigned char bytes[300];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7);
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		AUTO_TEXT out = {0};
		bool is_same = true;

		base64_append(&out, bytes, len);
		CHECK_INT(out.len, (len + 2) / 3 * 4);
		for (size_t i = 0; i < len; i++) {
			const char *group = out.data + i / 3 * 4;
			uint32_t value = (uint32_t)decode_digit(group[0]) << 18 |
					 (uint32_t)decode_digit(group[1]) << 12 |
					 (uint32_t)decode_digit(group[2]) << 6 | (uint32_t)decode_digit(group[3]);

			is_same &= (unsigned char)(value >> (16 - 8 * (i % 3))) == bytes[i];
		}
		CHECK(is_same);
	}
}

static void test_failed_text_stays_failed(void)
{
	struct text out = {.has_failed = true};

	base64_append(&out, "foo", 3);
	CHECK(text_failed(&out));
	CHECK_INT(out.len, 0);
}

static const struct test tests[] = {
	TEST(test_vectors_of_rfc_4648),
	TEST(test_encoding_is_appended),
	TEST(test_every_length_and_byte_can_be_decoded),
	TEST(test_failed_text_stays_failed),
};

TEST_MAIN(tests)
