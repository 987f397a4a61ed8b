/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/helper.c - recognise helpers by their name and their parent
 *
 * A command can give itself any name, but the engine is not its parent.
 */
#include "base/helper.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NAME "belljar-helper"
#define STAT_BYTES 512

void helper_take_name(void)
{
	prctl(PR_SET_NAME, NAME, 0, 0, 0);
}

bool helper_is_ours(pid_t pid)
{
	char path[32], content[STAT_BYTES];
	AUTO_CLOSE int fd = -1;
	const char *name, *end;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, content, sizeof(content) - 1);
	if (len <= 0)
		return false;
	content[len] = '\0';
	/* "PID (NAME) STATE PARENT ..." */
	name = strchr(content, '(');
	end = strrchr(content, ')');
	return name && end && (size_t)(end - name - 1) == strlen(NAME) && !strncmp(name + 1, NAME, strlen(NAME)) &&
	       strlen(end) > 4 && (pid_t)atoi(end + 4) == getpid();
}
