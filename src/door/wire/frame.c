/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/wire/frame.c - the header of a frame, and the table of all kinds
 */
#include "door/wire/frame.h"

#define ROW(name, number, sender, traits) [number] = {#name, sender, traits},
static const struct frame_row rows[UINT8_MAX + 1] = {FRAMES(ROW)};
#undef ROW

const struct frame_row *frame_row(unsigned type)
{
	return type < ARRAY_LEN(rows) && rows[type].name ? &rows[type] : NULL;
}

unsigned frame_traits(unsigned type)
{
	return type < ARRAY_LEN(rows) ? rows[type].traits : 0;
}

void frame_number_write(unsigned char *out, uint32_t number, size_t size)
{
	for (size_t i = 0; i < size; i++)
		out[i] = (unsigned char)(number >> 8 * i);
}

uint32_t frame_number(const void *bytes, size_t size)
{
	const unsigned char *from = bytes;
	uint32_t number = 0;

	for (size_t i = 0; i < size; i++)
		number |= (uint32_t)from[i] << 8 * i;
	return number;
}

void frame_header_write(unsigned char out[FRAME_HEADER_BYTES], enum frame_type type, size_t len, uint32_t channel)
{
	frame_number_write(out, (uint32_t)len, 4);
	out[4] = (unsigned char)type;
	frame_number_write(out + 5, channel, 3);
}

void frame_header_read(const unsigned char bytes[FRAME_HEADER_BYTES], struct frame_header *out)
{
	*out = (struct frame_header){
		.len = frame_number(bytes, 4),
		.type = bytes[4],
		.channel = frame_number(bytes + 5, 3),
	};
}
