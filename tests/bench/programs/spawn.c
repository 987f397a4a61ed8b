/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/programs/spawn.c - time several commands side by side, from posix_spawn to the end that waitpid() sees
 *
 *	spawn ROUNDS {LABEL EVERY COUNT WORD...}...
 *
 * The machine is noisy, so the candidates take turns in a new random order every round: what disturbs one disturbs all.
 * Each timed start follows an untimed bare one, so that all find the caches in the same state. Each candidate is a label, in
 * every how many rounds it takes part, the number of its words, and its words. Prints a line for each measurement: LABEL NANOSECONDS STATUS.
 */
#include "turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES_MAX 32

struct candidate {
	const char *label;
	int every;
	char **words;
};

/* Returns the number of arguments that it took; 0: that is no candidate. */
static int parse(struct candidate *candidate, char **args, int arg_count)
{
	int count = arg_count > 3 ? atoi(args[2]) : 0;

	if (count < 1 || count + 3 > arg_count || atoi(args[1]) < 1)
		return 0;
	candidate->label = args[0];
	candidate->every = atoi(args[1]);
	/* As many as there are: bubblewrap with the view of a jar has hundreds. */
	candidate->words = calloc((size_t)count + 1, sizeof(*args));
	if (!candidate->words)
		return 0;
	memcpy(candidate->words, args + 3, (size_t)count * sizeof(*args));
	return count + 3;
}

int main(int argc, char **argv)
{
	static struct candidate candidates[CANDIDATES_MAX];
	char *const bare[] = {(char *)"/bin/true", NULL};
	int order[CANDIDATES_MAX], rounds = argc > 1 ? atoi(argv[1]) : 0, count = 0;

	for (int i = 2; i < argc; count++) {
		int taken = count < CANDIDATES_MAX ? parse(&candidates[count], argv + i, argc - i) : 0;

		if (!taken)
			return 2;
		order[count] = count;
		i += taken;
	}
	srand(1);
	for (int round = 0; round < rounds; round++) {
		shuffle(order, count);
		for (int i = 0; i < count; i++) {
			const struct candidate *candidate = &candidates[order[i]];
			long long begun;
			int status;

			if (round % candidate->every)
				continue;
			spawn_and_wait(bare);
			begun = now_ns();
			status = spawn_and_wait(candidate->words);
			printf("%s %lld %d\n", candidate->label, now_ns() - begun, status);
		}
	}
	return 0;
}
