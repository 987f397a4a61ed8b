/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/attempt_kernel.c - attempts on the kernel: mounts, namespaces, calls a jar has no use for, privileges
 *
 * The filter answers before the kernel looks at any argument. So a call with arguments that the kernel rejects (EFAULT,
 * EINVAL, EBADF) shows whether it was reached at all, and does nothing if it was. Where the kernel asks for a capability
 * first, the answer is EPERM either way, and the filter gets the credit.
 */
#include "prove/attempt.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define NUMBER_CLONE3 435
#define NUMBER_IO_URING_SETUP 425
#define BAD_POINTER ((void *)1)
#define EXECUTABLE_DATA 0x0400000
#define SETUID_WAITS 1000
#define TCP_UPPER_PROTOCOL 31
#define ENABLE_VERITY 0x40806685UL
#define ADD_ENCRYPTION_KEY 0xc0506617UL

/* A call whose arguments cannot be right: any answer but the filter's came from the kernel. */
static struct answer judge_reached(const char *call, long result)
{
	if (result < 0 && (errno == EPERM || errno == ENOSYS))
		return answer_stopped(LAYER_SECCOMP, call, errno);
	return answer_through(call);
}

/* The same where the filter has another word for it than the kernel, whose word for no descriptor is EBADF. */
static struct answer judge_answered(const char *call, long result)
{
	return result < 0 && errno != EBADF ? answer_stopped(LAYER_SECCOMP, call, errno) : answer_through(call);
}

struct answer attempt_upper_protocol(const struct prove_facts *facts)
{
	return judge_answered("setsockopt", setsockopt(-1, IPPROTO_TCP, TCP_UPPER_PROTOCOL, "tls", sizeof("tls")));
}

struct answer attempt_verity(const struct prove_facts *facts)
{
	return judge_answered("ioctl", syscall(SYS_ioctl, -1, ENABLE_VERITY, BAD_POINTER));
}

struct answer attempt_encryption(const struct prove_facts *facts)
{
	return judge_answered("ioctl", syscall(SYS_ioctl, -1, ADD_ENCRYPTION_KEY, BAD_POINTER));
}

/* --- the memory and sockets of others ----------------------------------------------------------------------- */

struct answer attempt_page_cache(const struct prove_facts *facts)
{
	return judge_reached("mincore", syscall(SYS_mincore, BAD_POINTER, 1, NULL));
}

struct answer attempt_compare(const struct prove_facts *facts)
{
	return judge_reached("kcmp", syscall(SYS_kcmp, getpid(), getpid(), -1, 0, 0));
}

struct answer attempt_give_pages(const struct prove_facts *facts)
{
	return judge_reached("vmsplice", syscall(SYS_vmsplice, -1, NULL, 0, 0));
}

struct answer attempt_out_of_band(const struct prove_facts *facts)
{
	return judge_answered("send", send(-1, "x", 1, MSG_OOB | MSG_NOSIGNAL));
}

struct answer attempt_socket_filter(const struct prove_facts *facts)
{
	return judge_answered("setsockopt", setsockopt(-1, SOL_SOCKET, SO_ATTACH_FILTER, BAD_POINTER, 16));
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
		return answer_through(call);
	if (errno_value == EPERM || errno_value == ENOSYS)
		return answer_stopped(filter_has_mount() ? LAYER_SECCOMP : LAYER_PRIVILEGES, call, errno_value);
	return answer_stopped(LAYER_HOST, call, errno_value);
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

struct answer attempt_chroot(const struct prove_facts *facts)
{
	return judge_reached("chroot", syscall(SYS_chroot, BAD_POINTER));
}

struct answer attempt_unshare_user(const struct prove_facts *facts)
{
	if (unshare(CLONE_NEWUSER) == 0)
		return answer_through("unshare");
	return answer_stopped(unshare(CLONE_NEWUSER | CLONE_SIGHAND | CLONE_VM | 1) < 0 && errno == EPERM
				      ? LAYER_SECCOMP
				      : LAYER_HOST,
			      "unshare", errno);
}

static struct answer judge_clone(const char *call, long pid)
{
	int errno_value = errno;

	if (pid == 0)
		_exit(0);
	if (pid > 0) {
		waitpid((pid_t)pid, NULL, __WALL);
		return answer_through(call);
	}
	return answer_stopped(errno_value == EPERM || errno_value == ENOSYS ? LAYER_SECCOMP : LAYER_HOST, call,
			      errno_value);
}

struct answer attempt_clone_user(const struct prove_facts *facts)
{
	return judge_clone("clone", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
}

struct answer attempt_clone3_user(const struct prove_facts *facts)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	} arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};

	return judge_clone("clone3", syscall(NUMBER_CLONE3, &arguments, sizeof(arguments)));
}

struct answer attempt_setns(const struct prove_facts *facts)
{
	return judge_reached("setns", syscall(SYS_setns, -1, 0));
}

/* --- calls -------------------------------------------------------------------------------------------------- */

struct answer attempt_bpf(const struct prove_facts *facts)
{
	return judge_reached("bpf", syscall(SYS_bpf, 0, NULL, 1U << 20));
}

