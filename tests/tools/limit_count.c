/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/limit_count.c - use up what is counted: processes, threads, descriptors, bytes in files
 *
 * limit_count WORD...   in order:
 *   fork:N            N children that stay; says how many there are ("forks 7") and goes on if one is refused
 *   thread:N          the same with threads
 *   bomb              every process forks for ever
 *   fd:N              opens N descriptors; says how many there are ("fds 7")
 *   write:PATH:BYTES  writes a file; says how far it came and why not further ("wrote 4096 ENOSPC")
 *   many:PATH:N:BYTES N children, one after the other, write a file each, PATH0, PATH1, ...
 *   lost:PATH:N:BYTES the same, and nobody waits for them (SIGCHLD ignored)
 *   again:PATH:N:BYTES writes the same file N times, from its beginning
 *   reserve:PATH:BYTES  space for a file without writing, in each way that an ioctl has; says how each failed, or "done"
 *   hidden:PATH:BYTES executes a copy of itself that may not be read, which writes a file
 *   allow             SIGXFSZ is ignored
 *   say:TEXT, wait:MS
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void *stay(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

static void fork_many(unsigned long count)
{
	unsigned long made = 0;

	for (; made < count; made++) {
		pid_t pid = fork();

		if (pid == 0)
			stay(NULL);
		if (pid < 0)
			break;
	}
	printf("forks %lu\n", made);
}

static void thread_many(unsigned long count)
{
	unsigned long made = 0;
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	while (made < count && pthread_create(&thread, &attributes, stay, NULL) == 0)
		made++;
	printf("threads %lu\n", made);
}

static void bomb(void)
{
	for (;;)
		if (fork() < 0)
			usleep(1000);
}

static void open_many(unsigned long count)
{
	unsigned long made = 0;

	while (made < count && open("/dev/null", O_RDONLY) >= 0)
		made++;
	printf("fds %lu\n", made);
}

static int write_file(const char *path, unsigned long len, int is_talking)
{
	static char block[1 << 16];
	unsigned long at = 0;
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	int error = fd < 0 ? errno : 0;

	while (at < len && !error) {
		ssize_t count = write(fd, block, len - at < sizeof(block) ? len - at : sizeof(block));

		if (count < 0)
			error = errno;
		else
			at += (unsigned long)count;
	}
	if (fd >= 0)
		close(fd);
	if (is_talking)
		printf("wrote %lu %s\n", at,
		       !error            ? "all"
		       : error == ENOSPC ? "ENOSPC"
		       : error == EFBIG  ? "EFBIG"
					 : "error");
	return error;
}

static void write_many(const char *path, unsigned long count, unsigned long len, int is_lost)
{
	char name[300];

	signal(SIGCHLD, is_lost ? SIG_IGN : SIG_DFL);
	for (unsigned long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			exit(5);
		if (pid == 0) {
			snprintf(name, sizeof(name), "%s%lu", path, i);
			_exit(write_file(name, len, 0) ? 3 : 0);
		}
		while (wait(NULL) > 0 || errno == EINTR)
			;
	}
	signal(SIGCHLD, SIG_DFL);
}

/* struct space_resv of <linux/falloc.h>, and XFS's xfs_flock64. */
struct space {
	short type, whence;
	long long start, len;
	int system;
	unsigned pid;
	int padding[4];
};

static void reserve(const char *path, unsigned long len)
{
	static const unsigned commands[] = {0x40305828, 0x4030582a, 0x40305839, 0x4030580a,
					    0x4030580b, 0x40305824, 0x40305825};

	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct space space = {.len = (long long)len};
		char name[300];
		int fd;

		snprintf(name, sizeof(name), "%s%u", path, i);
		fd = open(name, O_CREAT | O_RDWR, 0600);
		if (ioctl(fd, (int)commands[i], &space) == 0)
			puts("done");
		else
			puts(errno == EOPNOTSUPP ? "EOPNOTSUPP" : "error");
	}
}

static void hide(char **argv, const char *path, unsigned long len)
{
	char copy[] = "./hidden-copy", later[] = "wait:20000", block[65536], word[300];
	char *words[] = {copy, word, later, NULL};
	int from = open(argv[0], O_RDONLY), to = open(copy, O_CREAT | O_TRUNC | O_WRONLY, 0700);
	ssize_t count;

	while (from >= 0 && (count = read(from, block, sizeof(block))) > 0)
		if (write(to, block, (size_t)count) != count)
			exit(6);
	if (from < 0 || to < 0 || fchmod(to, 0111) < 0)
		exit(7);
	close(to);
	snprintf(word, sizeof(word), "write:%s:%lu", path, len);
	execv(copy, words);
	exit(8);
}

static int act(const char *word, const char *path, unsigned long first, unsigned long second)
{
	if (strcmp(word, "fork") == 0)
		fork_many(first);
	else if (strcmp(word, "thread") == 0)
		thread_many(first);
	else if (strcmp(word, "fd") == 0)
		open_many(first);
	else if (strcmp(word, "write") == 0)
		write_file(path, first, 1);
	else if (strcmp(word, "reserve") == 0)
		reserve(path, first);
	else if (strcmp(word, "many") == 0 || strcmp(word, "lost") == 0)
		write_many(path, first, second, word[0] == 'l');
	else if (strcmp(word, "again") == 0)
		for (unsigned long i = 0; i < first; i++)
			write_file(path, second, 0);
	else if (strcmp(word, "wait") == 0)
		usleep((useconds_t)(first * 1000));
	else
		return 2;
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char word[16] = "", path[256] = "";
		unsigned long first = 0, second = 0;
		int rc;

		if (strncmp(argv[i], "say:", 4) == 0) {
			puts(argv[i] + 4);
		} else if (strcmp(argv[i], "bomb") == 0) {
			bomb();
		} else if (strcmp(argv[i], "allow") == 0) {
			signal(SIGXFSZ, SIG_IGN);
		} else {
			if (sscanf(argv[i], "%15[a-z]:%255[^:0-9]:%lu:%lu", word, path, &first, &second) < 3 &&
			    sscanf(argv[i], "%15[a-z]:%lu", word, &first) < 2)
				return 2;
			if (strcmp(word, "hidden") == 0)
				hide(argv, path, first);
			rc = act(word, path, first, second);
			if (rc != 0)
				return rc;
		}
		fflush(stdout);
	}
	return 0;
}
