/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/limit_cpu.c - spend CPU time in every kind of process
 *
 * limit_cpu WORD...   in order; each spends MS of CPU time in each process, and 0 means for ever:
 *   self:MS        here
 *   kernel:MS      here, in the kernel
 *   tree:N:MS      in N children at once, that are waited for
 *   one:N:MS       in N children, one after the other
 *   thread:N:MS    in N threads
 *   orphan:N:MS    in N grandchildren in sessions of their own, whose parents are gone; goes on when all are done
 *   ignored:N:MS   in N children, one after the other, that nobody waits for (SIGCHLD ignored)
 *   say:TEXT
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long elapsed_ms(clockid_t clock, const struct timespec *begun)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (unsigned long)((now.tv_sec - begun->tv_sec) * 1000 + (now.tv_nsec - begun->tv_nsec) / 1000000);
}

static void spend(unsigned long milliseconds, int is_in_kernel)
{
	struct timespec begun;
	volatile unsigned sink = 0;
	static char block[1 << 16];
	int fd = is_in_kernel ? open("/dev/urandom", O_RDONLY) : -1;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
	do {
		if (fd >= 0 && read(fd, block, sizeof(block)) < 0)
			exit(3);
		for (int i = 0; i < 20000 && fd < 0; i++)
			sink += (unsigned)i;
	} while (!milliseconds || elapsed_ms(CLOCK_THREAD_CPUTIME_ID, &begun) < milliseconds);
	if (fd >= 0)
		close(fd);
}

static void *thread_main(void *milliseconds)
{
	spend((unsigned long)milliseconds, 0);
	return NULL;
}

static void spend_in_threads(unsigned long count, unsigned long milliseconds)
{
	pthread_t threads[64];

	for (unsigned long i = 0; i < count && i < 64; i++)
		if (pthread_create(&threads[i], NULL, thread_main, (void *)milliseconds) != 0)
			exit(4);
	for (unsigned long i = 0; i < count && i < 64; i++)
		pthread_join(threads[i], NULL);
}

static void spend_in_child(unsigned long milliseconds)
{
	pid_t pid = fork();

	if (pid < 0)
		exit(5);
	if (pid == 0) {
		spend(milliseconds, 0);
		_exit(0);
	}
}

static void wait_for_all(void)
{
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

static void spend_in_orphan(unsigned long milliseconds, int alive)
{
	pid_t pid = fork();

	if (pid < 0)
		exit(5);
	if (pid > 0) {
		waitpid(pid, NULL, 0);
		return;
	}
	setsid();
	pid = fork();
	if (pid == 0) {
		spend(milliseconds, 0);
		close(alive);
		_exit(0);
	}
	_exit(0);
}

static void spend_in_orphans(unsigned long count, unsigned long milliseconds)
{
	int alive[2];
	char byte;

	if (pipe(alive) < 0)
		exit(5);
	for (unsigned long i = 0; i < count; i++)
		spend_in_orphan(milliseconds, alive[1]);
	close(alive[1]);
	while (read(alive[0], &byte, 1) > 0)
		;
}

static int act(const char *word, unsigned long first, unsigned long second)
{
	if (strcmp(word, "self") == 0 || strcmp(word, "kernel") == 0) {
		spend(first, word[0] == 'k');
	} else if (strcmp(word, "tree") == 0) {
		for (unsigned long i = 0; i < first; i++)
			spend_in_child(second);
		wait_for_all();
	} else if (strcmp(word, "one") == 0 || strcmp(word, "ignored") == 0) {
		signal(SIGCHLD, word[0] == 'i' ? SIG_IGN : SIG_DFL);
		for (unsigned long i = 0; i < first; i++) {
			spend_in_child(second);
			wait_for_all();
		}
		signal(SIGCHLD, SIG_DFL);
	} else if (strcmp(word, "thread") == 0) {
		spend_in_threads(first, second);
	} else if (strcmp(word, "orphan") == 0) {
		spend_in_orphans(first, second);
	} else {
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char word[16] = "";
		unsigned long first = 0, second = 0;
		int rc;

		if (strncmp(argv[i], "say:", 4) == 0) {
			puts(argv[i] + 4);
			fflush(stdout);
			continue;
		}
		if (sscanf(argv[i], "%15[a-z]:%lu:%lu", word, &first, &second) < 2)
			return 2;
		rc = act(word, first, second);
		if (rc != 0)
			return rc;
	}
	return 0;
}
