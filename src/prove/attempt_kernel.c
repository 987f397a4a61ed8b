/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/attempt_kernel.c - attempts on the kernel: mounts, namespaces, calls a jar has no use for, privileges
 *
 * The filter answers before the kernel looks at any argument. So a call with arguments that the kernel rejects
 * (EFAULT, EINVAL, EBADF) shows whether it was reached at all, and does nothing if it was. Where the kernel asks for a
 * capability first, the answer is EPERM either way, and the filter gets the credit.
 */
#include "prove/attempt.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define BAD_POINTER ((void *)1)
#define EXECUTABLE_DATA 0x0400000
#define SETUID_WAITS 1000

/* --- calls of the corpus ------------------------------------------------------------------------------------- */

static long make(const struct prove_facts *facts)
{
	return prove_corpus_make(facts->call, &(struct corpus_target){.pid = getpid()});
}

/* Its arguments cannot be right: any answer but the filter's came from the kernel. */
struct answer attempt_reach(const struct prove_facts *facts)
{
	long result = make(facts);

	if (result < 0 && (errno == EPERM || errno == ENOSYS))
		return prove_answer_stopped(LAYER_SECCOMP, prove_corpus_word(facts->call), errno);
	return prove_answer_through(prove_corpus_word(facts->call));
}

/* The same where the filter has another word for it than the kernel, whose word for no descriptor is EBADF. */
struct answer attempt_answered(const struct prove_facts *facts)
{
	return make(facts) < 0 && errno != EBADF
		       ? prove_answer_stopped(LAYER_SECCOMP, prove_corpus_word(facts->call), errno)
		       : prove_answer_through(prove_corpus_word(facts->call));
}

/* The same of a call that makes a process, which the kernel may have reasons to refuse. */
struct answer attempt_clone(const struct prove_facts *facts)
{
	const char *word = prove_corpus_word(facts->call);

	if (make(facts) == 0)
		return prove_answer_through(word);
	return prove_answer_stopped(errno == EPERM || errno == ENOSYS ? LAYER_SECCOMP : LAYER_HOST, word, errno);
}

/* --- mounts and namespaces ---------------------------------------------------------------------------------- */

static bool filter_has_mount(void)
{
	return syscall(SYS_mount, BAD_POINTER, BAD_POINTER, BAD_POINTER, 0, BAD_POINTER) < 0 && errno != EFAULT;
}

static struct answer judge_mount(const char *call, int result)
{
	int errno_value = errno;

	if (result >= 0)
		return prove_answer_through(call);
	if (errno_value == EPERM || errno_value == ENOSYS)
		return prove_answer_stopped(filter_has_mount() ? LAYER_SECCOMP : LAYER_PRIVILEGES, call, errno_value);
	return prove_answer_stopped(LAYER_HOST, call, errno_value);
}

struct answer attempt_remount(const struct prove_facts *facts)
{
	return judge_mount("mount", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV, NULL));
}

struct answer attempt_mount(const struct prove_facts *facts)
{
	const char *place = attempt_path(facts, "work");
	struct answer answer = judge_mount("mount", mount("none", place, "tmpfs", 0, NULL));

	if (answer.verdict == VERDICT_THROUGH)
		umount2(place, MNT_DETACH);
	return answer;
}

struct answer attempt_unshare_user(const struct prove_facts *facts)
{
	if (unshare(CLONE_NEWUSER) == 0)
		return prove_answer_through("unshare");
	return prove_answer_stopped(unshare(CLONE_NEWUSER | CLONE_SIGHAND | CLONE_VM | 1) < 0 && errno == EPERM
					    ? LAYER_SECCOMP
					    : LAYER_HOST,
				    "unshare", errno);
}

struct answer attempt_foreign_call(const struct prove_facts *facts)
{
	int status = prove_corpus_foreign_call();

	if (status < 0)
		return prove_answer_skipped("none");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return prove_answer_through("int80");
	return prove_answer_stopped(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? LAYER_HOST : LAYER_SECCOMP,
				    "int80", 0);
}

struct answer attempt_personality(const struct prove_facts *facts)
{
	int before = personality(0xffffffff);

	if (personality(EXECUTABLE_DATA) < 0)
		return prove_answer_stopped(LAYER_SECCOMP, "personality", errno);
	personality((unsigned long)before);
	return prove_answer_through("personality");
}

/* --- terminals ---------------------------------------------------------------------------------------------- */

/* A controlling terminal of its own where one can be had: on others the kernel says EPERM too. */
static int open_terminal(void)
{
	AUTO_CLOSE int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int unlock = 0, slave = -1;

	if (master >= 0 && ioctl(master, TIOCSPTLCK, &unlock) == 0)
		slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	/* Its end hangs the terminal up. */
	signal(SIGHUP, SIG_IGN);
	ioctl(slave, TIOCSCTTY, 0);
	take_fd(&master);
	return slave;
}

/* EIO is the kernel's, where its setting forbids it; ENOTTY says that this is no terminal. Both came past the filter. */
struct answer attempt_terminal(const struct prove_facts *facts)
{
	AUTO_CLOSE int terminal = open_terminal();
	char byte = ' ';

