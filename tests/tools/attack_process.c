/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/attack_process.c - everything one process can try on another of the same user
 *
 * attack_process PID...   prints "CALL PID ANSWER", the answer being "ok" or the number of the errno. Signals are 0 or
 * SIGURG, which nobody minds; limits and priorities are set to what lets the target live but shows: a core limit of
 * 4242, nice 19.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALL_PIDFD_SEND_SIGNAL 424
#define CALL_PIDFD_OPEN 434
#define CALL_PIDFD_GETFD 438
#define CALL_PROCESS_MADVISE 440
#define SEIZE 0x4206
#define MADVISE_PAGEOUT 21

static char memory[64];

static int do_kill0(pid_t pid)
{
	return kill(pid, 0);
}

static int do_kill(pid_t pid)
{
	return kill(pid, SIGURG);
}

static int do_kill_group(pid_t pid)
{
	return kill(-pid, SIGURG);
}

static int do_tkill(pid_t pid)
{
	return (int)syscall(SYS_tkill, pid, SIGURG);
}

static int do_tgkill(pid_t pid)
{
	return (int)syscall(SYS_tgkill, pid, pid, SIGURG);
}

static int do_sigqueue(pid_t pid)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_code = SI_QUEUE;
	return (int)syscall(SYS_rt_sigqueueinfo, pid, SIGURG, &info);
}

static int do_tgsigqueue(pid_t pid)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_code = SI_QUEUE;
	return (int)syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGURG, &info);
}

static int with_pidfd(pid_t pid, long (*function)(int pidfd))
{
	int pidfd = (int)syscall(CALL_PIDFD_OPEN, pid, 0), error;
	long rc;

	if (pidfd < 0)
		return -1;
	rc = function(pidfd);
	error = errno;
	close(pidfd);
	errno = error;
	return rc < 0 ? -1 : 0;
}

static long by_pidfd_signal(int pidfd)
{
	return syscall(CALL_PIDFD_SEND_SIGNAL, pidfd, SIGURG, NULL, 0);
}

static long by_pidfd_getfd(int pidfd)
{
	return syscall(CALL_PIDFD_GETFD, pidfd, 0, 0);
}

static long by_pidfd_madvise(int pidfd)
{
	struct iovec part = {(void *)0x400000, 4096};

	return syscall(CALL_PROCESS_MADVISE, pidfd, &part, 1, MADVISE_PAGEOUT, 0);
}

static int do_pidfd_signal(pid_t pid)
{
	return with_pidfd(pid, by_pidfd_signal);
}

static int do_pidfd_getfd(pid_t pid)
{
	return with_pidfd(pid, by_pidfd_getfd);
}

static int do_process_madvise(pid_t pid)
{
	return with_pidfd(pid, by_pidfd_madvise);
}

static int do_proc_signal(pid_t pid)
{
	char path[64];
	int fd, rc, error;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return -1;
	rc = (int)syscall(CALL_PIDFD_SEND_SIGNAL, fd, SIGURG, NULL, 0);
	error = errno;
	close(fd);
	errno = error;
	return rc;
}

/* The owner of a descriptor gets a signal when something arrives; what matters is whether it does. */
static int do_sigio(pid_t pid)
{
	int ends[2], rc, error;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		return -1;
	rc = fcntl(ends[0], F_SETOWN, pid);
	error = errno;
	if (rc == 0) {
		fcntl(ends[0], F_SETSIG, SIGURG);
		fcntl(ends[0], F_SETFL, O_ASYNC);
		if (write(ends[1], "x", 1) != 1)
			rc = -1;
	}
	close(ends[0]);
	close(ends[1]);
	errno = error;
	return rc;
}

static int do_attach(pid_t pid)
{
	return ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0 ? -1 : 0;
}

static int do_seize(pid_t pid)
{
	return ptrace(SEIZE, pid, NULL, NULL) < 0 ? -1 : 0;
}

static int do_vm_read(pid_t pid)
{
	struct iovec mine = {memory, sizeof(memory)}, theirs = {(void *)0x400000, sizeof(memory)};

	return syscall(SYS_process_vm_readv, pid, &mine, 1, &theirs, 1, 0) < 0 ? -1 : 0;
}

static int do_vm_write(pid_t pid)
{
	struct iovec mine = {memory, sizeof(memory)}, theirs = {(void *)0x400000, sizeof(memory)};

	return syscall(SYS_process_vm_writev, pid, &mine, 1, &theirs, 1, 0) < 0 ? -1 : 0;
}

static int do_prlimit(pid_t pid)
{
	uint64_t limit[2] = {4242, 4242};

	return (int)syscall(SYS_prlimit64, pid, RLIMIT_CORE, limit, NULL);
}

static int do_affinity(pid_t pid)
{
	unsigned long mask[16] = {1};

	return (int)syscall(SYS_sched_setaffinity, pid, sizeof(mask), mask);
}

