/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/init/init_exec.c - what a child does until it is the command
 *
 * It makes system calls only. It leaves its progress where its supervisor can read it.
 */
#include "inside/init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/sys/calls.h"

void init_unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void execute(const char *path, char *const *argv, char *const *env)
{
	syscall(SYS_execve, path, argv, env, 0, 0, JAR_OWN_CALL);
}

/* A script without a first line that says what runs it is the shell's, as everywhere; a foreign binary is not. */
static int execute_as_script(const char *path, const struct jar_command *command, const char *shell)
{
	enum { ARGUMENTS_MAX = 1024 };
	char *arguments[ARGUMENTS_MAX + 2];
	char magic[4] = {0};
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0, 0, JAR_OWN_CALL);
	size_t count = 0;

	if (fd < 0 || read(fd, magic, sizeof(magic)) < 0 || !memcmp(magic, "\177ELF", 4) ||
	    command->argv_count > ARGUMENTS_MAX)
		return -ENOEXEC;
	arguments[count++] = (char *)shell;
	arguments[count++] = (char *)path;
	for (size_t i = 1; i < command->argv_count; i++)
		arguments[count++] = command->argv[i];
	arguments[count] = NULL;
	execute(shell, arguments, command->env);
	return -errno;
}

/* If no candidate works, report one that exists but is refused; ignore candidates in unreadable directories. */
int init_execute(const struct jar_command *command, const char *shell)
{
	bool is_refused = false;
	int rc = -ENOENT;

	for (size_t i = 0; i < command->candidate_count; i++) {
		execute(command->candidates[i], command->argv, command->env);
		rc = -errno;
		if (rc == -ENOEXEC)
			rc = execute_as_script(command->candidates[i], command, shell);
		if (rc != -EACCES && rc != -ENOENT && rc != -ENOTDIR && rc != -ENAMETOOLONG)
			return rc;
		is_refused |= rc == -EACCES && access(command->candidates[i], F_OK) == 0;
	}
	if (strchr(command->argv[0], '/'))
		return rc;
	return is_refused ? -EACCES : -ENOENT;
}

/* A terminal for the command; the engine gets the other side of it. */
static int open_pty(struct jar_inside *inside)
{
	int unlock = 0, number, slave;
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	char path[32];

	if (master < 0)
		return -errno;
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCGPTN, &number) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/dev/pts/%d", number);
	slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	ioctl(slave, TIOCSWINSZ, &inside->command.window);
	for (int i = 0; i < JAR_STREAM_FDS; i++)
		inside->command.fds[i] = slave;
	init_report(inside, &(struct jar_message){.kind = JAR_TERMINAL}, master);
	return 0;
}

static int put_streams(struct jar_inside *inside)
{
	const struct jar_command *command = &inside->command;
	int rc = command->has_pty ? open_pty(inside) : 0;

	for (size_t i = 0; i < command->fd_count && rc == 0; i++)
		rc = dup2(command->fds[i], (int)i) < 0 ? -errno : 0;
	if (rc == 0 && command->has_pty && ioctl(0, TIOCSCTTY, 0) < 0)
		rc = -errno;
	return rc;
}

void init_become_command(struct jar_inside *inside, struct jar_message *start)
{
	const struct jar_command *command = &inside->command;
	uint64_t *times = inside->times ? inside->times->entry_ns : NULL;
	bool is_entry = false;
	int rc = put_streams(inside);

	if (rc == 0) {
		is_entry = true;
		rc = init_carry(inside, &command->entry, &inside->entry_done, times);
	}
	start->steps_done = inside->steps_done;
	start->entry_done = inside->entry_done;
	if (rc < 0) {
		start->kind = JAR_STEP_FAILED;
		start->step_failed.step = is_entry ? (int32_t)inside->entry_done : -1;
		start->step_failed.is_entry = is_entry;
		start->step_failed.error = -rc;
		_exit(125);
	}
	start->kind = JAR_STARTED;
	init_unblock_signals();
	rc = init_execute(command, inside->plan->shell);
	start->kind = JAR_EXEC_FAILED;
	start->exec_failed.error = -rc;
	start->exec_failed.interpreter_missing =
		rc == -ENOENT && strchr(command->argv[0], '/') &&
		!syscall(SYS_faccessat, AT_FDCWD, command->argv[0], F_OK, 0, 0, JAR_OWN_CALL);
	_exit(127);
}
