/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/pager.c - a long text on a terminal, one screen after the other
 */
#include "door/cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "door/cli/terminal.h"

static const char *pager_of(char *const *environment)
{
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, "PAGER=", 6) && (*environment)[6])
			return *environment + 6;
	return NULL;
}

static bool fits(const struct text *text)
{
	struct winsize window;
	size_t lines = 0;

	cli_terminal_size(&window);
	for (size_t i = 0; i < text->len; i++)
		lines += text->data[i] == '\n';
	return lines < window.ws_row;
}

static void become_pager(int fd, const char *pager) __attribute__((noreturn));
static void become_pager(int fd, const char *pager)
{
	dup2(fd, STDIN_FILENO);
	/* Colours as they are, and no second screen for what fits on one; what the caller has set stays. */
	setenv("LESS", "FRX", 0);
	execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
	_exit(127);
}

int cli_pager_print(const struct invocation *invocation, const struct text *text, const struct messenger *messenger)
{
	const char *pager = pager_of(invocation->environment);
	int ends[2];
	pid_t child;

	if (!pager || !isatty(STDOUT_FILENO) || fits(text) || pipe2(ends, O_CLOEXEC) < 0)
		return cli_print_out(text, messenger);
	signal(SIGPIPE, SIG_IGN);
	child = fork();
	if (child == 0)
		become_pager(ends[0], pager);
	close(ends[0]);
	if (child < 0) {
		close(ends[1]);
		return cli_print_out(text, messenger);
	}
	for (size_t done = 0; done < text->len;) {
		ssize_t count = write(ends[1], text->data + done, text->len - done);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			break; /* the reader has seen enough */
		done += (size_t)count;
	}
	close(ends[1]);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}
