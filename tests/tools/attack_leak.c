/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/attack_leak.c - run a command with descriptors open that it did not ask for
 *
 * attack_leak PATH NUMBER... -- CMD [ARG...]   at the numbers are, in turn: the directory PATH, the root directory, a
 * pair of connected sockets, a memory file, a pipe. None of them is closed on exec.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_HIGH 2000
#define KINDS 7

int main(int argc, char **argv)
{
	int kinds[KINDS], pair[2], ends[2], at = 2;

	if (argc < 4 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || pipe(ends) < 0)
		return 2;
	kinds[0] = open(argv[1], O_RDONLY | O_DIRECTORY);
	kinds[1] = open("/", O_RDONLY | O_DIRECTORY);
	kinds[2] = pair[0];
	kinds[3] = (int)syscall(SYS_memfd_create, "leak", 0);
	kinds[4] = ends[0];
	kinds[5] = pair[1];
	kinds[6] = ends[1];
	/* Out of the way of the numbers that are asked for. */
	for (int i = 0; i < KINDS; i++) {
		int high = fcntl(kinds[i], F_DUPFD_CLOEXEC, FIRST_HIGH);

		if (high < 0) {
			perror("attack_leak: cannot open");
			return 2;
		}
		close(kinds[i]);
		kinds[i] = high;
	}
	for (; at < argc && strcmp(argv[at], "--") != 0; at++)
		if (dup2(kinds[(at - 2) % KINDS], atoi(argv[at])) < 0)
			return 2;
	if (at + 1 >= argc)
		return 2;
	execvp(argv[at + 1], argv + at + 1);
	perror("attack_leak: cannot execute");
	return 127;
}
