/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/programs/produce.c - write so many MiB of lines as a build's log has them to stdout, 64 KiB at a time
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES 65536

int main(int argc, char **argv)
{
	static char block[BLOCK_BYTES + 256];
	size_t len = 0;
	long left_count = argc > 1 ? atol(argv[1]) * (1048576 / BLOCK_BYTES) : 0;

	for (int i = 0; len < BLOCK_BYTES; i++)
		len += (size_t)snprintf(block + len, 128,
					"[%5d/20000] cc -O2 -Iinclude -c src/part_%d/file_%d.c: ok, %d ms\n", i, i % 17,
					i, i * 7 % 1000);
	while (left_count-- > 0)
		for (size_t done = 0; done < BLOCK_BYTES;) {
			ssize_t written = write(STDOUT_FILENO, block + done, BLOCK_BYTES - done);

			if (written < 0)
				return 1;
			done += (size_t)written;
		}
	return 0;
}