	/* With bits above the 32 that the kernel looks at. */
	if (syscall(SYS_ioctl, terminal, (1ULL << 32) | TIOCSTI, &byte) == 0 || errno == ENOTTY || errno == EIO)
		return prove_answer_through("ioctl");
	return prove_answer_stopped(errno == EPERM ? LAYER_SECCOMP : LAYER_HOST, "ioctl", errno);
}

struct answer attempt_controlling_terminal(const struct prove_facts *facts)
{
	AUTO_CLOSE int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		return prove_answer_through("open");
	if (errno == ENXIO)
		return prove_answer_stopped(LAYER_SESSION, "open", errno);
	return prove_answer_stopped(errno == ENOENT ? LAYER_MOUNT_NS : LAYER_LANDLOCK, "open", errno);
}

/* --- privileges --------------------------------------------------------------------------------------------- */

struct answer attempt_raise_limit(const struct prove_facts *facts)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) < 0 || limit.rlim_max == RLIM_INFINITY)
		return prove_answer_skipped("getrlimit");
	limit.rlim_max++;
	if (setrlimit(RLIMIT_CORE, &limit) == 0)
		return prove_answer_through("setrlimit");
	return prove_answer_stopped(errno == EPERM ? LAYER_PRIVILEGES : LAYER_HOST, "setrlimit", errno);
}

/* Effective capabilities and user of a process: true if they are more than ours. */
static bool has_gained(pid_t pid, bool *has_changed)
{
	char path[64], line[256];
	unsigned long long capabilities = 0;
	unsigned real = 0, effective = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "Name:", 5))
			*has_changed = strstr(line, "belljar") == NULL;
		sscanf(line, "Uid:\t%u\t%u", &real, &effective);
		sscanf(line, "CapEff:\t%llx", &capabilities);
	}
	fclose(file);
	return *has_changed && (effective != geteuid() || capabilities != 0);
}

/* The program is started with a full pipe for its output: it cannot end before we have looked at it. */
static pid_t start_with_output(const char *program, int output)
{
	pid_t child = fork();

	if (child == 0) {
		dup2(output, 1);
		dup2(output, 2);
		execl(program, program, "--help", (char *)NULL);
		_exit(126);
	}
	return child;
}

static struct answer watch_setuid(const char *program)
{
	struct timespec nap = {.tv_nsec = 2000000};
	bool has_gained_any = false, has_changed = false;
	char page[4096] = {0};
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return prove_answer_skipped("pipe");
	while (write(ends[1], page, sizeof(page)) > 0)
		;
	fcntl(ends[1], F_SETFL, 0);
	child = start_with_output(program, ends[1]);
	if (child < 0)
		return prove_answer_skipped("fork");
	for (int i = 0; i < SETUID_WAITS && !has_changed; i++) {
		nanosleep(&nap, NULL);
		has_gained_any = has_gained(child, &has_changed);
	}
	/* Without a reader the child gets SIGPIPE, under any user id. */
	close(ends[0]);
	close(ends[1]);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (!has_changed)
		return prove_answer_skipped("execve");
	if (has_gained_any)
		return prove_answer_through("execve");
	return prove_answer_stopped(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? LAYER_PRIVILEGES : LAYER_IDENTITY,
				    "execve", 0);
}

static bool has_own_proc(void)
{
	char link[32] = "";

	return readlink("/proc/self", link, sizeof(link) - 1) > 0 && atoi(link) == getpid();
}

struct answer attempt_setuid(const struct prove_facts *facts)
{
	static const char *const programs[] = {"/usr/bin/su", "/bin/su", "/usr/bin/passwd", "/usr/bin/newgrp",
					       "/usr/bin/sudo"};

	/* The child is watched in /proc, which must be the one of our pid namespace. */
	if (!has_own_proc())
		return prove_answer_skipped("readlink");
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (access(programs[i], X_OK) == 0)
			return watch_setuid(programs[i]);
	errno = ENOENT;
	return prove_answer_skipped("access");
}

/* What it has, what it could take, what it hands on; the bounding set does not matter without new privileges. */
struct answer attempt_capabilities(const struct prove_facts *facts)
{
	char line[256];
	unsigned long long bits, any = 0;
	FILE *file = fopen("/proc/self/status", "re");

	if (!file) /* no /proc of this pid namespace: ask the kernel about one that is enough for everything */
		return prctl(PR_CAPBSET_READ, 21, 0, 0, 0) == 1 ? prove_answer_skipped("prctl")
								: prove_answer_stopped(LAYER_PRIVILEGES, "prctl", 0);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "Cap", 3) && strncmp(line, "CapBnd", 6) != 0 && sscanf(line + 7, "%llx", &bits) == 1)
			any |= bits;
		if (!strncmp(line, "NoNewPrivs:\t0", 13))
			any |= 1;
	}
	fclose(file);
	return any ? prove_answer_through("capget") : prove_answer_stopped(LAYER_PRIVILEGES, "capget", 0);
}
