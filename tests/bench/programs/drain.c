/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/programs/drain.c - run a command with a pipe for its stdout, read all of it; prints NANOSECONDS BYTES STATUS
 */
#include "turns.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char buffer[65536];
	posix_spawn_file_actions_t actions;
	long long begun = now_ns(), bytes = 0;
	int pipes[2], status = -1;
	ssize_t len;
	pid_t pid;

	if (argc < 2 || pipe2(pipes, O_CLOEXEC))
		return 2;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	if (posix_spawnp(&pid, argv[1], &actions, NULL, argv + 1, environ))
		return 1;
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	while ((len = read(pipes[0], buffer, sizeof(buffer))) > 0)
		bytes += len;
	waitpid(pid, &status, 0);
	printf("%lld %lld %d\n", now_ns() - begun, bytes, status);
	return 0;
}
