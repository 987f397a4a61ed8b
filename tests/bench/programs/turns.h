/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/programs/turns.h - what the measuring programs share: a clock, a bare start, and a random order
 */
#ifndef TURNS_H
#define TURNS_H

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static inline long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Start a command and wait for its end. Returns its wait status, or -1. */
static inline int spawn_and_wait(char *const *words)
{
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, words[0], NULL, NULL, words, environ))
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		;
	return status;
}

static inline void shuffle(int *order, int count)
{
	for (int i = count - 1; i > 0; i--) {
		int other = rand() % (i + 1), kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
}

#endif
