/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/corpus.c - make one attack of a table
 */
#include "prove/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBER_PIDFD_OPEN 434
#define NUMBER_CLONE3 435
#define NUMBER_OPENAT2 437
#define NUMBER_OPEN_TREE 428

const struct corpus_call *prove_corpus_find(const struct corpus_call *rows, const char *name)
{
	for (; rows->name; rows++)
		if (!strcmp(rows->name, name))
			return rows;
	abort();
}

const char *prove_corpus_word(const struct corpus_call *call)
{
	return call->word ? call->word : call->name;
}

static int open_file(pid_t target, const char *name, int flags)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)target, name);
	return open(path, flags | O_CLOEXEC);
}

/* The argument itself, or what stands for it; *@fd is opened for that. */
static long argument_of(long argument, const struct corpus_target *target, int *fd)
{
	switch (argument) {
	case CORPUS_PID:
		return target->pid;
	case CORPUS_GROUP:
		return -target->pid;
	case CORPUS_PIDFD:
		return *fd = (int)syscall(NUMBER_PIDFD_OPEN, target->pid, 0);
	case CORPUS_PROC:
		return *fd = open_file(target->pid, "", O_RDONLY | O_DIRECTORY);
	case CORPUS_SELF:
		return getpid();
	case CORPUS_UID:
		return getuid();
	case CORPUS_GID:
		return getgid();
	case CORPUS_PATH:
		return (long)target->path;
	case CORPUS_OWN:
		return (long)target->own;
	case CORPUS_FRESH:
		return (long)target->fresh;
	case CORPUS_FD:
		return target->fd;
	case CORPUS_FLAGS:
		return target->flags;
	}
	return argument;
}

static bool gives_descriptor(long number)
{
#ifdef SYS_open
	if (number == SYS_open)
		return true;
#endif
	return number == SYS_socket || number == SYS_openat || number == NUMBER_OPENAT2 || number == NUMBER_OPEN_TREE ||
	       number == SYS_fanotify_init;
}

static long make_call(const struct corpus_call *call, const long *values)
{
	long rc = syscall(call->number, values[0], values[1], values[2], values[3], values[4], values[5]);
	bool is_process = call->number == SYS_clone || call->number == NUMBER_CLONE3;

	if (is_process && rc == 0)
		_exit(0);
	if (is_process && rc > 0)
		waitpid((pid_t)rc, NULL, __WALL);
	if (rc >= 0 && gives_descriptor(call->number))
		close((int)rc);
	return rc < 0 ? -1 : 0;
}

long prove_corpus_make(const struct corpus_call *call, const struct corpus_target *target)
{
	long values[6];
	int fd = -2, error;
	long rc = 0;

	errno = 0;
	if (call->function)
		return call->function(target) < 0 ? -1 : 0;
	if (call->file)
		rc = fd = open_file(target->pid, call->file, (int)call->arguments[0]);
	for (size_t i = 0; !call->file && i < 6; i++)
		values[i] = argument_of(call->arguments[i], target, &fd);
	if (!call->file)
		rc = fd == -1 ? -1 : make_call(call, values);
	error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return rc < 0 ? -1 : 0;
}

int prove_corpus_foreign_call(void)
{
#if defined(__x86_64__)
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		long result;

		__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
		_exit(result > 0 ? 0 : 1);
	}
	return child < 0 || waitpid(child, &status, 0) != child ? -1 : status;
#else
	errno = ENOSYS;
	return -1;
#endif
}
