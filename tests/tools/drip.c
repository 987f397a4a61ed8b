/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/drip.c - write bytes one write(2) at a time, with a pause after each
 *
 * drip MILLISECONDS HEX [COUNT]   HEX is what to write; COUNT (default 1) the bytes per write. "drip 0 -" copies
 * stdin to stdout byte by byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int drip(const char *bytes, size_t len, long pause_ms)
{
	struct timespec pause = {.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000};

	if (write(1, bytes, len) != (ssize_t)len)
		return -1;
	return pause_ms > 0 ? nanosleep(&pause, NULL) : 0;
}

int main(int argc, char **argv)
{
	long pause_ms = argc > 2 ? atol(argv[1]) : 0;
	size_t count = argc > 3 ? (size_t)atol(argv[3]) : 1;
	char chunk[4096];
	size_t len = 0;

	if (argc < 3 || count == 0 || count > sizeof(chunk))
		return 2;
	if (strcmp(argv[2], "-") == 0) {
		char c;

		while (read(0, &c, 1) == 1)
			if (drip(&c, 1, pause_ms) < 0)
				return 3;
		return 0;
	}
	for (const char *at = argv[2]; at[0] && at[1]; at += 2) {
		int high = hex_digit(at[0]);
		int low = hex_digit(at[1]);

		if (high < 0 || low < 0)
			return 2;
		chunk[len++] = (char)(high << 4 | low);
		if (len < count && at[2])
			continue;
		if (drip(chunk, len, pause_ms) < 0)
			return 3;
		len = 0;
	}
	return 0;
}