struct answer attempt_perf(const struct prove_facts *facts)
{
	return judge_reached("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, ~0UL));
}

struct answer attempt_keyctl(const struct prove_facts *facts)
{
	return judge_reached("keyctl", syscall(SYS_keyctl, 99999, 0, 0, 0, 0));
}

struct answer attempt_io_uring(const struct prove_facts *facts)
{
	return judge_reached("io_uring_setup", syscall(NUMBER_IO_URING_SETUP, 1, NULL));
}

struct answer attempt_userfaultfd(const struct prove_facts *facts)
{
	return judge_reached("userfaultfd", syscall(SYS_userfaultfd, ~0U));
}

struct answer attempt_kexec(const struct prove_facts *facts)
{
	return judge_reached("kexec_load", syscall(SYS_kexec_load, 0, 99999, BAD_POINTER, ~0UL));
}

struct answer attempt_module(const struct prove_facts *facts)
{
	return judge_reached("init_module", syscall(SYS_init_module, NULL, 0, NULL));
}

struct answer attempt_handle(const struct prove_facts *facts)
{
	return judge_reached("open_by_handle_at", syscall(SYS_open_by_handle_at, -1, NULL, 0));
}

/* Wrong magic numbers: with every capability this is EINVAL. */
struct answer attempt_reboot(const struct prove_facts *facts)
{
	return judge_reached("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
}

/* In a child, since a kernel without the other architecture ends it with a signal. */
struct answer attempt_foreign_call(const struct prove_facts *facts)
{
#if defined(__x86_64__)
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		long result;

		__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
		_exit(result > 0 ? 0 : 1);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return answer_skipped("fork");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return answer_through("int80");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV)
		return answer_stopped(LAYER_HOST, "int80", 0);
	return answer_stopped(LAYER_SECCOMP, "int80", 0);
#else
	errno = 0;
	return answer_skipped("none");
#endif
}

struct answer attempt_personality(const struct prove_facts *facts)
{
	int before = personality(0xffffffff);

	if (personality(EXECUTABLE_DATA) < 0)
		return answer_stopped(LAYER_SECCOMP, "personality", errno);
	personality((unsigned long)before);
	return answer_through("personality");
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
		return answer_through("ioctl");
	return answer_stopped(errno == EPERM ? LAYER_SECCOMP : LAYER_HOST, "ioctl", errno);
}

struct answer attempt_controlling_terminal(const struct prove_facts *facts)
{
	AUTO_CLOSE int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		return answer_through("open");
	if (errno == ENXIO)
		return answer_stopped(LAYER_SESSION, "open", errno);
	return answer_stopped(errno == ENOENT ? LAYER_MOUNT_NS : LAYER_LANDLOCK, "open", errno);
}

/* --- privileges --------------------------------------------------------------------------------------------- */

struct answer attempt_raise_limit(const struct prove_facts *facts)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) < 0 || limit.rlim_max == RLIM_INFINITY)
		return answer_skipped("getrlimit");
	limit.rlim_max++;
	if (setrlimit(RLIMIT_CORE, &limit) == 0)
		return answer_through("setrlimit");
	return answer_stopped(errno == EPERM ? LAYER_PRIVILEGES : LAYER_HOST, "setrlimit", errno);
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
		return answer_skipped("pipe");
	while (write(ends[1], page, sizeof(page)) > 0)
		;
	fcntl(ends[1], F_SETFL, 0);
	child = start_with_output(program, ends[1]);
	if (child < 0)
		return answer_skipped("fork");
	for (int i = 0; i < SETUID_WAITS && !has_changed; i++) {
		nanosleep(&nap, NULL);
		has_gained_any = has_gained(child, &has_changed);
	}
	/* Without a reader it gets SIGPIPE, whoever it is by now. */
	close(ends[0]);
	close(ends[1]);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (!has_changed)
		return answer_skipped("execve");
	if (has_gained_any)
		return answer_through("execve");
	return answer_stopped(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? LAYER_PRIVILEGES : LAYER_IDENTITY, "execve",
			      0);
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
		return answer_skipped("readlink");
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (access(programs[i], X_OK) == 0)
			return watch_setuid(programs[i]);
	errno = ENOENT;
	return answer_skipped("access");
}

/* What it has, what it could take, what it hands on; the bounding set does not matter without new privileges. */
struct answer attempt_capabilities(const struct prove_facts *facts)
{
	char line[256];
	unsigned long long bits, any = 0;
	FILE *file = fopen("/proc/self/status", "re");

	if (!file) /* no /proc of this pid namespace: ask the kernel about one that is enough for everything */
		return prctl(PR_CAPBSET_READ, 21, 0, 0, 0) == 1 ? answer_skipped("prctl")
								: answer_stopped(LAYER_PRIVILEGES, "prctl", 0);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "Cap", 3) && strncmp(line, "CapBnd", 6) != 0 && sscanf(line + 7, "%llx", &bits) == 1)
			any |= bits;
		if (!strncmp(line, "NoNewPrivs:\t0", 13))
			any |= 1;
	}
	fclose(file);
	return any ? answer_through("capget") : answer_stopped(LAYER_PRIVILEGES, "capget", 0);
}
