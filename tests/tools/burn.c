/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/burn.c - use CPU time and memory in known amounts
 *
 * burn [cpu:MS] [memory:BYTES] [child:MS] [orphan:MS] [wait:MS] [say:N]   in this order of appearance: spend MS of CPU
 * time, touch BYTES of memory and keep them, spend MS in a child that is waited for, in a child that is left running for
 * 1000 s afterwards (this returns when it has spent its MS), sleep MS, write the number N in a line of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void spend(unsigned long long milliseconds)
{
	struct timespec now;
	volatile unsigned sink = 0;

	do {
		for (int i = 0; i < 20000; i++)
			sink += (unsigned)i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while ((unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000 < milliseconds);
}

static int child(unsigned long long milliseconds, int is_orphan)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) < 0 || (pid = fork()) < 0)
		return 2;
	if (pid == 0) {
		spend(milliseconds);
		if (write(ready[1], "x", 1) != 1)
			_exit(3);
		if (is_orphan)
			sleep(1000);
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		return 2;
	if (!is_orphan)
		waitpid(pid, NULL, 0);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long long spent = 0;

	for (int i = 1; i < argc; i++) {
		char kind[16];
		unsigned long long amount;

		if (sscanf(argv[i], "%15[a-z]:%llu", kind, &amount) != 2)
			return 2;
		if (strcmp(kind, "cpu") == 0) {
			spent += amount;
			spend(spent);
		} else if (strcmp(kind, "memory") == 0) {
			char *memory = mmap(NULL, amount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (memory == MAP_FAILED)
				return 4;
			for (unsigned long long at = 0; at < amount; at += 4096)
				memory[at] = 1;
		} else if (strcmp(kind, "child") == 0 || strcmp(kind, "orphan") == 0) {
			if (child(amount, kind[0] == 'o') != 0)
				return 5;
		} else if (strcmp(kind, "wait") == 0) {
			usleep((useconds_t)(amount * 1000));
		} else if (strcmp(kind, "say") == 0) {
			dprintf(1, "%llu\n", amount);
		} else {
			return 2;
		}
	}
	return 0;
}
