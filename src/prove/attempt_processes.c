/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/attempt_processes.c - attempts on other processes, and on the end of one's own
 *
 * A process outside of the pid namespace does not exist: ESRCH, or ENOENT in /proc. If it exists, the same call with
 * an argument that the kernel rejects before its permission check separates the filter (still EPERM) from Landlock.
 */
#include "prove/attempt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#define NUMBER_PIDFD_SEND_SIGNAL 424
#define NUMBER_PIDFD_OPEN 434
/* Does nothing to a process that has not asked for it. */
#define HARMLESS_SIGNAL SIGURG
#define OUTLIVE_SECONDS 5
#define OVER_LIMIT_SECONDS 1

/* @is_filter: the second, harmless call was refused too. */
static struct answer judge(const char *call, long result, bool is_filter, int errno_value)
{
	if (result >= 0)
		return prove_answer_through(call);
	switch (errno_value) {
	case ESRCH:
	case ENOENT:
		return prove_answer_stopped(LAYER_PID_NS, call, errno_value);
	case EPERM:
	case EACCES:
		return prove_answer_stopped(is_filter ? LAYER_SECCOMP : LAYER_LANDLOCK, call, errno_value);
	case ENOSYS:
		return prove_answer_stopped(LAYER_SECCOMP, call, errno_value);
	default:
		return prove_answer_stopped(LAYER_HOST, call, errno_value);
	}
}

static long attack(pid_t target, const struct corpus_call *call)
{
	return prove_corpus_make(call, &(struct corpus_target){.pid = target});
}

/* The row that the table names, and the one that only the filter refuses with EPERM. */
static struct answer attack_process(const struct prove_facts *facts, pid_t target)
{
	const char *word = prove_corpus_word(facts->call);
	long result = attack(target, facts->call);
	int errno_value = errno;

	return judge(word, result, attack(target, facts->probe) < 0 && errno == EPERM, errno_value);
}

struct answer attempt_on_engine(const struct prove_facts *facts)
{
	return facts->engine_pid < PROVE_ENGINE_PID_LEAST ? prove_answer_skipped(prove_corpus_word(facts->call))
							  : attack_process(facts, facts->engine_pid);
}

struct answer attempt_on_victim(const struct prove_facts *facts)
{
	return attack_process(facts, facts->victim_pid);
}

/* Its arguments are EINVAL, if it is the kernel that answers. */
struct answer attempt_on_first(const struct prove_facts *facts)
{
	long result = attack(1, facts->call);

	return judge(prove_corpus_word(facts->call), errno == EINVAL ? 0 : result, errno == EPERM, errno);
}

struct answer attempt_pidfd_other(const struct prove_facts *facts)
{
	AUTO_CLOSE int pidfd = (int)syscall(NUMBER_PIDFD_OPEN, facts->victim_pid, 0);
	long result;

	if (pidfd < 0)
		return judge("pidfd_open", -1, false, errno);
	result = syscall(NUMBER_PIDFD_SEND_SIGNAL, pidfd, HARMLESS_SIGNAL, NULL, 0);
	return judge("pidfd_send_signal", result, false, errno);
}

/* The kernel signals a descriptor's owner by itself; setting one succeeds, only the outside sees whether it was told. */
struct answer attempt_owner_other(const struct prove_facts *facts)
{
	if (attack(facts->victim_pid, prove_corpus_find(prove_corpus_process, "sigio")) < 0)
		return judge("fcntl", -1, true, errno);
	/* In a pid namespace no process has the number; elsewhere the signal was sent or silently dropped. */
	if (kill(facts->victim_pid, 0) < 0 && errno == ESRCH)
		return prove_answer_stopped(LAYER_PID_NS, "fcntl", ESRCH);
	return prove_answer_stopped(LAYER_LANDLOCK, "fcntl", 0);
}

struct answer attempt_write_memory(const struct prove_facts *facts)
{
	char byte = 'X';
	struct iovec from = {&byte, 1}, to = {(void *)facts->victim_address, 1};
	ssize_t result = process_vm_writev(facts->victim_pid, &from, 1, &to, 1, 0);
	int errno_value = errno;

	return judge("process_vm_writev", result,
		     process_vm_writev(facts->victim_pid, NULL, 0, NULL, 0, ~0UL) < 0 && errno == EPERM, errno_value);
}

