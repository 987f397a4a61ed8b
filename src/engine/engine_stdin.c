/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_stdin.c - which descriptor a command may have as standard input
 *
 * A descriptor is an open door: a directory leads out of the jar, a terminal can be written to, a socket of the host's
 * network can be connected elsewhere. Pipes and regular files (under Landlock) are handed over as they are, so that
 * nothing more is read from them than the command reads; everything else is relayed byte by byte.
 */
#include "engine/engine_stdin.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static int open_named(const char *path, struct error *error)
{
	/* Not waiting for a writer: a FIFO must not hang the call before any limit holds. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return error_set(error, STAGE_FILES, errno, "cannot read standard input from '%s': %s", path, strerror(errno));
	fcntl(fd, F_SETFL, 0);
	return fd;
}

static bool is_null_device(const struct stat *status)
{
	return S_ISCHR(status->st_mode) && status->st_rdev == makedev(1, 3);
}

int engine_input_open(const struct engine_request *request, bool has_landlock, struct engine_input *out,
		      struct error *error)
{
	AUTO_CLOSE int opened = -1;
	struct stat status;
	int fd = request->stdin_fd;
	bool is_direct;

	if (request->stdin_choice == ENGINE_STDIN_FILE)
		fd = opened = open_named(request->stdin_path, error);
	else if (request->stdin_choice == ENGINE_STDIN_NULL || fd < 0)
		fd = opened = open_named("/dev/null", error);
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return error_set(error, STAGE_FILES, errno, "cannot use standard input: %s", strerror(errno));
	if (S_ISDIR(status.st_mode))
		return error_set(error, STAGE_FILES, EISDIR, "standard input is a directory");
	is_direct = S_ISFIFO(status.st_mode) || is_null_device(&status) || (S_ISREG(status.st_mode) && has_landlock);
	if (request->has_pty)
		is_direct = false;
	*out = (struct engine_input){
		.direct_fd = is_direct ? fd : -1,
		.relay_fd = is_direct ? -1 : fd,
		.is_terminal = isatty(fd),
		.is_regular_file = is_direct && S_ISREG(status.st_mode),
	};
	out->opened_fd = take_fd(&opened);
	return 0;
}