static int do_scheduler(pid_t pid)
{
	struct sched_param parameter = {0};

	return (int)syscall(SYS_sched_setscheduler, pid, 3 /* SCHED_BATCH */, &parameter);
}

static int do_schedparam(pid_t pid)
{
	struct sched_param parameter = {0};

	return (int)syscall(SYS_sched_setparam, pid, &parameter);
}

static int do_schedattr(pid_t pid)
{
	uint32_t attributes[12] = {48, 3};

	return (int)syscall(SYS_sched_setattr, pid, attributes, 0);
}

static int do_nice(pid_t pid)
{
	return (int)syscall(SYS_setpriority, PRIO_PROCESS, pid, 19);
}

static int do_nice_group(pid_t pid)
{
	return (int)syscall(SYS_setpriority, PRIO_PGRP, pid, 19);
}

static int do_ioprio(pid_t pid)
{
	return (int)syscall(SYS_ioprio_set, 1, pid, 3 << 13);
}

static int do_migrate(pid_t pid)
{
	unsigned long from = 1, to = 1;

	return syscall(SYS_migrate_pages, pid, 2, &from, &to) < 0 ? -1 : 0;
}

static int do_kcmp(pid_t pid)
{
	return syscall(SYS_kcmp, pid, getpid(), 2, 0, 0) < 0 ? -1 : 0;
}

static int do_robust_list(pid_t pid)
{
	void *head;
	size_t len;

	return (int)syscall(SYS_get_robust_list, pid, &head, &len);
}

static int open_proc(pid_t pid, const char *name, int flags)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, flags);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static int do_mem(pid_t pid)
{
	return open_proc(pid, "mem", O_RDWR);
}

static int do_environ(pid_t pid)
{
	return open_proc(pid, "environ", O_RDONLY);
}

static int do_fds(pid_t pid)
{
	return open_proc(pid, "fd/0", O_RDONLY);
}

static int do_cwd(pid_t pid)
{
	return open_proc(pid, "cwd/.", O_RDONLY);
}

static int do_root(pid_t pid)
{
	return open_proc(pid, "root/.", O_RDONLY);
}

static int do_exe(pid_t pid)
{
	return open_proc(pid, "exe", O_RDONLY);
}

static int do_exe_write(pid_t pid)
{
	return open_proc(pid, "exe", O_WRONLY);
}

static int do_oom(pid_t pid)
{
	return open_proc(pid, "oom_score_adj", O_WRONLY);
}

static int do_comm(pid_t pid)
{
	return open_proc(pid, "comm", O_WRONLY);
}

static int do_timerslack(pid_t pid)
{
	return open_proc(pid, "timerslack_ns", O_WRONLY);
}

static int do_clear_refs(pid_t pid)
{
	return open_proc(pid, "clear_refs", O_WRONLY);
}

static int do_namespace(pid_t pid)
{
	return open_proc(pid, "ns/mnt", O_RDONLY);
}

struct row {
	const char *name;
	int (*function)(pid_t pid);
};

static const struct row rows[] = {
	{"kill0", do_kill0},
	{"kill", do_kill},
	{"kill_group", do_kill_group},
	{"tkill", do_tkill},
	{"tgkill", do_tgkill},
	{"sigqueue", do_sigqueue},
	{"tgsigqueue", do_tgsigqueue},
	{"pidfd_signal", do_pidfd_signal},
	{"proc_signal", do_proc_signal},
	{"sigio", do_sigio},
	{"attach", do_attach},
	{"seize", do_seize},
	{"vm_read", do_vm_read},
	{"vm_write", do_vm_write},
	{"mem", do_mem},
	{"environ", do_environ},
	{"fd", do_fds},
	{"cwd", do_cwd},
	{"root", do_root},
	{"exe", do_exe},
	{"exe_write", do_exe_write},
	{"ns", do_namespace},
	{"pidfd_getfd", do_pidfd_getfd},
	{"process_madvise", do_process_madvise},
	{"kcmp", do_kcmp},
	{"robust_list", do_robust_list},
	{"migrate_pages", do_migrate},
	{"prlimit64", do_prlimit},
	{"sched_setaffinity", do_affinity},
	{"sched_setscheduler", do_scheduler},
	{"sched_setparam", do_schedparam},
	{"sched_setattr", do_schedattr},
	{"setpriority", do_nice},
	{"setpriority_group", do_nice_group},
	{"ioprio_set", do_ioprio},
	{"oom_score_adj", do_oom},
	{"comm", do_comm},
	{"timerslack_ns", do_timerslack},
	{"clear_refs", do_clear_refs},
};

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		pid_t pid = (pid_t)atoi(argv[i]);

		if (pid <= 0)
			return 2;
		for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
			int rc;

			errno = 0;
			rc = rows[row].function(pid);
			if (rc < 0)
				printf("%s %d %d\n", rows[row].name, (int)pid, errno);
			else
				printf("%s %d ok\n", rows[row].name, (int)pid);
		}
	}
	return 0;
}
