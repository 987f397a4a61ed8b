/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_stdin.c - which descriptor a command may have as standard input
 *
 * A descriptor is an open door. A directory leads out of the jar; a terminal can be written to; a socket of the host's
 * network can be connected elsewhere; through /proc/self/fd a pipe can be opened again for writing, and the mode and
 * times of a file be changed. So nothing of the caller's is handed over but the null device: bytes are relayed, and of a
 * file the caller's position is put back to where the command stopped reading.
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
		return error_set(error, STAGE_FILES, errno, "cannot read standard input from '%s': %s", path,
				 strerror(errno));
	fcntl(fd, F_SETFL, 0);
	return fd;
}

static bool is_null_device(const struct stat *status)
{
	return S_ISCHR(status->st_mode) && status->st_rdev == makedev(1, 3);
}

int engine_input_open(const struct engine_request *request, struct engine_input *out, struct error *error)
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
	is_direct = is_null_device(&status) && !request->has_pty;
	*out = (struct engine_input){
		.direct_fd = is_direct ? fd : -1,
		.relay_fd = is_direct ? -1 : fd,
		.is_terminal = isatty(fd),
	};
	out->opened_fd = take_fd(&opened);
	return 0;
}
