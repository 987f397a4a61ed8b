/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/spawn.c - time several commands side by side, from posix_spawn to the end that waitpid() sees
 *
 * The machine is noisy, so the candidates take turns in a new random order every round: what disturbs one disturbs all.
 * Each timed start follows an untimed bare one, so that all find the caches in the same state. Reads its candidates from
 * the command line, one argument each: a label, a bar, and the words of the command separated by single spaces. Prints
 * one line of nanoseconds per measurement: LABEL NANOSECONDS STATUS.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define CANDIDATES_MAX 32
#define WORDS_MAX 128

extern char **environ;

struct candidate {
	char *label;
	char *words[WORDS_MAX + 1];
};

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int run(char *const *words)
{
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, words[0], NULL, NULL, words, environ))
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		;
	return status;
}

static void parse(struct candidate *candidate, char *text)
{
	int count = 0;

	candidate->label = text;
	text = strchr(text, '|');
	if (!text)
		exit(2);
	*text++ = '\0';
	for (char *word = strtok(text, " "); word && count < WORDS_MAX; word = strtok(NULL, " "))
		candidate->words[count++] = word;
}

int main(int argc, char **argv)
{
	static struct candidate candidates[CANDIDATES_MAX];
	char *const bare[] = {(char *)"/bin/true", NULL};
	int order[CANDIDATES_MAX], rounds = argc > 1 ? atoi(argv[1]) : 0, count = argc - 2;

	if (rounds < 1 || count < 1 || count > CANDIDATES_MAX)
		return 2;
	for (int i = 0; i < count; i++) {
		parse(&candidates[i], argv[i + 2]);
		order[i] = i;
	}
	srand(1);
	for (int round = 0; round < rounds; round++) {
		for (int i = count - 1; i > 0; i--) {
			int other = rand() % (i + 1), kept = order[i];

			order[i] = order[other];
			order[other] = kept;
		}
		for (int i = 0; i < count; i++) {
			const struct candidate *candidate = &candidates[order[i]];
			long long begun;
			int status;

			run(bare);
			begun = now_ns();
			status = run(candidate->words);
			printf("%s %lld %d\n", candidate->label, now_ns() - begun, status);
		}
	}
	return 0;
}
