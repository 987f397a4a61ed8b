/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/programs/work.c - do some work and say how long it took: what a jar costs whoever is inside
 *
 *	work stat FOLDER COUNT     make COUNT files, then look at each by its name ten times
 *	work calls COUNT           COUNT cheap system calls
 *	work command WORD...       start a command and wait for its end
 *
 * Prints nanoseconds; what prepares the work is not in it.
 */
#include "turns.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOKS 10
#define PATH_BYTES 4096

static int name_of(char *path, const char *folder, int number)
{
	return snprintf(path, PATH_BYTES, "%s/f%d", folder, number) < PATH_BYTES ? 0 : -1;
}

static int make_files(const char *folder, int count)
{
	char path[PATH_BYTES];

	for (int i = 0; i < count; i++) {
		int fd = name_of(path, folder, i) ? -1 : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		if (fd < 0)
			return 1;
		close(fd);
	}
	return 0;
}

static int look_at_files(const char *folder, int count)
{
	char path[PATH_BYTES];
	struct stat info;

	for (int look = 0; look < LOOKS; look++)
		for (int i = 0; i < count; i++)
			if (name_of(path, folder, i) || stat(path, &info))
				return 1;
	return 0;
}

static int make_calls(int count)
{
	for (int i = 0; i < count; i++)
		if (syscall(SYS_getppid) < 0)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	long long begun;
	int status;

	if (argc == 4 && !strcmp(argv[1], "stat")) {
		if (make_files(argv[2], atoi(argv[3])))
			return 1;
		begun = now_ns();
		status = look_at_files(argv[2], atoi(argv[3]));
	} else if (argc == 3 && !strcmp(argv[1], "calls")) {
		begun = now_ns();
		status = make_calls(atoi(argv[2]));
	} else if (argc > 2 && !strcmp(argv[1], "command")) {
		begun = now_ns();
		status = spawn_and_wait(argv + 2) != 0;
	} else {
		return 2;
	}
	printf("%lld\n", now_ns() - begun);
	return status;
}
