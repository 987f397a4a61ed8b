/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/attack_calls.c - every call of the corpus that a jar has no use for, each once
 *
 * Prints "NAME ANSWER" for each, the answer being "ok" or the number of the errno.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prove/corpus.h"

int main(void)
{
	int status;

	for (const struct corpus_call *row = prove_corpus_calls; row->name; row++) {
		if (prove_corpus_make(row, &(struct corpus_target){.pid = getpid()}) < 0)
			printf("%s %d\n", row->name, errno);
		else
			printf("%s ok\n", row->name);
		fflush(stdout);
	}
	status = prove_corpus_foreign_call();
	if (status >= 0 && WIFSIGNALED(status))
		printf("ia32 signal %d\n", WTERMSIG(status));
	else
		printf("ia32 %s\n", status == 0 ? "ok" : "refused");
	return 0;
}
