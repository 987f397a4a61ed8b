/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/terminal.c - raw mode, and its certain end
 */
#include "door/cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static void set_attributes(int fd, const struct termios *attributes)
{
	sigset_t blocked, before;

	/* From the background this would stop us; with the signal blocked it just works. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTTOU);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	while (tcsetattr(fd, TCSADRAIN, attributes) < 0 && errno == EINTR)
		;
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Waits in a process of its own until the other end closes, then puts the terminal back. */
static void guard_main(int wait_fd, const struct terminal *terminal) __attribute__((noreturn));
static void guard_main(int wait_fd, const struct terminal *terminal)
{
	sigset_t all;
	char byte;

	/* Only for us: signals of the terminal's process group must not end it before its time. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	while (read(wait_fd, &byte, 1) < 0 && errno == EINTR)
		;
	set_attributes(terminal->fd, &terminal->saved);
	_exit(0);
}

static void start_limiter(struct terminal *terminal)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	terminal->guard = fork();
	if (terminal->guard == 0) {
		close(ends[1]);
		guard_main(ends[0], terminal);
	}
	close(ends[0]);
	if (terminal->guard < 0)
		close(ends[1]);
	else
		terminal->guard_fd = ends[1];
}

void cli_terminal_open(struct terminal *terminal, int fd)
{
	*terminal = (struct terminal){.fd = -1, .guard_fd = -1, .guard = -1};
	if (!isatty(fd) || tcgetpgrp(fd) != getpgrp() || tcgetattr(fd, &terminal->saved) < 0)
		return;
	terminal->fd = fd;
	start_limiter(terminal);
}

void cli_terminal_raw(struct terminal *terminal)
{
	struct termios raw = terminal->saved;

	if (terminal->fd < 0 || terminal->is_raw)
		return;
	cfmakeraw(&raw);
	set_attributes(terminal->fd, &raw);
	terminal->is_raw = true;
}

void cli_terminal_restore(struct terminal *terminal)
{
	if (terminal->fd < 0 || !terminal->is_raw)
		return;
	set_attributes(terminal->fd, &terminal->saved);
	terminal->is_raw = false;
}

void cli_terminal_done(struct terminal *terminal)
{
	cli_terminal_restore(terminal);
	close_fd(&terminal->guard_fd);
	if (terminal->guard > 0)
		waitpid(terminal->guard, NULL, 0);
	terminal->guard = -1;
	terminal->fd = -1;
}

bool cli_terminal_is_dumb(char *const *environment)
{
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, "TERM=", 5))
			return !strcmp(*environment + 5, "dumb") || !(*environment)[5];
	return true;
}

void cli_terminal_size(struct winsize *window)
{
	for (int fd = 0; fd <= 2; fd++)
		if (ioctl(fd, TIOCGWINSZ, window) == 0 && window->ws_row && window->ws_col)
			return;
	*window = (struct winsize){.ws_row = 24, .ws_col = 80};
}
