/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/sigstate.c - print the numbers of the signals that are ignored, and of those that are blocked
 */
#include <signal.h>
#include <stdio.h>

int main(void)
{
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	printf("ignored");
	for (int i = 1; i < 65; i++) {
		struct sigaction action;

		if (sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			printf(" %d", i);
	}
	printf("\nblocked");
	for (int i = 1; i < 65; i++)
		if (sigismember(&blocked, i) == 1)
			printf(" %d", i);
	printf("\n");
	return 0;
}
