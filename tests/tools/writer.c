/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/writer.c - write known bytes to stdout and stderr
 *
 * writer PART...   PART is STREAM:COUNT[:CHUNK], STREAM o (stdout), e (stderr) or b (both, chunk by chunk in turn);
 * COUNT 0 is endless; CHUNK (default 65536) is the size of one write(2). Byte number i of stdout is 'a' + i % 23, of
 * stderr 'A' + i % 23, counted over all parts. Exit status 3: a write failed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PERIOD = 23, CHUNK_MAX = 1 << 20 };

static uint64_t written[2];

static void write_chunk(int stream, size_t len)
{
	static char buffer[CHUNK_MAX];

	for (size_t i = 0; i < len; i++)
		buffer[i] = (char)((stream == 0 ? 'a' : 'A') + (written[stream] + i) % PERIOD);
	for (size_t done = 0; done < len;) {
		ssize_t count = write(stream + 1, buffer + done, len - done);

		if (count <= 0)
			exit(3);
		done += (size_t)count;
	}
	written[stream] += len;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char kind = 0;
		unsigned long long count = 0;
		unsigned long long chunk = 65536;

		if (sscanf(argv[i], "%c:%llu:%llu", &kind, &count, &chunk) < 2 || chunk == 0 || chunk > CHUNK_MAX)
			return 2;
		for (unsigned long long done = 0; count == 0 || done < count;) {
			size_t len = count != 0 && count - done < chunk ? count - done : chunk;

			if (kind != 'e')
				write_chunk(0, len);
			if (kind != 'o')
				write_chunk(1, len);
			done += len;
		}
	}
	return 0;
}
