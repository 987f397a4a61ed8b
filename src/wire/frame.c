/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire/frame.c - the header of a frame, and the table of all kinds
 */
#include "wire/frame.h"

#include <errno.h>
#include <string.h>

#define ROW(name, number, sender, traits) [number] = {#name, sender, traits},
static const struct frame_row rows[UINT8_MAX + 1] = {FRAMES(ROW)};
#undef ROW

const struct frame_row *frame_row(unsigned type)
{
	return type < ARRAY_LEN(rows) && rows[type].name ? &rows[type] : NULL;
}

void frame_header_write(unsigned char out[FRAME_HEADER_BYTES], enum frame_type type, size_t len)
{
	memset(out, 0, FRAME_HEADER_BYTES);
	for (int i = 0; i < 4; i++)
		out[i] = (unsigned char)(len >> 8 * i);
	out[4] = (unsigned char)type;
}

uint32_t frame_number(const void *bytes, size_t size)
{
	const unsigned char *from = bytes;
	uint32_t number = 0;

	for (size_t i = 0; i < size; i++)
		number |= (uint32_t)from[i] << 8 * i;
	return number;
}

int frame_header_read(const unsigned char bytes[FRAME_HEADER_BYTES], struct frame_header *out)
{
	if (bytes[5] || bytes[6] || bytes[7])
		return -EPROTO;
	*out = (struct frame_header){.len = frame_number(bytes, 4), .type = bytes[4]};
	return 0;
}
