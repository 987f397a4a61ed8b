/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/start.c - fill the standard descriptors, and find the memory of arguments and environment
 */
#include "base/start.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool start_fill_descriptors(void)
{
	bool has_stdin = fcntl(STDIN_FILENO, F_GETFD) >= 0;

	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0 && open("/", O_PATH | O_DIRECTORY) < 0)
			break;
	return has_stdin;
}

void start_find_argv_memory(int argc, char *const *argv, char **start, size_t *len)
{
	char *end = argc > 0 ? argv[0] : NULL;

	*start = end;
	*len = 0;
	if (!end)
		return;
	for (int i = 0; i < argc; i++)
		if (argv[i] == end)
			end = argv[i] + strlen(argv[i]) + 1;
	for (char **variable = environ; variable && *variable; variable++)
		if (*variable == end)
			end = *variable + strlen(*variable) + 1;
	*len = (size_t)(end - *start);
}
