/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/leftover.c - leave a process behind
 *
 * leftover [WORD...] [-- TAG]   forks a process that lives 1000 seconds, waits until it is as asked, and exits 0.
 * Words: setsid (own session), double (forked twice), ignore (SIGTERM, SIGINT, SIGHUP, SIGQUIT ignored), stop (stopped),
 * hold (keeps stdout and stderr open; without it they are closed), beat (adds a byte to the file "beat" every 10 ms),
 * stay (the main process waits 1000 seconds too instead of leaving), say (prints "left" when it is as asked).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int has(char **argv, const char *word)
{
	for (argv++; *argv && strcmp(*argv, "--") != 0; argv++)
		if (strcmp(*argv, word) == 0)
			return 1;
	return 0;
}

static void live(char **argv, int ready)
{
	struct timespec beat = {.tv_nsec = 10000000};
	int is_beating = has(argv, "beat");
	int file = is_beating ? open("beat", O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;

	if (has(argv, "ignore")) {
		signal(SIGTERM, SIG_IGN);
		signal(SIGINT, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
	}
	if (!has(argv, "hold")) {
		close(1);
		close(2);
	}
	if (write(ready, "x", 1) != 1)
		_exit(3);
	close(ready);
	if (has(argv, "stop"))
		raise(SIGSTOP);
	for (int i = 0; i < 100000; i++) {
		if (is_beating && write(file, "x", 1) != 1)
			_exit(3);
		nanosleep(&beat, NULL);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int ready[2];
	pid_t child;
	char byte;

	(void)argc;
	if (pipe(ready) < 0)
		return 2;
	child = fork();
	if (child < 0)
		return 2;
	if (child == 0) {
		close(ready[0]);
		if (has(argv, "setsid"))
			setsid();
		if (has(argv, "double")) {
			pid_t second = fork();

			if (second != 0)
				_exit(second < 0 ? 2 : 0);
			if (has(argv, "setsid"))
				setsid();
		}
		live(argv, ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return 2;
	if (has(argv, "stop") && !has(argv, "double")) {
		int status;

		waitpid(child, &status, WUNTRACED);
	}
	if (has(argv, "say") && write(1, "left\n", 5) != 5)
		return 3;
	if (has(argv, "stay"))
		sleep(1000);
	return 0;
}
