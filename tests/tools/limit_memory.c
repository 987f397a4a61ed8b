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
 *   flight:N:BYTES   N memory files of BYTES, each sent into a socket and closed
 *   dontneed:N:BYTES N pieces of shared anonymous memory of BYTES, touched and dropped from the page tables
 *   cut:N:BYTES      the same, then unmapped but for the last page
 *   closed:N:BYTES   N memory files of BYTES, mapped, closed, touched and dropped from the page tables
 *   ended:N:BYTES    N pieces of shared anonymous memory of BYTES, each touched by a child that ends
 *   segments:N:BYTES N System V segments
 *   queues:N         N System V message queues, filled
 *   semaphores:N     N sets of 10,000 System V semaphores
 *   secret:BYTES     a file of memfd_secret, mapped and touched
 *   tables:BYTES     page tables of that size, with next to nothing in them
 *   splice:BYTES     large pages given to pipes by vmsplice, and unmapped
 *   files:N:BYTES    N memory files, written and not mapped
 *   gone:BYTES       a memory file, written and closed
 *   hide             forbids others to look at this process
 *   hidden:N:BYTES   executes itself without the right to be read, then N children that touch BYTES
 *   try:BYTES        more than the address space has: says "refused" and goes on
 *   say:TEXT         prints TEXT
 *   wait:MS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
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

static void refused(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
}

/* Held by nobody but the socket they wait in. */
static void send_file(size_t len)
{
	static int pair[2] = {-1, -1};
	char byte = 'x', control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec part = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fd = memfd_create("limit", 0);

	write_all(fd, len);
	if (pair[0] < 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		exit(11);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(pair[0], &message, 0) < 0)
		exit(12);
	close(fd);
}

static void drop_shared(int fd, size_t len, int is_cut)
{
	char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	if (memory == MAP_FAILED)
		exit(4);
	if (fd >= 0)
		close(fd);
	touch(memory, len);
	madvise(memory, len, MADV_DONTNEED);
	if (is_cut)
		munmap(memory, len - PAGE);
}

static int sized_file(size_t len)
{
	int fd = memfd_create("limit", 0);

	if (fd < 0 || ftruncate(fd, (off_t)len) < 0)
		exit(7);
	return fd;
}

static void touch_in_child(size_t len)
{
	char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = memory == MAP_FAILED ? -1 : fork();

	if (pid < 0)
		exit(5);
	if (pid == 0) {
		touch(memory, len);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void fill_queues(unsigned long count)
{
	static struct {
		long type;
		char text[4096];
	} message = {.type = 1};

	for (unsigned long i = 0; i < count; i++) {
		int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

		if (id < 0)
			exit(9);
		while (msgsnd(id, &message, sizeof(message.text), IPC_NOWAIT) == 0)
			;
	}
}

static void use_secret(size_t len)
{
	int fd = (int)syscall(447, 0);

	if (fd < 0)
		refused("memfd_secret");
	else
		map_file(fd, len);
}

/* A page that is only read is the kernel's page of zeroes; its table of 4 KiB stands for 2 MiB of addresses. */
static void make_tables(size_t len)
{
	const size_t step = 2UL << 20;
	size_t range = len / PAGE * step;
	const char *memory = mmap(NULL, range, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned sum = 0;

	if (memory == MAP_FAILED)
		exit(4);
	madvise((void *)memory, range, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < range; at += step)
		sum += (unsigned char)((const volatile char *)memory)[at];
	if (sum)
		puts("odd");
}

static void splice_away(size_t len)
{
	for (size_t at = 0; at < len; at += 16 * (2UL << 20)) {
		char *memory = map(17 * (2UL << 20));
		char *large = memory + (2UL << 20) - (size_t)memory % (2UL << 20);
		int ends[2];

		madvise(large, 16 * (2UL << 20), MADV_HUGEPAGE);
		touch(large, 16 * (2UL << 20));
		if (pipe(ends) < 0)
			exit(5);
		for (int i = 0; i < 16; i++) {
			struct iovec part = {large + (size_t)i * (2UL << 20), PAGE};

			if (syscall(SYS_vmsplice, ends[1], &part, 1, 0) < 0) {
				refused("vmsplice");
				return;
			}
		}
		munmap(memory, 17 * (2UL << 20));
	}
}

/* A program that may be executed and not read is nobody's to look at. */
static void hide_by_execution(char **argv, char *rest)
{
	char path[] = "./hidden-copy", later[] = "wait:1000000", block[65536];
	char *words[] = {path, rest, later, NULL};
	int from = open(argv[0], O_RDONLY), to = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0700);
	ssize_t count;

	while (from >= 0 && (count = read(from, block, sizeof(block))) > 0)
		if (write(to, block, (size_t)count) != count)
			exit(8);
	if (from < 0 || to < 0 || fchmod(to, 0111) < 0)
		exit(7);
	close(to);
	execv(path, words);
	exit(13);
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
	} else if (strcmp(word, "flight") == 0) {
		for (unsigned long i = 0; i < first; i++)
			send_file(second);
	} else if (strcmp(word, "dontneed") == 0 || strcmp(word, "cut") == 0) {
		for (unsigned long i = 0; i < first; i++)
			drop_shared(-1, second, word[0] == 'c');
	} else if (strcmp(word, "closed") == 0) {
		for (unsigned long i = 0; i < first; i++)
			drop_shared(sized_file(second), second, 0);
	} else if (strcmp(word, "files") == 0) {
		for (unsigned long i = 0; i < first; i++)
			write_all(memfd_create("limit", 0), second);
	} else if (strcmp(word, "gone") == 0) {
		int fd = memfd_create("limit", 0);

		write_all(fd, first);
		close(fd);
	} else if (strcmp(word, "ended") == 0) {
		for (unsigned long i = 0; i < first; i++)
			touch_in_child(second);
	} else if (strcmp(word, "segments") == 0) {
		for (unsigned long i = 0; i < first; i++)
			use_segment(second);
	} else if (strcmp(word, "queues") == 0) {
		fill_queues(first);
	} else if (strcmp(word, "semaphores") == 0) {
		for (unsigned long i = 0; i < first; i++)
			if (semget(IPC_PRIVATE, 10000, IPC_CREAT | 0600) < 0)
				exit(9);
	} else if (strcmp(word, "secret") == 0) {
		use_secret(first);
	} else if (strcmp(word, "tables") == 0) {
		make_tables(first);
	} else if (strcmp(word, "splice") == 0) {
		splice_away(first);
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
		if (strcmp(argv[i], "hide") == 0) {
			if (prctl(PR_SET_DUMPABLE, 0) < 0)
				refused("hide");
			continue;
		}
		if (strncmp(argv[i], "hidden:", 7) == 0) {
			char rest[64];

			snprintf(rest, sizeof(rest), "tree:%s", argv[i] + 7);
			hide_by_execution(argv, rest);
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
