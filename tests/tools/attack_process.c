/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/attack_process.c - everything of the corpus that one process can try on another of the same user
 *
 * attack_process PID...   prints "CALL PID ANSWER", the answer being "ok" or the number of the errno.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "prove/corpus.h"

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		pid_t pid = (pid_t)atoi(argv[i]);

		if (pid <= 0)
			return 2;
		for (const struct corpus_call *row = prove_corpus_process; row->name; row++) {
			if (prove_corpus_make(row, &(struct corpus_target){.pid = pid}) < 0)
				printf("%s %d %d\n", row->name, (int)pid, errno);
			else
				printf("%s %d ok\n", row->name, (int)pid);
		}
	}
	return 0;
}
