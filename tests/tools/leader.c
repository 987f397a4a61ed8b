/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/leader.c - a session leader on a terminal, as an interactive shell is, that a test steers
 *
 * leader FD CMD [ARG...]   stdin is the terminal. The leader makes it its controlling terminal, starts CMD as the
 * foreground process group and tells on FD (a socket), one line each: "pid N", "stopped N", "exited N", "signaled N".
 * Read from FD: 'c' puts CMD in the foreground again and continues it. The leader stays until FD is closed at the
 * other end: when a session leader dies the kernel hangs up the terminal and resets its modes, which would hide what
 * CMD left behind.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int report;

static void say(const char *word, int number)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%s %d\n", word, number);

	if (write(report, line, (size_t)len) != len)
		_exit(3);
}

static void on_child(int number)
{
	(void)number;
}

/* Returns 1 once the child is gone. */
static int reap(pid_t child)
{
	int status;

	while (waitpid(child, &status, WUNTRACED | WNOHANG) == child) {
		if (WIFSTOPPED(status)) {
			tcsetpgrp(0, getpgrp());
			say("stopped", WSTOPSIG(status));
			continue;
		}
		tcsetpgrp(0, getpgrp());
		if (WIFEXITED(status))
			say("exited", WEXITSTATUS(status));
		else
			say("signaled", WTERMSIG(status));
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const int ignored[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};
	struct sigaction action = {.sa_handler = on_child};
	sigset_t child_set, old_set;
	pid_t child;

	if (argc < 3)
		return 2;
	report = atoi(argv[1]);
	setsid();
	if (ioctl(0, TIOCSCTTY, 0) < 0)
		return 2;
	sigaction(SIGCHLD, &action, NULL);
	sigemptyset(&child_set);
	sigaddset(&child_set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_set, &old_set);
	for (unsigned i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	child = fork();
	if (child < 0)
		return 2;
	if (child == 0) {
		close(report);
		setpgid(0, 0);
		tcsetpgrp(0, getpid());
		signal(SIGCHLD, SIG_DFL);
		for (unsigned i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
			signal(ignored[i], SIG_DFL);
		sigprocmask(SIG_SETMASK, &old_set, NULL);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	setpgid(child, child);
	tcsetpgrp(0, child);
	say("pid", child);
	for (int is_gone = 0;;) {
		struct pollfd poller = {.fd = report, .events = POLLIN};
		char byte;

		if (!is_gone)
			is_gone = reap(child);
		if (ppoll(&poller, 1, NULL, &old_set) < 0) {
			if (errno == EINTR)
				continue;
			return 2;
		}
		if (read(report, &byte, 1) != 1)
			return 0;
		if (byte == 'c' && !is_gone) {
			tcsetpgrp(0, child);
			kill(-child, SIGCONT);
		}
	}
}
