/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/escape.c - make untrusted names harmless
 */
#include "base/escape.h"

#include <string.h>

#include "base/utf8.h"

/* The code point of a character that utf8_character() found valid. */
static uint32_t code_point(const unsigned char *bytes, size_t len)
{
	static const unsigned char first_byte_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t code = bytes[0] & first_byte_mask[len];

	for (size_t i = 1; i < len; i++)
		code = code << 6 | (bytes[i] & 0x3f);
	return code;
}

/* Characters that take effect instead of being seen: C0, C1, bidirectional controls, line separators, BOM. */
static bool is_control(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f},   {0x2028, 0x202e},
		{0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
	};

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

static void escape_byte(struct text *out, unsigned char byte)
{
	switch (byte) {
	case '\n':
		text_append_string(out, "\\n");
		break;
	case '\t':
		text_append_string(out, "\\t");
		break;
	case '\r':
		text_append_string(out, "\\r");
		break;
	default:
		text_append_format(out, "\\x%02x", byte);
		break;
	}
}

void escape_append(struct text *out, const char *string, size_t max)
{
	const unsigned char *bytes = (const unsigned char *)string;
	size_t len = strnlen(string, max);
	bool is_cut;

	for (size_t i = 0; i < len;) {
		size_t character_len = utf8_character(bytes + i, len - i, &is_cut);

		if (character_len > 0 && !is_control(code_point(bytes + i, character_len))) {
			text_append(out, bytes + i, character_len);
			i += character_len;
			continue;
		}
		for (size_t end = i + MAX_OF(character_len, 1); i < end; i++)
			escape_byte(out, bytes[i]);
	}
	if (string[len])
		text_append_string(out, "...");
}
