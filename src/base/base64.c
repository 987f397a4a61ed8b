/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/base64.c - bytes as base64 text
 *
 * The room is reserved once and filled in place: captured output may be megabytes, and an append per character would
 * cost more than the encoding.
 */
#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode_group(char *to, uint32_t group)
{
	to[0] = alphabet[group >> 18 & 63];
	to[1] = alphabet[group >> 12 & 63];
	to[2] = alphabet[group >> 6 & 63];
	to[3] = alphabet[group & 63];
}

void base64_append(struct text *out, const void *bytes, size_t len)
{
	const unsigned char *from = bytes;
	size_t group_count = len / 3 + (len % 3 != 0);
	size_t encoded_len;
	char *to;

	if (len == 0)
		return;
	if (__builtin_mul_overflow(group_count, (size_t)4, &encoded_len)) {
		out->has_failed = true;
		return;
	}
	to = text_reserve(out, encoded_len);
	if (!to)
		return;
	for (; len >= 3; from += 3, len -= 3, to += 4)
		encode_group(to, (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2]);
	if (len > 0) {
		encode_group(to, (uint32_t)from[0] << 16 | (len == 2 ? (uint32_t)from[1] << 8 : 0));
		to[3] = '=';
		if (len == 1)
			to[2] = '=';
	}
	out->len += encoded_len;
	out->data[out->len] = '\0';
}