static struct answer try_proc_file(pid_t pid, const char *name, int flags)
{
	char path[64], byte;
	AUTO_CLOSE int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return judge("open", -1, false, errno);
	if (flags == O_RDWR)
		return prove_answer_through("open");
	return judge("read", read(fd, &byte, 1) < 0 ? -1 : 0, false, errno);
}

struct answer attempt_other_environment(const struct prove_facts *facts)
{
	return try_proc_file(facts->victim_pid, "environ", O_RDONLY);
}

struct answer attempt_other_memory(const struct prove_facts *facts)
{
	return try_proc_file(facts->victim_pid, "mem", O_RDWR);
}

struct answer attempt_see_other(const struct prove_facts *facts)
{
	return try_proc_file(facts->victim_pid, "comm", O_RDONLY);
}

/* --- process 1 ---------------------------------------------------------------------------------------------- */

static struct answer try_init(const char *name)
{
	char path[64], content[4096];
	AUTO_CLOSE int fd = -1;
	ssize_t len;
	bool is_own = getppid() == 1;

	snprintf(path, sizeof(path), "/proc/1/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, content, sizeof(content));
	if (len < 0)
		return prove_answer_stopped(is_own ? LAYER_NOT_DUMPABLE : LAYER_LANDLOCK, fd < 0 ? "open" : "read",
					    errno);
	for (ssize_t i = 0; i < len; i++)
		if (content[i])
			return prove_answer_through("read");
	return prove_answer_stopped(LAYER_NOT_DUMPABLE, "read", 0);
}

struct answer attempt_init_environment(const struct prove_facts *facts)
{
	return try_init("environ");
}

struct answer attempt_init_arguments(const struct prove_facts *facts)
{
	return try_init("cmdline");
}

struct answer attempt_shared_memory(const struct prove_facts *facts)
{
	void *memory;

	if (facts->shared_memory_id < 0)
		return prove_answer_skipped("shmget");
	memory = shmat(facts->shared_memory_id, NULL, SHM_RDONLY);
	if (memory != (void *)-1)
		return prove_answer_through("shmat");
	if (errno == EINVAL || errno == EIDRM)
		return prove_answer_stopped(LAYER_IPC_NS, "shmat", errno);
	return prove_answer_stopped(errno == ENOSYS ? LAYER_SECCOMP : LAYER_HOST, "shmat", errno);
}

/* --- the end, and the number -------------------------------------------------------------------------------- */

/* Lives on with a FIFO open, which the outside can see; goes by itself when that closes its end, or soon. */
static void linger(int fifo) __attribute__((noreturn));
static void linger(int fifo)
{
	struct pollfd reader = {.fd = fifo};
	time_t end = time(NULL) + OUTLIVE_SECONDS;

	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	while (time(NULL) < end && poll(&reader, 1, 50) == 0)
		;
	_exit(0);
}

/* Nothing in here can fail the attempt: whether the daemon lives on is seen outside. */
struct answer attempt_outlive(const struct prove_facts *facts)
{
	int fifo = open(attempt_path(facts, "work/fifo"), O_WRONLY | O_NONBLOCK | O_CLOEXEC), status;
	pid_t child;

	if (fifo < 0)
		return prove_answer_skipped("open");
	child = fork();
	if (child < 0)
		return prove_answer_skipped("fork");
	if (child == 0) {
		setsid();
		if (fork() == 0) {
			for (int fd = 0; fd < 3; fd++)
				close(fd);
			linger(fifo);
		}
		_exit(0);
	}
	waitpid(child, &status, 0);
	return prove_answer_stopped(LAYER_TREE, "fork", 0);
}

struct answer attempt_processes(const struct prove_facts *facts)
{
	int gate[2], count, errno_value = 0;
	char byte;

	if (facts->pids_max <= 0 || pipe2(gate, O_CLOEXEC) < 0)
		return prove_answer_skipped("pipe");
	/* This process is one of them. */
	for (count = 1; count <= facts->pids_max && !errno_value; count++) {
		pid_t child = fork();

		if (child == 0) {
			close(gate[1]);
			_exit(read(gate[0], &byte, 1) < 0);
		}
		if (child < 0)
			errno_value = errno;
	}
	/* If the kernel refused no fork, give a process that polls the count time to act. */
	if (!errno_value)
		nanosleep(&(struct timespec){.tv_sec = OVER_LIMIT_SECONDS}, NULL);
	close(gate[1]);
	close(gate[0]);
	while (waitpid(-1, NULL, 0) > 0)
		;
	return errno_value ? prove_answer_stopped(LAYER_LIMITS, "fork", errno_value) : prove_answer_through("fork");
}
