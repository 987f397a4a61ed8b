/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/attempt_limits.c - attempts on what is limited, or shared with the user's other programs
 *
 * What would starve others is tried up to half of what there is at most, and given back at once.
 */
#include "prove/attempt.h"

#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys/calls.h"

#define HIDDEN_PIECES 160
#define HIDDEN_PIECE_BYTES (1UL << 20)
#define PAGE_BYTES 4096
#define HIDING_SECONDS 4
#define TERMINALS_TRIED 400
#define SIGNALS_TRIED 2048
#define QUEUES_TRIED 6
#define QUEUE_MESSAGES 10
#define QUEUE_MESSAGE_BYTES 8192
#define DESCRIPTORS_MAX 512

/* Killed, if all is right; then nothing is answered, and engine_prove() knows why. */
struct answer attempt_hidden_memory(const struct prove_facts *facts)
{
	const struct timespec pause = {.tv_sec = HIDING_SECONDS};
	volatile char *piece;

	for (int i = 0; i < HIDDEN_PIECES; i++) {
		piece = mmap(NULL, HIDDEN_PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (piece == MAP_FAILED)
			return prove_answer_stopped(LAYER_HOST, "mmap", errno);
		for (size_t at = 0; at < HIDDEN_PIECE_BYTES; at += PAGE_BYTES)
			piece[at] = 1;
		madvise((void *)piece, HIDDEN_PIECE_BYTES, MADV_DONTNEED);
	}
	nanosleep(&pause, NULL);
	return prove_answer_through("mmap");
}

static void close_all(const int *fds, int count)
{
	for (int i = 0; i < count; i++)
		close(fds[i]);
}

struct answer attempt_terminals(const struct prove_facts *facts)
{
	static int fds[TERMINALS_TRIED];
	int count = 0, errno_value = 0;

	while (count < TERMINALS_TRIED && !errno_value) {
		fds[count] = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (fds[count] < 0)
			errno_value = errno;
		else
			count++;
	}
	close_all(fds, count);
	if (!errno_value)
		return prove_answer_through("open");
	return prove_answer_stopped(errno_value == EACCES ? LAYER_LANDLOCK : LAYER_LIMITS, "open", errno_value);
}

/* Root's jar is another user on the host, whose count is its own. */
static bool is_another_user(void)
{
	char map[64];
	unsigned inside = 0, outside = 0;

	return sys_read_file(AT_FDCWD, "/proc/self/uid_map", map, sizeof(map)) > 0 &&
	       sscanf(map, "%u %u", &inside, &outside) == 2 && inside != outside;
}

struct answer attempt_inotify(const struct prove_facts *facts)
{
	static int fds[DESCRIPTORS_MAX];
	char content[32];
	int count = 0, errno_value = 0;
	int most = sys_read_file(AT_FDCWD, "/proc/sys/fs/inotify/max_user_instances", content, sizeof(content)) > 0
			   ? (int)strtol(content, NULL, 10) / 2
			   : 0;

	if (most <= 0)
		return prove_answer_skipped("open");
	while (count < MIN_OF(most, DESCRIPTORS_MAX) && !errno_value) {
		fds[count] = inotify_init1(IN_CLOEXEC);
		if (fds[count] < 0)
			errno_value = errno;
		else
			count++;
	}
	close_all(fds, count);
	if (errno_value)
		return prove_answer_stopped(LAYER_LIMITS, "inotify_init1", errno_value);
	if (is_another_user())
		return prove_answer_stopped(LAYER_IDENTITY, "inotify_init1", 0);
	return most > DESCRIPTORS_MAX ? prove_answer_skipped("inotify_init1") : prove_answer_through("inotify_init1");
}

struct answer attempt_queued_signals(const struct prove_facts *facts)
{
	sigset_t blocked, before;
	int errno_value = 0;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMAX);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	for (int i = 0; i < SIGNALS_TRIED && !errno_value; i++)
		if (sigqueue(getpid(), SIGRTMAX, (union sigval){0}) < 0)
			errno_value = errno;
	return errno_value ? prove_answer_stopped(LAYER_LIMITS, "sigqueue", errno_value)
			   : prove_answer_through("sigqueue");
}

struct answer attempt_message_queues(const struct prove_facts *facts)
{
	struct mq_attr size = {.mq_maxmsg = QUEUE_MESSAGES, .mq_msgsize = QUEUE_MESSAGE_BYTES};
	int fds[QUEUES_TRIED], count = 0, errno_value = 0;
	char name[32];

	while (count < QUEUES_TRIED && !errno_value) {
		snprintf(name, sizeof(name), "belljar-%d-%d", (int)getpid(), count);
		fds[count] = (int)syscall(SYS_mq_open, name, O_CREAT | O_RDWR | O_EXCL, 0600, &size);
		if (fds[count] < 0)
			errno_value = errno;
		else
			count++;
		if (!errno_value)
			syscall(SYS_mq_unlink, name);
	}
	close_all(fds, count);
	if (!errno_value)
		return prove_answer_through("mq_open");
	/* A queue is a file, in no directory that is shown. */
	return prove_answer_stopped(errno_value == ENOSYS   ? LAYER_SECCOMP
				    : errno_value == EACCES ? LAYER_LANDLOCK
							    : LAYER_LIMITS,
				    "mq_open", errno_value);
}
