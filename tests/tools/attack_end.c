/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/attack_end.c - ways to outlive one's end, to be too many, or to hide that one has ended
 *
 * attack_end bomb SECONDS       fork in every process, again and again; signals ignored, each in a session of its own
 * attack_end hop CHAINS SECONDS chains of processes, each of which forks a successor and leaves at once
 * attack_end zombies COUNT      children that ended and that nobody waits for; then exit 5
 * attack_end orphans COUNT      grandchildren whose parent is gone, as fast as can be; then exit 5
 * attack_end traceme HOW        asks to be traced by the parent; HOW: exec, stop, exit (3), crash
 * attack_end tracer             a child traces the main process, which then exits 7
 * attack_end quiet              closes 0, 1 and 2 and lives on
 * attack_end flood              sends every signal that can be sent to every process that can be reached, then exits 6
 * attack_end starve COUNT S     makes life hard for process 1: limits, priority, affinity; then COUNT processes turn
 *                               in circles on its processor for S seconds
 * Everything ends by itself after SECONDS, or after 150.
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
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SEIZE 0x4206
#define SET_PTRACER 0x59616d61
#define LIFE_SECONDS 150

static void say(const char *word)
{
	if (write(1, word, strlen(word)) < 0)
		_exit(9);
}

static void ignore_all(void)
{
	for (int number = 1; number < 32; number++)
		signal(number, SIG_IGN);
}

static int bomb(int seconds)
{
	time_t end = time(NULL) + seconds;
	struct timespec pause = {.tv_nsec = 100000};

	ignore_all();
	say("bomb\n");
	while (time(NULL) < end) {
		pid_t child = fork();

		if (child == 0)
			setsid();
		else if (child < 0)
			nanosleep(&pause, NULL);
	}
	return 0;
}

static void hop(time_t end)
{
	while (time(NULL) < end) {
		pid_t next = fork();

		if (next > 0)
			_exit(0);
		if (next == 0)
			setsid();
	}
	_exit(0);
}

static int hops(int chains, int seconds)
{
	time_t end = time(NULL) + seconds;

	ignore_all();
	for (int i = 0; i < chains; i++) {
		pid_t child = fork();

		if (child == 0) {
			close(0);
			close(1);
			close(2);
			hop(end);
		}
	}
	say("hopping\n");
	sleep((unsigned)seconds + 1);
	return 0;
}

static int zombies(int count)
{
	int made = 0;

	for (int i = 0; i < count; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		made += child > 0;
	}
	printf("%d\n", made);
	fflush(stdout);
	return 5;
}

static int orphans(int count)
{
	int made = 0;

	for (int i = 0; i < count; i++) {
		pid_t child = fork();

		if (child == 0) {
			if (fork() == 0)
				setsid();
			_exit(0);
		}
		if (child < 0)
			continue;
		made++;
		waitpid(child, NULL, 0);
	}
	printf("%d\n", made);
	fflush(stdout);
	return 5;
}

static int traceme(const char *how)
{
	char path[] = "/bin/true";
	char *words[] = {path, NULL};

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		return 8;
	say("traced\n");
	if (!strcmp(how, "exec"))
		execv(words[0], words);
	if (!strcmp(how, "stop"))
		raise(SIGSTOP);
	if (!strcmp(how, "crash"))
		raise(SIGSEGV);
	return 3;
}

static int tracer(void)
{
	pid_t main_process = getpid();
	int ready[2];
	char byte;

	prctl(SET_PTRACER, -1UL, 0, 0, 0);
	if (pipe(ready) < 0)
		return 8;
	if (fork() == 0) {
		setsid();
		byte = ptrace(SEIZE, main_process, NULL, NULL) < 0 ? 'n' : 'y';
		if (write(ready[1], &byte, 1) == 1)
			sleep(LIFE_SECONDS);
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		return 8;
	say(byte == 'y' ? "traced\n" : "refused\n");
	return 7;
}

static int quiet(void)
{
	close(0);
	close(1);
	close(2);
	sleep(LIFE_SECONDS);
	return 0;
}

static int flood(void)
{
	ignore_all();
	for (int number = 1; number < 65; number++) {
		/* Oneself, process 1, the parent, one's group, the parent's group, everybody. */
		const pid_t targets[] = {getppid(), 0, -getppid()};

		/* Nothing that would end or stop a stranger: what reaches everybody must be harmless. */
		if (number == SIGURG || number == SIGCONT || number == SIGWINCH)
			kill(-1, number);
		if (number == SIGKILL || number == SIGSTOP || number == 32 || number == 33 || number == 34)
			continue;
		signal(number, SIG_IGN);
		for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
			for (int times = 0; times < 100 && targets[i]; times++)
				kill(targets[i], number);
		kill(0, number);
	}
	/* Towards one process only: should a wall fail, a test must not take the machine with it. */
	kill(getppid(), SIGKILL);
	kill(getppid(), SIGSTOP);
	say("flooded\n");
	return 6;
}

static int starve(int count, int seconds)
{
	uint64_t files[2] = {0, 0};
	unsigned long mask[16] = {1};
	struct sched_param parameter = {0};

	syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, files, NULL);
	syscall(SYS_prlimit64, 1, RLIMIT_NPROC, files, NULL);
	syscall(SYS_prlimit64, 1, RLIMIT_SIGPENDING, files, NULL);
	syscall(SYS_prlimit64, 1, RLIMIT_STACK, files, NULL);
	setpriority(PRIO_PROCESS, 1, 19);
	syscall(SYS_sched_setaffinity, 1, sizeof(mask), mask);
	syscall(SYS_sched_setscheduler, 1, 5 /* SCHED_IDLE */, &parameter);
	ignore_all();
	syscall(SYS_sched_setaffinity, 0, sizeof(mask), mask);
	say("starved\n");
	for (int i = 1; i < count; i++)
		if (fork() == 0)
			break;
	for (time_t end = time(NULL) + seconds; time(NULL) < end;)
		;
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int number = argc > 2 ? atoi(argv[2]) : 0;

	if (!strcmp(what, "bomb"))
		return bomb(number);
	if (!strcmp(what, "hop"))
		return hops(number, argc > 3 ? atoi(argv[3]) : 10);
	if (!strcmp(what, "zombies"))
		return zombies(number);
	if (!strcmp(what, "orphans"))
		return orphans(number);
	if (!strcmp(what, "traceme"))
		return traceme(argc > 2 ? argv[2] : "");
	if (!strcmp(what, "tracer"))
		return tracer();
	if (!strcmp(what, "quiet"))
		return quiet();
	if (!strcmp(what, "flood"))
		return flood();
	if (!strcmp(what, "starve"))
		return starve(number, argc > 3 ? atoi(argv[3]) : 10);
	return 2;
}
