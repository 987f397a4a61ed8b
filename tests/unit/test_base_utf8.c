/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_utf8.c - UTF-8: every boundary of the definition, and where it is broken or merely cut
 */
#include "test.h"

#include "base/utf8.h"

#define BYTES(text) (const unsigned char *)(text), sizeof(text) - 1

struct row {
	const char *bytes;
	size_t len;
	size_t character; /* 0: none */
	bool is_cut;
	size_t bad_span; /* where there is no character */
};

#define ROW(text, character, is_cut, bad_span)                                                                         \
	{                                                                                                              \
		text, sizeof(text) - 1, character, is_cut, bad_span                                                    \
	}

static const struct row rows[] = {
	/* the first and last character of each length */
	ROW("\x00", 1, false, 0),
	ROW("\x7f", 1, false, 0),
	ROW("\xc2\x80", 2, false, 0),
	ROW("\xdf\xbf", 2, false, 0),
	ROW("\xe0\xa0\x80", 3, false, 0),
	ROW("\xef\xbf\xbf", 3, false, 0),
	ROW("\xf0\x90\x80\x80", 4, false, 0),
	ROW("\xf4\x8f\xbf\xbf", 4, false, 0),
	/* next to the surrogates */
	ROW("\xed\x9f\xbf", 3, false, 0),
	ROW("\xee\x80\x80", 3, false, 0),
	/* what follows does not matter */
	ROW("\xc3\xa4\xff", 2, false, 0),
	ROW("a\xff", 1, false, 0),
	/* no lead byte */
	ROW("\x80", 0, false, 1),
	ROW("\xbf\x80", 0, false, 1),
	ROW("\xfe", 0, false, 1),
	ROW("\xff\xbf", 0, false, 1),
	/* overlong */
	ROW("\xc0\x80", 0, false, 1),
	ROW("\xc1\xbf", 0, false, 1),
	ROW("\xe0\x80\x80", 0, false, 1),
	ROW("\xe0\x9f\xbf", 0, false, 1),
	ROW("\xf0\x80\x80\x80", 0, false, 1),
	ROW("\xf0\x8f\xbf\xbf", 0, false, 1),
	/* surrogates */
	ROW("\xed\xa0\x80", 0, false, 1),
	ROW("\xed\xbf\xbf", 0, false, 1),
	/* above U+10FFFF */
	ROW("\xf4\x90\x80\x80", 0, false, 1),
	ROW("\xf5\x80\x80\x80", 0, false, 1),
	/* broken off by something else: the maximal subpart */
	ROW("\xc3 ", 0, false, 1),
	ROW("\xe1\x80 ", 0, false, 2),
	ROW("\xe1\x80\xe2", 0, false, 2),
	ROW("\xf1\x80\x80 ", 0, false, 3),
	ROW("\xf1\x80\xc3", 0, false, 2),
	ROW("\xf0\x90\x80\xff", 0, false, 3),
	/* cut by the end */
	ROW("\xc3", 0, true, 1),
	ROW("\xe1", 0, true, 1),
	ROW("\xe1\x80", 0, true, 2),
	ROW("\xf4\x8f", 0, true, 2),
	ROW("\xf4\x8f\xbf", 0, true, 3),
	/* cut, but broken already */
	ROW("\xe0\x80", 0, false, 1),
	ROW("\xed\xa0", 0, false, 1),
	ROW("\xf4\x90", 0, false, 1),
};

static void test_characters_at_every_boundary(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const unsigned char *bytes = (const unsigned char *)rows[i].bytes;
		bool is_cut = !rows[i].is_cut;
		size_t character = utf8_character(bytes, rows[i].len, &is_cut);
		size_t span = character ? 0 : utf8_bad_span(bytes, rows[i].len);

		if (character != rows[i].character || is_cut != rows[i].is_cut || span != rows[i].bad_span) {
			printf("row %zu: %zu bytes, cut %d, span %zu\n", i, character, is_cut, span);
			CHECK(false);
		}
	}
}

static void test_nothing_is_no_character(void)
{
	bool is_cut = true;

	CHECK_INT(utf8_character((const unsigned char *)"a", 0, &is_cut), 0);
	CHECK(!is_cut);
}

/* Every code point, encoded by the definition, is one character; every other 3-byte lead and second byte is none. */
static void test_every_code_point_is_one_character(void)
{
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		unsigned char bytes[4];
		size_t len;
		bool is_cut, is_surrogate = code >= 0xd800 && code <= 0xdfff;

		if (code < 0x80) {
			len = 1;
			bytes[0] = (unsigned char)code;
		} else if (code < 0x800) {
			len = 2;
			bytes[0] = (unsigned char)(0xc0 | code >> 6);
		} else if (code < 0x10000) {
			len = 3;
			bytes[0] = (unsigned char)(0xe0 | code >> 12);
		} else {
			len = 4;
			bytes[0] = (unsigned char)(0xf0 | code >> 18);
		}
		for (size_t i = 1; i < len; i++)
			bytes[i] = (unsigned char)(0x80 | (code >> (6 * (len - 1 - i)) & 0x3f));
		if (utf8_character(bytes, len, &is_cut) != (is_surrogate ? 0 : len) ||
		    utf8_is_valid(bytes, len) == is_surrogate) {
			printf("U+%04X\n", (unsigned)code);
			CHECK(false);
			return;
		}
	}
}

static void test_cut_tail_is_what_may_still_become_a_character(void)
{
	CHECK_INT(utf8_cut_tail(BYTES("")), 0);
	CHECK_INT(utf8_cut_tail(BYTES("abc")), 0);
	CHECK_INT(utf8_cut_tail(BYTES("abc\xc3")), 1);
	CHECK_INT(utf8_cut_tail(BYTES("abc\xe2\x82")), 2);
	CHECK_INT(utf8_cut_tail(BYTES("abc\xf0\x9f\x98")), 3);
	CHECK_INT(utf8_cut_tail(BYTES("abc\xf0\x9f\x98\x80")), 0);
	CHECK_INT(utf8_cut_tail(BYTES("abc\xe2\x82\xac")), 0);
	/* never to become one */
	CHECK_INT(utf8_cut_tail(BYTES("\x80")), 0);
	CHECK_INT(utf8_cut_tail(BYTES("\xff\x80\x80")), 0);
	CHECK_INT(utf8_cut_tail(BYTES("\xed\xa0")), 0);
	CHECK_INT(utf8_cut_tail(BYTES("\xf0\x8f\xbf")), 0);
	/* at the very beginning */
	CHECK_INT(utf8_cut_tail(BYTES("\xe2")), 1);
	CHECK_INT(utf8_cut_tail(BYTES("\xf0\x9f\x98")), 3);
}

static void test_validity_of_whole_strings(void)
{
	CHECK(utf8_is_valid(BYTES("")));
	CHECK(utf8_is_valid(BYTES("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80")));
	CHECK(!utf8_is_valid(BYTES("ends in \xe2\x82")));
	CHECK(!utf8_is_valid(BYTES("\xff begins")));
	CHECK(!utf8_is_valid(BYTES("in the \xc0\xaf middle")));
}

static const struct test tests[] = {
	TEST(test_characters_at_every_boundary),      TEST(test_nothing_is_no_character),
	TEST(test_every_code_point_is_one_character), TEST(test_cut_tail_is_what_may_still_become_a_character),
	TEST(test_validity_of_whole_strings),
};

TEST_MAIN(tests)
