/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/fdlist.c - print the numbers of the open descriptors, one line, without opening any
 *
 * /proc is not used: it may not be there, and reading it needs a descriptor.
 */
#include <fcntl.h>
#include <stdio.h>

int main(void)
{
	const char *separator = "";

	for (int fd = 0; fd < 1 << 16; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		printf("%s%d", separator, fd);
		separator = " ";
	}
	putchar('\n');
	return 0;
}
