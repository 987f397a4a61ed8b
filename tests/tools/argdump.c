/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/argdump.c - write every argument after argv[0] to stdout, each followed by a NUL byte
 *
 * With "ARGDUMP_SELF" in the environment argv[0] is written too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	for (int i = getenv("ARGDUMP_SELF") ? 0 : 1; i < argc; i++)
		fwrite(argv[i], 1, strlen(argv[i]) + 1, stdout);
	return fflush(stdout) == 0 ? 0 : 1;
}
