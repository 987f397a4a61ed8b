/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/storm.c - processes that are made and end faster than anybody can list them
 *
 * storm SECONDS CHAINS [WORD...] [-- TAG]   prints "storm", starts CHAINS of them, and leaves with 0 after SECONDS; they
 * would go on for SECONDS more. Words: hop (the default: each forks a successor and leaves), setsid, setpgid (each goes
 * its own way first), wide (each makes children that leave at once), deep (each stays until its successor has three below
 * it), vfork (the same as hop, by vfork and a child that forks), siblings (clone with CLONE_PARENT), threads (each has four
 * threads that fork), pool (threads only, as many as there may be), ignore (SIGTERM, and SIGCHLD so that nobody waits),
 * write (each adds 4 KiB to a file "storm"), memory (each touches 1 MiB), quit (the main process leaves at once).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define MEMORY_BYTES (1 << 20)
#define WIDTH 16
#define DEPTH 3
#define PROCESSES_MAX 6000

static char **words;
static time_t end;

static int has(const char *word)
{
	for (char **at = words; *at && strcmp(*at, "--") != 0; at++)
		if (strcmp(*at, word) == 0)
			return 1;
	return 0;
}

static int is_over(void)
{
	return time(NULL) >= end;
}

static void live(void)
{
	static char page[PAGE];

	if (has("setsid"))
		setsid();
	if (has("setpgid"))
		setpgid(0, 0);
	if (has("write")) {
		int fd = open("storm", O_WRONLY | O_CREAT | O_APPEND, 0644);

		if (write(fd, page, sizeof(page)) < 0)
			_exit(1);
		close(fd);
	}
	if (has("memory")) {
		volatile char *memory = malloc(MEMORY_BYTES);

		for (size_t at = 0; memory && at < MEMORY_BYTES; at += PAGE)
			memory[at] = 1;
	}
}

static void hop(void)
{
	while (!is_over()) {
		pid_t next = fork();

		if (next > 0)
			_exit(0);
		if (next == 0)
			live();
	}
}

static void widen(void)
{
	while (!is_over()) {
		for (int i = 0; i < WIDTH; i++) {
			if (fork() == 0) {
				live();
				_exit(0);
			}
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

/* Each has a successor below it, and leaves when a pipe says that enough of them stand. */
static void deepen(void)
{
	struct timespec moment = {.tv_nsec = 200000};

	while (!is_over()) {
		pid_t next = fork();

		if (next == 0) {
			live();
			continue;
		}
		for (int i = 0; i < DEPTH; i++)
			nanosleep(&moment, NULL);
		_exit(0);
	}
}

static void hop_by_vfork(void)
{
	while (!is_over()) {
		pid_t next = vfork();

		if (next == 0)
			_exit(0);
		next = fork();
		if (next > 0)
			_exit(0);
		if (next == 0)
			live();
	}
}

static void make_siblings(void)
{
	while (!is_over()) {
		long next = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);

		if (next > 0)
			_exit(0);
		if (next == 0)
			live();
	}
}

static void *fork_on(void *unused)
{
	(void)unused;
	while (!is_over())
		if (fork() == 0)
			_exit(0);
	return NULL;
}

static void *stay(void *unused)
{
	(void)unused;
	while (!is_over())
		sleep(1);
	return NULL;
}

static void thread_on(void *(*function)(void *), int count)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 1 << 16);
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread, &attributes, function, NULL) != 0)
			break;
	stay(NULL);
}

static void chain(void)
{
	live();
	if (has("wide"))
		widen();
	else if (has("deep"))
		deepen();
	else if (has("vfork"))
		hop_by_vfork();
	else if (has("siblings"))
		make_siblings();
	else if (has("threads"))
		thread_on(fork_on, 4);
	else if (has("pool"))
		thread_on(stay, PROCESSES_MAX);
	else
		hop();
	_exit(0);
}

int main(int argc, char **argv)
{
	int seconds = argc > 2 ? atoi(argv[1]) : 1;
	int chains = argc > 2 ? atoi(argv[2]) : 1;

	/* Zombies count too: whatever goes wrong, the machine keeps process numbers for others. Root is not held to it. */
	setrlimit(RLIMIT_NPROC, &(struct rlimit){PROCESSES_MAX, PROCESSES_MAX});
	words = argv + (argc > 2 ? 3 : argc);
	end = time(NULL) + 2 * seconds;
	if (has("ignore")) {
		signal(SIGTERM, SIG_IGN);
		signal(SIGCHLD, SIG_IGN);
	}
	if (write(1, "storm\n", 6) != 6)
		return 3;
	for (int i = 0; i < chains; i++) {
		pid_t child = fork();

		if (child == 0) {
			close(1);
			close(2);
			chain();
		}
	}
	if (!has("quit"))
		sleep((unsigned)seconds);
	return 0;
}
