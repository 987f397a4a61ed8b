/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/attack_swap.c - exchange two names over and over, in one atomic step each time
 *
 * attack_swap SECONDS A B [PAUSE_US]   ends after SECONDS, or when its parent does. Prints "swapping" first.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FLAG_EXCHANGE 2

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);
	struct timespec pause = {.tv_nsec = argc > 4 ? atol(argv[4]) * 1000 : 0};

	if (argc < 4)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (write(1, "swapping\n", 9) != 9)
		return 3;
	while (time(NULL) < end) {
		if (syscall(SYS_renameat2, AT_FDCWD, argv[2], AT_FDCWD, argv[3], FLAG_EXCHANGE) < 0)
			return 4;
		if (pause.tv_nsec)
			nanosleep(&pause, NULL);
	}
	return 0;
}
