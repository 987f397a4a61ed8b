/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/limit_memory.c - use memory of every kind, alone and as a tree
 *
 * limit_memory WORD...   in order:
 *   touch:BYTES      anonymous memory, touched and kept
 *   slow:BYTES       the same in steps of 1 MiB with a pause after each
 *   tree:N:BYTES     N children that touch BYTES each and stay
 *   shared:N:BYTES   BYTES touched first, then N children that read them all and stay: nothing is used twice
 *   copies:N:BYTES   BYTES touched first, then N children that write to them all and stay: everything is used N times more
 *   file:PATH:BYTES  a file written and kept
 *   map:PATH:BYTES   a file of that size, mapped shared and touched
 *   memfd:BYTES      a memory file, written and not mapped
 *   memfdmap:BYTES   a memory file, mapped and touched
 *   shm:BYTES        a System V segment, attached, touched, and detached
 *   drop:BYTES       touched and given back
 *   try:BYTES        more than the address space has: says "refused" and goes on
 *   say:TEXT         prints TEXT
 *   wait:MS
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <unistd.h>

#define PAGE 4096
#define MEBIBYTE (1UL << 20)

static void touch(volatile char *memory, size_t len)
{
	for (size_t at = 0; at < len; at += PAGE)
		memory[at] = 1;
}

static void look(const volatile char *memory, size_t len)
{
	unsigned sum = 0;

	for (size_t at = 0; at < len; at += PAGE)
		sum += (unsigned char)memory[at];
	if (sum == 12345)
		puts("odd");
}

static char *map(size_t len)
{
	char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(4);
	madvise(memory, len, MADV_NOHUGEPAGE);
	return memory;
}

/* Start a child that does one thing, tells that it is done, and stays. */
static void child(char *memory, size_t len, int is_writing)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) < 0 || (pid = fork()) < 0)
		exit(5);
	if (pid == 0) {
		if (!memory)
			memory = map(len);
		if (is_writing)
			touch(memory, len);
		else
			look(memory, len);
		if (write(ready[1], "x", 1) != 1)
			_exit(3);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		exit(6); /* it was killed */
	close(ready[0]);
}

static void write_all(int fd, size_t len)
{
	static char block[1 << 16];

	if (fd < 0)
		exit(7);
	memset(block, 'x', sizeof(block));
	for (size_t at = 0; at < len;) {
		size_t part = len - at < sizeof(block) ? len - at : sizeof(block);
		ssize_t count = write(fd, block, part);

		if (count <= 0)
			exit(8);
		at += (size_t)count;
	}
}

static void map_file(int fd, size_t len)
{
	char *memory;

	if (fd < 0 || ftruncate(fd, (off_t)len) < 0)
		exit(7);
	memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		exit(4);
	touch(memory, len);
}

static void use_segment(size_t len)
{
	int id = shmget(IPC_PRIVATE, len, IPC_CREAT | 0600);
	char *memory = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	if (memory == (void *)-1)
		exit(9);
	touch(memory, len);
	shmdt(memory);
}

static void use_slowly(size_t len)
{
	char *memory = map(len);

	for (size_t at = 0; at < len; at += MEBIBYTE) {
		touch(memory + at, len - at < MEBIBYTE ? len - at : MEBIBYTE);
		usleep(5000);
	}
}

static int act(const char *word, unsigned long first, unsigned long second, const char *path)
{
	if (strcmp(word, "touch") == 0) {
		touch(map(first), first);
	} else if (strcmp(word, "slow") == 0) {
		use_slowly(first);
	} else if (strcmp(word, "tree") == 0) {
		for (unsigned long i = 0; i < first; i++)
			child(NULL, second, 1);
	} else if (strcmp(word, "shared") == 0 || strcmp(word, "copies") == 0) {
		char *memory = map(second);

		touch(memory, second);
		for (unsigned long i = 0; i < first; i++)
			child(memory, second, word[0] == 'c');
	} else if (strcmp(word, "file") == 0) {
		write_all(open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600), second);
	} else if (strcmp(word, "map") == 0) {
		map_file(open(path, O_CREAT | O_RDWR | O_TRUNC, 0600), second);
	} else if (strcmp(word, "memfd") == 0) {
		write_all(memfd_create("limit", 0), first);
	} else if (strcmp(word, "memfdmap") == 0) {
		map_file(memfd_create("limit", 0), first);
	} else if (strcmp(word, "shm") == 0) {
		use_segment(first);
	} else if (strcmp(word, "drop") == 0) {
		char *memory = map(first);

		touch(memory, first);
		munmap(memory, first);
	} else if (strcmp(word, "try") == 0) {
		if (mmap(NULL, first, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
			return 10;
		puts("refused");
	} else if (strcmp(word, "wait") == 0) {
		usleep((useconds_t)(first * 1000));
	} else {
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; i < argc; i++) {
		char word[16] = "", path[256] = "";
		unsigned long first = 0, second = 0;
		int rc;

		if (strncmp(argv[i], "say:", 4) == 0) {
			puts(argv[i] + 4);
			fflush(stdout);
			continue;
		}
		if (sscanf(argv[i], "%15[a-z]:%255[^:0-9]:%lu", word, path, &second) != 3 &&
		    sscanf(argv[i], "%15[a-z]:%lu:%lu", word, &first, &second) < 2)
			return 2;
		rc = act(word, first, second, path);
		if (rc != 0)
			return rc;
		fflush(stdout);
	}
	return 0;
}
