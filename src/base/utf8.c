/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/utf8.c - UTF-8 as the Unicode standard has it: no overlong forms, no surrogates, nothing above U+10FFFF
 */
#include "base/utf8.h"

/* For each kind of lead byte: the length, and the range of the second byte, which excludes the invalid rest. */
struct lead {
	unsigned char first, last;
	unsigned char len;
	unsigned char second_min, second_max;
};

static const struct lead leads[] = {
	{0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf}, {0xe1, 0xec, 3, 0x80, 0xbf},
	{0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf}, {0xf0, 0xf0, 4, 0x90, 0xbf},
	{0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

static const struct lead *find_lead(unsigned char byte)
{
	for (size_t i = 0; i < ARRAY_LEN(leads); i++)
		if (byte >= leads[i].first && byte <= leads[i].last)
			return &leads[i];
	return NULL;
}

/* Count the well-formed bytes from @bytes on, for a lead byte that is not ASCII. */
static size_t well_formed_prefix(const struct lead *lead, const unsigned char *bytes, size_t len)
{
	size_t good = 1;

	if (len > 1 && bytes[1] >= lead->second_min && bytes[1] <= lead->second_max)
		for (good = 2; good < lead->len && good < len && (bytes[good] & 0xc0) == 0x80;)
			good++;
	return good;
}

size_t utf8_character(const unsigned char *bytes, size_t len, bool *is_cut)
{
	const struct lead *lead;
	size_t good;

	*is_cut = false;
	if (!len)
		return 0;
	if (bytes[0] < 0x80)
		return 1;
	lead = find_lead(bytes[0]);
	if (!lead)
		return 0;
	good = well_formed_prefix(lead, bytes, len);
	if (good == lead->len)
		return good;
	*is_cut = good == len;
	return 0;
}

size_t utf8_bad_span(const unsigned char *bytes, size_t len)
{
	const struct lead *lead = find_lead(bytes[0]);

	return lead ? well_formed_prefix(lead, bytes, len) : 1;
}

size_t utf8_cut_tail(const unsigned char *bytes, size_t len)
{
	bool is_cut;

	for (size_t tail = 1; tail <= 3 && tail <= len; tail++) {
		utf8_character(bytes + len - tail, tail, &is_cut);
		if (is_cut)
			return tail;
		if ((bytes[len - tail] & 0xc0) != 0x80)
			return 0;
	}
	return 0;
}

bool utf8_is_valid(const unsigned char *bytes, size_t len)
{
	bool is_cut;

	for (size_t at = 0; at < len;) {
		size_t character = utf8_character(bytes + at, len - at, &is_cut);

		if (!character)
			return false;
		at += character;
	}
	return true;
}
