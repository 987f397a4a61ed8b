/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/terminal.h - our own terminal in raw mode while the command has one of its own
 *
 * Whatever happens, the terminal is put back: at the end, before Belljar stops, and, by a tiny process that waits for
 * nothing but our death, even after SIGKILL.
 */
#ifndef BELLJAR_DOOR_CLI_TERMINAL_H
#define BELLJAR_DOOR_CLI_TERMINAL_H

#include <sys/ioctl.h>
#include <termios.h>

#include "base/base.h"

struct terminal {
	int fd; /* borrowed; -1: none */
	struct termios saved;
	bool is_raw;
	int guard_fd; /* closing it makes the guard put the terminal back and leave */
	pid_t guard;
};

/* Use @fd if it is a terminal that we are in the foreground of; otherwise nothing is done, now and later. */
void cli_terminal_open(struct terminal *terminal, int fd);
void cli_terminal_raw(struct terminal *terminal);
void cli_terminal_restore(struct terminal *terminal);
void cli_terminal_done(struct terminal *terminal);

/*
 * Before a question: what a command has written may have begun a sequence, or made the terminal hide what follows. Cancel the
 * sequence, end a string, and show characters as they are, on a line of their own.
 */
#define TERMINAL_PLAIN "\x18\x1b\\\x1b[!p\x1b[0m\x1b(B\r\n"
/* By TERM in @environment: such a terminal knows no sequences. */
bool cli_terminal_is_dumb(char *const *environment);

/* The size of the first of stdin, stdout and stderr that is a terminal; 24 by 80 if none is. */
void cli_terminal_size(struct winsize *window);

#endif
