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
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/paths.h"
#include "survey/survey_paths.h"
#include "base/sys/calls.h"

/* Not waiting for a writer: a FIFO must not hang the call before any limit holds. */
#define INPUT_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* By way of /proc/self/fd one comes to what has no name, a pipe for example; no command can put links there. */
static bool ends_in_proc(const struct string_list *links)
{
	return links->count && path_is_within(links->items[links->count - 1], "/proc");
}

/*
 * The same name may lead elsewhere the next time, by a link that a command has put into its work directory: the planner
 * refuses that, so every link on the way is remembered, and what is opened is what they led to.
 */
static int open_named(const struct engine_request *request, struct host_path *found, struct error *error)
{
	const char *name = request->stdin_path;
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : request->current_directory,
		     name[0] == '/' ? "" : "/", name) >= (int)sizeof(path))
		return error_set(error, STAGE_FILES, ENAMETOOLONG, "cannot read standard input from '%s': %s", name,
				 strerror(ENAMETOOLONG));
	if (survey_look_through(found, path) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	if (!found->error)
		fd = sys_openat2(AT_FDCWD, found->path, INPUT_FLAGS, 0, SYS_RESOLVE_NO_SYMLINKS);
	else
		fd = ends_in_proc(&found->links) ? sys_open(path, INPUT_FLAGS) : -found->error;
	if (fd < 0)
		return error_set(error, STAGE_FILES, -fd, "cannot read standard input from '%s': %s", name,
				 strerror(-fd));
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
	AUTO(survey_path_done) struct host_path found = {0};
	struct stat status;
	int fd = request->stdin_fd;
	bool is_direct;

	if (request->stdin_choice == ENGINE_STDIN_FILE)
		fd = opened = open_named(request, &found, error);
	else if (request->stdin_choice == ENGINE_STDIN_NULL || fd < 0)
		fd = opened = sys_open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error->stage != STAGE_NONE
			       ? fd
			       : error_set(error, STAGE_FILES, -fd, "cannot open /dev/null: %s", strerror(-fd));
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
	out->found = found;
	found = (struct host_path){0};
	return 0;
}

void engine_input_done(struct engine_input *input)
{
	close_fd(&input->opened_fd);
	survey_path_done(&input->found);
}
