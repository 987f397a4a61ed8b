/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/hopper.c - chains of processes that never stay: each forks a successor in a new session and leaves
 *
 * hopper CHAINS [TAG]   prints "hopping" and waits; the chains hop for 60 seconds at most. What kills by walking a
 * list of processes once will miss some of them.
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void hop(time_t end)
{
	struct timespec pause = {.tv_nsec = 500000};

	while (time(NULL) < end) {
		pid_t next;

		nanosleep(&pause, NULL);
		next = fork();
		if (next > 0)
			_exit(0);
		if (next == 0)
			setsid();
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int chains = argc > 1 ? atoi(argv[1]) : 1;
	time_t end = time(NULL) + 60;

	signal(SIGTERM, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < chains; i++) {
		pid_t child = fork();

		if (child < 0)
			return 2;
		if (child == 0) {
			close(0);
			close(1);
			close(2);
			hop(end);
		}
	}
	if (write(1, "hopping\n", 8) != 8)
		return 3;
	if (argc > 2 && argv[2][0] == '-')
		return 0;
	sleep(1000);
	return 0;
}
